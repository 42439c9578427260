//! Stored responses that are sent from the store behind a head that is made at once: those that are
//! larger than what is copied.

use super::frames::{
    CANCEL, DATA, END_HEADERS, END_STREAM, Frames, HEADERS, INITIAL_WINDOW_SIZE, RST_STREAM,
    WINDOW_UPDATE, block, frame, get,
};
use super::{Clear, LOCATIONS};
use crate::support::{Config, Curl, Nginx, Weir, content};
use serde_json::Value;
use std::path::Path;

/// More than the window of a stream, and than a block of content in memory.
const LENGTH: usize = 1_000_000;

/// A gateway in clear with an access log, and nginx with one large file, which is stored.
struct Stored {
    clear: Clear,
    bytes: Vec<u8>,
    log: tempfile::TempDir,
}

impl Stored {
    fn start() -> Self {
        let log = tempfile::tempdir().expect("a folder");
        let path = log.path().join("access.log");
        let nginx = Nginx::start(LOCATIONS);
        let bytes = content(11, LENGTH);
        nginx.file("stored/large", &bytes);
        let config = Config::gateway(&[&nginx.origin()]).of_listener("http2 = true");
        let config = config.set("workers", "1");
        let weir = Weir::serve(&config.set("log.access", &format!("{path:?}")));
        let clear = Clear { nginx, weir };
        let url = clear.weir.url("/stored/large");
        Curl::direct().fetch(&url).reply().expect(200);
        Self { clear, bytes, log }
    }

    /// Stops it; the lines of its log.
    fn lines(self) -> Vec<Value> {
        let mut weir = self.clear.weir;
        assert!(weir.stop().success());
        lines(self.log.path())
    }
}

/// Sends a GET for what curl has had stored.
fn get_large(client: &mut Frames, weir: &Weir) {
    let authority = weir.address().to_string();
    let head = [(":method", "GET"), (":scheme", "http")];
    let target = [(":path", "/stored/large"), (":authority", &*authority)];
    client.request(1, &[head, target].concat());
}

fn lines(folder: &Path) -> Vec<Value> {
    let log = std::fs::read_to_string(folder.join("access.log")).expect("a log");
    let read = |line| serde_json::from_str(line).expect("JSON");
    log.lines().map(read).collect()
}

#[test]
fn large_stored_response_is_answered_and_logged_as_by_http1() {
    let stored = Stored::start();
    let url = stored.clear.weir.url("/stored/large");
    let requests = [
        ["--request", "GET"],
        ["--range", "70000-800000"],
        ["--range", "-1"],
        ["--range", "2000000-"],
        ["--head", "--no-keepalive"],
        ["-H", "If-Modified-Since: Fri, 31 Dec 2100 00:00:00 GMT"],
    ];
    for more in requests {
        let http1 = Curl::direct().args(more).fetch(&url).reply();
        let http2 = Clear::curl().args(more).fetch(&url).reply();
        assert!(http2.is_hit(), "{more:?}: {}", http2.head);
        assert_eq!(http1.status(), http2.status(), "{more:?}");
        // curl has the head of a HEAD for its body
        let is_equal = more[0] == "--head" || http1.body == http2.body;
        assert!(is_equal, "{more:?}: {}", http2.head);
        for name in ["content-length", "content-range", "last-modified"] {
            assert_eq!(http1.field(name), http2.field(name), "{more:?}: {name}");
        }
    }
    let part = Clear::curl().args(["--range", "70000-800000"]).fetch(&url);
    assert!(part.reply().body == stored.bytes[70_000..=800_000]);
    let panics = stored.clear.weir.metrics().count("weir_panics_total");
    assert_eq!(panics, 0);
    let lines = stored.lines();
    // behind the one that was stored
    for pair in lines[1..=2 * requests.len()].chunks(2) {
        let [http1, http2] = pair else {
            panic!("a pair")
        };
        assert_eq!(http1["version"], "HTTP/1.1");
        assert_eq!(http2["version"], "HTTP/2.0");
        for name in ["method", "status", "verdict", "body_bytes", "store_bytes"] {
            assert_eq!(http1[name], http2[name], "{name}: {http1} {http2}");
        }
        assert_eq!(http1["content_type"], http2["content_type"]);
        assert_eq!(http2["error"], Value::Null, "{http2}");
    }
}

#[test]
fn large_stored_response_that_is_reset_counts_for_what_was_sent() {
    const WINDOW: usize = 100_000;
    let stored = Stored::start();
    let weir = &stored.clear.weir;
    let before = weir.metrics();
    let settings = [(INITIAL_WINDOW_SIZE, 40_000)];
    let mut client = Frames::with_settings(weir.address(), &settings);
    get_large(&mut client, weir);
    let mut received = Vec::new();
    assert_eq!(client.until(HEADERS).stream, 1);
    while received.len() < 40_000 {
        received.extend(client.until(DATA).payload);
    }
    weir.until("under way", |it| it.count("weir_requests_in_flight") == 1);
    // it goes on where its window is opened, up to that
    let opened = u32::try_from(WINDOW - 40_000).expect("a window");
    client.send(WINDOW_UPDATE, 0, 0, &opened.to_be_bytes());
    client.send(WINDOW_UPDATE, 0, 1, &opened.to_be_bytes());
    while received.len() < WINDOW {
        received.extend(client.until(DATA).payload);
    }
    assert!(received == stored.bytes[..WINDOW]);
    client.send(RST_STREAM, 0, 1, &CANCEL.to_be_bytes());
    let after = weir.until("ended", |it| {
        it.count("weir_client_aborts_total") == 1 && it.count("weir_requests_in_flight") == 0
    });
    let grown = |name: &str| after.count(name) - before.count(name);
    assert_eq!(grown("weir_client_sent_body_bytes_total"), WINDOW as u64);
    assert_eq!(grown("weir_store_sent_bytes_total"), WINDOW as u64);
    // others on the connection are served
    client.get(3, "/cached");
    let mut last = client.until(DATA);
    while last.flags & END_STREAM == 0 {
        last = client.until(DATA);
    }
    assert_eq!(last.stream, 3);
    let lines = stored.lines();
    let line = &lines[1];
    assert_eq!(line["body_bytes"], WINDOW, "{line}");
    assert_eq!(line["error"], "client-left", "{line}");
    assert_eq!(line["verdict"], "hit", "{line}");
}

#[test]
fn large_stored_response_is_sent_whole_while_it_is_evicted() {
    let clear = Clear::with(|config| config.set("workers", "1").set("cache.memory", "\"16MiB\""));
    let bytes = content(12, LENGTH);
    clear.nginx.file("stored/large", &bytes);
    let url = clear.weir.url("/stored/large");
    Clear::curl().fetch(&url).reply().expect(200);
    let settings = [(INITIAL_WINDOW_SIZE, 10_000)];
    let mut client = Frames::with_settings(clear.weir.address(), &settings);
    get_large(&mut client, &clear.weir);
    let mut received = Vec::new();
    while received.len() < 10_000 {
        received.extend(client.until(DATA).payload);
    }
    for number in 0..40 {
        let name = format!("stored/other-{number}");
        clear.nginx.file(&name, &content(number, LENGTH));
        let other = clear.weir.url(&format!("/{name}"));
        Clear::curl().fetch(&other).reply().expect(200);
    }
    let evicted = clear.weir.metrics().count("weir_evicted_total");
    assert!(evicted > 0, "nothing was evicted");
    let opened = u32::try_from(LENGTH).expect("a window").to_be_bytes();
    client.send(WINDOW_UPDATE, 0, 0, &opened);
    client.send(WINDOW_UPDATE, 0, 1, &opened);
    while received.len() < LENGTH {
        received.extend(client.until(DATA).payload);
    }
    assert!(received == bytes);
    clear.expect_others_are_served();
}

#[test]
fn reader_that_has_stopped_holds_no_memory_of_a_response_that_is_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let directories = format!("[{{ path = {:?}, size = \"256MiB\" }}]", folder.path());
    let clear = Clear::with(|config| {
        let config = config.set("disk.enabled", "true");
        let config = config.set("disk.directories", &directories);
        config.set("cache.largest_response", "\"64KiB\"")
    });
    // it ends within what is written at once: that is on its way when the last byte has come
    let expected = content(11, 4_800_000);
    clear.nginx.file("stored/large", &expected);
    let windows = [(INITIAL_WINDOW_SIZE, 0)];
    let mut client = Frames::with_settings(clear.weir.address(), &windows);
    get_large(&mut client, &clear.weir);
    assert_eq!(client.until(HEADERS).kind, HEADERS);
    let url = clear.weir.url("/stored/large");
    assert!(Curl::direct().fetch(&url).reply().body == expected);
    clear.weir.until("memory that is given back", |metrics| {
        metrics.count("weir_store_used_bytes") < 100_000
    });
    // it reads on, from disk
    for stream in [0, 1] {
        client.send(WINDOW_UPDATE, 0, stream, &8_000_000_u32.to_be_bytes());
    }
    let mut received = Vec::new();
    while received.len() < expected.len() {
        received.extend(client.until(DATA).payload);
    }
    assert!(received == expected);
}

/// Windows hold back content alone.
#[test]
fn client_that_takes_no_heads_has_no_further_requests_read() {
    const REQUESTS: u32 = 4000;
    const READ_MAX: u64 = 500;
    let long = "b".repeat(2700);
    let fields = ["A", "B", "C"].map(|name| format!("add_header X-{name} {long};"));
    let nginx = Nginx::start(&format!(
        "location /heads {{ add_header Cache-Control max-age=600; {} return 200 ok; }}",
        fields.concat()
    ));
    let config = Config::gateway(&[&nginx.origin()]).of_listener("http2 = true");
    let weir = Weir::serve(&config.set("workers", "1"));
    Curl::direct()
        .fetch(&weir.url("/heads"))
        .reply()
        .expect(200);
    let mut client = Frames::connect(weir.address()).with_small_buffer();
    let authority = weir.address().to_string();
    let [method, scheme, path, _] = get("/heads");
    let head = block(&[method, scheme, path, (":authority", &*authority)]);
    let one = |number| frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &head);
    let requests: Vec<u8> = (0..REQUESTS).flat_map(one).collect();
    let mut sender = client.sender();
    let sending = std::thread::spawn(move || sender.write(&requests));
    // it stands still
    let same = std::cell::Cell::new((0, 0));
    let metrics = weir.until("is nothing more read", |metrics| {
        let (last, times) = same.get();
        let hits = metrics.requests("hit");
        same.set((hits, if hits == last { times + 1 } else { 0 }));
        hits > 0 && times > 200
    });
    assert!(metrics.requests("hit") < READ_MAX, "{metrics:#?}");
    // and goes on
    for number in 0..REQUESTS {
        let head = client.until(HEADERS);
        assert_eq!(head.stream, 2 * number + 1);
    }
    assert!(sending.join().expect("no panic"));
}
