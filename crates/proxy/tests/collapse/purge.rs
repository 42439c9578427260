//! What is purged or invalidated while it is asked for, or while it arrives: it is for those who
//! came before, and for no other (RFC 9111 §4.4).

use super::{FRESH, with_length};
use crate::support::{OriginConnection, RawClient, Setup, pattern};
use weir_measure::{Aborted, Metric};
use weir_policy::fetch::AbortKind;

/// How a target is forgotten.
type Forget = fn(&Setup);

const FORGET: [Forget; 2] = [
    |setup| {
        setup.proxy.purge(&format!("http://{}/", setup.host));
    },
    |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", ""));
        setup
            .origin
            .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
    },
];

fn each(test: impl Fn(&Setup, Forget)) {
    for forget in FORGET {
        Setup::each(|setup| test(setup, forget));
    }
}

/// The store answers with exactly `body`.
fn expect_hit(setup: &Setup, body: &[u8]) {
    let stored = setup.proxy.client().ask(setup.get("/"));
    assert_eq!(stored.head.cache_status(), "hit;ttl=60");
    assert!(stored.body == body);
}

/// A response of which half has come: it, its readers, and its connection.
struct Half {
    body: Vec<u8>,
    readers: Vec<RawClient>,
    hop: OriginConnection,
}

impl Half {
    fn new(setup: &Setup, fill: u8) -> Self {
        let mut body = pattern(200_000);
        body.iter_mut().for_each(|byte| *byte ^= fill);
        let (leader, mut hop) = setup.lead(&setup.get("/"));
        let mut readers = setup.follow(1, &setup.get("/"));
        readers.push(leader);
        hop.send(format!(
            "{FRESH}Connection: close\r\nContent-Length: 200000\r\n\r\n"
        ));
        hop.send(&body[..100_000]);
        setup.proxy.wait_for(Metric::FollowersWaiting, 0);
        readers.extend(setup.proxy.asking(1, &setup.get("/")));
        for reader in &mut readers {
            assert_eq!(reader.read_head().status(), 200);
            assert!(reader.read_exactly(100_000) == body[..100_000]);
        }
        Self { body, readers, hop }
    }

    /// The other half comes, and all have it.
    fn end(mut self) -> Vec<u8> {
        self.hop.send(&self.body[100_000..]);
        for mut reader in self.readers {
            assert!(reader.read_exactly(100_000) == self.body[100_000..]);
        }
        self.hop.expect_end();
        self.body
    }
}

#[test]
fn purged_in_flight_response_is_neither_joined_nor_stored() {
    each(|setup, forget| {
        let old = Half::new(setup, 0);
        forget(setup);
        old.end();
        // it has not come into the store by its end
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
        let body = Half::new(setup, 1).end();
        expect_hit(setup, &body);
        setup.origin.expect_untouched();
    });
}

#[test]
fn purged_in_flight_response_does_not_replace_a_newer_one() {
    each(|setup, forget| {
        let old = Half::new(setup, 0);
        forget(setup);
        let body = Half::new(setup, 1).end();
        old.end();
        expect_hit(setup, &body);
        let old = Half::new_after(setup, 2);
        forget(setup);
        let new = Half::new(setup, 3);
        old.end();
        let body = new.end();
        expect_hit(setup, &body);
        setup.origin.expect_untouched();
    });
}

impl Half {
    /// One in place of what is stored, which is purged for it.
    fn new_after(setup: &Setup, fill: u8) -> Self {
        FORGET[0](setup);
        Self::new(setup, fill)
    }
}

#[test]
fn response_requested_before_a_purge_is_not_stored_after_it() {
    each(|setup, forget| {
        for length in [10, 200_000] {
            let (old, new) = (pattern(length), vec![b'n'; length]);
            let (mut leader, hop) = setup.lead(&setup.get("/"));
            let followers = setup.follow(2, &setup.get("/"));
            forget(setup);
            // who comes now asks for itself, and others follow that one
            let (newcomer, new_hop) = setup.lead(&setup.get("/"));
            let mut newcomers = setup.follow(1, &setup.get("/"));
            newcomers.push(newcomer);
            let sending = hop.sending(with_length("Connection: close\r\n", &old));
            assert!(leader.read_response().body == old);
            sending.join().expect("sent").expect_end();
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0, "{length}");
            let sending = new_hop.sending(with_length("Connection: close\r\n", &new));
            for mut client in newcomers {
                assert!(client.read_response().body == new);
            }
            // those who followed the old one have either, whole
            for mut follower in followers {
                let body = follower.read_response().body;
                assert!(body == old || body == new);
            }
            sending.join().expect("sent").expect_end();
            expect_hit(setup, &new);
            setup.origin.expect_untouched();
            FORGET[0](setup);
        }
    });
}

#[test]
fn uncollapsed_response_requested_before_a_purge_is_not_stored() {
    each(|setup, forget| {
        for length in [10, 200_000] {
            // a request that does not lead, but whose response can be stored
            let request = setup.head("GET", "/", "1.1", "Cache-Control: no-cache\r\n");
            let (mut client, hop) = setup.lead(&request);
            forget(setup);
            let old = pattern(length);
            let sending = hop.sending(with_length("Connection: close\r\n", &old));
            assert!(client.read_response().body == old);
            sending.join().expect("sent").expect_end();
            let (newcomer, hop) = setup.lead(&setup.get("/"));
            let sending = hop.sending(with_length("Connection: close\r\n", "new"));
            let mut newcomer = newcomer;
            assert_eq!(newcomer.read_response().text(), "new", "{length}");
            sending.join().expect("sent").expect_end();
            expect_hit(setup, b"new");
            FORGET[0](setup);
        }
    });
}

#[test]
fn uncollapsed_response_requested_before_a_purge_is_not_joined() {
    Setup::each(|setup| {
        let request = setup.head("GET", "/", "1.1", "Cache-Control: no-cache\r\n");
        let (mut client, mut hop) = setup.lead(&request);
        FORGET[0](setup);
        let body = pattern(200_000);
        hop.send(format!(
            "{FRESH}Connection: close\r\nContent-Length: 200000\r\n\r\n"
        ));
        hop.send(&body[..100_000]);
        client.read_head();
        client.read_exactly(100_000);
        let (mut newcomer, mut new_hop) = setup.lead(&setup.get("/"));
        new_hop.send(with_length("Connection: close\r\n", "new"));
        assert_eq!(newcomer.read_response().text(), "new");
        hop.send(&body[100_000..]);
        client.read_exactly(100_000);
        expect_hit(setup, b"new");
    });
}

#[test]
fn purged_fetch_is_aborted_when_its_last_reader_disconnects() {
    for forget in FORGET {
        let setup = Setup::gateway_with(|config| config.fetch.abort = AbortKind::Finish);
        let Half {
            readers, mut hop, ..
        } = Half::new(&setup, 0);
        forget(&setup);
        for reader in readers {
            reader.into_peer().reset();
        }
        hop.expect_end();
        setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
        let stopped = Metric::FetchesAbandoned(Aborted::StopNotKept);
        assert_eq!(setup.proxy.count(stopped), 1);
    }
}

#[test]
fn background_refresh_of_a_purged_response_is_not_stored() {
    Setup::each(|setup| {
        let stored = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1, stale-while-revalidate=60\r\nConnection: close\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nold";
        for answer in [
            stored,
            "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nConnection: close\r\nETag: \"a\"\r\n\r\n",
        ] {
            drop(setup.fetch("/", stored));
            setup.proxy.clock.advance_ms(2000);
            let mut client = setup.proxy.client();
            assert_eq!(client.ask(setup.get("/")).text(), "old");
            let mut hop = setup.origin.accept();
            hop.read_head();
            FORGET[0](setup);
            hop.send(answer);
            hop.expect_end();
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
        }
    });
}

#[test]
fn validation_of_a_response_purged_meanwhile_is_not_stored() {
    Setup::each(|setup| {
        let stored = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\nConnection: close\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nold";
        for answer in [
            stored,
            "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nConnection: close\r\nETag: \"a\"\r\n\r\n",
        ] {
            drop(setup.fetch("/", stored));
            setup.proxy.clock.advance_ms(2000);
            let (mut leader, mut hop) = setup.lead(&setup.get("/"));
            let mut follower = setup.follow(1, &setup.get("/")).remove(0);
            FORGET[0](setup);
            hop.send(answer);
            assert_eq!(leader.read_response().text(), "old");
            hop.expect_end();
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
            // who waited with it asks after the purge
            let (mut hop, _) = setup
                .origin
                .answer(with_length("Connection: close\r\n", "new"));
            assert_eq!(follower.read_response().text(), "new");
            hop.expect_end();
            expect_hit(setup, b"new");
            FORGET[0](setup);
        }
    });
}
