//! The one who asks for all fails before there is a response head, or says nothing: one more asks,
//! then each for itself.

use super::{FRESH, with_length};
use crate::support::{OriginConnection, RawClient, Running, ScriptedOrigin, Setup, span};
use std::time::Instant;
use weir_measure::Metric;

const OK: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\nContent-Length: 3\r\n";

const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// How the next hop fails.
type Fail = fn(OriginConnection);

const FAILURES: &[(Fail, u16)] = &[
    (drop, 502),
    (|hop| hop.into_peer().reset(), 502),
    (|mut hop| hop.send("HTTP/1.1 200"), 502),
    (|mut hop| hop.send("nonsense\r\n\r\n"), 502),
    (
        |mut hop| hop.send(format!("{FRESH}Transfer-Encoding: chunked\r\n\r\nx\r\n")),
        502,
    ),
];

#[test]
fn one_follower_takes_over_for_the_others_after_a_leader_failure() {
    Setup::each(|setup| {
        for (at, (fail, status)) in FAILURES.iter().enumerate() {
            let path = format!("/{at}");
            let (mut leader, hop) = setup.lead(&setup.get(&path));
            let followers = setup.follow(3, &setup.get(&path));
            fail(hop);
            assert_eq!(leader.read_response().status(), *status);
            // one of them asks, and it is the only one
            let mut hop = setup.origin.accept();
            hop.read_head();
            setup.proxy.wait_for(Metric::FollowersWaiting, 2);
            setup.origin.expect_untouched();
            hop.send(with_length("Connection: close\r\n", "got"));
            let mut collapsed = 0;
            for mut follower in followers {
                let response = follower.read_response();
                assert_eq!(response.text(), "got");
                collapsed += usize::from(response.head.cache_status().ends_with("collapsed"));
            }
            assert_eq!(collapsed, 2);
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn followers_forward_their_own_requests_after_two_leader_failures() {
    Setup::each(|setup| {
        for (at, (fail, status)) in FAILURES.iter().enumerate() {
            let path = format!("/{at}");
            let (leader, hop) = setup.lead(&setup.get(&path));
            let mut all = setup.follow(5, &setup.get(&path));
            all.push(leader);
            fail(hop);
            let mut hop = setup.origin.accept();
            hop.read_head();
            setup.proxy.wait_for(Metric::FollowersWaiting, 4);
            fail(hop);
            // what failed them may lie in their own fields: the others are not to suffer for it
            let mut hops = asked(setup, 4);
            setup.proxy.wait_for(Metric::FollowersWaiting, 0);
            for hop in &mut hops {
                hop.send(with_length("Connection: close\r\n", "got"));
            }
            let mut statuses = Vec::new();
            for client in &mut all {
                let response = client.read_response();
                let words = response.head.cache_status();
                assert!(!words.contains("collapsed"), "{words}");
                statuses.push(response.status());
            }
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 200, 200, 200, *status, *status]);
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn followers_forward_their_own_requests_after_two_leader_timeouts() {
    let setup = Setup::gateway_with(|config| config.limits.next_hop_silence = span("1s"));
    let (mut leader, _first) = setup.lead(&setup.get("/"));
    let followers = setup.follow(3, &setup.get("/"));
    assert_eq!(leader.read_response().status(), 504);
    let mut second = setup.origin.accept();
    second.read_head();
    for hop in &mut asked(&setup, 2) {
        hop.send(with_length("Connection: close\r\n", "got"));
    }
    let mut statuses: Vec<u16> = followers
        .into_iter()
        .map(|mut follower| follower.read_response().status())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 504]);
    setup.origin.expect_untouched();
    second.expect_end();
}

#[test]
fn follower_waits_for_its_leader_no_longer_than_the_limit() {
    let limit = "100ms";
    Setup::each_with(
        |config| config.fetch.follower_wait = span(limit),
        |setup| {
            let (mut leader, mut silent) = setup.lead(&setup.get("/"));
            let began = Instant::now();
            let followers = setup.proxy.asking(3, &setup.get("/"));
            let mut hops = asked(setup, 3);
            assert!(began.elapsed() >= span(limit).as_duration());
            for hop in &mut hops {
                hop.send(with_length("Connection: close\r\n", "got"));
            }
            for mut follower in followers {
                let response = follower.read_response();
                assert_eq!(response.text(), "got");
                let words = response.head.cache_status();
                assert_eq!(words, "fwd=uri-miss;fwd-status=200;stored");
            }
            setup.proxy.wait_for(Metric::FollowersWaiting, 0);
            // the one who asks first is not told off for it
            silent.send(with_length("Connection: close\r\n", "late"));
            assert_eq!(leader.read_response().text(), "late");
        },
    );
}

#[test]
fn follower_wait_of_zero_forwards_each_request_at_once() {
    Setup::each_with(
        |config| config.fetch.follower_wait = span("0s"),
        |setup| {
            let (_first, _silent) = setup.lead(&setup.get("/"));
            let (mut second, mut hop) = setup.lead(&setup.get("/"));
            hop.send(with_length("Connection: close\r\n", "got"));
            assert_eq!(second.read_response().text(), "got");
        },
    );
}

/// So many connections on which the next hop has read a request.
fn asked(setup: &Setup, count: usize) -> Vec<OriginConnection> {
    let accept = |_| {
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop
    };
    (0..count).map(accept).collect()
}

#[test]
fn refusing_next_hop_is_tried_once_for_each_collapsed_request() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |_| {});
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut leader = proxy.client();
    leader.send(get("/first"));
    let (mut hop, _) = origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(leader.read_response().status(), 204);
    // it asks on the idle connection; that one closes, and there is no other
    leader.send(get("/"));
    hop.read_head();
    let mut all = proxy.asking(3, &get("/"));
    proxy.wait_for(Metric::FollowersWaiting, 3);
    drop(origin);
    drop(hop);
    all.push(leader);
    for client in &mut all {
        let response = client.read_response();
        assert_eq!(response.status(), 502);
    }
    let refused = weir_measure::HopOutcome::Refused;
    assert_eq!(proxy.count(Metric::NextHopConnections(refused)), 4);
}

/// A client whose response is stored, and stale by now; `fields` belong to it.
fn stale(setup: &Setup, path: &str, fields: &str) -> RawClient {
    let mut client = setup.proxy.client();
    client.send(setup.get(path));
    setup.origin.answer(format!(
        "{OK}Connection: close\r\nETag: \"a\"\r\n{fields}\r\nold"
    ));
    assert_eq!(client.read_response().text(), "old");
    setup.proxy.clock.advance_ms(2000);
    client
}

#[test]
fn followers_of_failed_leaders_are_served_stale_where_allowed() {
    Setup::each(|setup| {
        let (gone, error) = ("disconnected", "stale-if-error");
        let answers = [
            ("", [gone, gone, gone, gone]),
            ("nonsense\r\n\r\n", [error, error, error, error]),
            (UNAVAILABLE, [error, error, error, error]),
        ];
        for (at, (answer, expected)) in answers.iter().enumerate() {
            let path = format!("/{at}");
            let mut leader = stale(setup, &path, "Cache-Control: stale-if-error=600\r\n");
            leader.send(setup.get(&path));
            let mut hop = setup.origin.accept();
            assert_eq!(hop.read_head().field("if-none-match"), Some("\"a\""));
            let mut all = setup.follow(3, &setup.get(&path));
            hop.send(answer);
            drop(hop);
            let mut hop = setup.origin.accept();
            assert_eq!(hop.read_head().field("if-none-match"), Some("\"a\""));
            setup.proxy.wait_for(Metric::FollowersWaiting, 2);
            hop.send(answer);
            drop(hop);
            for mut hop in asked(setup, 2) {
                hop.send(answer);
            }
            all.push(leader);
            let mut excuses = Vec::new();
            for client in &mut all {
                let response = client.read_response();
                assert_eq!((response.status(), response.text().as_str()), (200, "old"));
                let words = response.head.cache_status();
                assert!(words.starts_with("fwd=stale"), "{words}");
                excuses.push(words.rsplit("detail=").next().unwrap_or("").to_owned());
            }
            excuses.sort_unstable();
            assert_eq!(excuses, expected, "{answer:?}");
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn followers_of_failed_leaders_get_502_where_stale_is_not_allowed() {
    Setup::each(|setup| {
        // it speaks, though no HTTP: we are not disconnected from it (RFC 9111 §4.2.4)
        let mut leader = stale(setup, "/", "");
        leader.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let mut all = setup.follow(3, &setup.get("/"));
        hop.send("nonsense\r\n\r\n");
        let mut hop = setup.origin.accept();
        hop.read_head();
        setup.proxy.wait_for(Metric::FollowersWaiting, 2);
        hop.send("nonsense\r\n\r\n");
        for mut hop in asked(setup, 2) {
            hop.send("nonsense\r\n\r\n");
        }
        all.push(leader);
        for client in &mut all {
            assert_eq!(client.read_response().status(), 502);
        }
    });
}

#[test]
fn one_validation_serves_leader_and_followers() {
    Setup::each(|setup| {
        let mut leader = stale(setup, "/", "");
        leader.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let followers = setup.follow(3, &setup.get("/"));
        hop.send("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\r\n");
        assert_eq!(leader.read_response().text(), "old");
        for mut follower in followers {
            let response = follower.read_response();
            assert_eq!(response.text(), "old");
            assert_eq!(response.head.cache_status(), "fwd=stale;ttl=60;collapsed");
        }
        hop.expect_nothing_more();
        setup.origin.expect_untouched();
    });
}
