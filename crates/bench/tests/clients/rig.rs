//! Runs of clients, short ones.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_bench::client::{self, ClientLimits, ClientPlan, ClientResult, Form};
use weir_bench::tally::{RequestCounts, SecondTally};
use weir_workload::{Scenario, Share};

use crate::support::{SEED, TestOrigin};

/// Keeps the thread from its clients for so long, as a machine does that has other things to do.
pub(crate) fn hinder(duration: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < duration {
        std::hint::spin_loop();
    }
}

/// Stops the run when so many bytes, or requests, were counted.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    pub(crate) count: AtomicU64,
    pub(crate) stop: AtomicBool,
}

impl Counter {
    pub(crate) fn add(&self, count: u64, stop_at: u64) -> u64 {
        let sum = self.count.fetch_add(count, Ordering::SeqCst) + count;
        if sum >= stop_at {
            self.stop.store(true, Ordering::SeqCst);
        }
        sum
    }
}

pub(crate) fn plan(scenario: &Scenario, proxy: SocketAddr, form: Form) -> ClientPlan {
    ClientPlan {
        scenario: Arc::new(scenario.clone()),
        seed: SEED,
        share: Share { index: 1, of: 2 },
        proxy,
        form,
        start_at: Instant::now(),
        sample_every: 10,
        namespace: None,
        limits: ClientLimits {
            drain_s: 10.0,
            ..ClientLimits::default()
        },
    }
}

/// Without a proxy.
pub(crate) fn direct(served: &TestOrigin, scenario: &Scenario) -> ClientResult {
    let servers = served.origin.servers().to_vec();
    run(&plan(scenario, nowhere(), Form::Direct { servers }))
}

/// Through a forward proxy.
pub(crate) fn forward(served: &TestOrigin, scenario: &Scenario, proxy: SocketAddr) -> ClientResult {
    let servers = served.origin.servers().to_vec();
    run(&plan(scenario, proxy, Form::Forward { servers }))
}

pub(crate) fn run(plan: &ClientPlan) -> ClientResult {
    run_until(plan, &AtomicBool::new(false))
}

pub(crate) fn run_until(plan: &ClientPlan, stop: &AtomicBool) -> ClientResult {
    run_watched(plan, |_| {}, stop)
}

pub(crate) fn run_watched(
    plan: &ClientPlan,
    on_second: impl FnMut(&SecondTally),
    stop: &AtomicBool,
) -> ClientResult {
    let result = client::run(plan, on_second, stop).expect("a run");
    for phase in &result.phases {
        assert!(phase.counts.is_balanced(), "{phase:?}");
        assert_eq!(phase.counts.client.requests, phase.offered);
    }
    result
}

/// All phases together.
pub(crate) fn total(result: &ClientResult) -> RequestCounts {
    let mut total = RequestCounts::default();
    for phase in &result.phases {
        total.merge(&phase.counts);
    }
    total
}

/// An address without a listener.
pub(crate) fn nowhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 1))
}
