//! What is purged after a stored response was chosen for a request does not come back with the
//! answer to that request, however long it waits before the next hop is asked. With a store on disk
//! and without: memory and disk forget in ways of their own.

use super::setup::DiskSetup;
use crate::support::{Head, OriginConnection, RawClient, Representation, span};
use weir_measure::{Metric, WaitReason};

const LENGTH: u64 = 3000;

/// What a request is answered with: it is of use if it is what was asked for.
const STALE: &str = "Cache-Control: max-age=1\r\nConnection: close\r\n";

/// Where what is chosen is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    InMemory,
    InMemoryBeforeDisk,
    OnDisk,
}

const FOUND: [Found; 3] = [Found::InMemory, Found::InMemoryBeforeDisk, Found::OnDisk];

/// How it is forgotten.
type Forget = fn(&DiskSetup);

const PURGE: [Forget; 2] = [
    |setup| {
        setup.proxy().purge("http://a.example/a");
    },
    |setup| setup.proxy().purge_all(),
];

/// A proxy that opens so many connections, with `what` in its store.
fn stored(found: Found, connections: u32, what: &Representation, range: &str) -> DiskSetup {
    let mut setup = DiskSetup::simulated(move |config| {
        config.limits.connections_per_next_hop_max = connections;
        config.limits.idle_per_next_hop_max = 1;
        config.limits.next_hop_wait = span("20s");
        config.disk.enabled = found != Found::InMemory;
    });
    let mut client = setup.proxy().client();
    if range.is_empty() {
        client.send(what.get(""));
        setup.origin.answer(what.whole());
    } else {
        client.send(what.get_range(range));
        setup.origin.answer(what.part(0, LENGTH / 3));
    }
    client.read_response();
    setup.rest();
    if found != Found::InMemory {
        setup.written(1);
    }
    if found == Found::OnDisk {
        setup.restart();
    }
    setup.proxy().clock.advance_ms(2000);
    setup
}

/// A request that holds a connection until its answer ends that.
struct Holding {
    client: RawClient,
    hop: OriginConnection,
}

impl Holding {
    fn new(setup: &DiskSetup) -> Self {
        let mut client = setup.proxy().client();
        client.send("GET /other HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let mut hop = setup.origin.accept();
        hop.read_head();
        Self { client, hop }
    }

    fn end(mut self) {
        self.hop.send(
            "HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        );
        assert_eq!(self.client.read_response().status(), 204);
    }
}

/// A client whose request waits for a connection.
fn waiting(setup: &DiskSetup, request: &str) -> RawClient {
    let mut client = setup.proxy().client();
    client.send(request);
    wait_for_one(setup);
    client
}

fn wait_for_one(setup: &DiskSetup) {
    let waits = Metric::ConnectionWaits(WaitReason::PerHopMax);
    setup.proxy().wait_for(waits, 1);
}

/// Nothing is asked about what was purged.
fn expect_unconditional(asked: &Head) {
    for field in ["if-none-match", "if-modified-since", "if-range", "range"] {
        assert!(!asked.has(field), "{asked:?}");
    }
}

/// Later requests get the new representation, also after a restart.
fn expect_new(setup: &mut DiskSetup, new: &Representation) {
    setup.rest();
    setup.ask_either(new);
    if setup.proxy().count(Metric::DiskStored) > 0 {
        setup.restart();
        setup.ask_either(new);
    }
}

#[test]
fn purged_response_is_not_stored_again_by_a_request_that_waited() {
    let what = Representation::new("/a", LENGTH).with_fields(STALE);
    let part = Representation::new("/a", LENGTH);
    for found in FOUND {
        for purge in PURGE {
            for (what, range, method) in [
                (&what, "", "GET"),
                (&part, "0-999", "GET"),
                (&what, "", "HEAD"),
            ] {
                let new = Representation::new("/a", LENGTH).next(LENGTH);
                let mut setup = stored(found, 1, what, range);
                let holding = Holding::new(&setup);
                let mut client = waiting(&setup, &what.ask(method, ""));
                purge(&setup);
                holding.end();
                let mut hop = setup.origin.accept();
                expect_unconditional(&hop.read_head());
                if method == "HEAD" {
                    hop.send(new.head());
                    assert_eq!(client.read_head().field("etag"), new.tag.as_deref());
                } else {
                    hop.send(new.whole());
                    new.check_whole(&client.read_response());
                    setup.rest();
                    // it was asked for after the purge
                    new.check_whole(&setup.hit(&new, ""));
                }
                expect_new(&mut setup, &new);
            }
        }
    }
}

#[test]
fn purged_response_is_not_validated_in_the_background() {
    let fields = "Cache-Control: max-age=1, stale-while-revalidate=600\r\nConnection: close\r\n";
    let what = Representation::new("/a", LENGTH).with_fields(fields);
    let new = Representation::new("/a", LENGTH).next(LENGTH);
    for found in FOUND {
        for purge in PURGE {
            let mut setup = stored(found, 1, &what, "");
            let holding = Holding::new(&setup);
            what.check_whole(&setup.proxy().client().ask(what.get("")));
            wait_for_one(&setup);
            purge(&setup);
            holding.end();
            // nothing is fetched without a reader
            let mut client = setup.proxy().client();
            client.send(what.get(""));
            let mut hop = setup.origin.accept();
            expect_unconditional(&hop.read_head());
            hop.send(new.whole());
            new.check_whole(&client.read_response());
            expect_new(&mut setup, &new);
        }
    }
}

#[test]
fn follower_taking_over_after_a_purge_sends_an_unconditional_request() {
    let fields = "Cache-Control: max-age=1, stale-if-error=600\r\nConnection: close\r\n";
    let what = Representation::new("/a", LENGTH).with_fields(fields);
    let new = Representation::new("/a", LENGTH).next(LENGTH);
    for found in FOUND {
        for purge in PURGE {
            let mut setup = stored(found, 8, &what, "");
            let mut leader = setup.proxy().client();
            leader.send(what.get(""));
            let mut hop = setup.origin.accept();
            assert!(hop.read_head().has("if-none-match"));
            let mut follower = setup.proxy().client();
            follower.send(what.get(""));
            setup.proxy().wait_for(Metric::FollowersWaiting, 1);
            purge(&setup);
            hop.into_peer().reset();
            let mut hop = setup.origin.accept();
            expect_unconditional(&hop.read_head());
            assert_eq!(leader.read_response().status(), 502);
            hop.send(new.whole());
            new.check_whole(&follower.read_response());
            setup.rest();
            new.check_whole(&setup.hit(&new, ""));
            expect_new(&mut setup, &new);
        }
    }
}

#[test]
fn response_validated_as_private_is_not_reused_by_a_waiting_request() {
    let what = Representation::new("/a", LENGTH).with_fields(STALE);
    let new = Representation::new("/a", LENGTH).next(LENGTH);
    let validated = |fields: &str| {
        let tag = what.tag.as_deref().expect("a tag");
        format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n{fields}\r\n")
    };
    for found in FOUND {
        let mut setup = stored(found, 1, &what, "");
        let mut first = setup.proxy().client();
        first.send(what.get("Cache-Control: no-cache\r\n"));
        let mut hop = setup.origin.accept();
        assert!(hop.read_head().has("if-none-match"));
        let mut second = waiting(&setup, &what.get("Cache-Control: no-cache\r\n"));
        hop.send(validated("Cache-Control: private\r\nConnection: close\r\n"));
        what.check_whole(&first.read_response());
        let mut hop = setup.origin.accept();
        expect_unconditional(&hop.read_head());
        hop.send(new.whole());
        new.check_whole(&second.read_response());
        expect_new(&mut setup, &new);
    }
}

/// Both were asked about the same response at the same time; the one who says that it is private is
/// heard.
#[test]
fn response_validated_as_private_is_not_restored_by_another_validation() {
    let what = Representation::new("/a", LENGTH).with_fields(STALE);
    let new = Representation::new("/a", LENGTH).next(LENGTH);
    let tag = what.tag.as_deref().expect("a tag");
    let validated = |directive: &str| {
        format!(
            "HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\nCache-Control: {directive}\r\nConnection: close\r\n\r\n"
        )
    };
    for found in FOUND {
        let mut setup = stored(found, 8, &what, "");
        let ask = || {
            let mut client = setup.proxy().client();
            client.send(what.get("Cache-Control: no-cache\r\n"));
            let mut hop = setup.origin.accept();
            assert!(hop.read_head().has("if-none-match"));
            (client, hop)
        };
        let ((mut first, mut hop), (mut second, mut other)) = (ask(), ask());
        hop.send(validated("private"));
        what.check_whole(&first.read_response());
        other.send(validated("max-age=600"));
        what.check_whole(&second.read_response());
        expect_new(&mut setup, &new);
    }
}

/// The part that completes a purged one is joined for the one who asked before the purge, and for
/// no other.
#[test]
fn purged_part_is_not_stored_again_by_the_range_that_completes_it() {
    let what = Representation::new("/a", LENGTH);
    let new = what.next(LENGTH);
    for found in FOUND {
        for purge in PURGE {
            let mut setup = stored(found, 8, &what, "0-999");
            let mut client = setup.proxy().client();
            client.send(what.get(""));
            let mut hop = setup.origin.accept();
            assert_eq!(hop.read_head().field("range"), Some("bytes=1000-2999"));
            purge(&setup);
            hop.send(what.part(LENGTH / 3, LENGTH));
            what.check_whole(&client.read_response());
            expect_new(&mut setup, &new);
        }
    }
}
