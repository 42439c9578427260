use super::event::Event;
use super::run::simulate_events;
use super::sample::{access, connection, target};
use super::*;
use crate::cluster::peers::{ClusterRequest, ClusterSetting, ClusterSimulation, ClusterTotals};
use crate::hashing::mix;
use crate::hits::Setting;
use crate::keys::{KeyRule, Keys};
use std::num::NonZero;
use weir_policy::Tick;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{Balancing, CacheDigest, Node, NodeKey, Place};
use weir_trace::generator::Recipe;
use weir_trace::{Row, TraceError};

const REQUESTS: u64 = 60_000;

type Figure = fn(&ScaleOutcome) -> Estimated;

fn setting(nodes: &[u16], one_in: u32) -> ScaleSetting {
    ScaleSetting {
        nodes: nodes.iter().map(|it| NonZero::new(*it).unwrap()).collect(),
        cache_bytes: 64 << 20,
        eviction: EvictionKind::S3Fifo,
        policy: PolicyKind::ReplicatedHash,
        requests: NonZero::new(REQUESTS).unwrap(),
        one_in: NonZero::new(one_in).unwrap(),
        rate_per_s: NonZero::new(1000).unwrap(),
        seed: 1,
    }
}

fn rows(requests: u64) -> impl Iterator<Item = Row> {
    let recipe = Recipe::built_in("web-2026").unwrap();
    recipe.rows(requests, 1)
}

fn run(setting: &ScaleSetting, threads: usize) -> Vec<ScaleOutcome> {
    let threads = NonZero::new(threads).unwrap();
    simulate(setting, &|| open(setting), threads, &|| false).unwrap()
}

fn open(setting: &ScaleSetting) -> Result<Rows<'static>, TraceError> {
    Ok(Box::new(rows(setting.requests.get()).map(Ok)))
}

/// The same requests to the same nodes, with the simulation that has a clock and no sample.
fn peers(setting: &ScaleSetting, nodes: u16) -> ClusterTotals {
    let of = |number: u16| Node::new(NodeKey(mix(u64::from(number))));
    let mut cluster = ClusterSimulation::new(
        &(1..=nodes).map(of).collect::<Vec<_>>(),
        &ClusterSetting {
            cache: Setting {
                capacity_bytes: setting.cache_bytes,
                eviction: setting.eviction,
                admission: Rule::Always,
            },
            balancing: Balancing {
                policy: setting.policy,
                ..Balancing::default()
            },
            seed: setting.seed,
        },
    );
    let mut keys = Keys::new(KeyRule::FirstSize);
    for (index, row) in (0..).zip(rows(REQUESTS)) {
        let Some(access) = access(&row) else { continue };
        let access = keys.number(access).unwrap();
        let hash = u128::from(connection(&row, index) >> 32);
        cluster.ask(ClusterRequest {
            at: Tick(index * 1000 / (u64::from(setting.rate_per_s.get()) * u64::from(nodes))),
            node: Place(u16::try_from((hash * u128::from(nodes)) >> 32).unwrap()),
            target: target(row.target, setting.seed),
            access,
        });
    }
    cluster.totals()
}

#[test]
fn whole_networks_count_what_the_simulation_of_peers_counts() {
    for policy in [
        PolicyKind::Hash,
        PolicyKind::BoundedHash,
        PolicyKind::ReplicatedHash,
    ] {
        let setting = ScaleSetting {
            policy,
            ..setting(&[1, 3, 8], 1)
        };
        for outcome in run(&setting, 1) {
            let totals = peers(&setting, outcome.nodes);
            assert_eq!(outcome.requests, totals.requests);
            let expected = totals.origin_requests() as f64;
            assert!(
                (outcome.origin_requests.value - expected).abs() < 0.5,
                "{policy}"
            );
            assert!(outcome.origin_requests.error.abs() < 1e-9);
            let own = outcome.own_hit_ratio.value * totals.requests as f64;
            assert!((own - totals.hits_here as f64).abs() < 0.5, "{policy}");
        }
    }
}

#[test]
fn sample_of_the_targets_says_what_all_of_them_say_within_its_error() {
    let nodes = [1, 4, 16];
    let whole = run(&setting(&nodes, 1), 2);
    let sampled = run(&setting(&nodes, 8), 2);
    for (whole, sampled) in whole.iter().zip(&sampled) {
        assert_eq!(
            (whole.requests, whole.bytes),
            (sampled.requests, sampled.bytes)
        );
        // bytes hang on few large responses, and a sample says little of them
        let figures: [(&str, f64, Figure); 4] = [
            ("hit ratio", 0.1, |it| it.hit_ratio),
            ("own hit ratio", 0.2, |it| it.own_hit_ratio),
            ("origin bytes", 1.0, |it| it.origin_bytes),
            ("lateral requests", 0.2, |it| it.lateral_requests),
        ];
        for (name, error_max, figure) in figures {
            let (truth, said) = (figure(whole), figure(sampled));
            let distance = (truth.value - said.value).abs();
            assert!(
                distance <= said.error + 1e-9,
                "{name} of {} nodes: {truth:?}, sampled {said:?}",
                whole.nodes
            );
            let most = error_max * truth.value + 1e-9;
            assert!(said.error <= most, "{name}: {truth:?}, sampled {said:?}");
        }
        // an interval holds the truth 19 times of 20: how often it does, the next test counts
        let (truth, said) = (whole.busiest.value, sampled.busiest);
        assert!(
            (truth - said.value).abs() <= 2.0 * said.error,
            "{truth}, sampled {said:?}"
        );
        assert!(said.value <= 1.25 * truth, "{truth}, sampled {said:?}");
    }
}

#[test]
fn busiest_node_of_a_sample_is_that_of_all_targets_within_its_error() {
    let of = |seed, one_in| {
        let setting = ScaleSetting {
            seed,
            requests: NonZero::new(REQUESTS / 3).unwrap(),
            ..setting(&[4, 64], one_in)
        };
        let threads = NonZero::new(2).unwrap();
        let open = || open(&setting);
        simulate_events(&setting, &[Event::None], &open, threads, &|| false).unwrap()
    };
    // how far an estimate is above the truth, in parts of its error
    let mut beyond = Vec::new();
    for seed in 1..=20 {
        for (whole, sampled) in of(seed, 1).iter().zip(of(seed, 8)) {
            let (truth, said) = (whole.busiest, sampled.busiest);
            assert!(truth.error.abs() < 1e-9, "{truth:?}");
            assert!(
                said.error < 0.05 * truth.value,
                "{truth:?}, sampled {said:?}"
            );
            beyond.push((said.value - truth.value) / said.error);
        }
    }
    let within = beyond.iter().filter(|it| it.abs() <= 1.0).count();
    assert!(within * 10 >= beyond.len() * 9, "{within}: {beyond:?}");
    let mean = beyond.iter().sum::<f64>() / beyond.len() as f64;
    assert!(mean.abs() < 0.3, "{mean}: {beyond:?}");
}

#[test]
fn outcome_depends_on_the_seed_and_not_on_the_threads() {
    let setting = setting(&[1, 4], 4);
    let alone = run(&setting, 1);
    assert_eq!(alone, run(&setting, 5));
    let other = ScaleSetting { seed: 2, ..setting };
    assert_ne!(alone, run(&other, 1));
}

#[test]
fn node_that_joins_or_dies_costs_at_most_what_it_kept() {
    for outcome in run(&setting(&[1, 4, 16], 1), 2) {
        if outcome.nodes == 1 {
            assert_eq!((outcome.join, outcome.death), (None, None));
            continue;
        }
        let (join, death) = (outcome.join.unwrap(), outcome.death.unwrap());
        let kept = outcome.residents as f64;
        assert!(
            death.value > 0.0 && death.value <= 1.5 * kept,
            "{outcome:?}"
        );
        // it asks the nodes that kept its targets before
        assert!(join.value < death.value, "{outcome:?}");
    }
}

#[test]
fn flash_crowd_asks_the_origin_once_and_is_everywhere_within_a_second() {
    for outcome in run(&setting(&[4, 64], 8), 2) {
        let crowd = outcome.flash_crowd.unwrap();
        assert_eq!(crowd.origin_requests, 1);
        assert!(
            crowd.everywhere_ms.is_some_and(|ms| ms < 300.0),
            "{crowd:?}"
        );
        assert!(crowd.busiest_later < 1.5, "{crowd:?}");
    }
    let hashed = ScaleSetting {
        policy: PolicyKind::Hash,
        ..setting(&[16], 8)
    };
    let crowd = run(&hashed, 1)[0].flash_crowd.unwrap();
    // without copies one node serves all of it
    assert_eq!(crowd.everywhere_ms, None);
    assert!(crowd.busiest_later > 3.0, "{crowd:?}");
}

#[test]
fn network_that_cannot_be_is_refused() {
    let check = |change: fn(&mut ScaleSetting), expected: &str| {
        let mut changed = setting(&[4], 16);
        change(&mut changed);
        let error = changed.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        |it| it.nodes = vec![NonZero::new(1025).unwrap()],
        "1025 nodes",
    );
    check(|it| it.nodes = vec![], "0 nodes");
    check(|it| it.policy = PolicyKind::Lard, "`lard`");
    check(|it| it.eviction = EvictionKind::Gds, "`gds`");
    check(
        |it| it.rate_per_s = NonZero::new(2049).unwrap(),
        "2049 requests",
    );
    check(|it| it.cache_bytes = 15, "15 bytes");
    assert_eq!(setting(&[1, 1024], 16).check(), Ok(()));
    let mut whole = setting(&[4], 1);
    whole.rate_per_s = NonZero::new(2049).unwrap();
    whole.eviction = EvictionKind::Gds;
    assert_eq!(whole.check(), Ok(()));
}

#[test]
fn run_that_is_stopped_has_no_outcome() {
    let setting = setting(&[2], 16);
    let open = || open(&setting);
    let stopped = simulate(&setting, &open, NonZero::<usize>::MIN, &|| true);
    assert!(matches!(stopped, Err(ScaleError::Stopped)));
}

#[test]
fn messages_grow_with_the_square_of_the_nodes_and_end_at_one() {
    let alone = Messages::of(1, 1000, 10.0);
    assert_eq!(
        (alone.purge_messages, alone.digests_held_bytes),
        (0, Some(0))
    );
    assert!(alone.digest_bytes_per_s.abs() < 1e-9 && alone.purge_ms(10.0, 1.0).abs() < 1e-9);
    let (few, many) = (
        Messages::of(11, 1_000_000, 10.0),
        Messages::of(101, 1_000_000, 10.0),
    );
    let digest = CacheDigest::with_capacity(1_000_000).bytes() as u64;
    assert_eq!(few.digest_bytes, Some(digest));
    assert!((1_250_000..1_250_100).contains(&digest));
    assert_eq!(few.digests_held_bytes, Some(10 * digest));
    // of each node ten times as much, of all a hundred times
    assert!((many.digest_bytes_per_s / few.digest_bytes_per_s - 10.0).abs() < 1e-9);
    assert!((many.state_messages_per_s - 40.0).abs() < 1e-9);
    assert!((many.purge_ms(30.0, 60.0) - 63.0).abs() < 1e-9);
    // more than a digest may say
    assert_eq!(Messages::of(2, u64::MAX, 0.0).digest_bytes, None);
}
