//! All ways a response can take, as scenarios for the accounts.

use super::byte_counts::CountSetup;
use crate::support::{RawClient, Representation, Response};
use weir_measure::{Aborted, Metric};

/// One of them.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// Nothing is fetched but by requests, for each alone.
    pub(super) is_alone: bool,
    pub(super) known: Known,
    pub(super) run: fn(&CountSetup),
}

/// What is known of the bytes from the next hop.
#[derive(Clone, Copy)]
pub(super) enum Known {
    /// All that were sent were taken; so many bytes of content had no reader, and so many of kept
    /// parts had one.
    All { wasted: u64, recovered: u64 },
    /// The client left while they came: how many were taken and wasted is chance.
    Chance,
}

impl Scenario {
    const fn alone(name: &'static str, run: fn(&CountSetup)) -> Self {
        Self {
            is_alone: true,
            ..Self::shared(name, run)
        }
    }

    const fn shared(name: &'static str, run: fn(&CountSetup)) -> Self {
        Self {
            name,
            is_alone: false,
            known: Known::All {
                wasted: 0,
                recovered: 0,
            },
            run,
        }
    }

    const fn cut(self) -> Self {
        Self {
            known: Known::Chance,
            ..self
        }
    }

    const fn with(self, wasted: u64, recovered: u64) -> Self {
        Self {
            known: Known::All { wasted, recovered },
            ..self
        }
    }
}

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario::alone("small response and its hits", small),
    Scenario::shared("large response and its hits", large),
    Scenario::shared("chunks, and trailers behind them", chunked),
    Scenario::shared("content up to the end of the connection", until_close),
    Scenario::alone("responses that are not stored", unstorable),
    Scenario::alone("requests with content, interim responses", post),
    Scenario::alone("heads without content", heads),
    Scenario::alone("client leaves an unstorable response", leave_length).cut(),
    Scenario::alone("client leaves unstorable chunks", leave_chunks).cut(),
    Scenario::alone("client of HTTP/1.0 leaves unstorable chunks", leave_close).cut(),
    Scenario::alone("next hop cuts an unstorable response", cut_unstorable),
    Scenario::shared("next hop cuts a storable response", cut_storable),
    Scenario::alone("what is no HTTP", nonsense),
    Scenario::alone("validations", validations),
    Scenario::alone(
        "error instead of which the stale one is served",
        stale_if_error,
    )
    .with(10, 0),
    Scenario::shared("refresh in the background", refresh).with(305_002, 0),
    Scenario::shared("requests that share a response", sharing),
    Scenario::shared("abandoned fetch that stops, and is completed", abandoned).with(0, 400_010),
    Scenario::shared("abandoned fetch that goes on", finished_for_nobody).with(50_000, 0),
    Scenario::shared("ranges that are stored", ranges).with(0, 200_000),
    Scenario::shared("part that has changed", changed).with(1100, 10_000),
    Scenario::shared("rest that is shorter than the part", shorter),
    Scenario::shared("response too large to keep", too_large).cut(),
    Scenario::shared("tunnel", tunnel),
    Scenario::shared("client leaves a large hit", leave_hit),
];

const NO_STORE: &str = "Cache-Control: no-store\r\nConnection: close\r\n";

fn unshared(path: &str, length: u64) -> Representation {
    Representation::new(path, length).with_fields(NO_STORE)
}

/// The content in chunks of different sizes, and their end.
fn in_chunks(what: &Representation, sizes: &[u64]) -> Vec<u8> {
    let mut message = Vec::new();
    let mut at = 0;
    for size in sizes.iter().cycle() {
        let to = what.length.min(at + size);
        if at == to {
            break;
        }
        message.extend(what.chunk(at, to));
        at = to;
    }
    message.extend(b"0\r\nA-Trailer: of some length\r\n\r\n");
    message
}

fn check(what: &Representation, response: &Response) {
    assert_eq!(response.status(), 200, "{:?}", response.head);
    assert_eq!(response.body.len() as u64, what.length);
    what.check(0, &response.body);
}

fn small(setup: &CountSetup) {
    let what = Representation::new("/small", 5000);
    check(&what, &setup.fetch(&what.get(""), &what.whole()));
    let mut client = setup.proxy.client();
    check(&what, &client.ask(what.get("")));
    assert_eq!(client.ask(what.get_range("10-19")).body.len(), 10);
    let tag = what.tag.as_deref().expect("tagged");
    let unchanged = client.ask(what.get(&format!("If-None-Match: {tag}\r\n")));
    assert_eq!(unchanged.status(), 304);
    client.send(what.ask("HEAD", ""));
    assert_eq!(client.read_head().length(), Some(5000));
    let empty = Representation::new("/empty", 0);
    check(&empty, &setup.fetch(&empty.get(""), &empty.whole()));
}

fn large(setup: &CountSetup) {
    let what = Representation::new("/large", 1_000_000);
    check(&what, &setup.fetch(&what.get(""), &what.whole()));
    let response = setup.proxy.client().ask(what.get(""));
    assert!(response.is_hit());
    check(&what, &response);
    let part = setup.proxy.client().ask(what.get_range("-300000"));
    what.check_part(&part, 700_000, 1_000_000);
}

fn chunked(setup: &CountSetup) {
    for (path, length) in [("/chunks/small", 3000), ("/chunks/large", 600_000)] {
        let what = Representation::new(path, length);
        let mut message = what.chunked_head().into_bytes();
        message.extend(in_chunks(&what, &[1, 16, 700, 100_000]));
        check(&what, &setup.fetch(&what.get(""), &message));
        assert!(setup.proxy.client().ask(what.get("")).is_hit());
    }
}

fn until_close(setup: &CountSetup) {
    for (path, fields) in [
        ("/close/stored", "Cache-Control: max-age=60\r\n"),
        ("/close/not", NO_STORE),
    ] {
        let what = Representation::new(path, 200_000).with_fields(fields);
        let (mut client, mut hop) = setup.ask(&what.get(""));
        setup.send(&mut hop, what.head_with("200 OK", ""));
        let content = what.bytes(0, what.length);
        setup.count_sent(&content);
        let ending = std::thread::spawn(move || {
            hop.send(content);
            drop(hop);
        });
        check(&what, &client.read_response());
        ending.join().expect("no panic");
    }
}

fn unstorable(setup: &CountSetup) {
    for length in [0, 10, 300_000] {
        let what = unshared("/private", length);
        check(&what, &setup.fetch(&what.get(""), &what.whole()));
        let mut message = what.chunked_head().into_bytes();
        message.extend(in_chunks(&what, &[3, 50_000, 9000]));
        check(&what, &setup.fetch(&what.get(""), &message));
    }
}

fn post(setup: &CountSetup) {
    let what = unshared("/post", 20_000);
    let request = what.ask("POST", "Content-Length: 5\r\n") + "hello";
    let mut message = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec();
    message.extend(what.whole());
    let (mut client, mut hop) = setup.ask(&request);
    hop.expect("hello");
    let response = setup.send_while(&mut hop, &message, || {
        assert_eq!(client.read_head().status(), 103);
        client.read_response()
    });
    check(&what, &response);
}

fn heads(setup: &CountSetup) {
    let what = Representation::new("/heads", 70_000);
    let (mut client, mut hop) = setup.ask(&what.ask("HEAD", ""));
    setup.send(&mut hop, what.head());
    assert_eq!(client.read_head().length(), Some(70_000));
    let nothing = what.head_with("204 No Content", "");
    assert_eq!(setup.fetch(&what.get(""), nothing.as_bytes()).status(), 204);
}

/// Answers with `head` and then `content` until the proxy has enough, to a client that leaves
/// before.
fn leave_after(setup: &CountSetup, request: &str, message: &[u8], read: usize) {
    let aborts = setup.proxy.count(Metric::ClientAborts);
    let mut client = RawClient::connect_small(setup.proxy.address());
    client.send(request);
    let mut hop = setup.origin.accept();
    hop.read_head();
    let message = message.to_vec();
    setup.count_sent(&message);
    let pouring = std::thread::spawn(move || hop.try_send(message));
    client.read_head();
    client.read_exactly(read);
    client.into_peer().reset();
    pouring.join().expect("no panic");
    setup.proxy.wait_for(Metric::ClientAborts, aborts + 1);
}

const POURED: u64 = 10_000_000;

fn leave_length(setup: &CountSetup) {
    let what = unshared("/left/length", POURED);
    for read in [0, 1, 100_000] {
        leave_after(setup, &what.get(""), &what.whole(), read);
    }
}

fn leave_chunks(setup: &CountSetup) {
    let what = unshared("/left/chunks", POURED);
    for sizes in [&[100_000][..], &[9000, 20, 300], &[65_536, 1]] {
        let mut message = what.chunked_head().into_bytes();
        message.extend(in_chunks(&what, sizes));
        for read in [0, 1, 100_000] {
            leave_after(setup, &what.get(""), &message, read);
        }
    }
}

fn leave_close(setup: &CountSetup) {
    let what = unshared("/left/close", POURED);
    let mut message = what.chunked_head().into_bytes();
    message.extend(in_chunks(&what, &[30_000, 7]));
    let request = what.get("").replace("HTTP/1.1", "HTTP/1.0");
    leave_after(setup, &request, &message, 70_000);
}

fn cut_unstorable(setup: &CountSetup) {
    let what = unshared("/cut", 100_000);
    for head in [what.head(), what.chunked_head()] {
        let (mut client, mut hop) = setup.ask(&what.get(""));
        setup.send(&mut hop, &head);
        let content = if head == what.head() {
            what.bytes(0, 50_000)
        } else {
            what.chunk(0, 50_000)
        };
        setup.send(&mut hop, &content);
        client.read_head();
        drop(hop);
        client.read_to_end();
    }
    // before a byte of content: an answer of ours
    let (mut client, mut hop) = setup.ask(&what.get(""));
    let head = what.chunked_head() + "x\r\n";
    setup.send(&mut hop, head);
    assert_eq!(client.read_response().status(), 502);
}

fn cut_storable(setup: &CountSetup) {
    for (path, tag) in [("/cut/kept", Some("\"t\"")), ("/cut/lost", None)] {
        let what = Representation::new(path, 100_000).tagged(tag);
        let (mut client, mut hop) = setup.ask(&what.get(""));
        setup.send(&mut hop, what.head());
        setup.send(&mut hop, what.bytes(0, 50_000));
        client.read_head();
        drop(hop);
        client.read_to_end();
    }
    let what = Representation::new("/cut/framing", 100_000);
    let (mut client, mut hop) = setup.ask(&what.get(""));
    setup.send(&mut hop, what.chunked_head());
    client.read_head();
    let mut message = what.chunk(0, 30_000);
    message.extend(b"no chunk\r\n and something more");
    setup.send(&mut hop, &message);
    client.read_to_end();
}

fn nonsense(setup: &CountSetup) {
    let what = Representation::new("/nonsense", 10);
    for message in ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Le"] {
        let (mut client, mut hop) = setup.ask(&what.get(""));
        setup.send(&mut hop, message);
        drop(hop);
        assert_eq!(client.read_response().status(), 502);
    }
    // behind a response that is whole
    let mut message = what.whole();
    message.extend(b"what nobody asked for");
    check(&what, &setup.fetch(&what.get(""), &message));
    let large = Representation::new("/nonsense/large", 200_000);
    let mut message = large.with_fields(NO_STORE).whole();
    message.extend(b"what nobody asked for");
    assert_eq!(
        setup
            .fetch(&what.get("Cache-Control: no-cache\r\n"), &message)
            .status(),
        200
    );
}

fn validations(setup: &CountSetup) {
    let what = Representation::new("/validated", 5000);
    check(&what, &setup.fetch(&what.get(""), &what.whole()));
    setup.proxy.clock.advance_ms(4_000_000);
    let unchanged = what.head_with("304 Not Modified", "");
    check(&what, &setup.fetch(&what.get(""), unchanged.as_bytes()));
    setup.proxy.clock.advance_ms(4_000_000);
    let next = what.next(6000);
    check(&next, &setup.fetch(&what.get(""), &next.whole()));
}

fn stale_if_error(setup: &CountSetup) {
    let fields = "Cache-Control: max-age=1, stale-if-error=100000\r\nConnection: close\r\n";
    let what = Representation::new("/excused", 5000).with_fields(fields);
    check(&what, &setup.fetch(&what.get(""), &what.whole()));
    setup.proxy.clock.advance_ms(2000);
    for framing in [
        "Content-Length: 5\r\n\r\nsorry",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nsorry\r\n0\r\n\r\n",
    ] {
        let error = format!("HTTP/1.1 503 Busy\r\nConnection: close\r\n{framing}");
        check(&what, &setup.fetch(&what.get(""), error.as_bytes()));
    }
}

fn refresh(setup: &CountSetup) {
    let fields = "Cache-Control: max-age=1, stale-while-revalidate=100000\r\nConnection: close\r\n";
    for length in [5000, 300_000] {
        let what = Representation::new(&format!("/refreshed/{length}"), length).with_fields(fields);
        check(&what, &setup.fetch(&what.get(""), &what.whole()));
        setup.proxy.clock.advance_ms(2000);
        let next = what.next(length + 1);
        setup.rest();
        let stored = setup.proxy.count(Metric::Stored);
        let (mut client, mut hop) = setup.ask(&what.get(""));
        check(&what, &client.read_response());
        // no client receives it
        setup.send(&mut hop, next.whole());
        setup.proxy.wait_for(Metric::Stored, stored + 1);
        check(&next, &setup.proxy.client().ask(what.get("")));
    }
}

fn sharing(setup: &CountSetup) {
    for length in [2000, 500_000] {
        let what = Representation::new(&format!("/shared/{length}"), length);
        let (mut leader, mut hop) = setup.ask(&what.get(""));
        let mut follower = setup.proxy.client();
        follower.send(what.get(""));
        setup.proxy.wait_for(Metric::RequestsInFlight, 2);
        let whole = what.whole();
        let (first, rest) = whole.split_at(whole.len() / 2);
        setup.send(&mut hop, first);
        let head = leader.read_head();
        assert_eq!(head.status(), 200);
        let mut late = setup.proxy.client();
        late.send(what.get(""));
        assert_eq!(late.read_head().verdict(), "hit;detail=delayed");
        let count = usize::try_from(length).expect("small");
        setup.send_while(&mut hop, rest, || {
            std::thread::scope(|scope| {
                scope.spawn(|| what.check(0, &leader.read_exactly(count)));
                scope.spawn(|| what.check(0, &late.read_exactly(count)));
                check(&what, &follower.read_response());
            });
        });
    }
}

fn abandoned(setup: &CountSetup) {
    for (path, tag) in [("/stopped/kept", Some("\"t\"")), ("/stopped/lost", None)] {
        let what = Representation::new(path, 1_000_000).tagged(tag);
        let (mut client, mut hop) = setup.ask(&what.get(""));
        setup.send(&mut hop, what.head());
        client.read_head();
        setup.send_while(&mut hop, &what.bytes(0, 400_000), || {
            client.read_exactly(400_000)
        });
        client.into_peer().reset();
        hop.expect_end();
        let (from, message) = if tag.is_some() {
            (400_000, what.part(400_000, what.length))
        } else {
            (0, what.whole())
        };
        if from > 0 {
            let inside = setup.proxy.client().ask(what.get_range("0-9"));
            what.check_part(&inside, 0, 10);
        }
        check(&what, &setup.fetch(&what.get(""), &message));
    }
}

fn finished_for_nobody(setup: &CountSetup) {
    let what = Representation::new("/finished", 1_000_000);
    let (mut client, mut hop) = setup.ask(&what.get(""));
    setup.send(&mut hop, what.head());
    client.read_head();
    setup.send_while(&mut hop, &what.bytes(0, 950_000), || {
        client.read_exactly(950_000)
    });
    client.into_peer().reset();
    let little = Metric::FetchesAbandoned(Aborted::GoOnLittleLeft);
    setup.proxy.wait_for(little, 1);
    setup.send(&mut hop, what.bytes(950_000, what.length));
    setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
    check(&what, &setup.proxy.client().ask(what.get("")));
}

fn ranges(setup: &CountSetup) {
    let what = Representation::new("/ranges", 900_000);
    let part = setup.fetch(&what.get_range("0-99999"), &what.part(0, 100_000));
    what.check_part(&part, 0, 100_000);
    let part = setup.fetch(
        &what.get_range("500000-599999"),
        &what.part(500_000, 600_000),
    );
    what.check_part(&part, 500_000, 600_000);
    let (mut client, mut hop) = setup.ask(&what.get(""));
    let front = setup.send_while(&mut hop, &what.part(100_000, 500_000), || {
        client.read_head();
        client.read_exactly(500_000)
    });
    what.check(0, &front);
    let mut hop = setup.origin.accept();
    hop.read_head();
    let rest = setup.send_while(&mut hop, &what.part(600_000, 900_000), || {
        client.read_exactly(400_000)
    });
    what.check(500_000, &rest);
    let several = what.get_range("0-9,20-29");
    check(&what, &setup.proxy.client().ask(several));
}

fn changed(setup: &CountSetup) {
    for again in [false, true] {
        let what = Representation::new(&format!("/changed/{again}"), 300_000);
        let part = setup.fetch(&what.get_range("0-9999"), &what.part(0, 10_000));
        what.check_part(&part, 0, 10_000);
        let next = what.next(310_000);
        let mut client = setup.proxy.client();
        client.send(what.get(""));
        if again {
            // not what was asked for
            let mut hop = setup.origin.accept();
            hop.read_head();
            setup.send(&mut hop, next.part(10_000, 10_100));
        }
        let mut hop = setup.origin.accept();
        hop.read_head();
        let response = setup.send_while(&mut hop, &next.whole(), || client.read_response());
        check(&next, &response);
    }
    // between two gaps
    let what = Representation::new("/changed/between", 300_000);
    let part = setup.fetch(
        &what.get_range("100000-109999"),
        &what.part(100_000, 110_000),
    );
    what.check_part(&part, 100_000, 110_000);
    let (mut client, mut hop) = setup.ask(&what.get(""));
    setup.send_while(&mut hop, &what.part(0, 100_000), || {
        client.read_head();
        client.read_exactly(110_000);
    });
    let mut hop = setup.origin.accept();
    hop.read_head();
    let next = what.next(1000);
    setup.send(&mut hop, next.whole());
    client.expect_end();
}

fn shorter(setup: &CountSetup) {
    let what = Representation::new("/shorter", 300_000);
    let part = setup.fetch(
        &what.get_range("200000-209999"),
        &what.part(200_000, 210_000),
    );
    what.check_part(&part, 200_000, 210_000);
    let next = what.next(100);
    let mut client = setup.proxy.client();
    client.send(what.get_range("250000-259999"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    setup.send(&mut hop, next.unsatisfied_head());
    let mut hop = setup.origin.accept();
    hop.read_head();
    setup.send(&mut hop, next.unsatisfied_head());
    assert_eq!(client.read_response().status(), 416);
}

fn too_large(setup: &CountSetup) {
    let passed = setup.proxy.count(Metric::PassedThrough);
    let what = Representation::new("/too/large", 6_000_000);
    let mut message = what.chunked_head().into_bytes();
    message.extend(in_chunks(&what, &[100_000]));
    check(&what, &setup.fetch(&what.get(""), &message));
    setup.proxy.wait_for(Metric::PassedThrough, passed + 1);
    leave_after(setup, &what.get(""), &message, 1_000_000);
    check(&what, &setup.fetch(&what.get(""), &what.whole()));
}

fn tunnel(setup: &CountSetup) {
    let what = Representation::new("/tunnel", 0);
    let upgrade = what.get("Connection: Upgrade\r\nUpgrade: x\r\n");
    let (mut client, mut hop) = setup.ask(&upgrade);
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
    setup.send(&mut hop, head);
    assert_eq!(client.read_head().status(), 101);
    hop.send("what is in the tunnel");
    client.expect("what is in the tunnel");
    drop(hop);
    drop(client);
}

fn leave_hit(setup: &CountSetup) {
    let what = Representation::new("/left/hit", 2_000_000);
    check(&what, &setup.fetch(&what.get(""), &what.whole()));
    let aborts = setup.proxy.count(Metric::ClientAborts);
    let mut client = RawClient::connect_small(setup.proxy.address());
    // more than the kernel takes
    client.send(what.get("").repeat(6));
    client.read_head();
    client.read_exactly(1000);
    client.into_peer().reset();
    setup.proxy.wait_for(Metric::ClientAborts, aborts + 1);
}
