//! The population: different clients, servers and targets, and how requests spread over targets.

use super::super::Row;
use super::said::{Quantity, Share, Spread};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use weir_workload::{MixHasher, whole};

/// Clients, servers and targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Population {
    /// Different clients; `None` if the trace does not say.
    pub clients: Option<u64>,
    /// Different servers; `None` if the trace does not say.
    pub servers: Option<u64>,
    /// Different targets.
    pub targets: u64,
    /// Targets that were requested once.
    pub targets_once: u64,
    /// Bytes of all targets, each as large as in its first row with a size.
    pub footprint_bytes: Option<u64>,
    /// Sizes of targets, each as large as in its first row with a size.
    pub target_size: Option<Spread>,
    /// How popular they are.
    pub popularity: Popularity,
}

/// How requests spread over targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Popularity {
    /// Requests for the most popular target.
    pub most: u64,
    /// Requests for the most popular hundredth of targets, of all.
    pub top_hundredth: Share,
    /// The exponent of Zipf's law that fits best: see [`ZIPF_REQUESTS_MIN`]. `None` if too few
    /// targets are requested often enough.
    pub zipf_exponent: Option<f64>,
}

/// Zipf's exponent is the slope, in logarithms, of requests over rank: least squares over bins of
/// ranks that grow by 1.3, each bin one point, so that the many ranks of the tail do not outvote
/// the head. Only targets with at least so many requests count: below, chance makes ranks what they
/// are.
pub const ZIPF_REQUESTS_MIN: u64 = 10;

/// How much wider each bin of ranks is than the one before.
const ZIPF_BIN: f64 = 1.3;

/// A slope through fewer points says nothing.
const ZIPF_POINTS_MIN: usize = 5;

/// What is remembered of a target.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TargetCounts {
    requests: u64,
    /// Size of the first row that has one, bytes.
    size: Option<u64>,
    /// Size of the first row that counts for K1, bytes.
    pub(super) first_bytes: Option<u64>,
    pub(super) is_kept: bool,
    pub(super) is_kept_ignoring_cookies: bool,
    pub(super) is_in_k1: bool,
}

pub(super) type Numbers = HashSet<u64, BuildHasherDefault<MixHasher>>;

#[derive(Debug, Default)]
pub(super) struct Counter {
    clients: Numbers,
    servers: Numbers,
    targets: HashMap<u64, TargetCounts, BuildHasherDefault<MixHasher>>,
}

impl Counter {
    /// Counts a row, and gives what is remembered of its target.
    pub(super) fn add(&mut self, row: &Row) -> &mut TargetCounts {
        self.clients.extend(row.client);
        self.servers.extend(row.server);
        let seen = self.targets.entry(row.target).or_default();
        seen.requests += 1;
        seen.size = seen.size.or(row.content_bytes());
        seen
    }

    pub(super) fn finish(self) -> Population {
        let counted = |numbers: &Numbers| {
            let count = numbers.len() as u64;
            (count > 0).then_some(count)
        };
        let mut sizes = Quantity::default();
        let mut requests = Vec::with_capacity(self.targets.len());
        for seen in self.targets.values() {
            sizes.add(seen.size);
            requests.push(seen.requests);
        }
        requests.sort_unstable_by(|one, other| other.cmp(one));
        let once = requests
            .iter()
            .rev()
            .take_while(|count| **count == 1)
            .count();
        Population {
            clients: counted(&self.clients),
            servers: counted(&self.servers),
            targets: requests.len() as u64,
            targets_once: once as u64,
            footprint_bytes: sizes.total(),
            target_size: sizes.finish(),
            popularity: popularity(&requests),
        }
    }
}

/// Of requests by target, most first.
fn popularity(requests: &[u64]) -> Popularity {
    let top = requests.len().div_ceil(100);
    Popularity {
        most: requests.first().copied().unwrap_or(0),
        top_hundredth: Share {
            yes: requests[..top].iter().sum(),
            said: requests.iter().sum(),
        },
        zipf_exponent: zipf_exponent(requests),
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate with two digits")]
fn zipf_exponent(requests: &[u64]) -> Option<f64> {
    let often = requests.partition_point(|count| *count >= ZIPF_REQUESTS_MIN);
    let mut points: Vec<(f64, f64)> = Vec::new();
    let (mut from, mut width) = (0, 1.0_f64);
    while from < often {
        let to = (from + whole::<usize>(width)).min(often);
        // the middle of the bin on a logarithmic scale, and the mean of what is in it
        let rank = ((from as f64 + 1.0) * to as f64).sqrt();
        let mean = requests[from..to].iter().sum::<u64>() as f64 / (to - from) as f64;
        points.push((libm::log(rank), libm::log(mean)));
        from = to;
        width *= ZIPF_BIN;
    }
    if points.len() < ZIPF_POINTS_MIN {
        return None;
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let variance: f64 = points
        .iter()
        .map(|(x, _)| (x - mean_x) * (x - mean_x))
        .sum();
    (variance > 0.0).then(|| -covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::Chance;

    fn check_exponent(exponent: f64, ranks: u32, draws: usize) {
        let mut sum = 0.0;
        let cumulated: Vec<f64> = (1..=ranks)
            .map(|rank| {
                sum += libm::pow(f64::from(rank), -exponent);
                sum
            })
            .collect();
        let mut chance = Chance::new(11, 0);
        let mut requests = vec![0; cumulated.len()];
        for _ in 0..draws {
            let at = chance.unit() * sum;
            requests[cumulated.partition_point(|edge| *edge <= at)] += 1;
        }
        requests.retain(|count| *count > 0);
        requests.sort_unstable_by(|one, other| other.cmp(one));
        let found = zipf_exponent(&requests).expect("there are enough");
        assert!(
            (found - exponent).abs() < 0.03,
            "{found} and not {exponent}"
        );
    }

    #[test]
    fn zipf_exponent_of_a_known_law_is_recovered() {
        check_exponent(0.7, 20_000, 400_000);
        check_exponent(1.0, 100_000, 400_000);
        check_exponent(1.2, 10_000, 200_000);
    }

    #[test]
    fn zipf_exponent_needs_enough_different_ranks() {
        assert_eq!(zipf_exponent(&[]), None);
        assert_eq!(zipf_exponent(&[9; 1000]), None);
        assert_eq!(zipf_exponent(&[1000, 500, 10]), None);
        let flat = zipf_exponent(&[50; 1000]).expect("enough");
        assert!(flat.abs() < 1e-9, "{flat}");
    }

    #[test]
    fn most_popular_hundredth_is_rounded_up_to_a_target() {
        assert_eq!(popularity(&[3, 1]).top_hundredth, Share { yes: 3, said: 4 });
        assert_eq!(popularity(&[]), Popularity::default());
        let two = popularity(&[[5, 2].as_slice(), &[1; 148]].concat());
        assert_eq!(two.top_hundredth, Share { yes: 7, said: 155 });
    }
}
