//! The counts of one second, for the time series and the progress line.

use serde::{Deserialize, Serialize};
use weir_measure::{merge_fields, quantile};

/// One second of the run, as one thread of clients, or several merged, saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondTally {
    /// Which second since the start: 0 is the first.
    pub at_s: u32,
    /// The place in the plan of the phase whose request was begun last.
    pub phase: u8,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that were begun.
    pub requests: u64,
    /// Requests that were answered.
    pub responses: u64,
    /// Of those, hits.
    pub hits: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Wrong responses.
    pub wrong: u64,
    /// Bytes of content received.
    pub content_bytes: u64,
    /// Of those, the ones of hits and validated responses.
    pub hit_content_bytes: u64,
    /// Connections open at its end.
    pub connections_open: u64,
    /// Requests that wait for a connection at its end.
    pub queued: u64,
    /// CPU time of the thread, as a share of a core; of the busiest thread if several are merged.
    pub cpu_share: f64,
    /// Response times and how many there were, ascending, to two digits.
    pub response_time_us: Vec<(u64, u64)>,
}

impl SecondTally {
    /// The response time that this share (0 to 1) of the responses did not exceed, in microseconds;
    /// zero without responses.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> u64 {
        let total = self.response_time_us.iter().map(|(_, count)| count).sum();
        let counts = self.response_time_us.iter().copied();
        quantile::rank(counts, total, share).map_or(0, |rank| rank.value)
    }
}

merge_fields! {
    SecondTally {
        sum {
            offered, requests, responses, hits, errors, wrong, content_bytes, hit_content_bytes,
            connections_open, queued, response_time_us,
        }
        max { phase, cpu_share }
        keep { at_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(response_time_us: &[(u64, u64)]) -> SecondTally {
        SecondTally {
            response_time_us: response_time_us.to_vec(),
            ..SecondTally::default()
        }
    }

    #[test]
    fn quantile_of_merged_seconds_is_that_of_all_their_responses() {
        let mut merged = second(&[(10, 50), (30, 49)]);
        merged.merge(&second(&[(20, 100), (30, 1)]));
        assert_eq!(merged.response_time_us, [(10, 50), (20, 100), (30, 50)]);
        let quantiles = [0.25, 0.26, 0.75, 0.76, 1.0].map(|share| merged.quantile_us(share));
        assert_eq!(quantiles, [10, 20, 20, 30, 30]);
        assert_eq!(second(&[]).quantile_us(0.5), 0);
    }
}
