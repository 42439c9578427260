//! How many requests the busiest node has.
//!
//! The highest of many estimates is too high: it is the highest by chance, too. So the busiest node
//! is not looked for among estimates. Each node has requests that are counted: those of its
//! clients, and of other nodes for hot targets and for targets of the sample. What it has of the
//! targets that are not in the sample is drawn. Which node keeps a target depends on a hash of the
//! target alone, so these are spread over the nodes as those of the sample are: what `one_in - 1`
//! times as many targets bring to a node is a sum of what the sample brings to nodes that are drawn
//! at random (a bootstrap: B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993,
//! chapter 6). With each draw one node is the busiest; stated is the mean over the draws.
//!
//! The error is the 95 % interval of the draws, and what the error of the mean of all nodes makes.

use super::counts::Estimated;
use crate::hit_ratio::mrc::GROUPS;
use weir_workload::Chance;

/// Requests of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeRequests {
    /// Of clients, for all targets.
    pub(super) of_clients: u64,
    /// Of other nodes for hot targets.
    pub(super) hot: u64,
    /// Of other nodes for targets of the sample, by group.
    pub(super) groups: [u32; GROUPS as usize],
}

/// How often the other targets are drawn.
const DRAWS: usize = 200;

/// Draws beyond either end of the interval: 2.5 % of [`DRAWS`].
const OUTSIDE: usize = 5;

/// Parts that are added up for a node's other targets, at most: with more targets each counts more
/// than once, so that mean and deviation are right.
const PARTS_MAX: u64 = 256;

/// Of random numbers, those of the draws.
const DRAW_STREAM: u64 = 0x0062_7573_6965_7374;

/// The requests of the busiest of `nodes` in parts of the mean, where one in `one_in` targets is in
/// the sample, and the nodes have `lateral` requests of each other.
pub(super) fn busiest(
    nodes: &[NodeRequests],
    one_in: u32,
    lateral: Estimated,
    seed: u64,
) -> Estimated {
    let count = nodes.len() as f64;
    let of_clients: u64 = nodes.iter().map(|node| node.of_clients).sum();
    let mean = (of_clients as f64 + lateral.value) / count;
    let parts = Parts::of(nodes, one_in);
    let mut chance = Chance::new(seed, DRAW_STREAM);
    let mut most: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let of_node = |node: &NodeRequests| node.counted() + parts.draw(&mut chance);
            nodes.iter().map(of_node).fold(0.0, f64::max)
        })
        .collect();
    most.sort_unstable_by(f64::total_cmp);
    let value = most.iter().sum::<f64>() / DRAWS as f64;
    let below = value - most[OUTSIDE];
    let above = most[DRAWS - 1 - OUTSIDE] - value;
    let of_mean = (value - mean).abs() * lateral.error / count / mean.max(1.0);
    Estimated {
        value,
        error: below.max(above) + of_mean,
    }
    .of(mean)
}

impl NodeRequests {
    /// What is counted, each request once.
    fn counted(&self) -> f64 {
        let sampled: u64 = self.groups.iter().map(|it| u64::from(*it)).sum();
        (self.of_clients + self.hot + sampled) as f64
    }
}

/// What the targets that are not in the sample may bring to a node.
struct Parts {
    /// Of each node and group of the sample.
    parts: Vec<u32>,
    mean: f64,
    /// Of them that a node has.
    of_node: u64,
}

impl Parts {
    fn of(nodes: &[NodeRequests], one_in: u32) -> Self {
        let parts: Vec<u32> = nodes.iter().flat_map(|node| node.groups).collect();
        let sum: u64 = parts.iter().map(|it| u64::from(*it)).sum();
        Self {
            mean: sum as f64 / parts.len().max(1) as f64,
            parts,
            of_node: u64::from(one_in - 1) * u64::from(GROUPS),
        }
    }

    /// The requests of one node.
    fn draw(&self, chance: &mut Chance) -> f64 {
        let drawn = self.of_node.min(PARTS_MAX);
        if drawn == 0 {
            return 0.0;
        }
        let beyond: f64 = (0..drawn)
            .map(|_| {
                let place = chance.below(self.parts.len() as u64);
                let place = usize::try_from(place).unwrap_or(0);
                f64::from(self.parts[place]) - self.mean
            })
            .sum();
        let times = self.of_node as f64 / drawn as f64;
        (self.of_node as f64 * self.mean + beyond * times.sqrt()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Targets that are kept by nodes at random, with few requests for most and many for some; what
    /// a sample of them says, and the busiest of all nodes.
    fn made(nodes: usize, one_in: u32, seed: u64) -> (Estimated, f64) {
        const TARGETS: u64 = 20_000;
        const OF_CLIENTS: u64 = 20_000;
        let mut chance = Chance::new(seed, 0);
        let mut whole = vec![OF_CLIENTS; nodes];
        let mut sampled = vec![NodeRequests::default(); nodes];
        for node in &mut sampled {
            node.of_clients = OF_CLIENTS;
        }
        let mut lateral = 0;
        for _ in 0..TARGETS * nodes as u64 / 16 {
            let node = usize::try_from(chance.below(nodes as u64)).unwrap();
            let requests = 100 / (1 + chance.below(100));
            whole[node] += requests;
            let group = usize::try_from(chance.below(u64::from(GROUPS))).unwrap();
            if chance.below(u64::from(one_in)) == 0 {
                sampled[node].groups[group] += u32::try_from(requests).unwrap();
                lateral += requests * u64::from(one_in);
            }
        }
        let lateral = Estimated {
            value: lateral as f64,
            error: 0.03 * lateral as f64,
        };
        let most = whole.iter().max().copied().unwrap() as f64;
        let mean = whole.iter().sum::<u64>() as f64 / nodes as f64;
        (busiest(&sampled, one_in, lateral, seed), most / mean)
    }

    #[test]
    fn busiest_node_is_neither_over_nor_underestimated_and_within_the_error_19_times_of_20() {
        for (nodes, one_in, seeds) in [(4, 4, 100), (64, 16, 30), (256, 64, 8)] {
            let runs: Vec<_> = (1..=seeds).map(|seed| made(nodes, one_in, seed)).collect();
            let is_within =
                |(said, truth): &&(Estimated, f64)| (said.value - truth).abs() <= said.error;
            let within = runs.iter().filter(is_within).count() as f64 / runs.len() as f64;
            let of = |number: fn(&(Estimated, f64)) -> f64| {
                runs.iter().map(number).sum::<f64>() / runs.len() as f64
            };
            let (beyond, error) = (
                of(|(said, truth)| said.value - truth),
                of(|(said, _)| said.error),
            );
            assert!(within >= 0.9, "{nodes} nodes: {within}");
            assert!(
                beyond.abs() <= 0.25 * error,
                "{nodes} nodes: {beyond} of {error}"
            );
        }
    }

    #[test]
    fn busiest_node_without_a_sample_is_counted() {
        let node = |of_clients, group| NodeRequests {
            of_clients,
            hot: 0,
            groups: [group; GROUPS as usize],
        };
        let nodes = [node(100, 0), node(80, 3), node(60, 3)];
        let lateral = Estimated {
            value: 60.0,
            error: 0.0,
        };
        let said = busiest(&nodes, 1, lateral, 1);
        assert!((said.value - 1.1).abs() < 1e-9, "{said:?}");
        assert!(said.error.abs() < 1e-9, "{said:?}");
    }
}
