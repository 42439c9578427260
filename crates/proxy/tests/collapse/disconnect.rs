//! Clients disconnect: a fetch with readers or followers goes on, one without stops.

use super::{FRESH, with_length};
use crate::support::{RawClient, Setup, pattern};
use weir_measure::{Aborted, Metric};
use weir_policy::fetch::AbortKind;
use weir_proxy::config::{Config, Span};

/// Fetches without readers stop, and a client that has closed its side has left.
fn change(config: &mut Config) {
    config.fetch.abort = AbortKind::Stop;
    config.fetch.half_closed = Span::ZERO;
}

/// How a client goes.
type Leave = fn(RawClient);

const LEAVE: [Leave; 2] = [drop, |client| client.into_peer().reset()];

#[test]
fn followers_get_the_response_after_their_leader_disconnects() {
    Setup::each_with(change, |setup| {
        for (at, leave) in LEAVE.iter().enumerate() {
            for length in [10, 30_000, 300_000] {
                let path = format!("/{at}/{length}");
                let (leader, hop) = setup.lead(&setup.get(&path));
                let followers = setup.follow(3, &setup.get(&path));
                leave(leader);
                setup.proxy.turn();
                let body = pattern(length);
                let sending = hop.sending(with_length("Connection: close\r\n", &body));
                for mut follower in followers {
                    let response = follower.read_response();
                    assert!(response.body == body);
                    assert_eq!(
                        response.head.cache_status(),
                        "fwd=uri-miss;ttl=60;collapsed"
                    );
                }
                setup.origin.expect_untouched();
                sending.join().expect("sent").expect_end();
            }
        }
    });
}

#[test]
fn followers_on_any_worker_get_the_response_after_their_leader_disconnects() {
    // on several threads the response may have lost its last reader before those who wait become
    // readers
    let setup = Setup::gateway_with(|config| {
        change(config);
        config.workers = 4;
    });
    for at in 0..40 {
        let path = format!("/{at}");
        let (leader, hop) = setup.lead(&setup.get(&path));
        let followers = setup.follow(3, &setup.get(&path));
        leader.into_peer().reset();
        setup.proxy.turn();
        let body = pattern(100_000);
        let sending = hop.sending(with_length("Connection: close\r\n", &body));
        for mut follower in followers {
            let response = follower.read_response();
            assert!(response.body == body);
            assert_eq!(
                response.head.cache_status(),
                "fwd=uri-miss;ttl=60;collapsed"
            );
        }
        setup.origin.expect_untouched();
        sending.join().expect("sent");
    }
}

#[test]
fn request_is_aborted_when_leader_and_all_followers_disconnect() {
    Setup::each_with(change, |setup| {
        for leave in LEAVE {
            let (leader, mut hop) = setup.lead(&setup.get("/"));
            let followers = setup.follow(2, &setup.get("/"));
            leave(leader);
            setup.proxy.turn();
            hop.expect_nothing_more();
            for follower in followers {
                leave(follower);
            }
            hop.expect_end();
            setup.proxy.wait_for(Metric::RequestsInFlight, 0);
            assert_eq!(setup.proxy.count(Metric::FollowersWaiting), 0);
        }
        assert_eq!(setup.proxy.count(Metric::ClientAborts), 6);
        setup.origin.expect_untouched();
    });
}

#[test]
fn follower_takes_over_after_its_leader_failed_and_disconnected() {
    Setup::each_with(change, |setup| {
        // every leader leaves; the last request must not report that the next hop failed
        let (leader, mut hop) = setup.lead(&setup.get("/"));
        let mut followers = setup.follow(2, &setup.get("/"));
        hop.send("HTTP/1.1 2");
        drop(hop);
        drop(leader);
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send(with_length("Connection: close\r\n", "got"));
        for follower in &mut followers {
            assert_eq!(follower.read_response().text(), "got");
        }
    });
}

#[test]
fn remaining_reader_gets_the_whole_content_after_the_others_disconnect() {
    Setup::each_with(change, |setup| {
        for (at, leave) in LEAVE.iter().enumerate() {
            let path = format!("/{at}");
            let body = pattern(300_000);
            let (mut leader, mut hop) = setup.lead(&setup.get(&path));
            let mut collapsed = setup.follow(1, &setup.get(&path)).remove(0);
            hop.send(format!(
                "{FRESH}Connection: close\r\nContent-Length: 300000\r\n\r\n"
            ));
            hop.send(&body[..50_000]);
            leader.read_head();
            leader.read_exactly(50_000);
            collapsed.read_head();
            collapsed.read_exactly(50_000);
            let mut joined = setup.proxy.asking(1, &setup.get(&path)).remove(0);
            joined.read_head();
            joined.read_exactly(50_000);
            leave(leader);
            setup.proxy.turn();
            hop.send(&body[50_000..100_000]);
            collapsed.read_exactly(50_000);
            leave(collapsed);
            setup.proxy.turn();
            hop.send(&body[100_000..]);
            assert!(joined.read_exactly(250_000) == body[50_000..]);
            setup.origin.expect_untouched();
            assert!(setup.proxy.client().ask(setup.get(&path)).body == body);
        }
    });
}

#[test]
fn fetch_is_aborted_when_its_last_reader_disconnects() {
    Setup::each_with(change, |setup| {
        for (at, leave) in LEAVE.iter().enumerate() {
            let (mut leader, mut hop) = setup.lead(&setup.get("/"));
            let mut follower = setup.follow(1, &setup.get("/")).remove(0);
            hop.send(format!("{FRESH}Content-Length: 300000\r\n\r\n"));
            hop.send([b'x'; 50_000]);
            for client in [&mut leader, &mut follower] {
                client.read_head();
                client.read_exactly(50_000);
            }
            leave(leader);
            setup.proxy.turn();
            hop.expect_nothing_more();
            leave(follower);
            hop.expect_end();
            setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
            let stopped = Metric::FetchesAbandoned(Aborted::StopAlways);
            assert_eq!(setup.proxy.count(stopped), at as u64 + 1);
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
        }
    });
}

#[test]
fn half_closed_client_is_answered_completely() {
    Setup::each(|setup| {
        for length in [10, 300_000] {
            let path = format!("/{length}");
            let (mut leader, hop) = setup.lead(&setup.get(&path));
            let mut follower = setup.follow(1, &setup.get(&path)).remove(0);
            for client in [&mut leader, &mut follower] {
                client.finish();
            }
            setup.proxy.turn();
            let body = pattern(length);
            let sending = hop.sending(with_length("Connection: close\r\n", &body));
            for client in [&mut leader, &mut follower] {
                assert!(client.read_response().body == body);
                client.expect_end();
            }
            sending.join().expect("sent");
        }
        setup.origin.expect_untouched();
    });
}

/// A whole response that can be served is worth more than a part of the one after it.
#[test]
fn stored_response_survives_a_forced_refresh_that_ends_early() {
    Setup::each_with(change, |setup| {
        for tag in ["\"a\"", "\"b\""] {
            for is_cut in [false, true] {
                let stored = pattern(60_000);
                let (mut client, hop) = setup.lead(&setup.get("/"));
                let fields = "ETag: \"a\"\r\nConnection: close\r\n";
                let sending = hop.sending(with_length(fields, &stored));
                assert!(client.read_response().body == stored);
                sending.join().expect("sent").expect_end();
                let forced = setup.head("GET", "/", "1.1", "Cache-Control: no-cache\r\n");
                let (mut client, mut hop) = setup.lead(&forced);
                hop.send(format!(
                    "{FRESH}ETag: {tag}\r\nConnection: close\r\nContent-Length: 60000\r\n\r\n"
                ));
                hop.send(&stored[..30_000]);
                client.read_head();
                client.read_exactly(30_000);
                if is_cut {
                    drop(hop);
                    client.read_to_end();
                } else {
                    client.into_peer().reset();
                    hop.expect_end();
                }
                setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
                let hit = setup.proxy.client().ask(setup.get("/"));
                assert_eq!(hit.head.cache_status(), "hit;ttl=60");
                assert!(hit.body == stored);
                setup.origin.expect_untouched();
                setup.proxy.purge(&format!("http://{}/", setup.host));
            }
        }
    });
}
