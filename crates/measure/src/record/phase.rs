//! The account of a phase: what the clients saw and what the origin saw.

use super::{ClientSide, Histogram, OriginSide};
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Part of a run with a load of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name in the scenario.
    pub name: String,
    /// Its numbers are results; `false` for a warm-up.
    pub is_measured: bool,
    /// From its first request to its last response, seconds; phases of a closed loop may overlap, since no client waits for
    /// another.
    pub seconds: f64,
    /// Requests that the schedule wanted (open loop), or that the clients were to send (closed loop).
    pub offered_requests: u64,
    /// What the clients saw.
    pub client: ClientSide,
    /// What the origin saw of this phase.
    pub origin: OriginSide,
    /// How long responses took.
    pub response_time: ResponseTime,
}

impl Phase {
    /// 1 - origin requests / client requests: the share of requests that the origin was spared. `None` without a request.
    /// Negative if the proxy asks for more than it is asked.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        spared(self.origin.requests, self.client.requests)
    }

    /// 1 - bytes the origin sent / bytes the clients received, content alone. `None` without a byte.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        spared(self.origin.content_bytes, self.client.content_bytes)
    }

    /// Hits by the origin's marks / client requests. `None` without a request.
    #[must_use]
    pub fn marked_hit_ratio(&self) -> Option<f64> {
        ratio(self.client.hits, self.client.requests)
    }

    /// Bytes in hits by the origin's marks / bytes the clients received. `None` without a byte.
    #[must_use]
    pub fn marked_byte_hit_ratio(&self) -> Option<f64> {
        ratio(self.client.hit_content_bytes, self.client.content_bytes)
    }

    /// The share of the requests that a cache without limits could have answered from what it had: an upper bound of
    /// [`hit_ratio`](Self::hit_ratio). `None` without a request, and where that was not counted.
    #[must_use]
    pub fn offered_hit_ratio(&self) -> Option<f64> {
        self.offered(self.client.could_hit, self.client.requests)
    }

    /// The same of the content received, in bytes.
    #[must_use]
    pub fn offered_byte_hit_ratio(&self) -> Option<f64> {
        self.offered(
            self.client.could_hit_content_bytes,
            self.client.content_bytes,
        )
    }

    fn offered(&self, part: u64, whole: u64) -> Option<f64> {
        let is_counted = !self.client.by_kind.is_empty();
        ratio(part, whole).filter(|_| is_counted)
    }

    /// Requests answered a second. `None` for a phase that took no time.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| float(self.client.answered()) / self.seconds)
    }
}

/// Response times, microseconds: from the scheduled start (open loop) or from when the client was free (closed loop) to the
/// last byte. Errors and aborted requests are in none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseTime {
    /// Of all responses.
    pub all: Histogram,
    /// Of hits.
    pub hit: Histogram,
    /// Of the rest: forwarded, validated.
    pub miss: Histogram,
    /// Of setting up connections to the proxy.
    pub connect: Histogram,
}

fn spared(origin: u64, client: u64) -> Option<f64> {
    ratio(origin, client).map(|ratio| 1.0 - ratio)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts stay far below 2^53, and a ratio is read with three digits"
)]
const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_ratio_is_the_word_of_the_proxy() {
        let mut phase = Phase::default();
        assert_eq!(phase.hit_ratio(), None);
        phase.client.requests = 400;
        phase.client.hits = 110;
        phase.origin.requests = 300;
        assert_eq!(phase.hit_ratio(), Some(0.25));
        assert_eq!(phase.marked_hit_ratio(), Some(0.275));
        phase.origin.requests = 500;
        assert_eq!(phase.hit_ratio(), Some(-0.25));
    }

    #[test]
    fn what_was_not_counted_is_offered() {
        let mut phase = Phase::default();
        phase.client.requests = 400;
        phase.client.could_hit = 100;
        phase.client.content_bytes = 1000;
        assert_eq!(phase.offered_hit_ratio(), None);
        let kind = super::super::KindSide::default();
        phase.client.by_kind.insert("plain".into(), kind);
        assert_eq!(phase.offered_hit_ratio(), Some(0.25));
        assert_eq!(phase.offered_byte_hit_ratio(), Some(0.0));
    }

    #[test]
    fn phase_without_time_has_a_rate() {
        let mut phase = Phase::default();
        phase.client.forwarded = 10;
        assert_eq!(phase.rate_per_s(), None);
        phase.seconds = 4.0;
        assert_eq!(phase.rate_per_s(), Some(2.5));
    }
}
