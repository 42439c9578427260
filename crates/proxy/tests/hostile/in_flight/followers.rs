//! Who waits at the gate for another one's response head, and what a leader must not do to them.

use super::{ask, gateway, get, whole};
use crate::support::{RawClient, pattern, span};
use weir_measure::Metric;

const DOWN: &str = "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n";

#[test]
fn follower_does_not_wait_for_a_slow_leader_served_stale() {
    let (proxy, origin) = gateway(|config| config.limits.client_silence = span("10min"));
    let body = pattern(8_000_000);
    let head = whole(body.len()).replace("max-age=60", "max-age=1, stale-if-error=1000");
    let mut first = ask(&proxy, "");
    let answered = std::thread::scope(|scope| {
        let sent = scope.spawn(|| origin.answer([head.as_bytes(), &body].concat()));
        assert!(first.read_response().body == body);
        sent.join().expect("no panic")
    });
    let (mut hop, _) = answered;
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    proxy.clock.advance_ms(10_000);
    let mut leader = RawClient::connect_small(proxy.address());
    leader.send(get(""));
    hop.read_head();
    let mut follower = ask(&proxy, "");
    proxy.wait_for(Metric::RequestsInFlight, 2);
    hop.send(DOWN);
    // it asks for itself
    let (_hop, _) = origin.answer(DOWN);
    assert!(follower.read_response().body == body);
}

#[test]
fn followers_get_the_response_though_the_leader_disconnected_before_103() {
    let (proxy, origin) = gateway(|_| {});
    let leader = ask(&proxy, "");
    let mut hop = origin.accept();
    hop.read_head();
    let mut follower = ask(&proxy, "");
    proxy.wait_for(Metric::RequestsInFlight, 2);
    leader.into_peer().reset();
    for _ in 0..3 {
        hop.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n");
        proxy.wait_for(Metric::RequestsInFlight, 2);
    }
    hop.send(whole(2) + "ok");
    assert_eq!(follower.read_response().text(), "ok");
    origin.expect_untouched();
}

#[test]
fn unshareable_part_or_error_does_not_make_the_key_hit_for_miss() {
    for (fields, answer) in [
        (
            "Range: bytes=0-1\r\n",
            "HTTP/1.1 206 Partial Content\r\nETag: W/\"a\"\r\nContent-Range: bytes 0-1/4\r\nContent-Length: 2\r\n\r\nab",
        ),
        ("", "HTTP/1.1 503 Down\r\nContent-Length: 2\r\n\r\nno"),
    ] {
        let (proxy, origin) = gateway(|_| {});
        let mut lonely = ask(&proxy, fields);
        let (mut hop, _) = origin.answer(answer);
        lonely.read_response();
        let mut leader = ask(&proxy, "");
        hop.read_head();
        let mut follower = ask(&proxy, "");
        proxy.wait_for(Metric::RequestsInFlight, 2);
        origin.expect_untouched();
        hop.send(whole(2) + "ok");
        assert_eq!(leader.read_response().text(), "ok");
        assert_eq!(follower.read_response().text(), "ok");
    }
}
