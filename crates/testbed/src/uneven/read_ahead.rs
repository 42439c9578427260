//! How far a proxy runs ahead of a client that is slow, or that stops reading.

use super::measurement::Subject;
use crate::client::reader::{RECEIVE_BUFFER_BYTES, Reader};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;

const SIZE_BYTES: u64 = 60_000_000;

const LASTS: Duration = Duration::from_secs(8);

/// 50 KB/s in ten reads a second.
const STEP: Duration = Duration::from_millis(100);
const STEP_BYTES: usize = 5000;

/// What the client does, and whether the response may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kind {
    /// Reads 50 KB/s, or nothing.
    pub(crate) reads: bool,
    pub(crate) is_storable: bool,
}

pub(crate) const KINDS: [Kind; 4] = [
    kind(true, true),
    kind(false, true),
    kind(true, false),
    kind(false, false),
];

const fn kind(reads: bool, is_storable: bool) -> Kind {
    Kind { reads, is_storable }
}

/// Where everything was at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReadAhead {
    pub(crate) kind: Kind,
    /// Content that the kernel of the origin's peer had acknowledged.
    pub(crate) taken_bytes: u64,
    /// Content that the client's program had read.
    pub(crate) read_bytes: u64,
    /// What the client's kernel had received beyond that.
    pub(crate) unread_bytes: u64,
    /// The largest lead over the program that was seen on the way, looked at every tenth of a
    /// second.
    pub(crate) largest_bytes: u64,
    pub(crate) fetches: u64,
}

impl ReadAhead {
    /// Taken from the origin and not read by the client's program.
    pub(crate) fn over_program(&self) -> u64 {
        self.taken_bytes.saturating_sub(self.read_bytes)
    }

    /// Taken from the origin and not received by the client's kernel.
    pub(crate) fn over_kernel(&self) -> u64 {
        self.over_program().saturating_sub(self.unread_bytes)
    }
}

/// What the client requests.
pub(crate) fn requested(subject: &Subject<'_>, kind: Kind) -> ResponseSpec {
    let client = if kind.reads { "slow" } else { "stopped" };
    let stored = if kind.is_storable { "stored" } else { "passed" };
    let path = subject.path(&format!("lead-{client}-{stored}"));
    ResponseSpec {
        is_storable: kind.is_storable,
        ..ResponseSpec::new(&path, SIZE_BYTES)
    }
}

pub(crate) fn measure(subject: &Subject<'_>, kind: Kind) -> Result<ReadAhead, String> {
    let spec = requested(subject, kind);
    let mut reader = Reader::ask_by(
        subject.version,
        subject.address,
        &spec,
        Some(RECEIVE_BUFFER_BYTES),
    )?;
    if subject.may_change_content {
        reader.accept_any_framing();
    }
    let begun = Instant::now();
    let mut step = 0;
    let mut lead = ReadAhead {
        kind,
        taken_bytes: 0,
        read_bytes: 0,
        unread_bytes: 0,
        largest_bytes: 0,
        fetches: 0,
    };
    while STEP * step < LASTS {
        step += 1;
        let next = begun + STEP * step;
        if kind.reads {
            reader.read(STEP_BYTES, next)?;
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        // the client's side first: what moves meanwhile makes the lead look larger, never smaller
        lead.read_bytes = reader.read_bytes();
        lead.unread_bytes = reader.unread_bytes();
        let tally = subject.origin.tally(&spec.path)?;
        lead.taken_bytes = tally.acknowledged_bytes;
        lead.fetches = tally.fetches;
        lead.largest_bytes = lead.largest_bytes.max(lead.over_program());
    }
    Ok(lead)
}
