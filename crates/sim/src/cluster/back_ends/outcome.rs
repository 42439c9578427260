//! What came of a run.

use crate::results::outcome::ratio;
use crate::results::spread::Summary;
use crate::world::Nanos;
use serde::Serialize;

/// What came of all requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterOutcome {
    /// All of them.
    pub requests: u64,
    /// Connections that they came on.
    pub connections: u64,
    /// Requests whose response was in the memory of the node that was chosen.
    pub hits: u64,
    /// Files read from disks.
    pub files_read: u64,
    /// Requests that another node served than the one that handled the connection.
    pub lateral: u64,
    /// Connections that were handed over again.
    pub handed_off: u64,
    /// Bytes of responses.
    pub bytes: u64,
    /// From the first connection to the end of the last, nanoseconds.
    pub elapsed_ns: u64,
    /// Reasons of choices, those that occurred.
    pub choices: Vec<ReasonCount>,
    /// The nodes by place.
    pub nodes: Vec<NodeOutcome>,
    /// How long the front end was busy, as a part of the time.
    pub front_end_busy: f64,
    /// From when a request was sent, its batch at once, to the end of its response; microseconds.
    pub delay: Summary,
}

/// How often a reason chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReasonCount {
    /// The reason.
    pub why: &'static str,
    /// Choices.
    pub count: u64,
}

/// What a node has done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeOutcome {
    /// Requests that it served.
    pub requests: u64,
    /// Those whose response was in memory.
    pub hits: u64,
    /// How long its CPU was busy, as a part of the time.
    pub cpu_busy: f64,
    /// How long a disk was busy, as a part of the time.
    pub disk_busy: f64,
}

impl ClusterOutcome {
    /// Requests a second.
    #[must_use]
    pub fn requests_per_s(&self) -> f64 {
        self.per_s(self.requests)
    }

    /// Content, 10^6 bits a second.
    #[must_use]
    pub fn mbit_per_s(&self) -> f64 {
        self.per_s(self.bytes) * 8.0 / 1e6
    }

    /// Hits of requests.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.requests)
    }

    /// Requests of the node with the most, by the mean of all; 0 without requests.
    #[must_use]
    pub fn busiest(&self) -> f64 {
        let most = self.nodes.iter().map(|node| node.requests).max();
        ratio(most.unwrap_or(0) * self.nodes.len() as u64, self.requests)
    }

    fn per_s(&self, count: u64) -> f64 {
        if self.elapsed_ns == 0 {
            return 0.0;
        }
        count as f64 * 1e9 / self.elapsed_ns as f64
    }
}

/// A part of the time.
pub(super) fn share(busy: Nanos, elapsed: Nanos) -> f64 {
    ratio(busy, elapsed)
}
