//! Clients leave: what others read or wait for goes on, and what nobody does stops.

use super::{FRESH, with_length};
use crate::support::{RawClient, Way, pattern};
use weir_measure::{Aborted, Metric};
use weir_proxy::config::{Abort, Config, Span};

/// Nothing is fetched for nobody, and one who has closed its side has gone.
fn change(config: &mut Config) {
    config.fetch.abort = Abort::Stop;
    config.fetch.half_closed = Span::ZERO;
}

/// How a client goes.
type Leave = fn(RawClient);

const LEAVE: [Leave; 2] = [drop, |client| client.into_peer().reset()];

#[test]
fn client_that_leaves_takes_the_response_of_those_who_wait_with_it() {
    Way::each_with(change, |way| {
        for (at, leave) in LEAVE.iter().enumerate() {
            for length in [10, 30_000, 300_000] {
                let path = format!("/{at}/{length}");
                let (leader, hop) = way.lead(&way.get(&path));
                let followers = way.follow(3, &way.get(&path));
                leave(leader);
                way.proxy.turn();
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
                way.origin.expect_untouched();
                sending.join().expect("sent").expect_end();
            }
        }
    });
}

#[test]
fn herd_is_left_alone_by_the_one_who_asked() {
    // on several threads the response may have lost its last reader before those who wait become readers
    let way = Way::gateway_with(|config| {
        change(config);
        config.workers = 4;
    });
    for at in 0..40 {
        let path = format!("/{at}");
        let (leader, hop) = way.lead(&way.get(&path));
        let followers = way.follow(3, &way.get(&path));
        leader.into_peer().reset();
        way.proxy.turn();
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
        way.origin.expect_untouched();
        sending.join().expect("sent");
    }
}

#[test]
fn next_hop_is_waited_for_though_nobody_waits_any_more() {
    Way::each_with(change, |way| {
        for leave in LEAVE {
            let (leader, mut hop) = way.lead(&way.get("/"));
            let followers = way.follow(2, &way.get("/"));
            leave(leader);
            way.proxy.turn();
            hop.expect_nothing_more();
            for follower in followers {
                leave(follower);
            }
            hop.expect_end();
            way.proxy.wait_for(Metric::RequestsInFlight, 0);
            assert_eq!(way.proxy.count(Metric::FollowersWaiting), 0);
        }
        assert_eq!(way.proxy.count(Metric::ClientAborts), 6);
        way.origin.expect_untouched();
    });
}

#[test]
fn one_who_takes_the_lead_is_counted_as_a_failure() {
    Way::each_with(change, |way| {
        // whoever leads leaves; the last one must not be told that the next hop has failed
        let (leader, mut hop) = way.lead(&way.get("/"));
        let mut followers = way.follow(2, &way.get("/"));
        hop.send("HTTP/1.1 2");
        drop(hop);
        drop(leader);
        let mut hop = way.origin.accept();
        hop.read_head();
        hop.send(with_length("Connection: close\r\n", "got"));
        for follower in &mut followers {
            assert_eq!(follower.read_response().text(), "got");
        }
    });
}

#[test]
fn client_that_leaves_takes_the_content_of_those_who_read_with_it() {
    Way::each_with(change, |way| {
        for (at, leave) in LEAVE.iter().enumerate() {
            let path = format!("/{at}");
            let body = pattern(300_000);
            let (mut leader, mut hop) = way.lead(&way.get(&path));
            let mut collapsed = way.follow(1, &way.get(&path)).remove(0);
            hop.send(format!(
                "{FRESH}Connection: close\r\nContent-Length: 300000\r\n\r\n"
            ));
            hop.send(&body[..50_000]);
            leader.read_head();
            leader.read_exactly(50_000);
            collapsed.read_head();
            collapsed.read_exactly(50_000);
            let mut joined = way.proxy.asking(1, &way.get(&path)).remove(0);
            joined.read_head();
            joined.read_exactly(50_000);
            leave(leader);
            way.proxy.turn();
            hop.send(&body[50_000..100_000]);
            collapsed.read_exactly(50_000);
            leave(collapsed);
            way.proxy.turn();
            hop.send(&body[100_000..]);
            assert!(joined.read_exactly(250_000) == body[50_000..]);
            way.origin.expect_untouched();
            assert!(way.proxy.client().ask(way.get(&path)).body == body);
        }
    });
}

#[test]
fn fetch_goes_on_when_the_last_one_has_left() {
    Way::each_with(change, |way| {
        for (at, leave) in LEAVE.iter().enumerate() {
            let (mut leader, mut hop) = way.lead(&way.get("/"));
            let mut follower = way.follow(1, &way.get("/")).remove(0);
            hop.send(format!("{FRESH}Content-Length: 300000\r\n\r\n"));
            hop.send([b'x'; 50_000]);
            for client in [&mut leader, &mut follower] {
                client.read_head();
                client.read_exactly(50_000);
            }
            leave(leader);
            way.proxy.turn();
            hop.expect_nothing_more();
            leave(follower);
            hop.expect_end();
            way.proxy.wait_for(Metric::FetchesUnderWay, 0);
            let stopped = Metric::FetchesAbandoned(Aborted::StopAlways);
            assert_eq!(way.proxy.count(stopped), at as u64 + 1);
            assert_eq!(way.proxy.count(Metric::StoreEntries), 0);
        }
    });
}

#[test]
fn client_that_has_closed_its_own_side_is_not_answered() {
    Way::each(|way| {
        for length in [10, 300_000] {
            let path = format!("/{length}");
            let (mut leader, hop) = way.lead(&way.get(&path));
            let mut follower = way.follow(1, &way.get(&path)).remove(0);
            for client in [&mut leader, &mut follower] {
                client.finish();
            }
            way.proxy.turn();
            let body = pattern(length);
            let sending = hop.sending(with_length("Connection: close\r\n", &body));
            for client in [&mut leader, &mut follower] {
                assert!(client.read_response().body == body);
                client.expect_end();
            }
            sending.join().expect("sent");
        }
        way.origin.expect_untouched();
    });
}
