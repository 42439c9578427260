//! Response times of a run.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_measure::quantile;

/// Quantiles, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) most_us: u64,
}

/// A time as it is collected.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// All of them, in any order.
pub(crate) fn quantiles(mut times_us: Vec<u32>) -> Latency {
    times_us.sort_unstable();
    let at = |share| quantile::of_sorted(&times_us, share).map_or(0, u64::from);
    Latency {
        p50_us: at(0.5),
        p99_us: at(0.99),
        most_us: at(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let latency = quantiles((1..=1000).rev().collect());
        assert_eq!(
            (latency.p50_us, latency.p99_us, latency.most_us),
            (500, 990, 1000)
        );
        assert_eq!(quantiles(Vec::new()), Latency::default());
    }
}
