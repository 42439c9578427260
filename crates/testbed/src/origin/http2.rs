//! The same origin by HTTP/2 in clear: a thread of the process that measures, and the `h2` library.
//!
//! A fetch is counted by what was sent within the windows that the proxy had opened: that is all
//! that its kernel can have taken, and at most some kilobytes more.

use rustix::net::sockopt::set_socket_send_buffer_size;
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep, sleep_until};
use weir_bench::origin::{FetchEnd, FetchTally, Fetches, ResponseSpec, content_of};
use xtask::failure::{During, Failure};

/// Content of one stream that `h2` holds and the socket has not taken, bytes; and of one frame.
const FRAME_BYTES_MAX: usize = 8 * 1024;

/// Streams that a connection may have at once: what servers most often permit.
const STREAMS_MAX: u32 = 100;

/// Steps of a response with a rate.
const STEP: Duration = Duration::from_millis(10);

/// Serves until it is dropped.
#[derive(Debug)]
pub(super) struct Http2Origin {
    port: u16,
    log: Arc<Mutex<Log>>,
    /// Ends the thread.
    _running: oneshot::Sender<()>,
}

/// What was fetched.
#[derive(Debug, Default)]
struct Log {
    fetches: Fetches,
    connections: u64,
    /// The connections that carried fetches of a path.
    of_paths: BTreeMap<String, BTreeSet<u64>>,
}

impl Http2Origin {
    /// Listens on all addresses, at a port of its own; `send_buffer_bytes` is `SO_SNDBUF`.
    ///
    /// # Errors
    /// It cannot listen, or have a thread.
    pub(super) fn start(send_buffer_bytes: Option<usize>) -> Result<Self, Failure> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0));
        let listener = listener.during("listen as origin of HTTP/2")?;
        listener.set_nonblocking(true).during("listen")?;
        let address = listener.local_addr().during("listen")?;
        let (running, ended) = oneshot::channel();
        let log = Arc::<Mutex<Log>>::default();
        let serving = Arc::clone(&log);
        let thread = std::thread::Builder::new().name("origin-http2".to_owned());
        let thread = thread.spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            let accepting = accept(listener, send_buffer_bytes, serving);
            LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    _ = ended => {}
                    () = accepting => {}
                }
            });
        });
        thread.during("start the origin's thread")?;
        Ok(Self {
            port: address.port(),
            log,
            _running: running,
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn tally(&self, prefix: &str) -> FetchTally {
        // what was sent within windows counts as taken
        lock(&self.log).fetches.tally(prefix, |_| Some(0))
    }

    /// How many connections carried fetches of `path`.
    pub(super) fn connections_of(&self, path: &str) -> u64 {
        let log = lock(&self.log);
        log.of_paths.get(path).map_or(0, |all| all.len() as u64)
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(
    listener: std::net::TcpListener,
    send_buffer_bytes: Option<usize>,
    log: Arc<Mutex<Log>>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((socket, _)) = listener.accept().await {
        if let Some(bytes) = send_buffer_bytes {
            // half of it is for the kernel's own records, as with HTTP/1.1
            let _ = set_socket_send_buffer_size(&socket, bytes);
        }
        let _ = socket.set_nodelay(true);
        spawn_local(serve(socket, Arc::clone(&log)));
    }
}

/// Serves a connection until it ends; what ends it is the proxy's business.
async fn serve(socket: TcpStream, log: Arc<Mutex<Log>>) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(STREAMS_MAX);
    builder.max_send_buffer_size(FRAME_BYTES_MAX);
    let Ok(mut connection) = builder.handshake(socket).await else {
        return;
    };
    let number = {
        let mut log = lock(&log);
        log.connections += 1;
        log.connections
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let log = Arc::clone(&log);
        spawn_local(async move {
            // the log tells how it has ended
            let _ = Exchange::answer(request, respond, (log, number)).await;
        });
    }
}

/// A response that is sent.
struct Exchange {
    log: Arc<Mutex<Log>>,
    fetch: usize,
    stream: h2::SendStream<bytes::Bytes>,
    target: Rc<str>,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // one that has ended stays so
        lock(&self.log).fetches.end(self.fetch, FetchEnd::Cut);
    }
}

impl Exchange {
    async fn answer(
        request: http::Request<h2::RecvStream>,
        mut respond: h2::server::SendResponse<bytes::Bytes>,
        (log, connection): (Arc<Mutex<Log>>, u64),
    ) -> Result<(), h2::Error> {
        let target = request.uri().path_and_query();
        let target: Rc<str> = target.map_or("", |it| it.as_str()).into();
        let Some(spec) = ResponseSpec::parse(&target) else {
            let response = http::Response::builder().status(404).body(());
            let sent = response.map(|response| respond.send_response(response, true));
            return sent.map_or(Ok(()), |sent| sent.map(|_| ()));
        };
        let field = |name: &str| request.headers().get(name).map(|value| value.as_bytes());
        let etag = etag_of(&target);
        let range = field("range").filter(|_| {
            let only_if = field("if-range");
            only_if.is_none_or(|it| it == etag.as_bytes())
        });
        let is_known = field("if-none-match") == Some(etag.as_bytes());
        let first = range.and_then(|range| first_of(range, spec.size_bytes));
        let (status, from) = match (is_known, first) {
            (true, _) => (304, spec.size_bytes),
            (false, Some(first)) => (206, first),
            (false, None) => (200, 0),
        };
        let fetch = {
            let mut log = lock(&log);
            let carried = log.of_paths.entry(spec.path.clone()).or_default();
            carried.insert(connection);
            log.fetches.begin(&spec.path, field("range"), status, 0)
        };
        if !spec.delay.is_zero() {
            sleep(spec.delay).await;
        }
        let head = head_of(&spec, (status, from), &etag);
        let is_whole = from == spec.size_bytes;
        let stream = respond.send_response(head, is_whole)?;
        let mut exchange = Self {
            log,
            fetch,
            stream,
            target,
        };
        if !is_whole {
            exchange.send(&spec, from).await?;
        }
        lock(&exchange.log).fetches.end(fetch, FetchEnd::Whole);
        Ok(())
    }

    async fn send(&mut self, spec: &ResponseSpec, from: u64) -> Result<(), h2::Error> {
        let content = content_of(&self.target);
        let begun = Instant::now();
        let mut at = from;
        while at < spec.size_bytes {
            let mut most = (spec.size_bytes - at).min(FRAME_BYTES_MAX as u64);
            if let Some(rate) = spec.rate_bytes_per_s {
                most = most.min(due(rate, &begun, at - from).await);
            }
            let most = usize::try_from(most).unwrap_or(FRAME_BYTES_MAX);
            self.stream.reserve_capacity(most);
            while self.stream.capacity() == 0 {
                let Some(room) = poll_fn(|cx| self.stream.poll_capacity(cx)).await else {
                    return Err(h2::Reason::CANCEL.into());
                };
                room?;
            }
            let mut bytes = vec![0; self.stream.capacity().min(most)];
            content.fill(at, &mut bytes);
            let count = bytes.len() as u64;
            at += count;
            self.stream.send_data(bytes.into(), at == spec.size_bytes)?;
            lock(&self.log).fetches.handed(self.fetch, count);
        }
        Ok(())
    }
}

/// Waits until something is due of a response that goes at `rate` bytes a second; how much that is.
async fn due(rate: u64, begun: &Instant, sent: u64) -> u64 {
    loop {
        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let all = rate.saturating_mul(elapsed_us) / 1_000_000;
        if all > sent {
            return all - sent;
        }
        sleep_until(Instant::now() + STEP).await;
    }
}

fn head_of(spec: &ResponseSpec, (status, from): (u16, u64), etag: &str) -> http::Response<()> {
    let size = spec.size_bytes;
    let mut head = http::Response::new(());
    *head.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    let mut set = |name: &'static str, value: String| {
        // digits, dates and quoted digits: each is a value
        if let Ok(value) = http::HeaderValue::try_from(value) {
            head.headers_mut().insert(name, value);
        }
    };
    set("etag", etag.to_owned());
    set("content-type", "application/octet-stream".to_owned());
    let storable = "public, max-age=3600";
    let control = if spec.is_storable {
        storable
    } else {
        "no-store"
    };
    set("cache-control", control.to_owned());
    if status == 206 {
        set("content-range", format!("bytes {from}-{}/{size}", size - 1));
    }
    if status != 304 && spec.has_length {
        set("content-length", (size - from).to_string());
    }
    head
}

/// A strong entity tag: content is a function of the target.
fn etag_of(target: &str) -> String {
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

/// The first byte of a range that goes to the end of `size_bytes`; others are answered whole, as is
/// permitted (RFC 9110 §14.2).
fn first_of(range: &[u8], size_bytes: u64) -> Option<u64> {
    let range = std::str::from_utf8(range).ok()?;
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let is_to_end = last.is_empty() || last.parse() == Ok(size_bytes.checked_sub(1)?);
    let first = first.parse().ok().filter(|first| *first < size_bytes);
    first.filter(|_| is_to_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// Asks on a connection of its own; status, content, and whether it ended well.
    fn ask(port: u16, target: &str, fields: &[(&str, &str)]) -> (u16, Vec<u8>) {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let socket = TcpStream::connect(address).await.expect("the origin");
            let (mut send, connection) = h2::client::handshake(socket).await.expect("HTTP/2");
            let connection = tokio::spawn(connection);
            let mut request = http::Request::get(format!("http://a{target}"));
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            let request = request.body(()).expect("a request");
            let (response, _) = send.send_request(request, true).expect("a stream");
            let response = response.await.expect("a response");
            let status = response.status().as_u16();
            let mut body = response.into_body();
            let mut content = Vec::new();
            while let Some(data) = body.data().await {
                let data = data.expect("content");
                let _ = body.flow_control().release_capacity(data.len());
                content.extend_from_slice(&data);
            }
            connection.abort();
            (status, content)
        })
    }

    #[test]
    fn content_is_that_of_the_target_whole_or_from_a_byte_on() {
        let origin = Http2Origin::start(Some(32 * 1024)).expect("an origin");
        let target = ResponseSpec::new("/a/b", 100_000).to_string();
        let etag = etag_of(&target);
        let (status, whole) = ask(origin.port(), &target, &[]);
        assert_eq!((status, whole.len()), (200, 100_000));
        assert_eq!(content_of(&target).differs_at(0, &whole), None);
        for range in ["bytes=99000-", "bytes=99000-99999"] {
            let ranged = [("range", range), ("if-range", &*etag)];
            let (status, part) = ask(origin.port(), &target, &ranged);
            assert_eq!((status, part.len()), (206, 1000));
            assert_eq!(content_of(&target).differs_at(99_000, &part), None);
        }
        let other = [("range", "bytes=99000-"), ("if-range", "\"other\"")];
        assert_eq!(ask(origin.port(), &target, &other).0, 200);
        let known = [("if-none-match", &*etag)];
        assert_eq!(ask(origin.port(), &target, &known), (304, Vec::new()));
        assert_eq!(ask(origin.port(), "/nothing", &[]).0, 404);
        let tally = origin.tally("/a/");
        assert_eq!((tally.fetches, tally.running), (5, 0));
        assert_eq!(tally.acknowledged_bytes, 202_000);
        assert_eq!(origin.connections_of("/a/b"), 5);
    }

    #[test]
    fn response_with_a_rate_takes_its_time() {
        let origin = Http2Origin::start(None).expect("an origin");
        let spec = ResponseSpec {
            rate_bytes_per_s: Some(100_000),
            ..ResponseSpec::new("/a", 20_000)
        };
        let begun = Instant::now();
        assert_eq!(ask(origin.port(), &spec.to_string(), &[]).1.len(), 20_000);
        assert!(begun.elapsed() >= Duration::from_millis(190));
    }
}
