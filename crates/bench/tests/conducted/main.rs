//! Whole runs: master, origin and clients with real sockets, through proxies that tell the truth
//! and proxies with faults.

#[path = "../support/mod.rs"]
mod support;

mod ends_early;
mod generator;
mod separate;
mod streams;
mod wrong_responses;

use std::net::SocketAddr;
use std::sync::Arc;
use support::{Fault, FaultyProxy};
use weir_bench::conduct::{
    ClientRole, ERRORS_SHARE_MAX, Interrupt, LocalPlan, OriginRole, RunOutcome, RunPlan, Shaping,
};
use weir_bench::failure::Failure;
use weir_bench::progress::Progress;
use weir_bench::record;
use weir_measure::record::Mode;
use weir_measure::record::Record;
use weir_workload::Scenario;

const SEED: u64 = 4;

/// A run through a forward proxy, or directly if there is none.
fn plan(scenario: Scenario, proxy: Option<SocketAddr>) -> RunPlan {
    RunPlan {
        scenario: Arc::new(scenario),
        seed: SEED,
        label: "a proxy".into(),
        proxy,
        mode: match proxy {
            Some(_) => Mode::Forward,
            None => Mode::Direct,
        },
        is_caching: true,
        cache_bytes: None,
        proxy_pid: None,
        proxy_version: None,
        errors_share_max: ERRORS_SHARE_MAX,
        command: "weir bench run".into(),
    }
}

fn local(threads: u32) -> LocalPlan {
    LocalPlan {
        clients: ClientRole {
            threads,
            samples: None,
            shaping: Shaping::User,
        },
        origin: OriginRole {
            threads: 1,
            listen: None,
        },
        version: "0".into(),
    }
}

/// A run in this process, with what was said on the way.
fn conduct(
    plan: &RunPlan,
    local: &LocalPlan,
    interrupt: &Interrupt,
) -> Result<RunOutcome, Failure> {
    let mut said = Vec::new();
    weir_bench::conduct::run(plan, local, interrupt, &mut Progress::new(&mut said, false))
}

#[track_caller]
fn run(plan: &RunPlan, threads: u32) -> Record {
    let gathered = conduct(plan, &local(threads), &Interrupt::default()).expect("it runs");
    record::write_up(plan, &gathered, "0")
}

/// What must not differ between two ways to do the same run.
fn counts(record: &Record) -> Vec<(String, u64, u64, u64, u64, u64)> {
    let phases = record.phases.iter().chain([&record.total]);
    phases
        .map(|phase| {
            let (client, origin) = (&phase.client, &phase.origin);
            (
                phase.name.clone(),
                client.requests,
                client.answered(),
                client.content_bytes,
                origin.requests,
                origin.content_bytes,
            )
        })
        .collect()
}

#[test]
fn run_without_a_proxy_has_no_hits_and_counts_every_request() {
    let record = run(&plan(support::wpb(&[]), None), 2);
    assert!(record.is_valid, "{:#?}", record.reasons);
    let names: Vec<&str> = record
        .phases
        .iter()
        .map(|phase| phase.name.as_str())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for phase in &record.phases {
        assert_eq!(phase.client.requests, 40);
        assert_eq!(phase.client.forwarded, 40, "{phase:#?}");
        assert_eq!(phase.origin.distinct, 40);
        assert_eq!(phase.client.content_bytes, phase.origin.content_bytes);
        assert_eq!(phase.hit_ratio(), Some(0.0));
    }
    assert_eq!(record.total.response_time.all.count, 80);
    assert_eq!(record.parameters["clients"].to_bits(), 4.0_f64.to_bits());
    // five rules, and a short run on one machine breaks most of them
    assert_eq!(record.rules.len(), 5);
    assert!(record.rules.iter().any(|rule| !rule.holds));
}

#[test]
fn run_through_a_proxy_without_a_cache_is_valid_with_hit_ratio_zero() {
    let faulty_proxy = FaultyProxy::forward(Fault::None);
    let record = run(&plan(support::wpb(&[]), Some(faulty_proxy.address())), 1);
    assert!(record.is_valid, "{:#?}", record.reasons);
    assert_eq!(record.total.hit_ratio(), Some(0.0));
    assert_eq!(record.total.client.hits, 0);
    assert_eq!(record.subject.proxy, faulty_proxy.address().to_string());
}

#[test]
fn run_through_a_gateway_is_valid_and_forwards_every_request() {
    // the gateway has to know the origin's address before the run
    let port = SocketAddr::from(([127, 0, 0, 1], xtask::ports::take().expect("a port")));
    let faulty_proxy = FaultyProxy::gateway(port, Fault::None);
    let plan = RunPlan {
        mode: Mode::Gateway,
        ..plan(support::wpb(&[]), Some(faulty_proxy.address()))
    };
    let mut local = local(1);
    local.origin.listen = Some(port);
    let gathered = conduct(&plan, &local, &Interrupt::default()).expect("it runs");
    let record = record::write_up(&plan, &gathered, "0");
    assert!(record.is_valid, "{:#?}", record.reasons);
    assert_eq!(
        record.total.client.forwarded, 80,
        "{:#?}",
        record.total.client
    );
}
