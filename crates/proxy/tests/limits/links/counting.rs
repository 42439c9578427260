//! What is counted for a link.

use super::{QUOTA, linked, page, quota, row, spent};
use crate::support::Setup;
use tempfile::TempDir;

#[test]
fn bytes_of_both_directions_and_of_heads_are_counted_for_the_link_of_the_next_hop() {
    Setup::each_with(linked(r#"[{"name": "a"}]"#), |setup| {
        let answer = page("", 1000);
        setup.fetch("/", &answer);
        let row = row(setup);
        assert_eq!(row.received_bytes, answer.len() as u64);
        assert!((50..1000).contains(&row.sent_bytes), "{row:?}");
        assert_eq!(row.waited_ms, 0);
    });
}

#[test]
fn next_hop_that_no_link_names_is_behind_none() {
    let setup = Setup::gateway_with(|config| {
        let hop = config.routes[0].next_hops[0].clone();
        let other = "http://127.0.0.1:9".parse().expect("a URL");
        config.routes[0].next_hops.push(other);
        config.routes[0].next_hops.swap(0, 1);
        linked(r#"[{"name": "a", "next_hops": ["http://127.0.0.1:9"]}]"#)(config);
        assert_ne!(config.links[0].next_hops[0], hop);
    });
    setup.fetch("/", &page("", 10));
    assert_eq!(row(&setup).received_bytes, 0);
}

#[test]
fn tunnel_is_counted_and_ends_with_the_quota() {
    let folder = TempDir::new().unwrap();
    let text = quota(folder.path(), "");
    let setup = Setup::forward_with(|config| {
        linked(&text)(config);
        config.access.connect_ports = vec![];
    });
    let port = setup.origin.address().port();
    setup
        .proxy
        .reload(|config| config.access.connect_ports = vec![port]);
    let connect = format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", setup.host);
    let mut client = setup.proxy.client();
    client.send(&connect);
    let mut hop = setup.origin.accept();
    client.read_head();
    client.send("x".repeat(1000));
    hop.read_exactly(1000);
    hop.send("y".repeat(2000));
    client.read_exactly(2000);
    let counted = row(&setup);
    assert_eq!((counted.received_bytes, counted.sent_bytes), (2000, 1000));
    assert_eq!(spent(&setup), 3000);
    let sending = std::thread::spawn(move || {
        let _cut = hop.try_send("z".repeat(3 * QUOTA));
    });
    let received = client.read_to_end().0.len();
    sending.join().expect("no panic");
    assert!(received <= QUOTA, "{received}");
    let refused = setup.proxy.client().ask(&connect);
    assert_eq!(refused.status(), 429);
}

#[test]
fn transfer_goes_on_when_a_reload_drops_its_link_or_gives_it_another_file() {
    let folder = TempDir::new().unwrap();
    let change = linked(&quota(folder.path(), ""));
    let moved = quota(folder.path(), "").replace("/link\"", "/other\"");
    for next in [String::from("[]"), moved] {
        let setup = Setup::gateway_with(&change);
        let mut client = setup.proxy.client();
        client.send(setup.get("/large"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let answer = page("Cache-Control: no-store\r\n", QUOTA / 2);
        hop.send(&answer[..1000]);
        client.read_head();
        setup.proxy.reload(linked(&next));
        // more than a step of the booking
        let rest = hop.sending(&answer[1000..]);
        client.read_exactly(QUOTA / 2);
        rest.join().expect("no panic");
    }
}
