//! When the requests of an open loop are due: a Poisson process whose rate changes linearly within
//! a phase.
//!
//! The union of independent Poisson robots is one Poisson process with the sum of their rates, each
//! of whose arrivals belongs to a robot drawn by its part of the rate. So one process in order of
//! time stands for any number of robots, without a queue of theirs.

use crate::Chance;

/// The rate over one phase: from `begin` to `end`, in arrivals a second, along a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ramp {
    pub(super) begin: f64,
    pub(super) end: f64,
    /// `None`: the phase has no known end, and the rate stays at `begin`.
    pub(super) seconds: Option<f64>,
}

impl Ramp {
    /// The value `at_s` seconds into the phase.
    pub(super) fn at(self, at_s: f64) -> f64 {
        match self.seconds {
            Some(seconds) if seconds > 0.0 => {
                self.begin + (self.end - self.begin) * (at_s / seconds).min(1.0)
            }
            _ => self.begin,
        }
    }

    /// When the arrival after the one at `at_s` comes; `None`: not within the phase.
    ///
    /// The chance of no arrival until `d` seconds later is `exp(-area)`, with the area under the
    /// rate. An exponential variate is drawn and the `d` with that area found: `rate * d + slope *
    /// d^2 / 2 = area`.
    pub(super) fn next(self, at_s: f64, chance: &mut Chance) -> Option<f64> {
        let area = exponential(chance);
        let until_s = at_s + self.wait(at_s, area);
        // no rate, and one that falls too soon, leave an arrival to wait for ever
        let has_come = until_s < self.seconds.unwrap_or(f64::INFINITY);
        has_come.then_some(until_s)
    }

    /// How long after `at_s` the area under the rate is `area`; infinite or unknown where it never
    /// is.
    fn wait(self, at_s: f64, area: f64) -> f64 {
        let slope = match self.seconds {
            Some(seconds) if seconds > 0.0 => (self.end - self.begin) / seconds,
            _ => 0.0,
        };
        if slope == 0.0 {
            return area / self.begin;
        }
        let rate = self.begin + slope * at_s;
        // not a number where the rate falls to nothing before
        let root = (rate * rate + 2.0 * slope * area).sqrt();
        2.0 * area / (rate + root)
    }
}

/// A variate of the exponential law with mean 1.
pub(super) fn exponential(chance: &mut Chance) -> f64 {
    // 1 - unit is in (0, 1]: never the logarithm of 0
    -libm::log(1.0 - chance.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(ramp: Ramp, seed: u64) -> Vec<f64> {
        let mut chance = Chance::new(seed, 0);
        let mut at_s = 0.0;
        let mut all = Vec::new();
        while let Some(next) = ramp.next(at_s, &mut chance) {
            assert!(next >= at_s);
            at_s = next;
            all.push(at_s);
            assert!(all.len() < 1_000_000, "the ramp has no end");
        }
        all
    }

    #[test]
    fn gaps_between_arrivals_are_exponential() {
        let ramp = Ramp {
            begin: 100.0,
            end: 100.0,
            seconds: Some(1000.0),
        };
        let all = arrivals(ramp, 1);
        let gaps: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps
            .iter()
            .map(|gap| (gap - mean) * (gap - mean))
            .sum::<f64>()
            / count;
        assert!((mean * 100.0 - 1.0).abs() < 0.02, "mean gap {mean}");
        // the standard deviation of an exponential law is its mean
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
        for multiple in [0.5, 1.0, 2.0, 4.0] {
            let longer = gaps.iter().filter(|gap| **gap > multiple * mean).count() as f64;
            let expected = libm::exp(-multiple);
            assert!(
                (longer / count - expected).abs() < 0.01,
                "beyond {multiple} means"
            );
        }
    }

    #[test]
    fn arrivals_of_a_ramp_equal_the_area_under_its_rate() {
        for (begin, end) in [(0.0, 200.0), (200.0, 0.0), (20.0, 200.0), (200.0, 20.0)] {
            let ramp = Ramp {
                begin,
                end,
                seconds: Some(1000.0),
            };
            let all = arrivals(ramp, 2);
            for (from, until) in [(0.0, 250.0), (250.0, 500.0), (500.0, 1000.0)] {
                let expected = (ramp.at(from) + ramp.at(until)) / 2.0 * (until - from);
                let found = all.iter().filter(|at| (from..until).contains(*at)).count() as f64;
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt(),
                    "{begin}..{end}: {found} arrivals in {from}..{until} s, {expected} expected"
                );
            }
        }
    }

    #[test]
    fn rate_of_zero_makes_no_arrival() {
        for seconds in [Some(1000.0), None] {
            let ramp = Ramp {
                begin: 0.0,
                end: 0.0,
                seconds,
            };
            assert_eq!(ramp.next(0.0, &mut Chance::new(3, 0)), None);
        }
    }

    #[test]
    fn every_arrival_is_before_the_end_of_its_phase() {
        let ramp = Ramp {
            begin: 1000.0,
            end: 1000.0,
            seconds: Some(0.5),
        };
        assert!(arrivals(ramp, 4).iter().all(|at| *at < 0.5));
        let ramp = Ramp {
            seconds: Some(0.0),
            ..ramp
        };
        assert!(arrivals(ramp, 4).is_empty());
    }
}
