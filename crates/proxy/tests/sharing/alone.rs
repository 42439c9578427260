//! Responses that are not for others: those who waited are let go at the head, and the target is remembered.

use super::with_length;
use crate::support::{OriginConnection, RawClient, Way};
use weir_proxy::config::{ByteSize, Config};

/// Fields that make a response one for the client that asked.
const FIELDS: &[&str] = &[
    "Cache-Control: private, max-age=60\r\n",
    "Cache-Control: no-store\r\n",
    "Set-Cookie: a=b\r\nETag: \"a\"\r\n",
    "Vary: *\r\nCache-Control: max-age=60\r\n",
    "",
    // larger than what may be kept, by one byte
    "Cache-Control: max-age=60\r\nContent-Length: 65537\r\n",
];

fn change(config: &mut Config) {
    config.cache.largest_response = ByteSize::from_kib(64);
}

/// The begin of a response with `fields`; its content begins with `begin`.
fn begun(fields: &str, begin: &str) -> String {
    let length = if fields.contains("Length") {
        ""
    } else {
        "Content-Length: 65536\r\n"
    };
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}{length}\r\n{begin}")
}

/// The client's response begins with `begin` and is its own; both leave.
fn expect_own(client: &mut RawClient, begin: &str) {
    let head = client.read_head();
    assert!(
        head.cache_status()
            .starts_with("fwd=uri-miss;fwd-status=200"),
        "{head:?}"
    );
    assert!(!head.cache_status().contains("collapsed"), "{head:?}");
    client.expect(begin);
}

#[test]
fn followers_wait_for_content_that_is_not_theirs() {
    Way::each_with(change, |way| {
        for (at, fields) in FIELDS.iter().enumerate() {
            let path = format!("/{at}");
            let (mut leader, mut hop) = way.lead(&way.get(&path));
            let mut followers = way.follow(3, &way.get(&path));
            hop.send(begun(fields, "first"));
            expect_own(&mut leader, "first");
            // the first response has not ended, and no other has begun
            let mut hops: Vec<OriginConnection> =
                followers.iter().map(|_| way.origin.accept()).collect();
            for (at, hop) in hops.iter_mut().enumerate() {
                hop.answer(begun(fields, &format!("own {at}")));
            }
            let mut begins: Vec<String> = followers
                .iter_mut()
                .map(|client| {
                    client.read_head();
                    String::from_utf8(client.read_exactly(5)).expect("text")
                })
                .collect();
            begins.sort_unstable();
            assert_eq!(begins, ["own 0", "own 1", "own 2"], "{fields}");
        }
    });
}

#[test]
fn target_that_is_not_to_be_shared_is_forgotten_or_never_forgotten() {
    Way::each_with(change, |way| {
        for (at, fields) in FIELDS.iter().enumerate() {
            let path = format!("/{at}");
            let (mut leader, mut hop) = way.lead(&way.get(&path));
            hop.send(begun(fields, "first"));
            expect_own(&mut leader, "first");
            drop((leader, hop));
            way.proxy.clock.advance_ms(119_999);
            // each asks before any is answered
            let mut clients = way.proxy.asking(2, &way.get(&path));
            let mut hops: Vec<OriginConnection> =
                clients.iter().map(|_| way.origin.accept()).collect();
            for hop in &mut hops {
                hop.answer(begun(fields, "later"));
            }
            for client in &mut clients {
                expect_own(client, "later");
            }
            drop((clients, hops));
            way.proxy.clock.advance_ms(1);
            let (mut leader, mut hop) = way.lead(&way.get(&path));
            let mut follower = way.follow(1, &way.get(&path)).remove(0);
            hop.send(with_length("Connection: close\r\n", "shared"));
            assert_eq!(leader.read_response().text(), "shared");
            assert_eq!(follower.read_response().text(), "shared");
        }
    });
}

#[test]
fn target_that_is_shared_again_stays_alone() {
    Way::each(|way| {
        let (mut leader, mut hop) = way.lead(&way.get("/"));
        hop.send(begun("Cache-Control: no-store\r\n", "first"));
        expect_own(&mut leader, "first");
        let (mut own, mut hop) = way.lead(&way.get("/"));
        hop.send(begun("Cache-Control: max-age=1\r\n", "later"));
        expect_own(&mut own, "later");
        // it arrives, and who comes now reads it
        let joiner = way.proxy.asking(1, &way.get("/")).remove(0).read_head();
        assert_eq!(joiner.cache_status(), "hit;ttl=1;detail=delayed");
        drop((own, hop));
        way.proxy.purge(&format!("http://{}/", way.host));
        let (_leader, _hop) = way.lead(&way.get("/"));
        way.follow(1, &way.get("/"));
    });
}

#[test]
fn memory_of_targets_that_are_not_shared_cannot_be_switched_off() {
    Way::each_with(
        |config| config.fetch.uncollapsible_for = "0s".parse().expect("a span"),
        |way| {
            let (mut leader, mut hop) = way.lead(&way.get("/"));
            hop.send(begun("Cache-Control: no-store\r\n", "first"));
            expect_own(&mut leader, "first");
            let (_leader, _hop) = way.lead(&way.get("/"));
            way.follow(1, &way.get("/"));
        },
    );
}
