//! How many requests each node gets: weights, bounds, replicas.

use super::random::{Random, Zipf, nodes};
use std::collections::VecDeque;
use weir_policy::Tick;
use weir_policy::route::policy::{PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{ClusterView, Load, Node, Place, TargetKey, Weight};

/// Requests that stay outstanding for a while, so that a number of them are at any time.
struct Outstanding(VecDeque<Place>, usize);

impl Outstanding {
    /// One more, at `place`; the oldest ends if there are too many.
    fn add(&mut self, nodes: &mut [Node], place: Place) {
        let node = &mut nodes[place.index()];
        node.load = node.load.plus(Load::requests(1));
        self.0.push_back(place);
        if self.0.len() > self.1
            && let Some(ended) = self.0.pop_front()
        {
            let node = &mut nodes[ended.index()];
            node.load = node.load.minus(Load::requests(1));
        }
    }
}

/// The share of each node, per cent, of 60 000 requests for targets that all differ.
fn shares(kind: PolicyKind, weights: [u16; 4], outstanding: usize) -> [u64; 4] {
    let mut policy = kind.build(&PolicyRules::default(), 1);
    let mut nodes = nodes(4);
    for (node, weight) in nodes.iter_mut().zip(weights) {
        node.weight = Weight::new(weight).unwrap();
    }
    let mut random = Random(5);
    let mut open = Outstanding(VecDeque::new(), outstanding);
    let mut counts = [0_u64; 4];
    for step in 0..60_000 {
        let view = ClusterView::new(&nodes);
        let request = RoutedRequest::new(TargetKey(random.next()), random.next());
        let choice = policy.choose(Tick(step / 10), &view, &request).unwrap();
        counts[choice.place.index()] += 1;
        open.add(&mut nodes, choice.place);
    }
    counts.map(|count| (count + 300) / 600)
}

#[test]
fn nodes_get_requests_by_their_weights() {
    let check = |kind: PolicyKind, outstanding: usize| {
        let weights = [1, 2, 3, 4];
        let got = shares(kind, weights, outstanding);
        for (got, expected) in got.into_iter().zip([10, 20, 30, 40_u64]) {
            assert!(got.abs_diff(expected) <= 1, "{kind}: {got} {expected}");
        }
    };
    check(PolicyKind::InTurn, 0);
    check(PolicyKind::Least, 100);
    check(PolicyKind::Hash, 0);
    check(PolicyKind::BoundedHash, 200);
    check(PolicyKind::ReplicatedHash, 200);
    check(PolicyKind::Lard, 1000);
    check(PolicyKind::LardR, 1000);
    check(PolicyKind::ExtendedLard, 1000);
}

/// The better of two evens out: nodes of large weight get a little less, as they are drawn twice.
#[test]
fn two_choices_give_nodes_about_their_weights() {
    let got = shares(PolicyKind::TwoChoices, [1, 2, 3, 4], 400);
    for (got, expected) in got.into_iter().zip([10, 20, 30, 40_u64]) {
        assert!(got.abs_diff(expected) <= 2, "{got} {expected}");
    }
}

#[test]
fn node_is_never_above_its_bound_or_the_floor() {
    for kind in [PolicyKind::BoundedHash, PolicyKind::ReplicatedHash] {
        for seed in 0..200 {
            let mut random = Random(seed);
            let mut rules = PolicyRules::default();
            // above and below what chance has at a node
            rules.limits.high = u32::try_from(random.below(40)).unwrap();
            let mut policy = kind.build(&rules, seed);
            let mut nodes = nodes(1 + random.below(20));
            for node in &mut nodes {
                node.weight = random.weight(5);
            }
            let mut open = Outstanding(VecDeque::new(), random.below(200));
            let zipf = Zipf::new(20);
            for step in 0..400 {
                let view = ClusterView::new(&nodes);
                let request = RoutedRequest::new(zipf.draw(&mut random), random.next());
                let choice = policy.choose(Tick(step), &view, &request).unwrap();
                let (outstanding, weights) = nodes.iter().fold((1, 0), |(load, weight), node| {
                    (
                        load + u64::from(node.load.parts()) / 1024,
                        weight + u64::from(node.weight.get()),
                    )
                });
                let node = &nodes[choice.place.index()];
                let after = u64::from(node.load.parts()) / 1024 + 1;
                let weight = u64::from(node.weight.get());
                let bound = outstanding * u64::from(rules.load_factor.pct());
                let bound = (bound * weight).div_ceil(100 * weights);
                let floors = u64::from(rules.limits.high) * u64::try_from(nodes.len()).unwrap();
                let floor = (floors * weight).div_ceil(weights);
                assert!(
                    after <= bound.max(floor),
                    "{kind} seed {seed}: {after} of {bound}, {floor}"
                );
                open.add(&mut nodes, choice.place);
            }
        }
    }
}

/// A third of all requests are for one target, the others for targets of equal rates: how many
/// per cent of them leave the first node of their order, and what per cent of the mean the busiest
/// node gets.
fn with_hot_target(kind: PolicyKind) -> (u64, u64) {
    let mut policy = kind.build(&PolicyRules::default(), 3);
    let mut first = PolicyKind::Hash.build(&PolicyRules::default(), 3);
    let mut nodes = nodes(8);
    let mut random = Random(9);
    // more at each node than one has in any case
    let mut open = Outstanding(VecDeque::new(), 8 * 125);
    let (mut others, mut away, mut counts) = (0_u64, 0, [0_u64; 8]);
    for step in 0..40_000 {
        let is_hot = random.below(3) == 0;
        let target = if is_hot { 7 } else { random.next() % 4000 };
        let target = Random(target).next();
        let request = RoutedRequest::new(TargetKey(target), random.next());
        let view = ClusterView::new(&nodes);
        let now = Tick(step / 4);
        let choice = policy.choose(now, &view, &request).unwrap();
        // one second to notice the hot target
        if step >= 4000 {
            counts[choice.place.index()] += 1;
            if !is_hot {
                others += 1;
                let home = first.choose(now, &view, &request).unwrap().place;
                away += u64::from(home != choice.place);
            }
        }
        open.add(&mut nodes, choice.place);
    }
    let mean: u64 = counts.iter().sum::<u64>() / 8;
    (
        away * 100 / others,
        counts.into_iter().max().unwrap() * 100 / mean,
    )
}

#[test]
fn replicated_hot_target_leaves_other_targets_their_nodes() {
    let (away, busiest) = with_hot_target(PolicyKind::ReplicatedHash);
    assert!(away <= 2 && busiest <= 125, "{away} {busiest}");
    let (away, busiest) = with_hot_target(PolicyKind::BoundedHash);
    assert!(away >= 10 && busiest <= 126, "{away} {busiest}");
    let (away, busiest) = with_hot_target(PolicyKind::Hash);
    assert!(away == 0 && busiest > 300, "{away} {busiest}");
}
