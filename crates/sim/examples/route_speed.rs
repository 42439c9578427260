//! How long a choice among nodes takes.
//!
//! `cargo run --release -p weir-sim --example route_speed -- [--choices N]`
//!
//! Prints nanoseconds a choice for each policy, at 16 and 64 nodes, of weight 1 and of weights 1 to
//! 4: the best of five rounds. Targets follow a Zipf law of exponent 0.8; every choice changes the
//! load of one node.

#![expect(clippy::unwrap_used, reason = "numbers for a measurement are in range")]

#[path = "../../policy/tests/routing/random.rs"]
mod random;

use random::{Random, Zipf, nodes};
use std::hint::black_box;
use std::time::Instant;
use weir_policy::Tick;
use weir_policy::route::policy::{PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{ClusterView, Node, Place, TargetKey};

const ROUNDS: usize = 5;
const TARGETS: u32 = 31_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let choices = match arguments.next().as_deref() {
        None => 200_000,
        Some("--choices") => {
            let number = arguments.next().expect("a number behind --choices");
            number.parse().expect("a number behind --choices")
        }
        Some(other) => panic!("unknown argument `{other}`"),
    };
    let zipf = Zipf::new(TARGETS);
    let mut random = Random(1);
    let targets: Vec<TargetKey> = (0..choices).map(|_| zipf.draw(&mut random)).collect();
    println!("ns a choice      16 nodes  64 nodes  16 weighted  64 weighted");
    for kind in PolicyKind::ALL {
        let ns = |count, weight_max| ns_a_choice(kind, cluster(count, weight_max), &targets);
        let (few, many) = (ns(16, 1), ns(64, 1));
        let (few_weighted, many_weighted) = (ns(16, 4), ns(64, 4));
        println!("{kind:<16} {few:>8} {many:>9} {few_weighted:>12} {many_weighted:>12}");
    }
}

fn cluster(count: usize, weight_max: usize) -> Vec<Node> {
    let mut random = Random(2);
    let mut nodes = nodes(count);
    for node in &mut nodes {
        node.weight = random.weight(weight_max);
        node.load = random.load(20);
    }
    nodes
}

fn ns_a_choice(kind: PolicyKind, mut nodes: Vec<Node>, targets: &[TargetKey]) -> u128 {
    let mut policy = kind.build(&PolicyRules::default(), 3);
    let mut random = Random(4);
    let mut round = |policy: &mut dyn weir_policy::route::policy::Policy| {
        let start = Instant::now();
        for (step, target) in (0..).zip(targets) {
            let request = RoutedRequest {
                handling: (step % 4 > 0).then_some(Place(3)),
                ..RoutedRequest::new(*target, random.next())
            };
            let view = ClusterView::new(&nodes);
            let choice = policy.choose(Tick(step / 50), &view, &request);
            black_box(choice);
            let changed = random.below(nodes.len());
            nodes[changed].load = random.load(20);
        }
        start.elapsed().as_nanos() / targets.len() as u128
    };
    let rounds = (0..ROUNDS).map(|_| round(&mut *policy));
    rounds.min().expect("at least one round")
}
