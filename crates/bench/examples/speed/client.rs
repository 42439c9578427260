//! Our clients, as a process of their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use weir_bench::client::{self, ClientLimits, ClientPlan, Feed, Form};
use weir_bench::tally::{Accounts, PhaseTally, SecondTally};
use weir_workload::{Scenario, Share};

use crate::Options;
use crate::hits::SEED;
use crate::process::memory_max_bytes;

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Of the whole run.
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) hits: u64,
    pub(crate) forwarded: u64,
    pub(crate) errors: u64,
    pub(crate) wrong: u64,
    pub(crate) content_bytes: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) cpu_s: f64,
    pub(crate) late_share: f64,
    pub(crate) late_max_us: u64,
    pub(crate) connections_max: u64,
    pub(crate) agents: u32,
    pub(crate) memory_max_bytes: u64,
}

struct Nobody;

impl Feed for Nobody {
    fn second(&self, _: &SecondTally) {}
}

/// Asks the server that is named, and prints what came of it.
pub(crate) fn ask(
    options: &Options,
    scenario: fn(u64) -> Result<Scenario, Box<dyn std::error::Error>>,
) -> crate::Outcome {
    let scenario = scenario(options.seconds)?;
    let named = options.server.as_deref().ok_or("no --server")?;
    let servers: Result<Vec<SocketAddr>, _> = named.split(',').map(str::parse).collect();
    let servers = servers?;
    let agents = scenario.agents();
    let plan = ClientPlan {
        scenario: Arc::new(scenario),
        seed: SEED,
        share: Share::WHOLE,
        proxy: servers[0],
        form: Form::Direct { servers },
        start_at: Instant::now(),
        sample_every: 100,
        namespace: None,
        limits: ClientLimits::default(),
    };
    let result = client::run(&plan, &Nobody, &AtomicBool::new(false))?;
    for lie in result.lies.iter().take(3) {
        eprintln!("{lie:?}");
    }
    let (mut total, mut last) = (Accounts::default(), PhaseTally::default());
    for phase in result.phases {
        total.merge(&phase.accounts);
        last.merge(&phase);
    }
    if total.errors.sum() > 0 {
        eprintln!("{:?}", total.errors);
    }
    let asked = Asked {
        requests: total.requests,
        seconds: last.seconds(),
        hits: total.hits,
        forwarded: total.forwarded,
        errors: total.errors.sum(),
        wrong: total.wrong.sum(),
        content_bytes: total.content_bytes,
        p50_us: last.response_time.all.quantile_us(0.5),
        p99_us: last.response_time.all.quantile_us(0.99),
        cpu_s: result.health.cpu_s,
        late_share: result.health.late_share(),
        late_max_us: result.health.late_max_us,
        connections_max: result.health.connections_max,
        agents,
        memory_max_bytes: memory_max_bytes()?,
    };
    println!("{}", serde_json::to_string(&asked)?);
    Ok(())
}
