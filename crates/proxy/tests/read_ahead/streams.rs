//! Streams of HTTP/2 beside a reference model: what a client may be sent, and how far a next hop
//! may be ahead of it.
//!
//! A seed says what happens in turn: requests of any urgency, content that next hops send, windows
//! that the client opens and, of even seeds, changes by SETTINGS, resets, and a GOAWAY of either
//! side. Held at each frame: the
//! content is that of its stream, byte by byte, and within the windows of stream and connection as
//! the client has given them (RFC 9113 §5.2). Held whenever nothing moves: no next hop is further
//! ahead of what its client has got than the read-ahead limit, whatever other streams do. At the
//! end each stream that was not reset is whole, and the fetch of each that was has ended.
//!
//! `WEIR_STREAMS_SEED` is the first seed, `WEIR_STREAMS_RUNS` how many there are.

use super::endpoints::send_queue;
use super::streams_client::{
    ACK, DATA, END_STREAM, Frame, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, RST_STREAM, SETTINGS,
    StreamsClient,
};
use crate::support::{OriginConnection, PATIENCE, Running, ScriptedOrigin, pattern};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Write as _};
use std::time::Instant;
use weir_measure::Metric;

/// Things that happen in a run, beside its end.
const STEPS: u32 = 120;

/// Streams that are open at once, at most.
const OPEN_MAX: usize = 8;

/// The largest content of a stream.
const LENGTH_MAX: u64 = 600_000;

/// The default read-ahead, and what of a stream waits for the socket: the client takes at once what
/// is sent to it.
const AHEAD_MAX: usize = 64 * 1024 + 32 * 1024;

/// The window of streams and of the connection at its beginning (RFC 9113 §6.9.2).
const WINDOW: i64 = 65_535;

/// Looks without any progress after which there will be none.
const QUIET_LOOKS: u32 = 4;

/// A generator of numbers: `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A stream as the model has it.
struct Stream {
    hop: Option<OriginConnection>,
    length: usize,
    /// Where in the pattern its content begins.
    from: usize,
    sent: usize,
    received: usize,
    /// What it may be sent.
    window: i64,
    has_head: bool,
    is_whole: bool,
}

/// The model, with both ends.
struct Model<'a> {
    proxy: &'a Running,
    origin: &'a ScriptedOrigin,
    client: StreamsClient,
    dice: Dice,
    content: &'a [u8],
    streams: BTreeMap<u32, Stream>,
    /// Next hops of streams that were reset.
    left: Vec<OriginConnection>,
    next: u32,
    /// What the connection may be sent.
    window: i64,
    /// The window of new streams, and changes of it that are not acknowledged.
    initial: i64,
    changes: VecDeque<i64>,
    /// The client changes it: all streams are equally urgent from then on.
    changes_windows: bool,
}

impl Model<'_> {
    fn step(&mut self) {
        self.proxy.clock.advance_ms(20);
        match self.dice.below(20) {
            0..=3 => self.open(),
            4..=8 => self.send_some(),
            9..=12 => self.open_window(),
            13..=14 => self.open_connection(),
            15 if self.changes_windows => self.change_windows(),
            15 | 16 => self.reset(),
            _ => self.settle(),
        }
        self.receive();
    }

    /// One of the streams that are open.
    fn any(&mut self) -> Option<u32> {
        let open = self.streams.iter().filter(|(_, it)| !it.is_whole);
        let open: Vec<u32> = open.map(|(number, _)| *number).collect();
        let count = u64::try_from(open.len()).ok().filter(|count| *count > 0)?;
        let at = usize::try_from(self.dice.below(count)).expect("small");
        Some(open[at])
    }

    fn open(&mut self) {
        let open = self.streams.values().filter(|it| !it.is_whole).count();
        if open >= OPEN_MAX {
            return;
        }
        let number = self.next;
        self.next += 2;
        let length = usize::try_from(self.dice.below(LENGTH_MAX)).expect("small");
        let from = usize::try_from(self.dice.below(100_000)).expect("small");
        let priority = format!("u={}", self.dice.below(8));
        self.client.get(number, &format!("/{number}"), &priority);
        let mut hop = self.origin.accept();
        let head = hop.read_head();
        let target = format!("GET /{number} HTTP/1.1");
        assert_eq!(head.start_line(), target);
        hop.send(format!(
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        ));
        hop.stream.set_nonblocking(true).expect("a socket");
        let stream = Stream {
            hop: Some(hop),
            length,
            from,
            sent: 0,
            received: 0,
            // what is not acknowledged holds for it, too, once it is
            window: self.initial,
            has_head: false,
            is_whole: false,
        };
        self.streams.insert(number, stream);
    }

    /// The next hop of a stream sends until no more is taken, or less.
    fn send_some(&mut self) {
        let most = usize::try_from(self.dice.below(400_000)).expect("small");
        let content = self.content;
        if let Some(number) = self.any() {
            let stream = self.streams.get_mut(&number).expect("open");
            stream.send(content, most);
        }
    }

    fn open_window(&mut self) {
        let by = 1 + self.dice.below(90_000);
        if let Some(number) = self.any() {
            self.client
                .open_window(number, u32::try_from(by).expect("small"));
            let stream = self.streams.get_mut(&number).expect("open");
            stream.window += i64::try_from(by).expect("small");
        }
    }

    fn open_connection(&mut self) {
        let by = 1 + self.dice.below(200_000);
        self.client
            .open_window(0, u32::try_from(by).expect("small"));
        self.window += i64::try_from(by).expect("small");
    }

    fn change_windows(&mut self) {
        let value = self.dice.below(120_000);
        let value = u32::try_from(value).expect("small");
        self.client.set(INITIAL_WINDOW_SIZE, value);
        self.changes.push_back(i64::from(value));
    }

    fn reset(&mut self) {
        if let Some(number) = self.any() {
            self.client.reset(number);
            let stream = self.streams.remove(&number).expect("open");
            self.left.extend(stream.hop);
        }
    }

    /// Takes all that has come; whether anything has.
    fn receive(&mut self) -> bool {
        let mut has_come = false;
        while let Some(frame) = self.client.take() {
            has_come = true;
            self.note(&frame);
        }
        has_come
    }

    fn note(&mut self, frame: &Frame) {
        let number = frame.stream;
        match frame.kind {
            SETTINGS if frame.flags & ACK != 0 => {
                let Some(value) = self.changes.pop_front() else {
                    return;
                };
                for stream in self.streams.values_mut() {
                    stream.window += value - self.initial;
                }
                self.initial = value;
            }
            SETTINGS => self.client.acknowledge(),
            HEADERS => {
                if let Some(stream) = self.streams.get_mut(&number) {
                    assert!(!stream.has_head, "a second head of {number}");
                    stream.has_head = true;
                    assert!(frame.flags & END_STREAM == 0 || stream.length == 0);
                    stream.is_whole = frame.flags & END_STREAM != 0;
                }
            }
            DATA => self.note_content(frame),
            RST_STREAM => panic!("stream {number} is reset: {frame:?}"),
            GOAWAY => assert_eq!(frame.error(), 0, "{frame:?}"),
            _ => {}
        }
    }

    fn note_content(&mut self, frame: &Frame) {
        let (number, length) = (frame.stream, frame.payload.len());
        let bytes = i64::try_from(length).expect("a frame");
        self.window -= bytes;
        assert!(self.window >= 0, "more than the connection may be sent");
        // one that was reset may be sent what was under way
        let Some(stream) = self.streams.get_mut(&number) else {
            return;
        };
        assert!(stream.has_head, "content of {number} before its head");
        stream.window -= bytes;
        assert!(
            bytes == 0 || stream.window >= 0,
            "stream {number} is sent {} more than it may be",
            -stream.window
        );
        let at = stream.from + stream.received;
        let expected = (at..at + length).map(|at| self.content[at % self.content.len()]);
        assert!(
            frame.payload.iter().copied().eq(expected),
            "other content of {number}, behind {}",
            stream.received
        );
        stream.received += length;
        assert!(stream.received <= stream.sent, "{number}");
        if frame.flags & END_STREAM != 0 {
            assert_eq!(stream.received, stream.length, "{number} ends");
            stream.is_whole = true;
        }
    }

    /// Waits until nothing moves any more, and looks how far each next hop is ahead.
    fn settle(&mut self) {
        let mut quiet = 0;
        let mut before = Vec::new();
        while quiet < QUIET_LOOKS {
            self.proxy.turn();
            let has_come = self.receive();
            let now: Vec<usize> = self.streams.values().map(Stream::acknowledged).collect();
            quiet = if has_come || now != before {
                0
            } else {
                quiet + 1
            };
            before = now;
        }
        for (number, stream) in &self.streams {
            let ahead = stream.acknowledged().saturating_sub(stream.received);
            assert!(
                ahead <= AHEAD_MAX,
                "the next hop of {number} is {ahead} ahead"
            );
        }
    }

    /// Opens all windows until each stream is whole.
    fn finish(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.streams.values().any(|stream| !stream.is_whole) {
            let open: Vec<u32> = self.streams.keys().copied().collect();
            for number in open {
                let stream = self.streams.get_mut(&number).expect("open");
                stream.send(self.content, usize::MAX);
                if !stream.is_whole && stream.window < 1000 {
                    stream.window += 100_000;
                    self.client.open_window(number, 100_000);
                }
            }
            if self.window < 1000 {
                self.window += 100_000;
                self.client.open_window(0, 100_000);
            }
            self.proxy.clock.advance_ms(20);
            self.receive();
            let late = Instant::now() > until;
            let missing = || {
                let all = self.streams.iter().filter(|(_, it)| !it.is_whole);
                all.map(|(number, it)| (*number, it.received, it.length))
                    .collect::<Vec<_>>()
            };
            assert!(!late, "nothing more comes of {:?}", missing());
        }
        for mut hop in std::mem::take(&mut self.left) {
            hop.stream.set_nonblocking(false).expect("a socket");
            hop.expect_end();
        }
    }
}

impl Stream {
    /// Sends until no more is taken, or `most` bytes were.
    fn send(&mut self, content: &[u8], most: usize) {
        let Some(hop) = &mut self.hop else { return };
        let end = self.length.min(self.sent.saturating_add(most));
        while self.sent < end {
            let from = (self.from + self.sent) % content.len();
            let to = content.len().min(from + end - self.sent);
            match hop.stream.write(&content[from..to]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the next hop cannot send: {error}"),
            }
        }
        if self.sent == self.length {
            self.hop = None;
        }
    }

    /// What the proxy's kernel has acknowledged of its content.
    fn acknowledged(&self) -> usize {
        let unacknowledged = self.hop.as_ref().map_or(0, |hop| send_queue(&hop.stream));
        match self.hop {
            Some(_) => self.sent.saturating_sub(unacknowledged),
            // it has been closed, and how much is under way is not known
            None => self.received,
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64, content: &[u8]) {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.listeners[0].http2 = Some(true);
    });
    let mut model = Model {
        proxy: &proxy,
        origin: &origin,
        client: StreamsClient::connect(proxy.address()),
        dice: Dice(seed),
        content,
        streams: BTreeMap::new(),
        left: Vec::new(),
        next: 1,
        window: WINDOW,
        initial: WINDOW,
        // the client's first SETTINGS change nothing
        changes: VecDeque::from([WINDOW]),
        changes_windows: seed.is_multiple_of(2),
    };
    for _ in 0..STEPS {
        model.step();
    }
    // an end of the connection by either side lets streams end as they would
    let is_by_client = model.dice.below(2) == 0;
    if is_by_client {
        model.client.go_away();
    }
    model.finish();
    assert_eq!(proxy.count(Metric::Panics), 0);
    if !is_by_client {
        // nothing is under way: the drain ends the connection
        let mut client = model.client;
        let stopped = proxy.stop();
        let until = Instant::now() + PATIENCE;
        while !client.has_ended() {
            if let Some(frame) = client.take() {
                assert!(frame.kind != GOAWAY || frame.error() == 0, "{frame:?}");
            }
            assert!(Instant::now() < until, "the connection does not end");
        }
        assert!(stopped.join().expect("no panic"), "it did not finish");
    }
}

#[test]
fn streams_are_sent_what_they_may_be_and_next_hops_are_ahead_by_the_limit_alone() {
    let first = number("WEIR_STREAMS_SEED").unwrap_or(1);
    let runs = number("WEIR_STREAMS_RUNS").unwrap_or(3);
    let content = pattern(1 << 20);
    for seed in first..first + runs {
        let ended = std::panic::catch_unwind(|| run(seed, &content));
        assert!(
            ended.is_ok(),
            "WEIR_STREAMS_SEED={seed} WEIR_STREAMS_RUNS=1"
        );
    }
}
