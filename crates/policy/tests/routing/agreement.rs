//! What front ends agree on that never talk, and what stays when a node comes or leaves.

use super::random::{Random, Zipf, nodes};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use weir_policy::route::policy::{LoadLimits, Policy, PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{
    AskedBy, Balancing, ClusterView, LateralRequest, Load, Members, Node, NodeState, Place,
    TargetKey,
};
use weir_policy::{Handling, Tick};
use weir_semantics::Fwd;

const NOW: Tick = Tick(0);

fn place(policy: &mut dyn Policy, nodes: &[Node], target: TargetKey) -> Place {
    let request = RoutedRequest::new(target, 0);
    let view = ClusterView::new(nodes);
    policy.choose(NOW, &view, &request).unwrap().place
}

/// Of 20 000 targets, in parts of 10 000, how many have another node in `after`.
fn moved(kind: PolicyKind, before: &[Node], after: &[Node]) -> usize {
    let choose = |nodes: &[Node], target| {
        let mut policy = kind.build(&PolicyRules::default(), 1);
        place(&mut *policy, nodes, target)
    };
    let targets = (0..20_000).map(|number| TargetKey(Random(number).next()));
    let moved = targets.filter(|target| choose(before, *target) != choose(after, *target));
    moved.count() / 2
}

#[test]
fn node_more_or_less_moves_its_share_of_targets_and_no_other() {
    for kind in [
        PolicyKind::Hash,
        PolicyKind::BoundedHash,
        PolicyKind::ReplicatedHash,
    ] {
        for count in [1, 2, 3, 8, 16, 64] {
            let after = nodes(count + 1);
            let moves = moved(kind, &after[..count], &after);
            let share = 10_000 / (count + 1);
            assert!(moves <= share + 200, "{kind} {count}: {moves}");
            assert!(moves + 200 >= share, "{kind} {count}: {moves}");
            let mut gone = after.clone();
            gone[0].state = NodeState::Gone;
            let moves = moved(kind, &after, &gone);
            assert!(moves <= share + 200, "{kind} {count}: {moves}");
        }
    }
}

#[test]
fn order_of_nodes_in_the_view_does_not_matter() {
    let forwards = nodes(16);
    let backwards: Vec<Node> = forwards.iter().rev().copied().collect();
    for kind in [
        PolicyKind::Hash,
        PolicyKind::BoundedHash,
        PolicyKind::ReplicatedHash,
        PolicyKind::Lard,
        PolicyKind::LardR,
        PolicyKind::ExtendedLard,
    ] {
        let mut policies = [1, 2].map(|secret| kind.build(&PolicyRules::default(), secret));
        for number in 0..1000 {
            let target = TargetKey(Random(number).next());
            let one = place(&mut *policies[0], &forwards, target);
            let other = place(&mut *policies[1], &backwards, target);
            assert_eq!(
                forwards[one.index()].key,
                backwards[other.index()].key,
                "{kind}"
            );
        }
    }
}

/// Two front ends send requests for the same targets to eight nodes, each seeing its own
/// outstanding requests alone. Per 1000, how many have the same node at both?
fn alike(kind: PolicyKind, rules: &PolicyRules, outstanding: usize) -> usize {
    struct FrontEnd {
        policy: Box<dyn Policy>,
        nodes: Vec<Node>,
        open: VecDeque<Place>,
    }
    let mut random = Random(11);
    let zipf = Zipf::new(5000);
    let mut front_ends = [1, 2].map(|secret| FrontEnd {
        policy: kind.build(rules, secret),
        nodes: nodes(8),
        open: VecDeque::new(),
    });
    let mut alike = 0;
    for _ in 0..50_000 {
        let target = zipf.draw(&mut random);
        let [one, other] = front_ends.each_mut().map(|front_end| {
            let chosen = place(&mut *front_end.policy, &front_end.nodes, target);
            let nodes = &mut front_end.nodes;
            let load = &mut nodes[chosen.index()].load;
            *load = load.plus(Load::requests(1));
            front_end.open.push_back(chosen);
            // requests end in an order of their own at each front end
            while front_end.open.len() > outstanding {
                let at = random.below(front_end.open.len());
                let ended = front_end.open.swap_remove_back(at).unwrap();
                let load = &mut nodes[ended.index()].load;
                *load = load.minus(Load::requests(1));
            }
            chosen
        });
        alike += usize::from(one == other);
    }
    alike / 50
}

#[test]
fn front_ends_at_half_load_that_never_talk_send_99_percent_alike() {
    let check = |kind: PolicyKind, outstanding: usize, at_least: usize| {
        let alike = alike(kind, &PolicyRules::default(), outstanding);
        assert!(alike >= at_least, "{kind}: {alike} of 1000");
    };
    check(PolicyKind::Hash, 1000, 1000);
    // half of what the policies call overloaded: 80 for `extended-lard`, 65 for the others
    check(PolicyKind::BoundedHash, 8 * 65 / 2, 990);
    check(PolicyKind::ReplicatedHash, 8 * 65 / 2, 990);
    check(PolicyKind::Lard, 8 * 65 / 2, 990);
    check(PolicyKind::LardR, 8 * 65 / 2, 990);
    check(PolicyKind::ExtendedLard, 8 * 80 / 2, 990);
}

/// Above the load from which a node counts as overloaded, bounds are of the mean, and chance has
/// some node above it. `docs/cluster.md` has these figures.
#[test]
fn front_ends_with_more_load_than_what_is_overloaded_send_96_to_98_percent_alike() {
    for kind in [PolicyKind::BoundedHash, PolicyKind::ReplicatedHash] {
        let check = |rules: &PolicyRules, each: usize, expected: RangeInclusive<usize>| {
            let alike = alike(kind, rules, 8 * each);
            assert!(expected.contains(&alike), "{kind} {each}: {alike} of 1000");
        };
        let rules = PolicyRules::default();
        check(&rules, 65, 955..=970);
        check(&rules, 125, 970..=985);
        check(&rules, 500, 980..=990);
        // bounded by the mean at any load
        let rules = PolicyRules {
            limits: LoadLimits { low: 1, high: 2 },
            ..rules
        };
        check(&rules, 15, 840..=860);
        check(&rules, 32, 920..=935);
    }
}

/// Two nodes of a cluster of eight, each with its own requests at the others alone. Per 1000, for
/// how many targets both name the same owner.
fn alike_in_cluster(policy: PolicyKind, outstanding: usize) -> usize {
    alike_of(policy, outstanding, nodes(8), [Place(0), Place(1)])
}

/// The same of two of `nodes`.
fn alike_of(policy: PolicyKind, outstanding: usize, nodes: Vec<Node>, of: [Place; 2]) -> usize {
    struct Entry {
        members: Members,
        requests: Vec<u32>,
        open: VecDeque<Place>,
    }
    let balancing = Balancing {
        policy,
        ..Balancing::default()
    };
    let mut random = Random(11);
    let zipf = Zipf::new(5000);
    let mut entries = of.map(|own| Entry {
        members: Members::new(nodes.clone(), own, &balancing, 1 + u64::from(own.0)),
        requests: vec![0; nodes.len()],
        open: VecDeque::new(),
    });
    let mut alike = 0;
    for step in 0..50_000 {
        let target = zipf.draw(&mut random);
        let [one, other] = entries.each_mut().map(|entry| {
            let handling = Handling::Forward(Fwd::UriMiss);
            let request = LateralRequest::of(handling, AskedBy::Client, true, &[]).unwrap();
            let requests = |place: Place| entry.requests[place.index()];
            let now = Tick(step / 10);
            let source = entry.members.source(now, target, request, requests);
            let owner = source.node.map_or(entry.members.own(), |node| node.place);
            entry.requests[owner.index()] += 1;
            entry.open.push_back(owner);
            while entry.open.len() > outstanding {
                let at = random.below(entry.open.len());
                let ended = entry.open.swap_remove_back(at).unwrap();
                entry.requests[ended.index()] -= 1;
            }
            owner
        });
        alike += usize::from(one == other);
    }
    alike / 50
}

#[test]
fn nodes_at_half_load_that_never_talk_name_the_same_owner_in_99_percent() {
    let check = |policy: PolicyKind, outstanding: usize| {
        let alike = alike_in_cluster(policy, outstanding);
        assert!(alike >= 990, "{policy}: {alike} of 1000");
    };
    for policy in [
        PolicyKind::Hash,
        PolicyKind::BoundedHash,
        PolicyKind::ReplicatedHash,
    ] {
        // at any load: copies move, owners do not
        check(policy, 8 * 65 / 2);
        check(policy, 8 * 65);
    }
    check(PolicyKind::Lard, 8 * 65 / 2);
    check(PolicyKind::LardR, 8 * 65 / 2);
    check(PolicyKind::ExtendedLard, 8 * 80 / 2);
}

/// Front ends of a cluster send a request to the very node that the policy chooses.
#[test]
fn front_ends_of_a_cluster_at_half_load_that_never_talk_send_99_percent_alike() {
    let check = |policy: PolicyKind, outstanding: usize| {
        let mut nodes = nodes(10);
        for front_end in &mut nodes[8..] {
            front_end.state = NodeState::FrontEnd;
        }
        let alike = alike_of(policy, outstanding, nodes, [Place(8), Place(9)]);
        assert!(alike >= 990, "{policy}: {alike} of 1000");
    };
    check(PolicyKind::Hash, 1000);
    check(PolicyKind::BoundedHash, 8 * 65 / 2);
    check(PolicyKind::ReplicatedHash, 8 * 65 / 2);
    check(PolicyKind::Lard, 8 * 65 / 2);
    check(PolicyKind::LardR, 8 * 65 / 2);
    check(PolicyKind::ExtendedLard, 8 * 80 / 2);
}
