//! A client disconnects in the middle of a long download, and another one requests all of it.

use super::measurement::Subject;
use crate::client::reader::{RECEIVE_BUFFER_BYTES, Reader};
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use weir_bench::origin::{Fetch, ResponseSpec};

const SIZE_BYTES: u64 = 20_000_000;

const RATE_BYTES_S: u64 = 2_000_000;

const LEAVES_AFTER_BYTES: u64 = 256 * 1024;

/// When the origin's count is read: a proxy that continues has all of it by then.
const COUNT_AFTER: Duration = Duration::from_secs(14);

const CLIENT_MAX: Duration = Duration::from_secs(30);

/// What was fetched for a client that left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Abort {
    pub(crate) size_bytes: u64,
    /// Content the client had read when it closed its connection.
    pub(crate) read_bytes: u64,
    pub(crate) fetched_bytes: u64,
    pub(crate) fetches: Vec<Fetch>,
}

/// What the next client then cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Second {
    pub(crate) size_bytes: u64,
    pub(crate) fetched_bytes: u64,
    pub(crate) duration_ms: u64,
    pub(crate) fetches: Vec<Fetch>,
    /// Connections to the origin that carried both clients' fetches, if it speaks HTTP/2.
    #[serde(default)]
    pub(crate) connections: Option<u64>,
}

/// The client that disconnects, or, by HTTP/2, resets its stream.
pub(crate) fn first(subject: &Subject<'_>) -> Result<Abort, String> {
    let mut reader = ask(subject)?;
    let deadline = Instant::now() + CLIENT_MAX;
    if !reader.read_until(LEAVES_AFTER_BYTES, deadline)? {
        return Err(format!("only {} bytes in time", reader.read_bytes()));
    }
    let read_bytes = reader.read_bytes();
    let _connection = reader.leave();
    std::thread::sleep(COUNT_AFTER);
    let tally = subject.origin.tally(&subject.path("abort"))?;
    Ok(Abort {
        size_bytes: SIZE_BYTES,
        read_bytes,
        fetched_bytes: tally.acknowledged_bytes,
        fetches: tally.first,
    })
}

/// The client that comes after it.
pub(crate) fn second(subject: &Subject<'_>) -> Result<Second, String> {
    let before = subject.origin.tally(&subject.path("abort"))?;
    let begun = Instant::now();
    let mut reader = ask(subject)?;
    if !reader.read_until(SIZE_BYTES, begun + CLIENT_MAX)? {
        return Err(format!("only {} bytes in time", reader.read_bytes()));
    }
    let duration = begun.elapsed();
    let after = subject.origin.tally(&subject.path("abort"))?;
    Ok(Second {
        size_bytes: SIZE_BYTES,
        fetched_bytes: after.acknowledged_bytes - before.acknowledged_bytes,
        duration_ms: millis(duration),
        fetches: after.first.into_iter().skip(before.first.len()).collect(),
        connections: subject.origin.connections_of(&subject.path("abort")),
    })
}

fn ask(subject: &Subject<'_>) -> Result<Reader, String> {
    let spec = ResponseSpec {
        rate_bytes_per_s: Some(RATE_BYTES_S),
        ..ResponseSpec::new(&subject.path("abort"), SIZE_BYTES)
    };
    Reader::ask_by(
        subject.version,
        subject.address,
        &spec,
        Some(RECEIVE_BUFFER_BYTES),
    )
}
