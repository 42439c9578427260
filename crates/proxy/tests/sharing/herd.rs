//! Many ask at once for what is not stored.

use super::{FRESH, with_length};
use crate::support::{RawClient, Way, pattern};
use weir_measure::{Joined, Metric, Verdict};

/// Everybody gets `body`, and everybody but the first has waited for it.
fn expect_shared(way: &Way, mut leader: RawClient, followers: Vec<RawClient>, body: &[u8]) {
    let response = leader.read_response();
    assert_eq!(
        response.head.cache_status(),
        "fwd=uri-miss;fwd-status=200;stored"
    );
    assert!(response.body == body, "the first one's content");
    let count = followers.len() as u64;
    for mut follower in followers {
        let response = follower.read_response();
        assert_eq!(response.status(), 200);
        assert_eq!(
            response.head.cache_status(),
            "fwd=uri-miss;ttl=60;collapsed"
        );
        assert!(response.body == body, "a follower's content");
    }
    way.origin.expect_untouched();
    way.proxy.wait_for(Metric::Joined(Joined::Collapsed), count);
    way.proxy
        .wait_for(Metric::Requests(Verdict::UriMiss), count + 1);
    assert_eq!(way.proxy.count(Metric::Joined(Joined::Delayed)), 0);
    assert_eq!(way.proxy.count(Metric::Stored), 1);
}

#[test]
fn concurrent_misses_ask_more_than_once() {
    Way::each(|way| {
        let (leader, hop) = way.lead(&way.get("/"));
        let followers = way.follow(49, &way.get("/"));
        let body = pattern(300_000);
        let sending = hop.sending(with_length("", &body));
        expect_shared(way, leader, followers, &body);
        sending.join().expect("sent");
    });
}

#[test]
fn herd_tramples_the_next_hop() {
    for workers in [1, 2] {
        for length in [100, 300_000] {
            let way = Way::gateway_with(|config| config.workers = workers);
            let (leader, hop) = way.lead(&way.get("/"));
            let followers = way.follow(300, &way.get("/"));
            let body = pattern(length);
            let sending = hop.sending(with_length("", &body));
            expect_shared(&way, leader, followers, &body);
            sending.join().expect("sent");
        }
    }
}

#[test]
fn follower_is_told_another_length_or_no_end() {
    Way::each(|way| {
        // small ones are there with their head, large ones arrive
        for length in [3, 200_000] {
            let body = pattern(length);
            let path = format!("/{length}");
            let request = |version| way.head("GET", &path, version, "");
            let (mut leader, hop) = way.lead(&request("1.0"));
            let (older, newer) = (
                way.follow(3, &request("1.0")),
                way.follow(3, &request("1.1")),
            );
            let mut answer = format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            answer.extend(super::chunk(&body));
            answer.extend(b"0\r\nX-Sum: right\r\n\r\n");
            let sending = hop.sending(answer);
            assert!(leader.read_response().body == body);
            for mut client in older {
                let response = client.read_response();
                assert!(!response.head.is_chunked());
                assert!(response.body == body);
                client.expect_end();
            }
            for mut client in newer {
                let response = client.read_response();
                assert!(response.body == body);
                if response.head.is_chunked() {
                    assert_eq!(response.trailers, "X-Sum: right\r\n");
                }
            }
            drop(sending.join().expect("sent"));
        }
    });
}
