//! Who left is noticed, and nothing goes on for nobody.

use crate::{gateway, get, whole};

#[test]
fn fetch_waits_for_a_silent_next_hop_when_nobody_reads() {
    let (proxy, origin) = gateway(|_| {});
    let mut client = proxy.client();
    client.send(get(""));
    let (mut hop, _) = origin.answer(whole(1_000_000) + "begin");
    client.read_head();
    client.expect("begin");
    client.into_peer().reset();
    hop.expect_end();
}
