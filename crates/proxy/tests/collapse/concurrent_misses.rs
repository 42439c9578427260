//! Many ask at once for what is not stored.

use super::{FRESH, with_length};
use crate::support::{RawClient, Setup, pattern};
use weir_measure::{Joined, Metric, Verdict};

/// Everybody gets `body`, and everybody but the first has waited for it.
fn expect_shared(setup: &Setup, mut leader: RawClient, followers: Vec<RawClient>, body: &[u8]) {
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
    setup.origin.expect_untouched();
    setup
        .proxy
        .wait_for(Metric::Joined(Joined::Collapsed), count);
    // who asked nothing of the next hop is no miss
    let requests = |verdict| Metric::Requests(verdict);
    setup.proxy.wait_for(requests(Verdict::Collapsed), count);
    setup.proxy.wait_for(requests(Verdict::UriMiss), 1);
    assert_eq!(setup.proxy.count(Metric::Joined(Joined::Delayed)), 0);
    assert_eq!(setup.proxy.count(Metric::Stored), 1);
}

#[test]
fn concurrent_misses_are_collapsed_into_one_request() {
    Setup::each(|setup| {
        let (leader, hop) = setup.lead(&setup.get("/"));
        let followers = setup.follow(49, &setup.get("/"));
        let body = pattern(300_000);
        let sending = hop.sending(with_length("", &body));
        expect_shared(setup, leader, followers, &body);
        sending.join().expect("sent");
    });
}

#[test]
fn hundreds_of_concurrent_misses_are_collapsed_across_workers() {
    for workers in [1, 2] {
        for length in [100, 300_000] {
            let setup = Setup::gateway_with(|config| config.workers = workers);
            let (leader, hop) = setup.lead(&setup.get("/"));
            let followers = setup.follow(300, &setup.get("/"));
            let body = pattern(length);
            let sending = hop.sending(with_length("", &body));
            expect_shared(&setup, leader, followers, &body);
            sending.join().expect("sent");
        }
    }
}

#[test]
fn follower_gets_a_chunked_response_in_the_framing_of_its_version() {
    Setup::each(|setup| {
        // small ones are there with their head, large ones arrive
        for length in [3, 200_000] {
            let body = pattern(length);
            let path = format!("/{length}");
            let request = |version| setup.head("GET", &path, version, "");
            let (mut leader, hop) = setup.lead(&request("1.0"));
            let (older, newer) = (
                setup.follow(3, &request("1.0")),
                setup.follow(3, &request("1.1")),
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

#[test]
fn cacheable_response_of_any_status_is_shared_with_followers() {
    Setup::each(|setup| {
        let answers = [
            ("200 OK", "Content-Length: 0\r\n", ""),
            ("204 No Content", "", ""),
            (
                "301 Moved Permanently",
                "Location: /there\r\nContent-Length: 5\r\n",
                "there",
            ),
            ("404 Not Found", "Content-Length: 4\r\n", "none"),
            (
                "410 Gone",
                "Transfer-Encoding: chunked\r\n",
                "4\r\ngone\r\n0\r\n\r\n",
            ),
            ("503 Service Unavailable", "Content-Length: 4\r\n", "busy"),
        ];
        for (at, (status, fields, content)) in answers.iter().enumerate() {
            let path = format!("/{at}");
            let (leader, mut hop) = setup.lead(&setup.get(&path));
            let mut all = setup.follow(3, &setup.get(&path));
            all.push(leader);
            hop.send(format!("HTTP/1.1 {status}\r\nConnection: close\r\nCache-Control: max-age=60\r\n{fields}\r\n{content}"));
            for client in &mut all {
                let response = client.read_response();
                assert_eq!(response.head.start_line(), format!("HTTP/1.1 {status}"));
                assert!(content.contains(&response.text()), "{response:?}");
            }
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_order_when_some_are_collapsed() {
    Setup::each(|setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/a"));
        let mut ahead = setup
            .follow(1, &(setup.get("/a") + &setup.get("/b") + &setup.get("/a")))
            .remove(0);
        hop.send(with_length("Connection: close\r\n", "a"));
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert!(head.start_line().contains("/b "), "{head:?}");
        let mut other = setup.follow(1, &setup.get("/b")).remove(0);
        hop.send(with_length("Connection: close\r\n", "b"));
        for expected in ["a", "b", "a"] {
            assert_eq!(ahead.read_response().text(), expected);
        }
        assert_eq!(leader.read_response().text(), "a");
        assert_eq!(other.read_response().text(), "b");
        setup.origin.expect_untouched();
    });
}

#[test]
fn request_beyond_the_follower_maximum_leads_a_second_fetch() {
    Setup::each_with(
        |config| config.fetch.followers_max = 1,
        |setup| {
            let (mut leader, mut hop) = setup.lead(&setup.get("/"));
            let mut follower = setup.follow(1, &setup.get("/")).remove(0);
            // one too many: it asks, and may have a follower of its own
            let (mut second, mut second_hop) = setup.lead(&setup.get("/"));
            let body = pattern(100_000);
            hop.send(format!(
                "{FRESH}Connection: close\r\nContent-Length: 100000\r\n\r\n"
            ));
            hop.send(&body[..50_000]);
            for client in [&mut leader, &mut follower] {
                client.read_head();
                client.read_exactly(50_000);
            }
            // as many read it as may: who comes now follows the one beyond
            let mut third = setup.follow(1, &setup.get("/")).remove(0);
            second_hop.send(with_length("Connection: close\r\n", "own"));
            for client in [&mut second, &mut third] {
                assert_eq!(client.read_response().text(), "own");
            }
            hop.send(&body[50_000..]);
            for client in [&mut leader, &mut follower] {
                assert!(client.read_exactly(50_000) == body[50_000..]);
            }
            setup.origin.expect_untouched();
        },
    );
}

#[test]
fn follower_maximum_of_zero_disables_sharing() {
    Setup::each_with(
        |config| config.fetch.followers_max = 0,
        |setup| {
            let (mut first, mut hop) = setup.lead(&setup.get("/"));
            let (_second, _second_hop) = setup.lead(&setup.get("/"));
            hop.send(format!("{FRESH}Content-Length: 100000\r\n\r\n"));
            hop.send([b'x'; 50_000]);
            first.read_head();
            first.read_exactly(50_000);
            let (_third, _third_hop) = setup.lead(&setup.get("/"));
        },
    );
}
