//! Responses that are not for others: those who waited are let go at the head, and the target is
//! remembered.

use super::with_length;
use crate::support::{OriginConnection, RawClient, Setup};
use weir_policy::SetCookieRule;
use weir_proxy::config::{ByteSize, Config};

/// Fields that make a response one for the client that asked.
const FIELDS: &[&str] = &[
    "Cache-Control: private, max-age=60\r\n",
    "Cache-Control: no-store\r\n",
    "Set-Cookie: a=b\r\nETag: \"a\"\r\n",
    "Set-Cookie: a=b\r\nCache-Control: max-age=60\r\n",
    "Set-Cookie2: a=b\r\nExpires: Fri, 01 Jan 2100 00:00:00 GMT\r\n",
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
fn followers_of_an_unshareable_response_forward_before_it_has_ended() {
    Setup::each_with(change, |setup| {
        for (at, fields) in FIELDS.iter().enumerate() {
            let path = format!("/{at}");
            let (mut leader, mut hop) = setup.lead(&setup.get(&path));
            let mut followers = setup.follow(3, &setup.get(&path));
            hop.send(begun(fields, "first"));
            expect_own(&mut leader, "first");
            // the first response has not ended, and no other has begun
            let mut hops: Vec<OriginConnection> =
                followers.iter().map(|_| setup.origin.accept()).collect();
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
fn unshareable_target_uri_is_hit_for_miss_for_two_minutes() {
    Setup::each_with(change, |setup| {
        for (at, fields) in FIELDS.iter().enumerate() {
            let path = format!("/{at}");
            let (mut leader, mut hop) = setup.lead(&setup.get(&path));
            hop.send(begun(fields, "first"));
            expect_own(&mut leader, "first");
            drop((leader, hop));
            setup.proxy.clock.advance_ms(119_999);
            // each asks before any is answered
            let mut clients = setup.proxy.asking(2, &setup.get(&path));
            let mut hops: Vec<OriginConnection> =
                clients.iter().map(|_| setup.origin.accept()).collect();
            for hop in &mut hops {
                hop.answer(begun(fields, "later"));
            }
            for client in &mut clients {
                expect_own(client, "later");
            }
            drop((clients, hops));
            setup.proxy.clock.advance_ms(1);
            let (mut leader, mut hop) = setup.lead(&setup.get(&path));
            let mut follower = setup.follow(1, &setup.get(&path)).remove(0);
            hop.send(with_length("Connection: close\r\n", "shared"));
            assert_eq!(leader.read_response().text(), "shared");
            assert_eq!(follower.read_response().text(), "shared");
        }
    });
}

#[test]
fn shareable_response_ends_hit_for_miss_of_its_target_uri() {
    Setup::each(|setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        hop.send(begun("Cache-Control: no-store\r\n", "first"));
        expect_own(&mut leader, "first");
        let (mut own, mut hop) = setup.lead(&setup.get("/"));
        hop.send(begun("Cache-Control: max-age=1\r\n", "later"));
        expect_own(&mut own, "later");
        // it arrives, and who comes now reads it
        let joiner = setup.proxy.asking(1, &setup.get("/")).remove(0).read_head();
        assert_eq!(joiner.cache_status(), "hit;ttl=1;detail=delayed");
        drop((own, hop));
        setup.proxy.purge(&format!("http://{}/", setup.host));
        let (_leader, _hop) = setup.lead(&setup.get("/"));
        setup.follow(1, &setup.get("/"));
    });
}

#[test]
fn hit_for_miss_can_be_disabled() {
    Setup::each_with(
        |config| config.fetch.uncollapsible_for = "0s".parse().expect("a span"),
        |setup| {
            let (mut leader, mut hop) = setup.lead(&setup.get("/"));
            hop.send(begun("Cache-Control: no-store\r\n", "first"));
            expect_own(&mut leader, "first");
            let (_leader, _hop) = setup.lead(&setup.get("/"));
            setup.follow(1, &setup.get("/"));
        },
    );
}

/// Fields of responses that are stored, and answer no request before they are validated.
const VALIDATED: &[&str] = &[
    "Cache-Control: no-cache\r\n",
    "Cache-Control: max-age=0, must-revalidate\r\n",
    "Cache-Control: max-age=60\r\nAge: 60\r\n",
];

#[test]
fn requests_do_not_wait_for_a_response_that_each_must_validate() {
    Setup::each(|setup| {
        for (at, fields) in VALIDATED.iter().enumerate() {
            for length in [10, 100_000] {
                let path = format!("/{at}/{length}");
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nETag: \"a\"\r\n{fields}Content-Length: {length}\r\n\r\n"
                );
                let body = "x".repeat(length);
                let (leader, mut hop) = setup.lead(&setup.get(&path));
                let mut clients = setup.follow(2, &setup.get(&path));
                // they are let go at the head
                hop.send(&head);
                let mut hops = vec![hop];
                for _ in &clients {
                    let mut hop = setup.origin.accept();
                    hop.answer(&head);
                    hops.push(hop);
                }
                for hop in &mut hops {
                    hop.send(&body);
                }
                clients.push(leader);
                for client in &mut clients {
                    assert_eq!(client.read_response().text(), body, "{fields}");
                }
                drop(hops);
                // from now on each validates for itself, before any of them is answered
                let mut clients = setup.proxy.asking(3, &setup.get(&path));
                let mut hops: Vec<_> = clients.iter().map(|_| setup.origin.accept()).collect();
                for hop in &mut hops {
                    assert_eq!(hop.read_head().field("if-none-match"), Some("\"a\""));
                }
                for hop in &mut hops {
                    hop.send(format!("HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"a\"\r\n{fields}\r\n"));
                }
                for client in &mut clients {
                    assert_eq!(client.read_response().text(), body);
                }
            }
        }
        setup.origin.expect_untouched();
    });
}

#[test]
fn follower_released_by_a_validation_sends_a_conditional_request() {
    Setup::each(|setup| {
        // it was shared until now
        drop(setup.fetch("/", "HTTP/1.1 200 OK\r\nConnection: close\r\nETag: \"a\"\r\nCache-Control: max-age=1\r\nContent-Length: 3\r\n\r\nold"));
        setup.proxy.clock.advance_ms(2000);
        let not_modified = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"a\"\r\nCache-Control: no-cache\r\n\r\n";
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let mut followers = setup.follow(2, &setup.get("/"));
        hop.send(not_modified);
        assert_eq!(leader.read_response().text(), "old");
        for _ in &followers {
            let (_, head) = setup.origin.answer(not_modified);
            assert_eq!(head.field("if-none-match"), Some("\"a\""));
        }
        for follower in &mut followers {
            assert_eq!(follower.read_response().text(), "old");
        }
    });
}

/// What is stored for `path`, stale by now, and validated: by a leader and two who wait for it.
fn validating(setup: &Setup, path: &str) -> (RawClient, OriginConnection, Vec<RawClient>) {
    let stored = "HTTP/1.1 200 OK\r\nConnection: close\r\nETag: \"a\"\r\nCache-Control: max-age=1\r\nContent-Length: 3\r\n\r\nold";
    drop(setup.fetch(path, stored));
    setup.proxy.clock.advance_ms(2000);
    let (leader, hop) = setup.lead(&setup.get(path));
    let followers = setup.follow(2, &setup.get(path));
    (leader, hop, followers)
}

fn not_modified(fields: &str) -> String {
    format!("HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"a\"\r\n{fields}\r\n")
}

#[test]
fn set_cookie_of_a_304_goes_to_the_leader_only() {
    Setup::each(|setup| {
        let (mut leader, mut hop, mut followers) = validating(setup, "/");
        hop.send(not_modified("Set-Cookie: user=a\r\nX-All: 1\r\n"));
        let response = leader.read_response();
        assert_eq!(response.text(), "old");
        assert_eq!(response.head.field("set-cookie"), Some("user=a"));
        followers.extend(setup.proxy.asking(1, &setup.get("/")));
        for follower in &mut followers {
            let response = follower.read_response();
            assert_eq!(response.text(), "old");
            assert_eq!(response.head.field("x-all"), Some("1"));
            assert!(!response.head.has("set-cookie"), "{:?}", response.head);
        }
        setup.origin.expect_untouched();
    });
}

#[test]
fn followers_of_a_private_304_forward_their_own_requests() {
    Setup::each(|setup| {
        for (at, fields) in [
            "Cache-Control: private, max-age=60\r\nX-User: a\r\n",
            "Cache-Control: no-store\r\nX-User: a\r\n",
            "Vary: *\r\nX-User: a\r\n",
        ]
        .iter()
        .enumerate()
        {
            let (mut leader, mut hop, mut followers) = validating(setup, &format!("/{at}"));
            hop.send(not_modified(fields));
            let response = leader.read_response();
            assert_eq!(response.text(), "old");
            assert_eq!(response.head.field("x-user"), Some("a"));
            let hops: Vec<_> = followers.iter().map(|_| setup.origin.accept()).collect();
            for mut hop in hops {
                hop.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nown");
            }
            for follower in &mut followers {
                let response = follower.read_response();
                assert_eq!(response.text(), "own", "{fields}");
                assert!(!response.head.has("x-user"), "{:?}", response.head);
            }
        }
    });
}

#[test]
fn response_with_set_cookie_is_shared_in_rfc9111_mode() {
    let change = |config: &mut Config| config.cache.set_cookie = SetCookieRule::Rfc9111;
    Setup::each_with(change, |setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let mut follower = setup.follow(1, &setup.get("/")).remove(0);
        hop.send(with_length(
            "Connection: close\r\nSet-Cookie: site=a\r\nETag: \"a\"\r\n",
            "shared",
        ));
        for client in [&mut leader, &mut follower] {
            let response = client.read_response();
            assert_eq!(response.text(), "shared");
            assert_eq!(response.head.field("set-cookie"), Some("site=a"));
        }
        let hit = setup.proxy.client().ask(setup.get("/"));
        assert_eq!(hit.verdict(), "hit");
        assert_eq!(hit.head.field("set-cookie"), Some("site=a"));
        // the cookie of a 304 is its own client's all the same
        setup.proxy.clock.advance_ms(60_000);
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        hop.send(not_modified(
            "Set-Cookie: user=a\r\nCache-Control: max-age=60\r\n",
        ));
        let response = leader.read_response();
        assert_eq!(response.head.field("set-cookie"), Some("user=a"));
        let hit = setup.proxy.client().ask(setup.get("/"));
        assert_eq!(hit.head.field("set-cookie"), Some("site=a"));
        // and a private response is for one user
        let (mut leader, mut hop) = setup.lead(&setup.get("/own"));
        let _followers = setup.follow(1, &setup.get("/own"));
        hop.send(begun(
            "Set-Cookie: a=b\r\nCache-Control: private, max-age=60\r\n",
            "first",
        ));
        expect_own(&mut leader, "first");
        setup.origin.accept();
    });
}
