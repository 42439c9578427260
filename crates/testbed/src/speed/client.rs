//! The clients of `weir bench`, as a process of their own.

use super::{SEED, Site};
use crate::origin::of_bench;
use crate::process::usage;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weir_bench::client::{self, ClientLimits, ClientPlan, Form};
use weir_bench::tally::{PhaseTally, RequestCounts};
use weir_measure::float;
use weir_workload::Share;
use xtask::failure::{During, Failure};

/// The command that makes a process the clients.
pub(crate) const ROLE: &str = "speed-clients";

/// Options of the process that is the clients.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// What is requested
    site: Site,
    /// The server
    server: SocketAddr,
    /// For how long
    seconds: u32,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ClientTotals {
    /// Of the whole run.
    pub(super) requests: u64,
    pub(super) seconds: f64,
    pub(super) hits: u64,
    pub(super) forwarded: u64,
    pub(super) errors: u64,
    pub(super) wrong: u64,
    pub(super) content_bytes: u64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) cpu_s: f64,
    pub(super) late_share: f64,
    pub(super) late_max_us: u64,
    pub(super) connections_max: u64,
    pub(super) agents: u32,
    pub(super) memory_max_bytes: u64,
}

impl ClientTotals {
    /// Requests a second.
    pub(super) fn rate(&self) -> f64 {
        float(self.requests) / self.seconds.max(1e-9)
    }

    /// `expected` is how many responses were of the kind that all should be.
    pub(super) fn check(&self, expected: u64) -> Result<(), Failure> {
        if self.wrong + self.errors == 0 && expected == self.requests {
            return Ok(());
        }
        let what = format!("not every response was right and from where it should be: {self:?}");
        Err(Failure::Refused(what))
    }
}

/// Sends requests to the named server, and prints the result.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let scenario = options.site.scenario(options.seconds)?;
    let agents = scenario.agents();
    let plan = ClientPlan {
        scenario: Arc::new(scenario),
        seed: SEED,
        share: Share::WHOLE,
        proxy: options.server,
        form: Form::Direct {
            servers: vec![options.server],
        },
        start_at: Instant::now(),
        sample_every: 100,
        namespace: None,
        limits: ClientLimits::default(),
    };
    let result = client::run(&plan, |_| {}, &AtomicBool::new(false)).map_err(of_bench)?;
    for wrong in result.wrong_responses.iter().take(3) {
        eprintln!("{wrong:?}");
    }
    let (mut total, mut last) = (RequestCounts::default(), PhaseTally::default());
    for phase in result.phases {
        total.merge(&phase.counts);
        last.merge(&phase);
    }
    if total.client.error_count() > 0 {
        eprintln!("{:?}", total.client.errors);
    }
    let asked = ClientTotals {
        requests: total.client.requests,
        seconds: last.seconds(),
        hits: total.client.hits,
        forwarded: total.client.forwarded,
        errors: total.client.error_count(),
        wrong: total.client.wrong_count(),
        content_bytes: total.client.content_bytes,
        p50_us: last.response_time.all.quantile_us(0.5),
        p99_us: last.response_time.all.quantile_us(0.99),
        cpu_s: result.health.cpu_s,
        late_share: result.health.late_share(),
        late_max_us: result.health.late_max_us,
        connections_max: result.health.connections_max,
        agents,
        memory_max_bytes: usage::peak_rss_kib(std::process::id()) * 1024,
    };
    println!("{}", serde_json::to_string(&asked).during("write JSON")?);
    Ok(())
}
