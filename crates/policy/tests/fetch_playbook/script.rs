//! Scripts: a conversation with an in-flight response as text.
//!
//! ```text
//! length=100k read_ahead=64k fetches=8 range present=0..10k     settings, all optional
//! 0 begin 0..              => f0      at this millisecond, this event => this answer
//! 0 attach 0..50k          => r0      fetches and readers are numbered as they come
//! 0 permit f0              => up-to 16k
//! 5 received f0 16k
//! 5 step r0                => read 0..16k
//! 5 read r0                => read 0..16k, live 16k     step, delivered and moved in one
//! ```
//!
//! Numbers are bytes; `k` is 1024 of them. A span without an end is open.

use weir_policy::fetch::{
    ByteSpan, ByteSpans, FetchEnd, FetchId, InFlightRules, InFlightState, ReadAhead, ReaderId,
};
use weir_policy::fetch::{Confirm, ReadPermit, Step};
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;

/// Plays `script`, and fails with the difference if the conversation goes otherwise.
#[track_caller]
pub(crate) fn check(script: &str) {
    let lines = || {
        script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    // how far apart event and answer stand is for the eye
    let expected: Vec<String> = lines().map(squeezed).collect();
    let (mut fill, events) = match expected.split_first() {
        Some((first, rest)) if !starts_with_digit(first) => (settle(first), rest),
        _ => (settle(""), expected.as_slice()),
    };
    let mut difference = String::new();
    for line in events {
        let event = line.split(" => ").next().unwrap_or_default();
        let played = match play(&mut fill, event) {
            answer if answer.is_empty() => event.to_owned(),
            answer => format!("{event} => {answer}"),
        };
        difference += &if played == *line {
            format!("    {line}\n")
        } else {
            format!("  - {line}\n  + {played}\n")
        };
    }
    assert!(
        !difference.lines().any(|line| line.starts_with("  -")),
        "expected (-) and played (+) differ:\n{difference}"
    );
}

/// The moment `at_ms` milliseconds after the start.
fn at(at_ms: u64) -> Now {
    Now {
        wall: Timestamp(784_111_777),
        tick: Tick(at_ms),
    }
}

fn settle(settings: &str) -> InFlightState {
    let mut rules = InFlightRules::default();
    let mut length = None;
    let mut present = ByteSpans::new();
    for setting in settings.split_whitespace() {
        match setting.split_once('=').unwrap_or((setting, "")) {
            ("length", value) => length = Some(bytes(value)),
            ("read_ahead", "unbounded") => rules.read_ahead = ReadAhead::Unbounded,
            ("read_ahead", value) => rules.read_ahead = ReadAhead::Bytes(bytes(value)),
            ("fetches", value) => rules.fetches_max = value.parse().unwrap(),
            ("range", _) => rules.can_range = true,
            ("present", value) => _ = present.insert(span(value)),
            _ => panic!("no setting: {setting}"),
        }
    }
    InFlightState::new(rules, at(0), length, present)
}

/// The answer to an event; empty if it has none.
fn play(fill: &mut InFlightState, event: &str) -> String {
    let words: Vec<&str> = event.split_whitespace().collect();
    let now = at(words[0].parse().unwrap());
    match words[1..] {
        ["leave", reader] => fill.leave(r(reader)),
        ["received", fetch, count] => fill.received(now, f(fetch), bytes(count)),
        ["go-on", fetch] => fill.continue_unread(f(fetch)),
        ["narrow", fetch, to] => fill.narrow(f(fetch), bytes(to)),
        ["confirmed", fetch] => fill.confirmed(f(fetch)),
        ["pass"] => fill.pass(),
        ["end", fetch, how] => fill.end(f(fetch), end(how)),
        ["round-trips", fetch, client_ms, next_hop_ms] => {
            let us = |ms: &str| ms.parse::<u32>().unwrap() * 1000;
            fill.set_round_trips(f(fetch), us(client_ms), us(next_hop_ms));
        }
        _ => return answer(fill, now, &words[1..]),
    }
    String::new()
}

fn answer(fill: &mut InFlightState, now: Now, words: &[&str]) -> String {
    match *words {
        ["begin", asked] => format!("f{}", fill.begin(now, span(asked)).0),
        ["attach", wants] => match fill.attach(span(wants)) {
            Ok(reader) => format!("r{}", reader.0),
            Err(not_here) => not_here.as_str().to_owned(),
        },
        ["step", reader] => step(fill.step(now, r(reader))),
        ["confirm", reader] => confirm(fill.confirm(now, r(reader))),
        ["passed"] => size(fill.passed(false)),
        ["passed", "with-room"] => size(fill.passed(true)),
        ["read", reader] => read(fill, now, r(reader), u64::MAX),
        ["read", reader, most] => read(fill, now, r(reader), bytes(most)),
        ["permit", fetch] => permit(fill.permit(f(fetch))),
        ["window", fetch] => optional(fill.window(f(fetch)).map(u64::from)),
        ["unsent", reader] => optional(fill.unsent(r(reader)).map(u64::from)),
        ["to-come", fetch] => optional(fill.remaining(f(fetch))),
        ["awaited", fetch] => fill.is_awaited(f(fetch)).to_string(),
        ["fastest", fetch] => {
            let fastest = fill.fastest_of(f(fetch));
            fastest.map_or("nobody".to_owned(), |reader| format!("r{}", reader.0))
        }
        ["take_changed"] => fill.take_changed().to_string(),
        ["present"] => fill
            .present()
            .iter()
            .map(spelt)
            .collect::<Vec<_>>()
            .join(" "),
        ["state"] => state(fill),
        ["accounts"] => format!(
            "fetched {}, twice {}, undelivered {}, read_ahead {}",
            size(fill.fetched()),
            size(fill.fetched_twice()),
            size(fill.undelivered()),
            size(fill.read_ahead_max())
        ),
        _ => panic!("no event: {words:?}"),
    }
}

/// Steps, and reads what is offered, but `most` bytes.
fn read(fill: &mut InFlightState, now: Now, reader: ReaderId, most: u64) -> String {
    let offered = fill.step(now, reader);
    let Step::Read(mut span) = offered else {
        return step(offered);
    };
    span.to = span.to.min(span.from.saturating_add(most));
    let delivered = fill.delivered(span);
    fill.moved(now, reader, span.to);
    assert_eq!(delivered.live + delivered.again, span.len());
    let mut told = format!("read {}", spelt(span));
    for (word, bytes) in [
        ("live", delivered.live),
        ("again", delivered.again),
        ("kept", delivered.kept),
    ] {
        if bytes > 0 {
            told += &format!(", {word} {}", size(bytes));
        }
    }
    told
}

fn step(step: Step) -> String {
    match step {
        Step::Read(span) => format!("read {}", spelt(span)),
        Step::Wait => "wait".to_owned(),
        Step::Fetch { fetch, span } => format!("fetch f{} {}", fetch.0, spelt(span)),
        Step::Done => "done".to_owned(),
        Step::Cut(cut) => format!("cut {}", cut.as_str()),
    }
}

fn confirm(confirm: Confirm) -> String {
    match confirm {
        Confirm::Yes => "yes".to_owned(),
        Confirm::Wait => "wait".to_owned(),
        Confirm::Fetch { fetch, span } => format!("fetch f{} {}", fetch.0, spelt(span)),
        Confirm::No => "no".to_owned(),
    }
}

fn permit(permit: ReadPermit) -> String {
    match permit {
        ReadPermit::UpTo(bytes) => format!("up-to {}", size(bytes)),
        ReadPermit::Wait => "wait".to_owned(),
        ReadPermit::Background => "background".to_owned(),
        ReadPermit::Unread => "unread".to_owned(),
        ReadPermit::Complete => "complete".to_owned(),
        ReadPermit::Yield => "yield".to_owned(),
    }
}

fn end(word: &str) -> FetchEnd {
    match word {
        "whole" => FetchEnd::Whole,
        "met" => FetchEnd::Met,
        "cut" => FetchEnd::Cut,
        "changed" => FetchEnd::Changed,
        "not-shared" => FetchEnd::NotShared,
        "stopped" => FetchEnd::Stopped,
        "module" => FetchEnd::Module,
        _ => panic!("no end: {word}"),
    }
}

fn state(fill: &InFlightState) -> String {
    let mut words = vec![
        format!("{} readers", fill.readers()),
        format!("{} fetches", fill.fetches()),
    ];
    words.extend(
        fill.complete_length()
            .map(|length| format!("length {}", size(length))),
    );
    words.extend(fill.is_whole().then(|| "whole".to_owned()));
    words.extend(fill.closed().map(|cut| format!("closed {}", cut.as_str())));
    words.extend(fill.is_over().then(|| "over".to_owned()));
    words.join(", ")
}

fn r(word: &str) -> ReaderId {
    ReaderId(word.strip_prefix('r').unwrap().parse().unwrap())
}

fn f(word: &str) -> FetchId {
    FetchId(word.strip_prefix('f').unwrap().parse().unwrap())
}

fn span(word: &str) -> ByteSpan {
    let (from, to) = word.split_once("..").unwrap();
    ByteSpan {
        from: bytes(from),
        to: if to.is_empty() {
            ByteSpan::OPEN
        } else {
            bytes(to)
        },
    }
}

fn spelt(span: ByteSpan) -> String {
    let to = Some(span.to).filter(|&to| to != ByteSpan::OPEN);
    format!("{}..{}", size(span.from), to.map(size).unwrap_or_default())
}

fn bytes(word: &str) -> u64 {
    match word.strip_suffix('k') {
        Some(kib) => kib.parse::<u64>().unwrap() * 1024,
        None => word.parse().unwrap(),
    }
}

fn size(bytes: u64) -> String {
    if bytes > 0 && bytes.is_multiple_of(1024) {
        format!("{}k", bytes / 1024)
    } else {
        bytes.to_string()
    }
}

fn optional(bytes: Option<u64>) -> String {
    bytes.map_or("none".to_owned(), size)
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn starts_with_digit(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_digit())
}
