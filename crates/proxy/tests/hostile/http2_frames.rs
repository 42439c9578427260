//! A connection of HTTP/2 whose client sends any frames; the fuzz target `http2` has the same.
//!
//! Invariant: whatever a client sends, its connection ends once it has ended its side, without a
//! panic. Each head that is given is one request as HTTP/1.1 has it, to its last byte, whose target
//! and fields have no control characters. What the client is sent is whole frames (RFC 9113 §4.1)
//! that begin with SETTINGS; content is sent on streams that have a response alone, and, where the
//! client opens no windows, no more of it than those it began with.
//!
//! The input is a script: a byte that chooses what the server does, then frames, each of a byte for
//! its kind, one for its flags, one for its stream, one for its length, and the payload.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};
use weir_net::Deadline;
use weir_net::client::ClientSocket;
use weir_net::http::{
    ClientStream, ContentForm, HTTP2_PREFACE, Http2Accepted, Http2Connection, Http2Form,
    Http2Rules, Http2Stream, ReceivedContent,
};
use weir_net::next_hops::DistinctPeers;
use weir_policy::{Now, Tick};
use weir_semantics::{NamedFields, Scheme, Timestamp};
use weir_wire::{BodyLength, HeadLimits, LineBuffer, Progress, parse_request};

/// Far more than a connection takes whose client has ended its side.
const LIMIT: Duration = Duration::from_secs(20);

/// Bytes of the head of a frame.
const HEAD_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;

/// The largest payload that is sent to a client which has set nothing (RFC 9113 §6.5.2).
const PAYLOAD_MAX: usize = 16 * 1024;

/// The window of a connection at its beginning (RFC 9113 §6.9.2).
const WINDOW: usize = 65_535;

/// The content of some responses: more than all windows.
static CONTENT: [u8; 100_000] = [b'c'; 100_000];

/// Blocks of fields (RFC 7541): a GET and a POST of literals and of the static table, one with an
/// entry of the dynamic table, one that ends in the middle, and one with a control character.
const BLOCKS: [&[u8]; 6] = [
    b"\x82\x86\x84\x01\x06a.test",
    b"\x83\x86\x04\x05/a?bc\x01\x06a.test",
    b"\x82\x86\x84\x01\x06a.test\x40\x01x\x03yyy\xbe\xbe\xbe",
    b"\x82\x86\x84\x01\x06a.te",
    b"\x82\x86\x84\x01\x06a.test\x00\x01x\x03y\ry",
    b"\x82\x86\x84\x01\x06a.test\x00\x01x\x14y: z, gzip; q=1\t\"ab\"",
];

/// What a script says.
struct Script {
    choice: u8,
    bytes: Vec<u8>,
    /// A window is opened, or may be.
    opens_windows: bool,
}

impl Script {
    fn parse(input: &[u8]) -> Option<Self> {
        let (choice, mut rest) = input.split_first()?;
        let mut script = Self {
            choice: *choice,
            bytes: HTTP2_PREFACE.to_vec(),
            opens_windows: false,
        };
        // a client that begins as it has to
        if choice & 1 == 0 {
            script.frame((SETTINGS, 0, 0), &[]);
        }
        while let [kind, flags, stream, length, more @ ..] = rest {
            let kind = kind % 12;
            let (payload, more) = match (kind, *length) {
                (HEADERS, 0..6) => (BLOCKS[usize::from(*length)], more),
                (_, length) => more.split_at(usize::from(length).min(more.len())),
            };
            script.opens_windows |= matches!(kind, SETTINGS | WINDOW_UPDATE);
            script.frame((kind, *flags, u32::from(*stream)), payload);
            rest = more;
        }
        script.bytes.extend(rest);
        Some(script)
    }

    fn frame(&mut self, (kind, flags, stream): (u8, u8, u32), payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short payload");
        self.bytes.extend(&length.to_be_bytes()[1..]);
        self.bytes.extend([kind, flags]);
        self.bytes.extend(stream.to_be_bytes());
        self.bytes.extend(payload);
    }
}

/// Plays a script, and checks the invariant.
pub(crate) fn play(input: &[u8]) {
    let Some(script) = Script::parse(input) else {
        return;
    };
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let received = LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("loopback");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).await.expect("it listens");
        let (socket, _) = listener.accept().await.expect("a connection");
        let both =
            async { tokio::join!(exchange(client, &script), serve(socket, script.choice)).0 };
        let ended = tokio::time::timeout(LIMIT, both).await;
        ended.expect("the connection ends")
    });
    check_received(&script, &received);
}

/// The client: sends all, ends its side, and reads what comes.
async fn exchange(client: TcpStream, script: &Script) -> Vec<u8> {
    let (mut reads, mut writes) = client.into_split();
    let sending = async {
        // the server may have ended the connection by now
        let _ = writes.write_all(&script.bytes).await;
        let _ = writes.shutdown().await;
    };
    let mut received = Vec::new();
    let receiving = async {
        // so may what is read end
        let _ = reads.read_to_end(&mut received).await;
    };
    tokio::join!(sending, receiving);
    received
}

/// The server: serves each request in a way that its head chooses.
async fn serve(socket: TcpStream, choice: u8) {
    let rules = Http2Rules {
        form: match choice & 2 {
            0 => Http2Form::Origin(Scheme::Http),
            _ => Http2Form::Absolute,
        },
        streams_max: 100,
        head_bytes_max: 64 * 1024,
        window_closed: Duration::from_secs(60),
        clients: 1,
        names_clients: choice & 4 != 0,
    };
    let now = Now {
        wall: Timestamp(0),
        tick: Tick(0),
    };
    let socket = (ClientSocket::Clear(socket), Vec::new());
    let mut connection = Http2Connection::new(socket, rules, Default::default(), now);
    let mut streams = JoinSet::new();
    let next_hops = Rc::new(Cell::default());
    let mut number = choice;
    poll_fn(|cx| {
        loop {
            while let Poll::Ready(Some(ended)) = streams.poll_join_next(cx) {
                ended.expect("no panic");
            }
            match connection.poll_accept(cx, Tick(0)) {
                Poll::Ready(Http2Accepted::Request(head, stream)) => {
                    let length = check_head(&head);
                    number = number.wrapping_add(1);
                    let next_hops = Rc::clone(&next_hops);
                    streams.spawn_local(answer((stream, length), number, next_hops));
                }
                Poll::Ready(Http2Accepted::Abandoned(head)) => {
                    check_head(&head);
                }
                Poll::Ready(Http2Accepted::End) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    connection.cut();
    while let Some(ended) = streams.join_next().await {
        ended.expect("no panic");
    }
}

/// Checks a head; the length of the content behind it.
fn check_head(head: &[u8]) -> BodyLength {
    let text = head.strip_suffix(b"\r\n").expect("a line");
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").expect("a whole line");
        let is_text = line
            .iter()
            .all(|byte| *byte == b'\t' || !byte.is_ascii_control());
        assert!(is_text && !line.is_empty(), "{}", line.escape_ascii());
    }
    let limits = HeadLimits {
        bytes_max: usize::MAX,
        fields_max: usize::MAX,
    };
    let mut lines = LineBuffer::new();
    match parse_request(head, &limits, &mut lines) {
        Ok(Progress::Complete {
            head: parsed,
            consumed,
        }) => {
            assert_eq!(consumed, head.len(), "{}", head.escape_ascii());
            let length = weir_wire::request_body(parsed.version, parsed.fields);
            length.expect("framing that HTTP/1.1 has")
        }
        // said to the client in place of a response: a target that is none, or too many fields
        Err(_) => BodyLength::None,
        Ok(Progress::Partial) => panic!("half a head: {}", head.escape_ascii()),
    }
}

/// Answers in one of four ways: not at all, with content, with more than the client may be sent, or
/// once its own content has come.
async fn answer(
    (stream, length): (Http2Stream, BodyLength),
    number: u8,
    next_hops: Rc<Cell<DistinctPeers>>,
) {
    let mut deadline = Deadline::new(LIMIT);
    let trailers = (HeadLimits::default(), NamedFields::NONE);
    let mut stream = ClientStream::http2(stream, length, trailers, &mut deadline, &next_hops);
    let mut content = match number % 4 {
        0 => return,
        1 => &CONTENT[..1000],
        2 => &CONTENT[..],
        _ => {
            let mut scratch = [0; 1024];
            loop {
                let mut into = Vec::new();
                let received =
                    poll_fn(|cx| stream.content.poll_receive(cx, &mut scratch, &mut into));
                match received.await {
                    Ok(ReceivedContent::More) => stream.content.consumed(into.len()),
                    Ok(ReceivedContent::Whole) => break,
                    Err(_) => return,
                }
            }
            &[]
        }
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", content.len());
    stream.response.begin(head.into_bytes(), ContentForm::Sized);
    while !stream.response.is_complete() {
        let sent = poll_fn(|cx| stream.response.poll_send(cx, &[content], Some(&[]))).await;
        let Ok(sent) = sent else { return };
        content = &content[sent..];
    }
}

fn check_received(script: &Script, mut rest: &[u8]) {
    let (mut number, mut content_bytes) = (0, 0);
    let mut answered = BTreeSet::new();
    while let Some((head, more)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let [a, b, c, kind, _, stream @ ..] = *head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let stream = u32::from_be_bytes(stream);
        assert!(length <= PAYLOAD_MAX || script.opens_windows, "{length}");
        assert!(number > 0 || kind == SETTINGS, "it begins with {kind}");
        match kind {
            HEADERS => {
                assert_eq!(stream % 2, 1, "a response on stream {stream}");
                answered.insert(stream);
            }
            DATA => {
                assert!(answered.contains(&stream), "content of stream {stream}");
                content_bytes += length;
            }
            _ => {}
        }
        number += 1;
        // the connection may be reset within the last one
        let Some(after) = more.get(length..) else {
            break;
        };
        rest = after;
    }
    assert!(
        script.opens_windows || content_bytes <= WINDOW,
        "{content_bytes}"
    );
}
