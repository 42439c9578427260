//! What came of one trace: counts and outcomes, and the numbers that lines of tables ask for.

use super::experiment::{Kind, Run};
use super::facts::Facts;
use crate::results::outcome::{Latency, Outcome};
use std::collections::BTreeMap;

/// All that is known of one trace.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) kind: Kind,
    /// Requests of the trace.
    pub(super) requests: u64,
    pub(super) facts: Option<Facts>,
    pub(super) outcomes: BTreeMap<Run, Outcome>,
}

/// A number of a latency, microseconds.
pub(super) type Of = fn(&Latency) -> f64;

/// The mean of the whole latency.
pub(super) const fn mean(latency: &Latency) -> f64 {
    latency.total.mean_us
}

/// Its median.
pub(super) const fn median(latency: &Latency) -> f64 {
    latency.total.median_us as f64
}

impl Findings {
    /// A run's outcome, if it was made.
    pub(super) fn outcome(&self, run: Run) -> Option<&Outcome> {
        self.outcomes.get(&run)
    }

    /// By how many percent `run` is faster than `other`.
    pub(super) fn gain(&self, run: Run, other: Run, of: Of) -> Option<f64> {
        let run = of(&self.outcome(run)?.latency);
        let other = of(&self.outcome(other)?.latency);
        saved(run, other)
    }

    /// How many percent fewer bytes come from servers than clients receive without a proxy: the
    /// paper compares with the bytes of its trace.
    pub(super) fn savings(&self, run: Run) -> Option<f64> {
        saved(self.server_bytes(run)?, self.server_bytes(Run::NoProxy)?)
    }

    /// Bytes of content from servers; without a proxy those that clients received, and not what was
    /// on its way when they left.
    fn server_bytes(&self, run: Run) -> Option<f64> {
        let outcome = self.outcome(run)?;
        let bytes = match run {
            Run::NoProxy => outcome.requests.content_bytes,
            _ => outcome.traffic.from_servers_bytes,
        };
        Some(bytes as f64)
    }

    /// The same for as many requests as the paper's trace has, 10^9 bytes.
    pub(super) fn gigabytes(&self, run: Run) -> Option<f64> {
        let scale = self.kind.requests() as f64 / self.requests.max(1) as f64;
        Some(self.server_bytes(run)? * scale / 1e9)
    }
}

fn saved(run: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| 100.0 * (1.0 - run / other))
}

/// A share of 1 as percent.
pub(super) fn percent(share: f64) -> f64 {
    100.0 * share
}
