//! Who may read what is arriving, and what one of them must not do to the others.

use super::{ask, begun, gateway, get, part, range, whole};
use crate::support::pattern;
use weir_measure::Metric;

#[test]
fn request_fetches_separately_when_no_follower_is_allowed() {
    let (proxy, origin) = gateway(|config| config.fetch.followers_max = 0);
    let (_leader, _hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    let (_other, _its_hop) = begun(&proxy, &origin, &whole(1_000_000), b"other");
}

#[test]
fn request_beyond_the_follower_maximum_fetches_separately() {
    let (proxy, origin) = gateway(|config| config.fetch.followers_max = 1);
    let (_leader, _hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    let mut follower = ask(&proxy, "");
    assert!(follower.read_head().status() == 200);
    follower.expect("begin");
    let (_other, _its_hop) = begun(&proxy, &origin, &whole(1_000_000), b"other");
}

/// A reader far ahead, whose request says what may not be stored, is forwarded by itself; no other
/// notices.
#[test]
fn range_request_forbidding_storage_is_fetched_separately() {
    for fields in [
        "Cache-Control: no-store\r\n",
        "Authorization: Basic YTpi\r\n",
    ] {
        let (proxy, origin) = gateway(|_| {});
        let content = pattern(5_000_000);
        let (mut leader, mut hop) = begun(&proxy, &origin, &whole(content.len()), &content[..10]);
        let far = 4_000_000..4_001_000;
        let mut reader = ask(&proxy, &(range(far.clone()) + fields));
        let (mut its_hop, asked) = origin.answer(part(&content, far.clone()));
        assert!(!asked.has("if-range"), "{asked:?}");
        assert!(reader.read_response().body == content[far.clone()]);
        // a third is still let on, and has fetched what it needs
        let mut third = ask(&proxy, &range(2_000_000..2_000_010));
        its_hop.answer(part(&content, 2_000_000..2_000_010));
        assert!(third.read_response().body == content[2_000_000..2_000_010]);
        hop.send(&content[10..20]);
        assert!(leader.read_exactly(10) == content[10..20]);
    }
}

/// The representation changes while one is arriving: those who come then share the new one.
#[test]
fn requests_after_a_change_share_the_new_response_while_the_old_arrives() {
    let (proxy, origin) = gateway(|_| {});
    let (_leader, _hop) = begun(&proxy, &origin, &whole(5_000_000), b"old");
    let _far = ask(&proxy, &range(4_000_000..4_001_000));
    let changed = whole(5_000_000).replace("\"a\"", "\"b\"");
    let (mut refused, _) = origin.answer(&changed);
    refused.expect_end();
    let (_first, _its_hop) = begun(&proxy, &origin, &changed, b"new");
    let mut second = ask(&proxy, "");
    assert_eq!(second.read_head().field("etag"), Some("\"b\""));
    second.expect("new");
    origin.expect_untouched();
}

#[test]
fn missing_range_fetch_is_retried_after_the_idle_race() {
    let (proxy, origin) = gateway(|_| {});
    let content = pattern(5_000_000);
    let mut other = proxy.client();
    other.send("GET /other HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let mut idle = origin.accept();
    idle.read_head();
    let (_leader, _hop) = begun(&proxy, &origin, &whole(content.len()), &content[..10]);
    idle.send(whole(2) + "ok");
    other.read_response();
    let far = 4_000_000..4_001_000;
    let mut reader = ask(&proxy, &range(far.clone()));
    idle.read_head();
    drop(idle);
    let (_its_hop, _) = origin.answer(part(&content, far.clone()));
    assert!(reader.read_response().body == content[far]);
}

#[test]
fn older_response_does_not_replace_a_newer_one() {
    let (proxy, origin) = gateway(|_| {});
    let (mut slow, mut hop) = begun(&proxy, &origin, &whole(10), b"11111");
    proxy.clock.advance_ms(1000);
    let mut reload = ask(&proxy, "Cache-Control: no-cache\r\n");
    let (_its_hop, _) = origin.answer(whole(10).replace("\"a\"", "\"b\"") + "2222222222");
    assert_eq!(reload.read_response().text(), "2222222222");
    hop.send("11111");
    slow.expect("11111");
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    assert_eq!(reload.ask(get("")).text(), "2222222222");
}
