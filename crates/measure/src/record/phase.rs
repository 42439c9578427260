//! The counts of a phase: what the clients saw and what the origin saw.

use super::{ClientSide, Histogram, OriginSide};
use crate::{float, merge_fields, ratio};
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Part of a run with a load of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name in the scenario.
    pub name: String,
    /// Its numbers are results; `false` for a warm-up.
    pub is_measured: bool,
    /// From its first request to its last response, seconds; phases of a closed loop may overlap,
    /// since no client waits for another.
    pub seconds: f64,
    /// Requests of the schedule (open loop), or that the clients should send (closed loop).
    pub offered_requests: u64,
    /// What the clients saw.
    pub client: ClientSide,
    /// What the origin saw of this phase.
    pub origin: OriginSide,
    /// How long responses took.
    pub response_time: ResponseTime,
}

impl Phase {
    /// 1 - (origin requests + failed requests that did not reach the origin) / client requests: the
    /// share of requests that were answered and that the origin was spared. Without failed requests
    /// that is the formula of the Wisconsin Proxy Benchmark. A failed request is never a hit.
    /// `None` if nothing was answered. Negative if the proxy sends more requests than it receives.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        if self.client.answered() + self.client.aborted == 0 {
            return None;
        }
        let missed = self.origin.requests + self.failed_before_origin();
        spared(missed, self.client.requests)
    }

    /// 1 - bytes the origin sent / bytes the clients received in responses that did not fail,
    /// content alone. `None` without a byte.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        let client = &self.client;
        let received = client
            .content_bytes
            .saturating_sub(client.failed_content_bytes);
        spared(self.origin.content_bytes, received)
    }

    /// Failed requests that the origin has not counted. Of the requests that the origin saw and
    /// that brought no response with their mark, as many as possible are taken for failed ones,
    /// which are then counted once.
    fn failed_before_origin(&self) -> u64 {
        let client = &self.client;
        let not_modified = client.not_modified_forwarded.unwrap_or(client.not_modified);
        let own = client.forwarded + client.validated + not_modified;
        let unseen = self.origin.distinct.saturating_sub(own);
        client.error_count().saturating_sub(unseen)
    }

    /// The share of the requests that a cache without limits could have answered from what it had:
    /// an upper bound of [`hit_ratio`](Self::hit_ratio). `None` without a request, and where that
    /// was not counted.
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

/// Response times, microseconds: from the scheduled start (open loop) or from when the client was
/// free (closed loop) to the last byte. Errors and aborted requests are in none of them.
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

merge_fields! {
    Phase {
        sum { seconds, offered_requests, client, origin, response_time }
        keep { name, is_measured }
    }
    ResponseTime { sum { all, hit, miss, connect } }
}

fn spared(origin: u64, client: u64) -> Option<f64> {
    ratio(origin, client).map(|ratio| 1.0 - ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_ratio_is_computed_from_requests_seen_by_the_origin() {
        let mut phase = Phase::default();
        assert_eq!(phase.hit_ratio(), None);
        phase.client.requests = 400;
        phase.client.hits = 110;
        phase.client.forwarded = 290;
        phase.origin.requests = 300;
        assert_eq!(phase.hit_ratio(), Some(0.25));
        phase.origin.requests = 500;
        assert_eq!(phase.hit_ratio(), Some(-0.25));
    }

    /// 100 requests, 60 of them forwarded, 20 hits, and 20 that failed; `at_origin` of the failed
    /// ones were seen by the origin.
    fn with_failures(at_origin: u64) -> Phase {
        let mut phase = Phase::default();
        phase.client.requests = 100;
        phase.client.forwarded = 60;
        phase.client.hits = 20;
        phase.client.errors.insert("reset".into(), 20);
        phase.client.content_bytes = 800;
        phase.origin.requests = 60 + at_origin;
        phase.origin.distinct = 60 + at_origin;
        phase.origin.content_bytes = 600;
        phase
    }

    #[test]
    fn failed_request_is_no_hit_whether_origin_saw_it_or_not() {
        for at_origin in [0, 7, 20] {
            let ratio = with_failures(at_origin).hit_ratio();
            assert_eq!(ratio, Some(1.0 - 80.0 / 100.0), "{at_origin}");
        }
        // fetches beside the failed ones count against the proxy
        assert_eq!(with_failures(25).hit_ratio(), Some(1.0 - 85.0 / 100.0));
    }

    #[test]
    fn phase_without_an_answered_request_has_no_hit_ratio() {
        let mut phase = Phase::default();
        phase.client.requests = 50;
        phase.client.errors.insert("connect-refused".into(), 50);
        assert_eq!(phase.hit_ratio(), None);
        assert_eq!(phase.byte_hit_ratio(), None);
    }

    #[test]
    fn content_bytes_of_failed_requests_are_not_counted_as_saved() {
        let mut phase = with_failures(20);
        assert_eq!(phase.byte_hit_ratio(), Some(0.25));
        phase.client.failed_content_bytes = 200;
        assert_eq!(phase.byte_hit_ratio(), Some(0.0));
    }

    #[test]
    fn sum_of_two_phases_adds_every_count() {
        let mut one = with_failures(20);
        one.client.collapsed = 3;
        one.client.could_hit = 40;
        one.client.not_modified_forwarded = Some(1);
        let kind = super::super::KindSide {
            requests: 100,
            ..Default::default()
        };
        one.client.by_kind.insert("plain".into(), kind);
        one.origin.not_modified = 2;
        let mut sum = one.clone();
        sum.merge(&one);
        assert_eq!((sum.client.requests, sum.client.collapsed), (200, 6));
        assert_eq!(sum.client.not_modified_forwarded, Some(2));
        assert_eq!((sum.origin.distinct, sum.origin.not_modified), (160, 4));
        assert_eq!(sum.client.error_count(), 40);
        assert_eq!(sum.offered_hit_ratio(), one.offered_hit_ratio());
        assert_eq!(sum.hit_ratio(), one.hit_ratio());
        one.client.not_modified_forwarded = None;
        sum.merge(&one);
        assert_eq!(sum.client.not_modified_forwarded, None);
    }

    #[test]
    fn offered_hit_ratio_is_none_without_counts_by_kind() {
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
    fn phase_without_duration_has_no_rate() {
        let mut phase = Phase::default();
        phase.client.forwarded = 10;
        assert_eq!(phase.rate_per_s(), None);
        phase.seconds = 4.0;
        assert_eq!(phase.rate_per_s(), Some(2.5));
    }
}
