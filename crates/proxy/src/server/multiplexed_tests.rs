//! Requests on the streams of one multiplexed connection, all the way to a real origin.
//!
//! The connection is a test double (see `weir_net::http`), whose windows and resets are the tests'.
//! Everything behind the request head is what serves HTTP/1.1.

mod rest_of_response;

use crate::client::fast::{self, HeadTime, Input, InputResult, Receiver};
use crate::config::{AdminAddress, Config, LogTarget, Mode};
use crate::exchange::run;
use crate::host::module_host;
use crate::log::access_log::Say;
use crate::log::client::{ClientFacts, ForPeers, HttpVersions, ListenerFacts};
use crate::server::run::{open_store, share};
use crate::worker::core::Worker;
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use weir_measure::Metric;
use weir_net::Deadline;
use weir_net::clock::Clock;
use weir_net::http::ClientStream;
use weir_net::http::double::{
    DoubleConnection, DoubleEnd, DoubleNextHop, DoubleRequest, DoubleStream,
};
use weir_net::next_hops::{DistinctPeers, HopKey};
use weir_net::workers::{Accepted, Service, Sockets, Stage, WorkerPool};
use weir_semantics::Authority;
use weir_wire::BodyLength;

/// A client that never stops taking bytes.
pub(super) const WIDE: u64 = u64::MAX / 4;

const LARGE_BYTES: u64 = 8 * 1024 * 1024;

/// What a stopped stream has taken.
const TAKEN_BYTES: u64 = 64 * 1024;

/// A connection from a client, and its worker.
pub(super) struct Connection {
    pub(super) worker: Rc<Worker>,
    pub(super) listener: Rc<ListenerFacts>,
    pub(super) peer: SocketAddr,
    double: DoubleConnection,
    next_hops: Rc<Cell<DistinctPeers>>,
    pub(super) origin: SocketAddr,
    requests: Cell<u32>,
}

impl Connection {
    /// Sends a request head on a stream of its own, which may be sent `window` bytes of content.
    fn request(
        &self,
        method: &str,
        (origin, path): (SocketAddr, &str),
        length: BodyLength,
        window: u64,
    ) -> DoubleStream {
        let target = format!("http://{origin}{path}");
        let content = match length {
            BodyLength::Exact(bytes) => format!("Content-Length: {bytes}\r\n"),
            _ => String::new(),
        };
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {origin}\r\n{content}\r\n");
        self.send(&head, length, window)
    }

    /// Sends a request head on a stream of its own.
    fn send(&self, text: &str, length: BodyLength, window: u64) -> DoubleStream {
        let settings = self.worker.settings();
        self.requests.set(self.requests.get() + 1);
        let client = ClientFacts {
            listener: &self.listener,
            peer: self.peer,
            connection: 1,
            sequence: self.requests.get(),
        };
        let receiver = Receiver {
            // content goes by the stream
            copied_bytes_max: 0,
            ..Receiver::new(&self.worker, &settings, client, HeadTime::Now)
        };
        let input = Input {
            bytes: text.as_bytes(),
            at: 0,
        };
        let (mut out, mut served) = (Vec::new(), Vec::new());
        let taken = fast::take(&receiver, input, &mut out, &mut served);
        let InputResult::Exchange { exchange, .. } = taken else {
            panic!("answered at once: {:?}", String::from_utf8_lossy(&out));
        };
        let stream = self.double.open(length, window);
        let (served, next_hops) = (stream.clone(), Rc::clone(&self.next_hops));
        tokio::task::spawn_local(async move {
            let mut deadline = Deadline::new(Duration::from_secs(3600));
            let mut stream = ClientStream::double(served, &mut deadline, &next_hops);
            run::run(&mut stream, exchange).await;
        });
        stream
    }

    pub(super) fn get(&self, path: &str, window: u64) -> DoubleStream {
        self.get_from(self.origin, path, window)
    }

    pub(super) fn get_from(&self, origin: SocketAddr, path: &str, window: u64) -> DoubleStream {
        self.request("GET", (origin, path), BodyLength::None, window)
    }

    /// A next hop that is a test double, and a GET of a client from it.
    fn double_next_hop(&self) -> (DoubleNextHop, impl Fn(&str, u64) -> DoubleStream) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let hop = HopKey::new("127.0.0.1", address.port());
        let double = DoubleNextHop::new(hop, address);
        double.enter();
        let get = move |path: &str, window| {
            self.request("GET", (address, path), BodyLength::None, window)
        };
        (double, get)
    }

    /// Bytes that were read from next hops.
    fn fetched_bytes(&self) -> u64 {
        self.worker.counters().get(Metric::BytesFromNextHops)
    }
}

pub(super) type Scenario = fn(Rc<Connection>) -> Pin<Box<dyn Future<Output = ()>>>;

/// Serves a connection by a scenario.
struct Harness {
    worker: Rc<Worker>,
    scenario: Scenario,
    origin: SocketAddr,
    done: Sender<()>,
}

impl Service for Harness {
    type Listener = ListenerFacts;

    fn serve(self: Rc<Self>, client: Accepted<ListenerFacts>) -> impl Future<Output = ()> {
        let connection = Rc::new(Connection {
            worker: Rc::clone(&self.worker),
            listener: client.listener,
            peer: client.peer,
            double: DoubleConnection::new(WIDE),
            next_hops: Rc::default(),
            origin: self.origin,
            requests: Cell::new(0),
        });
        async move {
            (self.scenario)(connection).await;
            self.done.send(()).expect("the test waits");
        }
    }
}

/// Runs `scenario` on a worker.
pub(super) fn check(scenario: Scenario) {
    check_with(|_| {}, scenario);
}

/// Runs `scenario` on a worker with other settings.
fn check_with(change: fn(&mut Config), scenario: Scenario) {
    let mut config = Config {
        workers: 1,
        ..Config::default()
    };
    config.admin.address = AdminAddress::Off;
    config.log.access = LogTarget::Off;
    config.disk.enabled = false;
    let origin = origin();
    config.access.connect_ports = vec![origin.port()];
    config.access.allow_destinations = vec!["127.0.0.0/8".parse().expect("a range")];
    config.fetch.follower_wait = "1h".parse().expect("a time");
    config.limits.client_silence = "1h".parse().expect("a time");
    config.limits.next_hop_silence = "1h".parse().expect("a time");
    change(&mut config);
    let say: Say = Arc::new(|_| {});
    let store = open_store(&config, None, true, &say);
    let shared = share(
        &config,
        Clock::system(),
        (store, None),
        None,
        say,
        || {},
        Default::default(),
    );
    let shared = Arc::new(shared.expect("what the workers share"));
    let (done, ended) = channel();
    let service = {
        let shared = Arc::clone(&shared);
        move |net| {
            let worker = Worker::new(net, Arc::clone(&shared), module_host::maker);
            let done = done.clone();
            Rc::new(Harness {
                worker,
                scenario,
                origin,
                done,
            })
        }
    };
    let pool = WorkerPool::start(&shared.network, service).expect("a worker");
    let facts = ListenerFacts {
        versions: HttpVersions::Http1,
        scheme: weir_semantics::Scheme::Http,
        tls: None,
        balancers: Arc::default(),
        tls_address: None,
        is_handed_over: false,
        mode: Mode::Forward,
        default: Arc::new(Authority::parse("127.0.0.1:1").expect("an authority")),
        peers: ForPeers::No,
        name: None,
        is_named: false,
        address: None,
        closed: Arc::default(),
    };
    let sockets = Sockets::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1, false);
    let sockets = sockets.expect("a port");
    let listener = pool.serve(sockets, &facts).expect("a listener");
    let client = TcpStream::connect(listener.address()).expect("a connection");
    let ended = ended.recv_timeout(Duration::from_secs(120));
    drop((client, listener));
    shared.network.advance(Stage::Cut);
    pool.join();
    ended.expect("the scenario ends, and does not panic");
}

/// An origin: `/large` and `/stored` may be stored, `/private` may not, `/small` is small, `/count`
/// answers a POST with how many bytes it had, `/cut` breaks off.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve_origin(stream));
        }
    });
    address
}

fn serve_origin(mut stream: TcpStream) {
    let mut received = Vec::new();
    loop {
        let Some(end) = received.windows(4).position(|it| it == b"\r\n\r\n") else {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => received.extend_from_slice(&buffer[..count]),
            }
            continue;
        };
        let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
        let mut rest = received.split_off(end + 4);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let length = head
            .lines()
            .find_map(|it| it.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |it| it.parse().expect("a length"));
        let mut had = rest.len();
        while had < length {
            let mut buffer = [0; 65536];
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => had += count,
            }
        }
        rest.clear();
        received = rest;
        let (rules, content) = match path.as_str() {
            "/large" => ("max-age=3600", large()),
            "/stored" => ("max-age=3600", b"stored".to_vec()),
            "/private" => ("no-store", large()),
            "/cut" => ("no-store", b"part".to_vec()),
            "/count" => ("no-store", had.to_string().into_bytes()),
            _ => ("no-store", b"small".to_vec()),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: {rules}\r\nContent-Length: {}\r\n\r\n",
            content.len() + usize::from(path == "/cut")
        );
        let sent = stream.write_all(head.as_bytes());
        let sent = sent.and_then(|()| stream.write_all(&content));
        if sent.is_err() || path == "/cut" {
            return;
        }
    }
}

fn large() -> Vec<u8> {
    (0..LARGE_BYTES).map(|at| (at % 251) as u8).collect()
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

/// A response to one stream is stopped; another one on the connection is answered meanwhile.
async fn stopped(connection: &Connection, path: &str) {
    let before = connection.fetched_bytes();
    let held_back = connection.get(path, TAKEN_BYTES);
    assert!(held_back.head().await.starts_with("HTTP/1.1 200 OK\r\n"));
    until(|| held_back.unread_bytes() as u64 == TAKEN_BYTES).await;
    for _ in 0..20 {
        let (content, end) = connection.get("/small", WIDE).read_all().await;
        assert_eq!((&content[..], end), (&b"small"[..], DoubleEnd::Whole));
    }
    // the read-ahead, what was read at once behind it, and the small ones
    let fetched = connection.fetched_bytes() - before;
    assert!(fetched < TAKEN_BYTES + 512 * 1024, "{path}: {fetched}");
    held_back.grant(WIDE);
    let (content, end) = held_back.read_all().await;
    assert!(content == large(), "{path}: the content differs");
    assert_eq!(end, DoubleEnd::Whole);
}

#[test]
fn stopped_stream_holds_back_its_own_response_alone() {
    check(|connection| {
        Box::pin(async move {
            stopped(&connection, "/private").await;
            stopped(&connection, "/large").await;
        })
    });
}

#[test]
fn reset_stream_ends_its_own_request_alone() {
    check(|connection| {
        Box::pin(async move {
            let leader = connection.get("/large", TAKEN_BYTES);
            leader.head().await;
            let follower = connection.get("/large", WIDE);
            follower.head().await;
            leader.reset();
            let (content, end) = follower.read_all().await;
            assert!(content == large(), "the content differs");
            assert_eq!(end, DoubleEnd::Whole);
            let aborts = || connection.worker.counters().get(Metric::ClientAborts);
            until(|| aborts() == 1).await;
        })
    });
}

#[test]
fn response_that_is_cut_aborts_its_own_stream_alone() {
    check(|connection| {
        Box::pin(async move {
            let other = connection.get("/private", TAKEN_BYTES);
            other.head().await;
            let cut = connection.get("/cut", WIDE);
            let (content, end) = cut.read_all().await;
            assert_eq!((&content[..], end), (&b"part"[..], DoubleEnd::Aborted));
            other.grant(WIDE);
            let (content, end) = other.read_all().await;
            assert!(content == large(), "the content differs");
            assert_eq!(end, DoubleEnd::Whole);
        })
    });
}

#[test]
fn streams_share_the_window_of_their_connection() {
    check(|connection| {
        Box::pin(async move {
            let first = connection.get("/private", WIDE);
            first.head().await;
            connection.double.set_window(0);
            let second = connection.get("/small", WIDE);
            second.head().await;
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            assert_eq!(second.unread_bytes(), 0);
            connection.double.set_window(WIDE);
            assert_eq!(second.read_all().await.0, b"small");
            assert!(first.read_all().await.0 == large(), "the content differs");
        })
    });
}

#[test]
fn tunnel_takes_a_stream_and_leaves_the_others() {
    check(|connection| {
        Box::pin(async move {
            let origin = connection.origin;
            let head = format!("CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\n\r\n");
            let tunnel = connection.send(&head, BodyLength::None, WIDE);
            assert!(tunnel.head().await.starts_with("HTTP/1.1 200 "));
            let request = format!("GET /small HTTP/1.1\r\nHost: {origin}\r\n\r\n");
            tunnel.send(request.as_bytes(), false);
            let (mut received, mut end) = (Vec::new(), None);
            while !received.ends_with(b"small") {
                let (content, ended) = tunnel.read().await;
                received.extend(content);
                end = ended;
            }
            assert!(received.starts_with(b"HTTP/1.1 200 OK\r\n"));
            assert_eq!(end, None);
            assert_eq!(connection.get("/small", WIDE).read_all().await.0, b"small");
        })
    });
}

#[test]
fn request_content_is_consumed_as_the_next_hop_takes_it() {
    check(|connection| {
        Box::pin(async move {
            let length = BodyLength::Exact(LARGE_BYTES);
            let stream = connection.request("POST", (connection.origin, "/count"), length, WIDE);
            let content = large();
            let mut pieces = content.chunks(16 * 1024).peekable();
            while let Some(piece) = pieces.next() {
                stream.send(piece, pieces.peek().is_none());
                until(|| stream.unconsumed_bytes() < TAKEN_BYTES).await;
            }
            let (count, end) = stream.read_all().await;
            let expected = LARGE_BYTES.to_string().into_bytes();
            assert_eq!((count, end), (expected, DoubleEnd::Whole));
            assert_eq!(stream.unconsumed_bytes(), 0);
        })
    });
}

/// Sends a response with `content`; how much of it was sent in the end.
async fn respond(request: DoubleRequest, rules: &str, content: Vec<u8>) -> (DoubleRequest, usize) {
    let length = content.len();
    request.respond(&format!(
        "HTTP/1.1 200 OK\r\nCache-Control: {rules}\r\nContent-Length: {length}\r\n"
    ));
    let mut sent = 0;
    while sent < length {
        match request.send(&content[sent..]).await {
            0 => return (request, sent),
            count => sent += count,
        }
    }
    request.end();
    (request, sent)
}

/// Two requests are under way on one connection to a next hop, and the client of one is stopped.
async fn stopped_at_next_hop(
    connection: &Connection,
    next_hop: &DoubleNextHop,
    get: impl Fn(&str, u64) -> DoubleStream,
    rules: &'static str,
) {
    let (path, small) = (format!("/{rules}"), format!("/small-{rules}"));
    let held_back = get(&path, TAKEN_BYTES);
    let large_request = next_hop.accept().await;
    assert!(
        large_request
            .head()
            .starts_with(&format!("GET {path} HTTP/1.1\r\n"))
    );
    let other = get(&small, WIDE);
    let small_request = next_hop.accept().await;
    let before = connection.fetched_bytes();
    let answered = tokio::task::spawn_local(respond(large_request, rules, large()));
    until(|| held_back.unread_bytes() as u64 == TAKEN_BYTES).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let fetched = connection.fetched_bytes() - before;
    assert!(fetched < TAKEN_BYTES + 256 * 1024, "{rules}: {fetched}");
    assert!(
        !answered.is_finished(),
        "the window holds the next hop back"
    );
    respond(small_request, "no-store", b"small".to_vec()).await;
    let (content, end) = other.read_all().await;
    assert_eq!((&content[..], end), (&b"small"[..], DoubleEnd::Whole));
    held_back.grant(WIDE);
    let (content, end) = held_back.read_all().await;
    assert!(content == large(), "{rules}: the content differs");
    assert_eq!(end, DoubleEnd::Whole);
    answered.await.expect("no panic");
}

#[test]
fn stopped_client_holds_back_its_own_stream_of_a_next_hop_alone() {
    check(|connection| {
        Box::pin(async move {
            let (next_hop, get) = connection.double_next_hop();
            stopped_at_next_hop(&connection, &next_hop, &get, "no-store").await;
            stopped_at_next_hop(&connection, &next_hop, &get, "max-age=3600").await;
        })
    });
}

#[test]
fn reset_client_stops_its_own_stream_of_a_next_hop_alone() {
    check(|connection| {
        Box::pin(async move {
            let (next_hop, get) = connection.double_next_hop();
            let left = get("/left", TAKEN_BYTES);
            let left_request = next_hop.accept().await;
            let stays = get("/stays", WIDE);
            let stays_request = next_hop.accept().await;
            let answered = tokio::task::spawn_local(respond(left_request, "no-store", large()));
            left.head().await;
            left.reset();
            let (request, sent) = answered.await.expect("no panic");
            assert!(request.is_cancelled());
            assert!((sent as u64) < LARGE_BYTES, "{sent}");
            respond(stays_request, "no-store", b"whole".to_vec()).await;
            let (content, end) = stays.read_all().await;
            assert_eq!((&content[..], end), (&b"whole"[..], DoubleEnd::Whole));
        })
    });
}

#[test]
fn reset_is_noticed_after_the_next_hop_has_refused_the_rest_of_the_content() {
    check(|connection| {
        Box::pin(async move {
            let (next_hop, _) = connection.double_next_hop();
            let target = (SocketAddr::from((Ipv4Addr::LOCALHOST, 9)), "/");
            let stream = connection.request("POST", target, BodyLength::Exact(100), WIDE);
            stream.send(b"begin", false);
            let request = next_hop.accept().await;
            until(|| stream.unconsumed_bytes() == 0).await;
            request.refuse_content();
            stream.send(b"more", false);
            until(|| stream.unconsumed_bytes() > 0).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert!(!request.is_cancelled(), "its response is awaited");
            stream.reset();
            until(|| request.is_cancelled()).await;
        })
    });
}

#[test]
fn next_hop_that_takes_no_request_head_is_reported_as_a_timeout() {
    let change = |config: &mut Config| {
        config.limits.next_hop_silence = "100ms".parse().expect("a time");
    };
    check_with(change, |connection| {
        Box::pin(async move {
            let (next_hop, get) = connection.double_next_hop();
            next_hop.stall();
            let head = get("/", WIDE).head().await;
            assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
            assert!(head.contains("error=connection_write_timeout"), "{head}");
        })
    });
}
