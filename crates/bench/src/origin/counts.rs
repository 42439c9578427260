//! What the origin received and sent, by phase.
//!
//! A request belongs to the phase its id names. One without an id, which a proxy made for itself,
//! belongs to the newest phase that any id has named. Counts are never taken back, so two looks at
//! them can be subtracted, and those of several origins of one run can be added: a target belongs
//! to one of them.

use serde::{Deserialize, Serialize};
use weir_measure::merge_fields;

/// All that an origin has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginCounts {
    /// By phase; phases without a request may be absent at the end.
    pub phases: Vec<PhaseCounts>,
    /// Connections that are open now.
    pub connections_open: u64,
    /// How often no connection could be taken from the kernel, because descriptors or memory were
    /// out.
    pub accept_failures: u64,
    /// Connections to an address that is no server's; they were closed at once.
    pub stray_connections: u64,
    /// Connections that waited because as many were open as may be.
    pub waiting_connections: u64,
}

/// Requests and responses of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCounts {
    /// Requests that were read whole, up to the end of their head. Always `distinct + repeated +
    /// without_id`.
    pub requests: u64,
    /// Those with an id that was seen for the first time.
    pub distinct: u64,
    /// Those with an id that was seen before: a retry of the proxy, or its request for a part.
    pub repeated: u64,
    /// Those without an id, or with one that is outside of the run.
    pub without_id: u64,
    /// `HEAD` among the requests.
    pub head_requests: u64,
    /// `POST` among the requests.
    pub post_requests: u64,
    /// Content of requests, bytes.
    pub received_content_bytes: u64,
    /// Content handed to the kernel, bytes.
    pub content_bytes: u64,
    /// Heads handed to the kernel, bytes.
    pub head_bytes: u64,
    /// Responses with 200.
    pub ok: u64,
    /// Responses with 206.
    pub partial: u64,
    /// Responses with 304.
    pub not_modified: u64,
    /// Responses with 404: a path that names no target.
    pub not_found: u64,
    /// Responses with any other status.
    pub other: u64,
    /// Responses cut at a random byte, by the scenario's `aborted_share`.
    pub aborted: u64,
    /// Responses spoilt by the scenario's fault script.
    pub faulted: FaultCounts,
    /// Responses that the peer did not take to the end.
    pub left: u64,
    /// Connections whose first request was of this phase.
    pub connections_opened: u64,
    /// The most requests on one connection.
    pub connection_requests_max: u64,
}

/// Responses that were spoilt, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCounts {
    /// The connection was closed in the middle.
    pub cut: u64,
    /// The connection was reset in the middle.
    pub reset: u64,
    /// Nothing more was sent, and the connection stayed open.
    pub hang: u64,
    /// Content was sent a few bytes at a time.
    pub slow: u64,
    /// `Content-Length` was not what was sent.
    pub wrong_length: u64,
    /// Another status was sent.
    pub status: u64,
}

impl OriginCounts {
    /// All phases together.
    #[must_use]
    pub fn total(&self) -> PhaseCounts {
        let mut total = PhaseCounts::default();
        for phase in &self.phases {
            total.merge(phase);
        }
        total
    }

    /// The counts of a phase, which begin at zero.
    pub(super) fn phase(&mut self, phase: u8) -> &mut PhaseCounts {
        let index = usize::from(phase);
        if self.phases.len() <= index {
            self.phases.resize_with(index + 1, PhaseCounts::default);
        }
        &mut self.phases[index]
    }
}

impl PhaseCounts {
    /// Counts a response by its status.
    pub(super) fn status(&mut self, status: u16) {
        *match status {
            200 => &mut self.ok,
            206 => &mut self.partial,
            304 => &mut self.not_modified,
            404 => &mut self.not_found,
            _ => &mut self.other,
        } += 1;
    }
}

impl FaultCounts {
    /// All kinds together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.cut + self.reset + self.hang + self.slow + self.wrong_length + self.status
    }
}

merge_fields! {
    OriginCounts { sum {
        phases, connections_open, accept_failures, stray_connections, waiting_connections,
    } }
    PhaseCounts {
        sum {
            requests, distinct, repeated, without_id, head_requests, post_requests,
            received_content_bytes, content_bytes, head_bytes, ok, partial, not_modified, not_found,
            other, aborted, faulted, left, connections_opened,
        }
        max { connection_requests_max }
    }
    FaultCounts { sum { cut, reset, hang, slow, wrong_length, status } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(number: u64) -> OriginCounts {
        let mut counts = OriginCounts::default();
        let phase = counts.phase(2);
        phase.requests = number;
        phase.distinct = number;
        phase.content_bytes = 100 * number;
        phase.connections_opened = 1;
        phase.connection_requests_max = number;
        phase.status(200);
        phase.status(304);
        phase.status(503);
        counts
    }

    #[test]
    fn counts_of_two_origins_merge_to_their_sum() {
        let mut sum = some(3);
        let mut shorter = OriginCounts::default();
        shorter.phase(0).requests = 7;
        sum.merge(&some(5));
        sum.merge(&shorter);
        assert_eq!(sum.phases.len(), 3);
        assert_eq!(sum.phases[0].requests, 7);
        assert_eq!(sum.phases[2].requests, 8);
        assert_eq!(sum.phases[2].content_bytes, 800);
        assert_eq!(sum.phases[2].connection_requests_max, 5);
        assert_eq!(
            (
                sum.phases[2].ok,
                sum.phases[2].not_modified,
                sum.phases[2].other
            ),
            (2, 2, 2)
        );
        assert_eq!(sum.total().requests, 15);
    }

    #[test]
    fn origin_counts_survive_the_json_round_trip() {
        let counts = some(3);
        let text = serde_json::to_string(&counts).expect("JSON");
        assert_eq!(
            serde_json::from_str::<OriginCounts>(&text).expect("counts"),
            counts
        );
    }
}
