//! Content from clients on streams: what is stopped of it, and what ends a tunnel.

use super::LOCATIONS;
use super::frames::{
    DATA, END_HEADERS, END_STREAM, Frame, Frames, HEADERS, RST_STREAM, WINDOW_UPDATE, block, frame,
};
use crate::support::{Config, Nginx, PATIENCE, RawClient, Weir};
use serde_json::Value;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Windows of a stream, and of a connection before it is made wider (RFC 9113 §6.9.2).
const WINDOW: u32 = 65_535;

/// The head of a response with status 204 begins with its place in the static table (RFC 7541
/// appendix A).
const STATUS_204: u8 = 0x89;

/// The code of a tunnel whose connection was ended (RFC 9113 §7).
const CONNECT_ERROR: u32 = 10;

/// A client that sends content as the window of its connection permits.
struct Uploader {
    frames: Frames,
    window: u32,
}

impl Uploader {
    fn new(weir: &Weir) -> Self {
        Self {
            frames: Frames::connect(weir.address()),
            window: WINDOW,
        }
    }

    fn begin(&mut self, stream: u32, method: &str, authority: &str, path: &str) {
        let fields = [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", authority),
        ];
        let block = block(&fields);
        self.frames.send(HEADERS, END_HEADERS, stream, &block);
    }

    /// Waits for a frame of `stream` or of the connection, whose window it notes.
    fn wait(&mut self) -> Frame {
        let frame = self.frames.next().expect("a frame");
        if frame.kind == WINDOW_UPDATE && frame.stream == 0 {
            let more = <[u8; 4]>::try_from(&frame.payload[..]).expect("4 bytes");
            self.window += u32::from_be_bytes(more);
        }
        frame
    }

    fn send(&mut self, stream: u32, content: &[u8]) {
        for piece in content.chunks(16 * 1024) {
            let length = u32::try_from(piece.len()).expect("a frame");
            while self.window < length {
                self.wait();
            }
            self.window -= length;
            self.frames.send(DATA, 0, stream, piece);
        }
    }

    fn head_of(&mut self, stream: u32) -> Frame {
        loop {
            let frame = self.wait();
            if frame.stream == stream && frame.kind == HEADERS {
                return frame;
            }
        }
    }
}

/// A next hop that accepts connections and reads nothing of them.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let authority = listener.local_addr().expect("bound").to_string();
    (listener, authority)
}

/// Ten requests whose content waits, each as much as its window permits; and then one that goes on.
#[test]
fn content_that_waits_for_a_next_hop_stops_no_other_of_its_connection() {
    let (_stopped, stopped) = silent();
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::forward().of_listener("http2 = true");
    let config = config
        .set("limits.connections_per_next_hop_max", "1")
        .set("limits.idle_per_next_hop_max", "1");
    let weir = Weir::serve(&config.set("limits.next_hop_wait", "\"10min\""));
    let mut client = Uploader::new(&weir);
    // this one has the connection to itself
    client.begin(1, "POST", &stopped, "/");
    for stream in (3..=21).step_by(2) {
        client.begin(stream, "POST", &stopped, "/");
        client.send(stream, &[b'x'; WINDOW as usize]);
    }
    let file = nginx.file("put/file", b"before");
    let authority = nginx.address.to_string();
    client.begin(23, "PUT", &authority, "/put/file");
    client.send(23, &[b'y'; WINDOW as usize]);
    client.frames.send(DATA, END_STREAM, 23, &[]);
    let answer = client.head_of(23);
    assert_eq!(answer.payload[0], STATUS_204);
    let written = std::fs::read(file).expect("a file");
    assert_eq!(written.len(), WINDOW as usize);
}

/// As messages of gRPC or a WebSocket come. `h2` permits only so many that no stream has taken.
#[test]
fn content_in_a_burst_of_small_frames_ends_no_connection() {
    const FRAME: usize = 36;
    let nginx = Nginx::start(LOCATIONS);
    let file = nginx.file("put/file", b"before");
    let weir = Weir::serve(&Config::forward().of_listener("http2 = true"));
    let mut client = Uploader::new(&weir);
    client.begin(1, "PUT", &nginx.address.to_string(), "/put/file");
    let content: Vec<u8> = (0..WINDOW).map(|at| at.to_le_bytes()[0]).collect();
    let pieces = content.chunks(FRAME).map(|piece| frame(DATA, 0, 1, piece));
    let burst: Vec<u8> = pieces.flatten().collect();
    assert!(client.frames.write(&burst));
    client.frames.send(DATA, END_STREAM, 1, &[]);
    assert_eq!(client.head_of(1).payload[0], STATUS_204);
    assert!(std::fs::read(file).expect("a file") == content);
}

/// A forward proxy from which tunnels lead to an address, and what is there.
fn proxy() -> (Weir, TcpListener, String) {
    let (listener, authority) = silent();
    let port = listener.local_addr().expect("bound").port();
    let config = Config::forward().set("access.connect_ports", &format!("[{port}]"));
    let config = config.set("log.access", "\"access.log\"");
    let weir = Weir::serve(&config.of_listener("http2 = true"));
    (weir, listener, authority)
}

/// A forward proxy, a tunnel on stream 1, and the far end of that.
fn tunnel() -> (Weir, Uploader, TcpStream) {
    let (weir, listener, authority) = proxy();
    let mut client = Uploader::new(&weir);
    let fields = [(":method", "CONNECT"), (":authority", authority.as_str())];
    client.frames.send(HEADERS, END_HEADERS, 1, &block(&fields));
    client.head_of(1);
    let (far, _) = listener.accept().expect("the tunnel");
    far.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    (weir, client, far)
}

#[test]
fn tunnel_with_another_frame_than_data_is_reset() {
    let (_weir, mut client, mut far) = tunnel();
    client.send(1, b"abc");
    let mut received = [0; 3];
    far.read_exact(&mut received).expect("bytes");
    // no trailers (RFC 9113 §8.5)
    let trailers = block(&[("x-a", "b")]);
    client
        .frames
        .send(HEADERS, END_HEADERS | END_STREAM, 1, &trailers);
    let reset = client.frames.until(RST_STREAM);
    assert_eq!((reset.stream, reset.error()), (1, CONNECT_ERROR));
    // what the far end has of it was not all that the client wanted to send
    let end = far.read(&mut received).expect_err("a reset");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn tunnel_whose_client_has_finished_goes_on_the_other_way() {
    let (_weir, mut client, mut far) = tunnel();
    client.frames.send(DATA, END_STREAM, 1, b"abc");
    let mut received = Vec::new();
    far.read_to_end(&mut received).expect("the end");
    assert_eq!(received, b"abc");
    far.write_all(b"def").expect("the tunnel");
    assert_eq!(client.frames.until(DATA).payload, b"def");
    drop(far);
    let end = client.frames.until(DATA);
    assert_eq!((end.flags, end.payload.len()), (END_STREAM, 0));
}

/// One by HTTP/1.1 and one by HTTP/2: what is sent through each is counted once, and as tunnelled.
#[test]
fn bytes_of_tunnels_are_counted_alike_by_each_version() {
    const BYTES: usize = 1000;
    let (mut weir, listener, authority) = proxy();
    let answer = || {
        let (mut far, _) = listener.accept().expect("the tunnel");
        let mut received = Vec::new();
        far.read_to_end(&mut received).expect("the end");
        assert_eq!(received, b"abc");
        far.write_all(&[b'x'; BYTES]).expect("the tunnel");
    };
    let mut by_http1 = RawClient::connect(weir.address());
    by_http1.send(format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
    ));
    assert_eq!(by_http1.head().status(), 200);
    by_http1.send(b"abc");
    by_http1.end_sending();
    answer();
    assert_eq!(by_http1.take(BYTES), [b'x'; BYTES]);
    assert!(by_http1.is_closed());
    let mut by_http2 = Uploader::new(&weir);
    let fields = [(":method", "CONNECT"), (":authority", authority.as_str())];
    by_http2
        .frames
        .send(HEADERS, END_HEADERS, 1, &block(&fields));
    by_http2.frames.send(DATA, END_STREAM, 1, b"abc");
    answer();
    while by_http2.frames.until(DATA).flags != END_STREAM {}
    let metrics = weir.until("counted", |metrics| metrics.requests("tunnel") == 2);
    let tunnelled = ["client", "next_hop"]
        .map(|to| metrics.count(&format!("weir_tunnel_{to}_sent_bytes_total")));
    assert_eq!(tunnelled, [2 * BYTES as u64, 6]);
    let heads = metrics.count("weir_client_sent_bytes_total");
    assert!((1..200).contains(&heads), "{heads}");
    drop((by_http1, by_http2));
    assert_eq!(weir.stop().code(), Some(0));
    let text = std::fs::read_to_string(weir.file("access.log")).expect("a log");
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let bytes = |field: &str| line[field].as_u64().unwrap_or_default();
        let tunnelled = BYTES as u64;
        assert!(
            (tunnelled..tunnelled + 100).contains(&bytes("response_bytes")),
            "{line}"
        );
        assert_eq!(bytes("from_next_hop_bytes"), tunnelled, "{line}");
    }
    assert_eq!(text.lines().count(), 2);
}
