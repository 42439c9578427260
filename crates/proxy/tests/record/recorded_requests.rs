//! What is told of each kind of request, beside what both ends saw of it.

use crate::support::{PATIENCE, RawClient, Running, ScriptedOrigin, pattern};
use std::sync::mpsc::{self, Receiver, Sender};
use weir_measure::{Metric, Unrecorded};
use weir_policy::Phase;
use weir_proxy::config::Config;
use weir_proxy::record::{End, Finished, Recorder, Tally};

/// A recorder that hands on what it is told.
struct Hearing(Sender<Finished>);

impl Recorder for Hearing {
    fn take(&mut self, finished: &Finished, _: &Tally) {
        // who stops listening has what it wanted
        let _unheard = self.0.send(finished.clone());
    }

    fn tick(&mut self, _: &Tally) {}

    fn end(&mut self, _: &Tally) {}
}

struct Parts {
    origin: ScriptedOrigin,
    proxy: Running,
    told: Receiver<Finished>,
}

impl Parts {
    fn new() -> Self {
        Self::with(|_, _| {})
    }

    fn with(change: impl FnOnce(&mut Config, &ScriptedOrigin)) -> Self {
        let origin = ScriptedOrigin::new();
        let (sender, told) = mpsc::channel();
        let proxy = Running::forward_recorded(Box::new(Hearing(sender)), |config| {
            change(config, &origin);
        });
        Self {
            origin,
            proxy,
            told,
        }
    }

    /// A request's head; `fields` with their CRLF.
    fn head(&self, method: &str, path: &str, fields: &str) -> String {
        let address = self.origin.address();
        format!("{method} http://{address}{path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n")
    }

    fn get(&self, path: &str) -> String {
        self.head("GET", path, "")
    }

    /// What is told next.
    #[track_caller]
    fn next(&self) -> Finished {
        let finished = self.told.recv_timeout(PATIENCE).expect("it is told");
        check_times(&finished);
        finished
    }
}

/// Times go forward, whatever happened.
#[track_caller]
fn check_times(finished: &Finished) {
    let times = [
        finished.reached.us(Phase::ResponseHead),
        finished.first_byte_us,
        Some(finished.last_byte_us),
    ];
    let times: Vec<u64> = times.into_iter().flatten().collect();
    assert!(times.is_sorted(), "{finished:?}");
    assert!(finished.last_byte_us < 3_600_000_000, "{finished:?}");
    // 2020 to 2100
    let years = 1_577_836_800_000_000..4_102_444_800_000_000;
    assert!(years.contains(&finished.arrival_us), "{finished:?}");
}

#[track_caller]
fn check_bytes(finished: &Finished, received: u64, from_next_hop: u64) {
    assert_eq!(finished.received_bytes, received, "{finished:?}");
    assert_eq!(finished.next_hop_bytes, from_next_hop, "{finished:?}");
}

const SMALL: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\nsmall";

#[test]
fn record_of_a_miss_or_hit_matches_its_request_and_response() {
    let parts = Parts::new();
    let mut client = parts.proxy.client();
    let request = parts.get("/a");
    client.send(&request);
    let (_hop, _) = parts.origin.answer(SMALL);
    let response = client.read_response();
    let miss = parts.next();
    assert_eq!(miss.request(), request.as_bytes());
    assert_eq!(miss.response(), response.head.text.as_bytes());
    assert_eq!((miss.status, miss.verdict), (Some(200), "uri-miss"));
    assert_eq!((miss.sequence, miss.is_persistent), (1, true));
    assert_eq!(
        (miss.end, miss.request_content_bytes),
        (End::Whole, Some(0))
    );
    check_bytes(&miss, 5, 5);
    let hop = miss.next_hop.expect("it was asked");
    assert!(hop.setup_us.is_some() && hop.response_us.is_some() && hop.is_persistent);
    let address = client.stream.local_addr().expect("connected");
    assert_eq!(miss.client, address.ip());

    let response = client.ask(&request);
    let hit = parts.next();
    assert_eq!(hit.response(), response.head.text.as_bytes());
    assert_eq!((hit.status, hit.verdict), (Some(200), "hit"));
    assert_eq!((hit.connection, hit.sequence), (miss.connection, 2));
    assert_eq!(hit.next_hop, None);
    assert_eq!(hit.first_byte_us, Some(hit.last_byte_us));
    check_bytes(&hit, 5, 0);
    assert!(hit.arrival_us >= miss.arrival_us);

    client.send(parts.head("HEAD", "/a", ""));
    let head = client.read_head();
    let bare = parts.next();
    assert_eq!(bare.response(), head.text.as_bytes());
    assert_eq!((bare.first_byte_us, bare.sequence), (None, 3));
    check_bytes(&bare, 0, 0);
}

#[test]
fn record_tells_apart_client_and_next_hop_connections() {
    let parts = Parts::new();
    let uncached = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\nx";
    let mut client = parts.proxy.client();
    client.send(parts.get("/1"));
    let (mut hop, _) = parts.origin.answer(uncached);
    client.read_response();
    client.send(parts.get("/2"));
    hop.answer(uncached);
    client.read_response();
    let mut other = parts.proxy.client();
    other.send(parts.head("GET", "/3", "Connection: close\r\n"));
    hop.answer("HTTP/1.0 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\nx");
    other.read_response();
    let [first, second, third] = [parts.next(), parts.next(), parts.next()];
    let hops = [&first, &second, &third].map(|it| it.next_hop.expect("it was asked"));
    assert_eq!(first.connection, second.connection);
    assert_ne!(first.connection, third.connection);
    assert!(hops.iter().all(|hop| hop.connection == hops[0].connection));
    assert_ne!(hops[0].connection, first.connection);
    let set_up = hops.map(|hop| hop.setup_us.is_some());
    assert_eq!(set_up, [true, false, false]);
    assert_eq!(hops.map(|hop| hop.is_persistent), [true, true, false]);
    let clients = [&first, &second, &third].map(|it| (it.sequence, it.is_persistent));
    assert_eq!(clients, [(1, true), (2, true), (1, false)]);
}

#[test]
fn recorded_content_bytes_exclude_framing() {
    let parts = Parts::new();
    let mut client = parts.proxy.client();
    client.send(parts.head("POST", "/", "Transfer-Encoding: chunked\r\n"));
    client.send("3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n");
    let mut hop = parts.origin.accept();
    hop.read_head();
    assert_eq!(hop.read_chunks().0, b"abcdefg");
    hop.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    assert_eq!(client.read_response().body, b"hi");
    let post = parts.next();
    assert_eq!(
        (post.request_content_bytes, post.verdict),
        (Some(7), "method")
    );
    check_bytes(&post, 2, 2);

    // by way of the store, in pieces, to one that waits for the other
    let content = pattern(200_000);
    client.send(parts.get("/large"));
    hop.answer(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let head = client.read_head();
    let mut follower = parts.proxy.client();
    follower.send(parts.get("/large"));
    follower.read_head();
    hop.send(format!("{:x}\r\n", content.len()));
    hop.send_while(&[&content[..], b"\r\n0\r\n\r\n"].concat(), || {
        assert!(client.read_chunks().0 == content);
        assert!(follower.read_chunks().0 == content);
    });
    let mut large = [parts.next(), parts.next()];
    large.sort_by_key(|it| it.next_hop.is_none());
    let [leader, follower] = large;
    assert_eq!(leader.response(), head.text.as_bytes());
    check_bytes(&leader, 200_000, 200_000);
    check_bytes(&follower, 200_000, 0);
    assert!(leader.first_byte_us <= Some(leader.last_byte_us));
}

#[test]
fn record_attributes_an_early_end_to_its_cause() {
    let parts = Parts::new();
    let length = 3_000_000;
    let head =
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\n");
    let mut client = parts.proxy.client();
    client.send(parts.get("/left"));
    let (mut hop, _) = parts.origin.answer(&head);
    hop.send_while(&pattern(1_000_000), || {
        client.read_head();
        client.read_exactly(1_000_000);
    });
    client.into_peer().reset();
    let left = parts.next();
    assert_eq!((left.end, left.status), (End::ClientLeft, Some(200)));
    assert!(!left.is_persistent);
    check_bytes(&left, 1_000_000, 1_000_000);

    let mut client = parts.proxy.client();
    client.send(parts.get("/cut"));
    let (mut hop, _) = parts.origin.answer(&head);
    hop.send(pattern(1000));
    let response = client.read_head();
    client.read_exactly(1000);
    drop(hop);
    client.read_cut(&response);
    let cut = parts.next();
    assert_eq!((cut.end, cut.status), (End::NextHopCut, Some(200)));
    check_bytes(&cut, 1000, 1000);

    // what cannot be had is answered by the proxy: that is no cut
    let mut client = parts.proxy.client();
    client.send(parts.get("/nonsense"));
    parts.origin.answer("nonsense\r\n\r\n");
    let response = client.read_response();
    let bad = parts.next();
    assert_eq!((bad.end, bad.status), (End::Whole, Some(502)));
    assert_eq!(bad.response(), response.head.text.as_bytes());
    check_bytes(&bad, response.body.len() as u64, 0);

    // who leaves before there is a head has no status
    let mut client = parts.proxy.client();
    client.send(parts.get("/nothing"));
    let mut hop = parts.origin.accept();
    hop.read_head();
    client.into_peer().reset();
    let nothing = parts.next();
    assert_eq!((nothing.end, nothing.status), (End::ClientLeft, None));
    assert!(nothing.response().is_empty() && nothing.reached.us(Phase::ResponseHead).is_none());
    check_bytes(&nothing, 0, 0);
}

#[test]
fn refused_request_is_recorded_and_non_http_input_is_not() {
    let parts = Parts::new();
    let mut client = parts.proxy.client();
    let request = "GET http://10.0.0.1/x HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n";
    let response = client.ask(request);
    let refused = parts.next();
    assert_eq!((refused.status, refused.verdict), (Some(403), "refused"));
    assert_eq!(refused.response(), response.head.text.as_bytes());
    check_bytes(&refused, response.body.len() as u64, 0);

    // an origin-form at a forward proxy: there is a target, and no host
    let response = parts.proxy.client().ask("GET /y HTTP/1.0\r\n\r\n");
    assert_eq!(response.status(), 400);
    let invalid = parts.next();
    assert_eq!((invalid.status, invalid.verdict), (Some(400), "invalid"));
    let address = parts.proxy.address().to_string();
    assert_eq!(invalid.authority.as_deref(), Some(address.as_str()));
    assert!(!invalid.is_persistent);

    let mut noise = parts.proxy.client();
    noise.send("\x16\x03\x01 no HTTP\r\n\r\n");
    assert_eq!(noise.read_response().status(), 400);
    let dropped = Metric::Unrecorded(Unrecorded::NotHttp);
    assert_eq!(parts.proxy.count(dropped), 1);
    // nothing was told of it
    client.ask(request);
    assert_eq!(parts.next().request(), request.as_bytes());
}

#[test]
fn bytes_of_a_tunnel_are_recorded_by_direction() {
    let parts = Parts::with(|config, origin| {
        config.access.connect_ports = vec![origin.address().port()];
    });
    let mut client = parts.proxy.client();
    let address = parts.origin.address();
    client.send(format!(
        "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"
    ));
    client.read_head();
    let mut hop = parts.origin.accept();
    client.send("question");
    hop.expect("question");
    hop.send("an answer");
    client.expect("an answer");
    hop.finish();
    client.finish();
    client.expect_end();
    let tunnel = parts.next();
    assert_eq!((tunnel.status, tunnel.verdict), (Some(200), "tunnel"));
    assert_eq!(tunnel.request_content_bytes, Some(8));
    check_bytes(&tunnel, 9, 9);
    assert!(tunnel.next_hop.is_some_and(|hop| hop.setup_us.is_some()));
    assert_eq!((tunnel.end, tunnel.is_persistent), (End::Whole, false));
}

#[test]
fn recorded_arrival_is_that_of_the_first_piece_of_a_header_section() {
    let parts = Parts::new();
    let request = parts.head("GET", "/", "Cookie: a=b\r\n");
    let (front, rest) = request.split_at(20);
    let mut client: RawClient = parts.proxy.client();
    client.send(front);
    // it has been read when another client, of the same worker, was answered behind it
    parts.proxy.turn();
    assert_eq!(parts.next().status, Some(405));
    let begun = std::time::Instant::now();
    let long_enough = std::time::Duration::from_millis(20);
    while begun.elapsed() < long_enough {
        parts.proxy.turn();
        parts.next();
    }
    client.send(rest);
    let (_hop, _) = parts.origin.answer(SMALL);
    client.read_response();
    let told = parts.next();
    assert_eq!(told.request(), request.as_bytes());
    let response_us = told
        .reached
        .us(Phase::ResponseHead)
        .expect("it was answered");
    assert!(response_us >= 20_000, "{response_us}");
}

#[test]
fn record_of_a_validated_response_counts_no_next_hop_content() {
    let parts = Parts::new();
    let mut client = parts.proxy.client();
    let stale = SMALL.replace("max-age=60", "max-age=0, must-revalidate");
    client.send(parts.get("/"));
    let (mut hop, _) = parts.origin.answer(stale);
    client.read_response();
    parts.next();
    client.send(parts.get("/"));
    let asked = hop.answer("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n");
    assert!(asked.has("if-none-match"));
    assert_eq!(client.read_response().body, b"small");
    let validated = parts.next();
    assert_eq!((validated.status, validated.verdict), (Some(200), "stale"));
    check_bytes(&validated, 5, 0);
    let hop = validated.next_hop.expect("it was asked");
    assert!(hop.is_persistent && hop.response_us.is_some() && hop.setup_us.is_none());
}
