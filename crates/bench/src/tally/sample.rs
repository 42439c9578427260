//! Single transactions with all their times.

use super::outcome::Outcome;
use weir_workload::Target;

/// One transaction. Times are in microseconds since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The place of the phase in the plan.
    pub phase: u8,
    /// The agent's number.
    pub agent: u32,
    /// The target.
    pub target: Target,
    /// The method.
    pub method: &'static str,
    /// When it should have started: the schedule (open loop), or the end of the one before (closed
    /// loop).
    pub scheduled_us: u64,
    /// When a connection was free for it, and the request was written or the connection begun.
    pub started_us: u64,
    /// How long the connection took; `None` if it was there.
    pub connect_us: Option<u64>,
    /// When the head of the response was there; `None` if it never was.
    pub head_us: Option<u64>,
    /// When it ended.
    pub ended_us: u64,
    /// The status; `None` without a response.
    pub status: Option<u16>,
    /// Bytes of content received.
    pub content_bytes: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// Was the response wrong?
    pub is_wrong: bool,
}
