//! A fast reader requests a response that a slow one is reading.

use super::measurement::Subject;
use crate::client::http2::ClientVersion;
use crate::client::reader::{RECEIVE_BUFFER_BYTES, Reader};
use crate::record::markdown::ratio;
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;

const SIZE_BYTES: u64 = 30_000_000;

/// What the origin gives one connection: the joiner cannot be faster than this, but for what is
/// there already.
const RATE_BYTES_S: u64 = 2_500_000;

const JOINS_AFTER: Duration = Duration::from_millis(1500);

/// Two and a half times what it takes.
const FAST_MAX: Duration = Duration::from_secs(30);

/// 50 KB/s
const STEP: Duration = Duration::from_millis(100);
const STEP_BYTES: usize = 5000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Join {
    pub(crate) size_bytes: u64,
    /// A download of as much from the origin itself, in the same seconds.
    pub(crate) direct_ms: u64,
    /// `None` when the time was over before; then [`Self::joined_bytes`] says how far it had come.
    pub(crate) joined_ms: Option<u64>,
    pub(crate) joined_bytes: u64,
    pub(crate) limit_ms: u64,
    /// What the slow one had read when the fast one was done.
    pub(crate) slow_bytes: u64,
    pub(crate) fetches: u64,
    pub(crate) fetched_bytes: u64,
}

impl Join {
    /// The joiner's speed over that of a direct download; `None` when it was not done in time.
    pub(crate) fn speed_ratio(&self) -> Option<f64> {
        self.joined_ms.map(|ms| ratio(self.direct_ms, ms))
    }
}

pub(crate) fn measure(subject: &Subject<'_>) -> Result<Join, String> {
    let path = subject.path("join");
    let paced = |path: &str| ResponseSpec {
        rate_bytes_per_s: Some(RATE_BYTES_S),
        ..ResponseSpec::new(path, SIZE_BYTES)
    };
    let (shared, own) = (paced(&path), paced(&subject.path("direct")));
    let own = &own;
    let is_over = AtomicBool::new(false);
    let (slow, fast, direct) = std::thread::scope(|scope| {
        let slow = scope.spawn(|| read_slowly(subject, &shared, &is_over));
        std::thread::sleep(JOINS_AFTER);
        let direct = (ClientVersion::Http1, subject.origin.address());
        let direct = scope.spawn(move || read_fast(direct, own));
        let fast = read_fast((subject.version, subject.address), &shared);
        is_over.store(true, Ordering::Relaxed);
        (slow.join(), fast, direct.join())
    });
    let broke = |_| "a client broke".to_owned();
    let (direct, _) = direct.map_err(broke)??;
    let (joined, joined_bytes) = fast?;
    let slow_bytes = slow.map_err(broke)??;
    let tally = subject.origin.tally(&path)?;
    Ok(Join {
        size_bytes: SIZE_BYTES,
        direct_ms: direct.map(millis).ok_or("the origin itself was too slow")?,
        joined_ms: joined.map(millis),
        joined_bytes,
        limit_ms: millis(FAST_MAX),
        slow_bytes,
        fetches: tally.fetches,
        fetched_bytes: tally.acknowledged_bytes,
    })
}

fn read_slowly(
    subject: &Subject<'_>,
    spec: &ResponseSpec,
    is_over: &AtomicBool,
) -> Result<u64, String> {
    let buffer = Some(RECEIVE_BUFFER_BYTES);
    let mut reader = Reader::ask_by(subject.version, subject.address, spec, buffer)?;
    let mut next = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        next += STEP;
        reader.read(STEP_BYTES, next)?;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(reader.read_bytes())
}

/// How long it took, if it was done in time, and what was read.
fn read_fast(
    (version, to): (ClientVersion, SocketAddr),
    spec: &ResponseSpec,
) -> Result<(Option<Duration>, u64), String> {
    let begun = Instant::now();
    let mut reader = Reader::ask_by(version, to, spec, None)?;
    let is_done = reader.read_until(SIZE_BYTES, begun + FAST_MAX)?;
    Ok((is_done.then(|| begun.elapsed()), reader.read_bytes()))
}
