//! What Squid was asked and what it did: lines of the clients, each with its line of Squid's own
//! log.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use weir_trace::import::{Format, Settings, open};
use weir_trace::{Anonymiser, Row};

/// When the run began, microseconds since 1970: the clients' clock counts from there. It is what
/// the ends of requests in Squid's log are later than in the clients' lines, to the millisecond.
pub(crate) const START_US: i64 = 1_795_242_067_141_500;

/// The origin, and what its targets begin with.
pub(crate) const ORIGIN: &str = "http://127.0.0.1:41880";

/// One request as its client tells it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Asked {
    pub(crate) client: u32,
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) status: u16,
    /// Content that was received, bytes.
    pub(crate) body: u64,
    /// Content-Length of the response.
    pub(crate) cl: u64,
    pub(crate) aborted: bool,
    pub(crate) xcache: String,
    /// Seconds since the beginning of the run.
    start: f64,
    total: f64,
}

/// A request that reached the origin.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Reached {
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) method: String,
    pub(crate) body_sent: u64,
    /// The response head, bytes.
    pub(crate) hdr: usize,
}

/// A request and what Squid's log says it did.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) asked: Asked,
    pub(crate) tag: String,
}

impl Asked {
    /// The part of the path that tells which head the origin gives.
    pub(crate) fn class(&self) -> &str {
        class(&self.path)
    }

    pub(crate) fn says(&self, name: &str) -> Option<&str> {
        let line = self.headers.iter().find(|line| line.0 == name);
        line.map(|line| line.1.as_str())
    }

    /// When it began, microseconds since 1970.
    pub(crate) fn arrival_us(&self) -> i64 {
        START_US + microseconds(self.start)
    }

    fn end_us(&self) -> i64 {
        START_US + microseconds(self.start + self.total)
    }
}

/// `s` of `/s/12`.
pub(crate) fn class(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "seconds of a run of half a minute"
)]
fn microseconds(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

/// A file of the data.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/squid/data")
        .join(name)
}

/// All requests in the order in which they began.
pub(crate) fn requests() -> Vec<Done> {
    let mut asked: Vec<Asked> = lines("dev.client.jsonl.gz");
    // how Squid's log tells them apart: the query is stripped there
    let mut logged: BTreeMap<(String, String), Vec<Row>> = BTreeMap::new();
    for row in log() {
        let method = row.method.map_or("", weir_trace::TraceMethod::as_str);
        let uri = row.target_text.clone().unwrap_or_default();
        let path = uri
            .strip_prefix(ORIGIN)
            .unwrap_or_default()
            .trim_end_matches('?');
        logged
            .entry((method.to_owned(), path.to_owned()))
            .or_default()
            .push(row);
    }
    for rows in logged.values_mut() {
        rows.sort_by_key(|row| std::cmp::Reverse(end_us(row)));
    }
    asked.sort_by_key(Asked::end_us);
    let mut done: Vec<Done> = asked
        .into_iter()
        .map(|asked| join(asked, &mut logged))
        .collect();
    assert!(
        logged.values().all(Vec::is_empty),
        "Squid's log has lines that nobody asked for"
    );
    done.sort_by_key(|done| done.asked.arrival_us());
    done
}

fn join(asked: Asked, logged: &mut BTreeMap<(String, String), Vec<Row>>) -> Done {
    let path = asked.path.split('?').next().unwrap_or_default();
    let rows = logged.get_mut(&(asked.method.clone(), path.to_owned()));
    let row = rows
        .and_then(Vec::pop)
        .unwrap_or_else(|| panic!("no line for {asked:?}"));
    let late_us = (end_us(&row) - asked.end_us()).abs();
    assert!(
        late_us < END_OFF_MAX_US,
        "{late_us} us between {asked:?} and {row:?}"
    );
    let tag = row.verdict.expect("Squid's log has tags");
    let is_hit = tag.starts_with("TCP_MEM_HIT") || tag == "TCP_REFRESH_UNMODIFIED";
    assert_eq!(
        asked.xcache.starts_with("HIT"),
        is_hit,
        "{asked:?} is {tag}"
    );
    assert_eq!(row.status, Some(asked.status), "{asked:?}");
    Done { asked, tag }
}

/// How far apart the two ends of one request may be, microseconds: Squid is done when the last byte
/// is in the kernel.
const END_OFF_MAX_US: i64 = 35_000;

fn end_us(row: &Row) -> i64 {
    row.arrival_us + row.last_byte_us.unwrap_or(0).cast_signed()
}

fn log() -> Vec<Row> {
    rows("dev.access.log.gz", Format::Squid)
}

/// What reached the origin.
pub(crate) fn reached() -> Vec<Reached> {
    lines("dev.origin.jsonl.gz")
}

/// All rows of a file; names are kept.
pub(crate) fn rows(name: &str, format: Format) -> Vec<Row> {
    let source = File::open(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let hide = Anonymiser::none();
    let opened = open(source, Some(format), Settings::new(&hide));
    let opened = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
    let rows = opened
        .rows
        .map(|row| row.unwrap_or_else(|damaged| panic!("{name}: {damaged}")));
    rows.collect()
}

fn lines<T: serde::de::DeserializeOwned>(name: &str) -> Vec<T> {
    let source = File::open(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(source)
        .read_to_string(&mut text)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let parsed = text.lines().map(serde_json::from_str);
    parsed
        .map(|line| line.unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect()
}
