//! What holds of every policy, among it that a preview says what is chosen next.

use super::random::{Random, Zipf, nodes};
use std::num::NonZeroU32;
use weir_policy::Tick;
use weir_policy::route::policy::{MappedMax, Policy, PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{
    ClusterView, HoldsIt, Node, NodeKey, NodeState, Place, TargetKey, Weight,
};

/// Random clusters, requests and corrections; `check` is called with each.
fn run(kind: PolicyKind, seed: u64, steps: u64) {
    let mut random = Random(seed);
    let rules = PolicyRules {
        mapped_max: MappedMax::new(16),
        ..PolicyRules::default()
    };
    let mut policy = kind.build(&rules, seed);
    let table_bytes = policy.table_bytes();
    let mut nodes = nodes(1 + random.below(12));
    let mut holds = vec![HoldsIt::Unknown; nodes.len()];
    let zipf = Zipf::new(100);
    for step in 0..steps {
        let changed = random.below(nodes.len());
        let node = &mut nodes[changed];
        node.state = NodeState::ALL[random.below(4)];
        node.load = random.load(200);
        node.weight = random.weight(4);
        node.miss_pressure = u32::try_from(random.below(10)).unwrap();
        let us = u32::try_from(random.below(1000)).unwrap();
        node.response_time_us = NonZeroU32::new(us);
        holds[changed] = HoldsIt::ALL[random.below(3)];
        let target = zipf.draw(&mut random);
        let other = Place(u16::try_from(random.below(nodes.len())).unwrap());
        let request = RoutedRequest {
            handling: (random.below(2) == 0).then_some(other),
            ..RoutedRequest::new(target, random.next())
        };
        let view = ClusterView::new(&nodes).with_holds(&holds);
        let preview = policy.preview(Tick(step * 100), &view, &request);
        let chosen = policy.choose(Tick(step * 100), &view, &request);
        assert_eq!(preview, chosen, "{kind} seed {seed} step {step}");
        let place = chosen.map(|choice| choice.place);
        let takes = nodes.iter().any(|node| node.takes_requests());
        assert_eq!(place.is_some(), takes, "{kind} seed {seed} step {step}");
        if let Some(place) = place {
            let state = nodes[place.index()].state;
            assert!(
                matches!(state, NodeState::In | NodeState::Joining),
                "{kind} seed {seed} step {step}: {}",
                state.as_str()
            );
        }
        match random.below(20) {
            0 => policy.forget(other),
            1 => policy.correct(target, other, true),
            2 => policy.correct(target, other, false),
            3 => {
                let last = nodes.len() - 1;
                let places =
                    (0..nodes.len()).map(|index| Place(u16::try_from(last - index).unwrap()));
                let places = places.map(|place| (place != other).then_some(place));
                policy.move_nodes(&places.collect::<Vec<_>>());
                nodes.reverse();
                holds.reverse();
            }
            _ => {}
        }
        assert_eq!(policy.table_bytes(), table_bytes, "{kind} seed {seed}");
    }
}

#[test]
fn node_that_is_draining_or_gone_gets_no_request_and_any_other_can() {
    for kind in PolicyKind::ALL {
        for seed in 0..100 {
            run(kind, seed, 200);
        }
    }
}

#[test]
fn mapped_target_stays_with_its_node_when_the_nodes_have_other_places() {
    for kind in [
        PolicyKind::Lard,
        PolicyKind::LardR,
        PolicyKind::ExtendedLard,
    ] {
        let mut random = Random(7);
        let mut policy = kind.build(&PolicyRules::default(), 1);
        let before = nodes(5);
        let mut choose = |policy: &mut dyn Policy, nodes: &[Node], target| {
            let request = RoutedRequest::new(TargetKey(target), random.next());
            let chosen = policy.choose(Tick(0), &ClusterView::new(nodes), &request);
            nodes[chosen.unwrap().place.index()].key
        };
        let targets = (0..200_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let targets: Vec<u64> = targets.collect();
        let kept: Vec<NodeKey> = targets
            .iter()
            .map(|target| choose(&mut *policy, &before, *target))
            .collect();
        // node 1 leaves, the others turn round, and a node of much weight comes first
        let heavy = Node {
            weight: Weight::new(1000).unwrap(),
            ..Node::new(NodeKey(99))
        };
        let after = [heavy, before[4], before[3], before[2], before[0]];
        policy.move_nodes(&[Some(4), None, Some(3), Some(2), Some(1)].map(|to| to.map(Place)));
        let mut moved = 0;
        for (target, before_key) in targets.iter().zip(&kept) {
            let key = choose(&mut *policy, &after, *target);
            if *before_key == before[1].key {
                moved += 1;
                assert_ne!(key, before[1].key);
            } else {
                assert_eq!(key, *before_key, "{kind}: {target}");
            }
        }
        assert!(moved > 0);
    }
}

#[test]
fn table_is_as_large_as_it_was_made_and_no_larger() {
    let bytes = |kind: PolicyKind, targets| {
        let rules = PolicyRules {
            mapped_max: MappedMax::new(targets),
            ..PolicyRules::default()
        };
        kind.build(&rules, 1).table_bytes() / targets as usize
    };
    for targets in [1 << 10, 40_000, 1 << 16] {
        assert!((28..=32).contains(&bytes(PolicyKind::Lard, targets)));
        assert!((60..=64).contains(&bytes(PolicyKind::LardR, targets)));
        assert!((44..=48).contains(&bytes(PolicyKind::ExtendedLard, targets)));
    }
    let hot = PolicyKind::ReplicatedHash.build(&PolicyRules::default(), 1);
    assert_eq!(hot.table_bytes(), 16 * 1024);
    for kind in [
        PolicyKind::InTurn,
        PolicyKind::Hash,
        PolicyKind::BoundedHash,
    ] {
        assert_eq!(kind.build(&PolicyRules::default(), 1).table_bytes(), 0);
    }
}

#[test]
fn chosen_node_costs_the_least_where_costs_decide() {
    for kind in [PolicyKind::Least, PolicyKind::Hash, PolicyKind::BoundedHash] {
        for seed in 0..200 {
            let mut random = Random(seed);
            let mut policy = kind.build(&PolicyRules::default(), 1);
            let mut nodes = nodes(1 + random.below(12));
            for node in &mut nodes {
                node.state = NodeState::ALL[random.below(2)];
                node.load = random.load(200);
            }
            let view = ClusterView::new(&nodes);
            let request = RoutedRequest::new(Zipf::new(50).draw(&mut random), random.next());
            let chosen = policy.choose(Tick(0), &view, &request).unwrap();
            for place in (0..nodes.len()).map(|index| Place(u16::try_from(index).unwrap())) {
                let costs = policy.costs(&view, &request, place);
                assert!(chosen.costs.total() <= costs.total(), "{kind} seed {seed}");
            }
        }
    }
}
