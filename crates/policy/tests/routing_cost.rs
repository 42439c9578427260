//! A choice allocates nothing.

#![expect(
    clippy::unwrap_used,
    reason = "a cluster without a node fails its test"
)]

#[path = "routing_cost/allocator.rs"]
mod allocator;
#[path = "routing/random.rs"]
mod random;

use allocator::Counting;
use random::{Random, Zipf, nodes};
use weir_policy::route::policy::{PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{
    AskedBy, Balancing, ClusterView, LateralRequest, Members, NodeState, Place,
};
use weir_policy::{Handling, Tick};
use weir_semantics::Fwd;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn choice_allocates_nothing() {
    for kind in PolicyKind::ALL {
        let mut policy = kind.build(&PolicyRules::default(), 1);
        let mut nodes = nodes(64);
        let mut random = Random(3);
        for node in &mut nodes {
            node.load = random.load(100);
            node.weight = random.weight(3);
        }
        let zipf = Zipf::new(20);
        // what depends on the number of nodes is allocated for the first choice of so many
        policy
            .choose(
                Tick(0),
                &ClusterView::new(&nodes),
                &RoutedRequest::new(zipf.draw(&mut random), 1),
            )
            .unwrap();
        for step in 0..5000 {
            let changed = random.below(64);
            nodes[changed].load = random.load(100);
            nodes[changed].state = NodeState::ALL[random.below(4)];
            let request = RoutedRequest {
                handling: (step % 3 > 0).then_some(Place(5)),
                ..RoutedRequest::new(zipf.draw(&mut random), random.next())
            };
            let view = ClusterView::new(&nodes);
            let before = Counting::allocations();
            let choice = policy.choose(Tick(step), &view, &request);
            assert_eq!(Counting::allocations(), before, "{kind}");
            assert!(choice.is_some());
        }
    }
}

#[test]
fn choice_of_whom_a_node_asks_allocates_nothing() {
    for policy in PolicyKind::ALL {
        let balancing = Balancing {
            policy,
            ..Balancing::default()
        };
        let mut members = Members::new(nodes(64), Place(3), &balancing, 1);
        let mut random = Random(3);
        let zipf = Zipf::new(20);
        let mut source = |step: u64, failed: &[Place]| {
            let handling = Handling::Forward(Fwd::UriMiss);
            let request = LateralRequest::of(handling, AskedBy::Client, true, failed).unwrap();
            let target = zipf.draw(&mut random);
            let before = Counting::allocations();
            members.source(Tick(step), target, request, |place| u32::from(place.0));
            Counting::allocations() - before
        };
        // what depends on the number of nodes is allocated for the first choice of so many
        source(0, &[]);
        for step in 1..2000 {
            let failed: &[Place] = if step % 5 == 0 { &[Place(7)] } else { &[] };
            assert_eq!(source(step, failed), 0, "{policy}");
        }
    }
}
