//! The clients' counts and times of one phase.

use super::request_counts::RequestCounts;
use super::times::Times;
use serde::{Deserialize, Serialize};
use weir_measure::merge_fields;

/// A phase, as the clients saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseTally {
    /// The phase's name.
    pub name: String,
    /// Does it count for the result, or is it warm-up?
    pub is_measured: bool,
    /// Requests whose start was scheduled in this phase; those of embedded targets included once
    /// their page arrived.
    pub offered: u64,
    /// When its first request began, in microseconds since the start; `None` if there was none.
    pub from_us: Option<u64>,
    /// When its last request ended, in microseconds since the start.
    pub until_us: u64,
    /// The outcomes of its requests.
    pub counts: RequestCounts,
    /// From the scheduled start (open loop), or from the end of the one before (closed loop), to
    /// the last byte. Errors and aborted ones are not in it, neither are 304s.
    pub response_time: ResponseTimes,
}

/// Response times by what the response was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseTimes {
    /// Of hits, validated, forwarded and 304s.
    pub all: Times,
    /// Of hits.
    pub hit: Times,
    /// Of validated and forwarded ones.
    pub miss: Times,
    /// To set up a connection.
    pub connect: Times,
}

impl PhaseTally {
    /// A phase without requests.
    #[must_use]
    pub fn new(name: &str, is_measured: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_measured,
            ..Self::default()
        }
    }

    /// How long it took, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let from_us = self.from_us.unwrap_or(self.until_us);
        self.until_us.saturating_sub(from_us) as f64 / 1e6
    }

    /// Adds what another thread or machine saw of the same phase.
    pub fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.from_us = match (self.from_us, other.from_us) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.until_us = self.until_us.max(other.until_us);
        self.counts.merge(&other.counts);
        self.response_time.merge(&other.response_time);
    }
}

merge_fields! {
    ResponseTimes { sum { all, hit, miss, connect } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_without_requests_leaves_the_merged_start_unchanged() {
        let mut phase = PhaseTally::new("phase 1", true);
        phase.merge(&PhaseTally {
            from_us: Some(2_000_000),
            until_us: 5_500_000,
            ..PhaseTally::default()
        });
        phase.merge(&PhaseTally::default());
        assert!((phase.seconds() - 3.5).abs() < 1e-9);
        assert_eq!(PhaseTally::default().seconds().to_bits(), 0);
    }
}
