//! Random clusters in which everything happens at once: joins, drains, deaths, flaps, partitions in
//! one direction, silent nodes, stale lists of members, lost reports, front ends, and purges; in
//! half of them with a log of purges, which is cut off, emptied, or shortened.
//!
//! Every node steps the real [`Members`](weir_policy::route::Members); around it the model has what
//! the live proxy has in sockets and stores: requests that wait for each other, messages under way,
//! copies with a version. What must hold of every cluster:
//!
//! * A request at a live node is answered while the node or the origin can answer.
//! * There is no second lateral hop but the one for what is stored alone, no loop, and no request
//!   that waits for itself.
//! * No purge comes back: after it was answered that all members have applied it, no request gets a
//!   version from before. With a log, that holds for nodes that were away meanwhile, too.
//! * When all is quiet the origin is asked once for a target.
//! * Tables of a node have the size that they were made with.
//!
//! Purges are as the cluster has them that is configured: messages from the node that purges to all
//! members. While the members of nodes differ, or one does not answer, no promise is made of them.
//!
//! `WEIR_CLUSTER_SEEDS` is the number of clusters, `WEIR_CLUSTER_SEED` the first: `make
//! cluster-model`.

#![expect(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "a model that contradicts itself fails its test"
)]

#[path = "cluster_model/log.rs"]
mod log;
mod model_tally;
#[path = "cluster_model/node.rs"]
mod node;
#[path = "cluster_model/purge.rs"]
mod purge;
#[path = "cluster_model/quiet.rs"]
mod quiet;
#[expect(dead_code, reason = "it has loads and targets, too")]
#[path = "routing/random.rs"]
mod random;
#[path = "cluster_model/request.rs"]
mod request;
#[path = "cluster_model/step.rs"]
mod step;
#[path = "cluster_model/world.rs"]
mod world;

use model_tally::Tally;
use std::thread::{available_parallelism, scope};
use world::{EVENTS, Rules, Scale, World};

/// 20 s on two cores without optimisation.
const SEEDS: u64 = 100_000;

#[test]
fn cluster_keeps_its_promises_whatever_happens() {
    let number = |name: &str| {
        let value = std::env::var(name).ok();
        value.map(|value| value.parse::<u64>().unwrap())
    };
    let first = number("WEIR_CLUSTER_SEED").unwrap_or(0);
    let seeds = number("WEIR_CLUSTER_SEEDS").unwrap_or(SEEDS);
    let threads = available_parallelism().map_or(1, |threads| threads.get() as u64);
    let share = |thread: u64| {
        let mut tally = Tally::new(EVENTS);
        let mut seeds = (first + thread..first + seeds).step_by(threads as usize);
        let broken = seeds.find_map(|seed| {
            let scale = match seed % 4 {
                0 | 1 => Scale::Any,
                2 => Scale::Small,
                _ => Scale::Log,
            };
            let played = World::new(seed, scale, Rules::ALL).run();
            played
                .map(|played| tally.add(&played))
                .err()
                .map(|broken| (seed, broken))
        });
        (tally, broken)
    };
    let mut total = Tally::new(EVENTS);
    scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || share(thread)))
            .collect();
        for played in shares {
            let (tally, broken) = played.join().unwrap();
            if let Some((seed, broken)) = broken {
                panic!("make cluster-model SEEDS=1 SEED={seed}: {broken}");
            }
            total.add(&tally);
        }
    });
    // a model in which something never happens has not tested it
    if seeds >= 10_000 {
        assert_eq!(total.never_happened(), Vec::<&str>::new(), "{total:?}");
    }
}

/// The model sees what it is to see: without any one of these rules a promise is broken.
#[test]
fn each_rule_is_needed_for_a_promise() {
    let check = |expected: &str, scale: Scale, change: fn(&mut Rules)| {
        let mut rules = Rules::ALL;
        change(&mut rules);
        let mut seeds = 0..4 * SEEDS;
        let broken = seeds.find_map(|seed| World::new(seed, scale, rules).run().err());
        let broken = broken.unwrap_or_default();
        assert!(broken.contains(expected), "{rules:?}: {broken}");
    };
    check("waits for itself", Scale::Small, |rules| {
        rules.members_wait_for_members = true;
    });
    let of_messages: [fn(&mut Rules); 4] = [
        |rules| rules.holds = false,
        |rules| rules.holds_at_start = false,
        |rules| rules.validates_after_absence = false,
        |rules| rules.forgets_fetches = false,
    ];
    for change in of_messages {
        check("a purge came back", Scale::Small, change);
    }
    let of_log: [fn(&mut Rules); 6] = [
        |rules| rules.validates_without_touch = false,
        |rules| rules.loses_touch_before_its_lease = false,
        |rules| rules.knows_what_was_dropped = false,
        |rules| rules.knows_another_log = false,
        |rules| rules.applies_what_is_there = false,
        |rules| rules.remembers_what_was_missed = false,
    ];
    for change in of_log {
        check("a purge came back", Scale::Log, change);
    }
}
