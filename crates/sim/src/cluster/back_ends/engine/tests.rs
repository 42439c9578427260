//! The papers' checks of the costs, and rules that hold for every run. Loads are checked all along:
//! these are debug builds.

use super::super::elsewhere::Elsewhere;
use super::super::mechanism_costs::MechanismCosts;
use super::super::server_costs::ServerCosts;
use super::*;
use std::sync::{Arc, Mutex};
use weir_policy::Tick;
use weir_policy::route::ClusterView;
use weir_policy::route::policy::{Costs, NodeChoice, PolicyKind, RoutedRequest};
use weir_trace::Row;
use weir_trace::grouping::GroupingRules;
use weir_workload::Chance;

/// A request of a test.
struct Asked {
    target: u64,
    bytes: u64,
    begins_connection: bool,
    begins_batch: bool,
}

/// The requests as a trace has them: a batch begins 5 s after the one before it.
fn trace(requests: impl IntoIterator<Item = Asked>) -> ConnectionTrace {
    let (mut connection, mut arrival_us) = (0, 0);
    let rows = requests.into_iter().map(|asked| {
        connection += u64::from(asked.begins_connection);
        arrival_us += i64::from(asked.begins_batch) * 5_000_000;
        Ok(Row {
            arrival_us,
            connection: Some(connection),
            target: asked.target,
            received_bytes: Some(asked.bytes),
            ..Row::default()
        })
    });
    ConnectionTrace::read(rows, GroupingRules::default()).unwrap()
}

/// Connections with so many requests in turn, each in a batch of its own.
fn connections(count: u64, requests: &[u64], bytes: u64) -> ConnectionTrace {
    let lengths = requests
        .iter()
        .cycle()
        .take(usize::try_from(count).unwrap());
    trace(lengths.flat_map(|length| {
        (0..*length).map(move |place| Asked {
            target: 1,
            bytes,
            begins_connection: place == 0,
            begins_batch: true,
        })
    }))
}

/// Pages with images, by a law like Zipf's; a page is a batch, and its images the next one.
fn pages(requests: usize, targets: u64, seed: u64) -> ConnectionTrace {
    let mut chance = Chance::new(seed, 0);
    let mut all = Vec::new();
    while all.len() < requests {
        let images = chance.below(6);
        let is_first = all.is_empty() || chance.is(0.5);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank"
        )]
        let page = (targets as f64).powf(chance.unit()) as u64;
        for place in 0..=images {
            let target = page * 8 + place;
            all.push(Asked {
                target,
                bytes: 500 + mix(target) % 30_000,
                begins_connection: place == 0 && is_first,
                begins_batch: place < 2,
            });
        }
    }
    trace(all)
}

fn setting(nodes: u16, server: ServerCosts) -> BackEndsSetting {
    let costs = MechanismCosts::at_crossover(&server, MechanismCosts::SCALE).unwrap();
    BackEndsSetting::of(NonZero::new(nodes).unwrap(), server, costs)
}

fn run(setting: &BackEndsSetting, requests: &ConnectionTrace) -> ClusterOutcome {
    let run = ClusterRun::new(setting, requests).unwrap();
    run.run(&|| false).unwrap()
}

#[test]
fn hits_of_8_kb_over_http_1_0_are_682_and_1248_a_second() {
    let requests = connections(20_000, &[1], 8192);
    for (server, expected) in [(ServerCosts::APACHE, 682.0), (ServerCosts::FLASH, 1248.0)] {
        let http_1_0 = BackEndsSetting {
            http: Http::V1_0,
            ..setting(1, server)
        };
        let outcome = run(&http_1_0, &requests);
        // all wait for the first read: some thousandths of the time
        let per_s = outcome.requests_per_s();
        assert!((0.997..1.0005).contains(&(per_s / expected)), "{per_s}");
        let busy_per_s = per_s / outcome.nodes[0].cpu_busy;
        assert!((busy_per_s - expected).abs() < 0.5, "{busy_per_s}");
        assert_eq!((outcome.files_read, outcome.connections), (1, 20_000));
    }
}

/// Requests a second if each later request of a connection is given to another node.
fn elsewhere(server: ServerCosts, mechanism: Mechanism, bytes: u64) -> f64 {
    // 5.6 requests in the mean
    let requests = connections(2000, &[6, 5, 6, 5, 6], bytes);
    let setting = BackEndsSetting {
        mechanism,
        ..setting(2, server)
    };
    let policy = Box::<Elsewhere>::default();
    let run = ClusterRun::with_policy(&setting, policy, &requests).unwrap();
    let outcome = run.run(&|| false).unwrap();
    assert_eq!(
        outcome.lateral + outcome.handed_off,
        requests.len() as u64 - 2000
    );
    outcome.requests_per_s()
}

#[test]
fn forwarding_and_hand_off_cost_the_same_at_12_and_6_kb() {
    for (server, kb) in [(ServerCosts::APACHE, 12), (ServerCosts::FLASH, 6)] {
        let gain = |kb: u64| {
            let forwarded = elsewhere(server, Mechanism::Forwarding, kb * 1024);
            forwarded / elsewhere(server, Mechanism::MultipleHandOff, kb * 1024) - 1.0
        };
        assert!(gain(kb).abs() < 0.002, "{}", gain(kb));
        assert!(gain(kb - 1) > 0.002, "{}", gain(kb - 1));
        assert!(gain(kb + 1) < -0.002, "{}", gain(kb + 1));
    }
}

/// Gives requests to nodes as it is told, and notes the loads that it sees.
#[derive(Debug)]
struct Script {
    choices: Vec<(u16, Why)>,
    seen: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Policy for Script {
    fn choose(
        &mut self,
        _now: Tick,
        view: &ClusterView<'_>,
        _request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let loads = view.nodes().iter().map(|node| node.load.parts()).collect();
        let mut seen = self.seen.lock().unwrap();
        let (place, why) = self.choices[seen.len()];
        seen.push(loads);
        Some(NodeChoice {
            place: Place(place),
            why,
            costs: Costs::default(),
        })
    }

    fn preview(
        &self,
        _now: Tick,
        _view: &ClusterView<'_>,
        _request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        None
    }

    fn costs(&self, _view: &ClusterView<'_>, _request: &RoutedRequest, _place: Place) -> Costs {
        Costs::default()
    }
}

/// One connection whose later requests are one batch, served as `choices` says; the loads that were
/// seen at each choice.
fn scripted(
    mechanism: Mechanism,
    targets: &[u64],
    choices: &[(u16, Why)],
) -> (ClusterOutcome, Vec<Vec<u32>>) {
    let requests = targets.iter().enumerate().map(|(place, target)| Asked {
        target: *target,
        bytes: 1000,
        begins_connection: place == 0,
        begins_batch: place < 2,
    });
    let requests = trace(requests);
    let seen: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let script = Script {
        choices: choices.to_vec(),
        seen: Arc::clone(&seen),
    };
    let setting = BackEndsSetting {
        mechanism,
        ..setting(3, ServerCosts::APACHE)
    };
    let run = ClusterRun::with_policy(&setting, Box::new(script), &requests).unwrap();
    let outcome = run.run(&|| false).unwrap();
    let seen = seen.lock().unwrap().clone();
    (outcome, seen)
}

#[test]
fn load_of_a_batch_is_1_of_n_at_each_remote_node() {
    let choices = [0, 1, 1, 2, 0].map(|place| (place, Why::Mapped));
    let (outcome, seen) = scripted(Mechanism::Forwarding, &[1, 2, 3, 4, 5], &choices);
    let expected = [
        [0, 0, 0],
        [1024, 0, 0],
        [1024, 256, 0],
        [1024, 512, 0],
        [1024, 512, 256],
    ];
    assert_eq!(seen, expected.map(Vec::from));
    assert_eq!((outcome.lateral, outcome.handed_off), (3, 0));
}

#[test]
fn connection_takes_its_load_along_when_it_is_handed_over() {
    // each in a batch of its own
    let requests = connections(1, &[4], 1000);
    let seen: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let script = Script {
        choices: [0, 1, 2, 2].map(|place| (place, Why::Mapped)).to_vec(),
        seen: Arc::clone(&seen),
    };
    let setting = BackEndsSetting {
        mechanism: Mechanism::MultipleHandOff,
        ..setting(3, ServerCosts::APACHE)
    };
    let run = ClusterRun::with_policy(&setting, Box::new(script), &requests).unwrap();
    let outcome = run.run(&|| false).unwrap();
    let expected = [[0, 0, 0], [1024, 0, 0], [0, 1024, 0], [0, 0, 1024]];
    assert_eq!(*seen.lock().unwrap(), expected.map(Vec::from));
    assert_eq!((outcome.lateral, outcome.handed_off), (0, 2));
    let served: Vec<u64> = outcome.nodes.iter().map(|node| node.requests).collect();
    assert_eq!(served, [1, 1, 2]);
}

#[test]
fn lateral_response_is_kept_by_no_second_node_while_the_disk_is_busy() {
    // node 0 handles the connection: it has what node 1 sent it, or read itself, only where it
    // keeps it
    let check = |whys: [(u16, Why); 2], files_read: u64| {
        let choices = [(0, Why::NotMapped), whys[0], whys[1], (0, Why::DiskIdle)];
        let (outcome, _) = scripted(Mechanism::Forwarding, &[1, 2, 2, 2], &choices);
        assert_eq!(outcome.files_read, 1 + files_read, "{whys:?}");
    };
    check([(1, Why::Lateral), (1, Why::Lateral)], 2);
    check([(0, Why::DiskBusy), (0, Why::DiskBusy)], 3);
    check([(0, Why::DiskIdle), (0, Why::DiskIdle)], 1);
    check([(1, Why::Lateral), (0, Why::DiskBusy)], 3);
}

#[test]
fn single_hand_off_serves_a_connection_at_one_node() {
    let requests = pages(3000, 500, 3);
    let lard = BackEndsSetting {
        policy: PolicyKind::Lard,
        mechanism: Mechanism::HandOff,
        ..setting(4, ServerCosts::APACHE)
    };
    let outcome = run(&lard, &requests);
    assert_eq!((outcome.lateral, outcome.handed_off), (0, 0));
    let chosen: u64 = outcome.choices.iter().map(|reason| reason.count).sum();
    assert_eq!(chosen, outcome.connections);
    assert!(outcome.connections < outcome.requests);
}

#[test]
fn http_1_0_has_a_connection_for_each_request() {
    let requests = pages(2000, 500, 3);
    let http_1_0 = BackEndsSetting {
        http: Http::V1_0,
        ..setting(4, ServerCosts::APACHE)
    };
    let outcome = run(&http_1_0, &requests);
    assert_eq!(outcome.connections, outcome.requests);
    assert_eq!(outcome.lateral, 0);
}

#[test]
fn relaying_front_end_is_the_bottleneck_of_many_nodes() {
    let requests = connections(4000, &[1], 8192);
    let relay = BackEndsSetting {
        mechanism: Mechanism::Relay,
        http: Http::V1_0,
        policy: PolicyKind::InTurn,
        ..setting(8, ServerCosts::APACHE)
    };
    let outcome = run(&relay, &requests);
    assert!(outcome.front_end_busy > 0.98, "{}", outcome.front_end_busy);
    // 2 x 278 for the connection, 63.8 + 16 x 12 for the response
    assert!((outcome.requests_per_s() - 1e6 / 811.8).abs() < 15.0);
}

#[test]
fn same_seed_gives_the_same_outcome() {
    let requests = pages(3000, 700, 5);
    for (policy, is_random) in [
        (PolicyKind::TwoChoices, true),
        (PolicyKind::ReplicatedHash, false),
    ] {
        let setting = BackEndsSetting {
            policy,
            ..setting(3, ServerCosts::FLASH)
        };
        let one = run(&setting, &requests);
        assert_eq!(one, run(&setting, &requests));
        let other = BackEndsSetting { seed: 2, ..setting };
        assert_eq!(one.nodes != run(&other, &requests).nodes, is_random);
    }
}

#[test]
fn zero_cost_is_never_worse_than_a_mechanism_by_the_same_choices() {
    for server in [ServerCosts::APACHE, ServerCosts::FLASH] {
        for kb in [1, 6, 12, 32] {
            let of = |mechanism| elsewhere(server, mechanism, kb * 1024);
            let ideal = of(Mechanism::ZeroCost);
            for mechanism in [Mechanism::MultipleHandOff, Mechanism::Forwarding] {
                let real = of(mechanism);
                assert!(real < ideal, "{mechanism} {kb}: {real} of {ideal}");
            }
        }
    }
}

#[test]
fn interrupted_run_has_no_outcome() {
    let requests = pages(40_000, 100, 1);
    let run = ClusterRun::new(&setting(2, ServerCosts::APACHE), &requests).unwrap();
    assert_eq!(run.run(&|| true), None);
}
