use std::collections::{BTreeMap, BTreeSet};

use super::{closed, expect_share, scenario, squared};
use crate::stream::Share;
use crate::{Method, RequestType, Scenario, Target, Workload, WorkloadRequest};

fn asks(scenario: &Scenario, seed: u64) -> Vec<Vec<WorkloadRequest>> {
    let agents = closed(scenario, seed, Share::WHOLE);
    agents.into_iter().map(|(_, asks)| asks).collect()
}

fn wpb(clients: u32, requests: u32) -> Scenario {
    let clients = format!("workload.clients={clients}");
    let requests = format!("workload.requests_per_client={requests}");
    scenario("wpb", &[&clients, &requests])
}

/// How many requests ago each repeat was made last, for repeats whose client has issued `issued`
/// requests.
fn distances(asks: &[WorkloadRequest]) -> Vec<(usize, usize)> {
    let mut last = BTreeMap::<Target, usize>::new();
    let mut found = Vec::new();
    for (issued, ask) in asks.iter().enumerate() {
        if let Some(place) = last.insert(ask.target, issued) {
            found.push((issued, issued - place));
        }
    }
    found
}

#[test]
fn phase_1_never_repeats_a_target_of_any_client() {
    let all = asks(&wpb(48, 200), 1);
    assert_eq!(all.len(), 48);
    let first: Vec<&WorkloadRequest> = all.iter().flatten().filter(|ask| ask.phase == 0).collect();
    assert_eq!(first.len(), 48 * 200);
    let targets: BTreeSet<Target> = first.iter().map(|ask| ask.target).collect();
    assert_eq!(targets.len(), first.len());
}

#[test]
fn client_sends_n_requests_in_phase_1_then_n_in_phase_2() {
    for asks in asks(&wpb(8, 50), 2) {
        let phases: Vec<u8> = asks.iter().map(|ask| ask.phase).collect();
        assert_eq!(phases, [[0; 50], [1; 50]].concat());
    }
}

#[test]
fn wpb_1_0_request_is_a_plain_get() {
    for ask in asks(&wpb(8, 50), 2).iter().flatten() {
        let plain = WorkloadRequest {
            is_repeat: ask.is_repeat,
            ..WorkloadRequest::plain(ask.phase, ask.target)
        };
        assert_eq!(*ask, plain);
        assert_eq!((ask.method, ask.kind), (Method::Get, RequestType::Plain));
    }
}

#[test]
fn phase_2_repeats_the_share_of_the_inherent_hit_ratio() {
    for ratio in [0.0, 0.25, 0.5, 0.9, 1.0] {
        let mut scenario = wpb(96, 200);
        scenario
            .set(&format!("workload.inherent_hit_ratio={ratio}"))
            .expect("a ratio");
        let all = asks(&scenario, 3);
        let repeats: usize = all.iter().map(|asks| distances(asks).len()).sum();
        expect_share(&format!("ratio {ratio}"), repeats, 96 * 200, ratio);
    }
}

#[test]
fn infinite_cache_hits_a_quarter_of_the_default_run() {
    let all = asks(&wpb(96, 200), 4);
    let requests = all.iter().map(Vec::len).sum();
    let targets: BTreeSet<Target> = all.iter().flatten().map(|ask| ask.target).collect();
    expect_share("hit ratio", requests - targets.len(), requests, 0.25);
}

#[test]
fn client_repeats_only_its_own_targets() {
    let all = asks(&wpb(24, 200), 5);
    let mut owner = BTreeMap::new();
    for (client, ask) in all
        .iter()
        .enumerate()
        .flat_map(|(client, asks)| asks.iter().map(move |ask| (client, ask)))
    {
        assert_eq!(
            *owner.entry(ask.target).or_insert(client),
            client,
            "{ask:?}"
        );
    }
}

/// The law is that of the request chosen. A target that was asked for again since is found at the
/// later place, so what the requests show is steeper than the choice; with few repeats in the
/// history the two are the same.
#[test]
fn distance_of_repeats_falls_as_one_over_t() {
    const N: usize = 400;
    let mut scenario = wpb(1500, 400);
    scenario
        .set("workload.inherent_hit_ratio=0.02")
        .expect("a ratio");
    let mut counts = vec![0_u32; 2 * N + 1];
    let mut expected = vec![0.0; 2 * N + 1];
    for asks in asks(&scenario, 6) {
        for (issued, distance) in distances(&asks) {
            counts[distance] += 1;
            let whole: f64 = (1..=issued).map(|t| 1.0 / t as f64).sum();
            for (t, expected) in expected.iter_mut().enumerate().take(issued + 1).skip(1) {
                *expected += 1.0 / t as f64 / whole;
            }
        }
    }
    let octaves = || (0..8).map(|octave| (1 << octave)..(2 << octave));
    for octave in octaves() {
        let found: f64 = octave.clone().map(|t| f64::from(counts[t])).sum();
        let meant: f64 = octave.clone().map(|t| expected[t]).sum();
        assert!(
            (found - meant).abs() < 5.0 * meant.sqrt() + 0.02 * meant,
            "distances {octave:?}: {found}, meant {meant}"
        );
    }
    let points: Vec<(f64, f64)> = octaves()
        .map(|octave| {
            let width = octave.len() as f64;
            let mean: f64 = octave.clone().map(|t| f64::from(counts[t])).sum::<f64>() / width;
            // the distance at which 1/t has its mean over the octave
            let centre = width / octave.map(|t| 1.0 / t as f64).sum::<f64>();
            (libm::log(centre), libm::log(mean))
        })
        .collect();
    let slope = slope(&points);
    assert!((slope + 1.0).abs() < 0.05, "slope {slope} on log-log axes");
}

/// Of the line of least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let above: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let below: f64 = points.iter().map(|(x, _)| squared(x - mean_x)).sum();
    above / below
}

#[test]
fn servers_are_drawn_uniformly_and_independently_by_seed() {
    let scenario = scenario("wpb", &["workload.clients=96", "workload.servers=24"]);
    let servers = |seed| -> Vec<u32> {
        let all = asks(&scenario, seed);
        let first = all.iter().flatten().filter(|ask| ask.phase == 0);
        first.map(|ask| ask.target.server).collect()
    };
    let (one, other) = (servers(1), servers(2));
    for server in 0..24 {
        let found = one.iter().filter(|found| **found == server).count();
        expect_share(&format!("server {server}"), found, one.len(), 1.0 / 24.0);
    }
    let alike = one
        .iter()
        .zip(&other)
        .filter(|(one, other)| one == other)
        .count();
    expect_share("alike", alike, one.len(), 1.0 / 24.0);
}

#[test]
fn spatial_locality_is_the_chance_to_request_the_same_server_again() {
    let scenario = scenario(
        "wpb",
        &[
            "workload.clients=96",
            "workload.servers=24",
            "workload.spatial_locality=0.6",
        ],
    );
    let all = asks(&scenario, 7);
    let pairs: Vec<bool> = all
        .iter()
        .flat_map(|asks| asks.windows(2))
        .filter(|pair| pair[1].phase == 0)
        .map(|pair| pair[0].target.server == pair[1].target.server)
        .collect();
    let stays = pairs.iter().filter(|stays| **stays).count();
    // a client that aborts may draw the same server again
    expect_share("stays", stays, pairs.len(), 0.6 + 0.4 / 24.0);
}

#[test]
fn popularity_makes_repeats_follow_the_zipf_law() {
    let scenario = scenario(
        "wpb",
        &[
            "workload.clients=200",
            "workload.requests_per_client=200",
            "workload.inherent_hit_ratio=1",
            "workload.popularity=0.8",
        ],
    );
    let weight = |rank: usize| libm::pow(rank as f64, -0.8);
    let whole: f64 = (1..=200).map(weight).sum();
    let mut counts = vec![0; 201];
    for asks in asks(&scenario, 8) {
        for ask in &asks[200..] {
            let rank = asks[..200]
                .iter()
                .position(|first| first.target == ask.target);
            counts[rank.expect("an earlier target") + 1] += 1;
        }
    }
    for rank in [1, 2, 3, 10, 50, 200] {
        expect_share(
            &format!("rank {rank}"),
            counts[rank],
            200 * 200,
            weight(rank) / whole,
        );
    }
}

#[test]
fn conditional_requests_have_their_share_of_repeats() {
    let scenario = scenario(
        "wpb",
        &["workload.clients=96", "workload.if_modified_share=0.3"],
    );
    let all = asks(&scenario, 9);
    let repeats: usize = all.iter().map(|asks| distances(asks).len()).sum();
    let conditional = all
        .iter()
        .flatten()
        .filter(|ask| ask.kind != RequestType::Plain);
    let conditional: Vec<&WorkloadRequest> = conditional.collect();
    assert!(conditional.iter().all(|ask| ask.phase == 1));
    assert!(
        conditional
            .iter()
            .all(|ask| ask.kind == RequestType::IfModifiedSince { newer: true })
    );
    expect_share("conditional", conditional.len(), repeats, 0.3);
}

#[test]
fn default_parameters_are_those_of_the_paper() {
    let Workload::Wpb(wpb) = Scenario::built_in("wpb").expect("a scenario").workload else {
        panic!("wpb is of another kind");
    };
    assert_eq!(wpb.inherent_hit_ratio, 0.5);
    assert_eq!(wpb.clients, 4 * wpb.servers);
    assert_eq!(
        (wpb.spatial_locality, wpb.popularity, wpb.if_modified_share),
        (0.0, None, 0.0)
    );
}
