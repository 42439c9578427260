//! `weir sim cluster --model caches`: networks of caches that share what they store.

use super::super::trace::threads;
use super::{ClusterFlags, nodes, or};
use crate::messages::{Failure, give, give_json, tell};
use clap::Args;
use serde::Serialize;
use std::num::NonZero;
use std::path::Path;
use weir_bench::conduct::Interrupt;
use weir_policy::eviction::EvictionKind;
use weir_policy::route::policy::PolicyKind;
use weir_sim::cluster::scale::{Estimated, Rows, ScaleError, ScaleOutcome, ScaleSetting, simulate};
use weir_trace::generator::Recipe;
use weir_trace::{Column, Columns, Reader};

/// The flags of the model `caches` alone.
#[derive(Debug, Args)]
pub(super) struct CacheFlags {
    /// Of caches: one target in N is simulated, beside the 4096 most requested ones; 1 for all.
    /// Without it 16
    #[arg(long, value_name = "N")]
    sample: Option<NonZero<u32>>,

    /// Of caches: requests a second that a node gets from its clients. Without it 2000
    #[arg(long, value_name = "N")]
    rate: Option<NonZero<u32>>,
}

impl CacheFlags {
    pub(super) const fn are_given(&self) -> bool {
        self.sample.is_some() || self.rate.is_some()
    }
}

/// The numbers of caches without `--nodes`.
const NODES: [NonZero<u16>; 6] = nodes([1, 4, 16, 64, 256, 1024]);

/// A node's memory without `--cache-size`, bytes.
const CACHE_BYTES: u64 = 16 << 30;

const ONE_IN: NonZero<u32> = NonZero::new(16).expect("not 0");
const RATE_PER_S: NonZero<u32> = NonZero::new(2000).expect("not 0");

/// What was simulated, and what came of it.
#[derive(Serialize)]
struct CachesRecord {
    version: &'static str,
    trace: String,
    requests: u64,
    one_in: NonZero<u32>,
    rate_per_s: NonZero<u32>,
    cache_bytes: u64,
    eviction: EvictionKind,
    seed: u64,
    policies: Vec<PolicyRecord>,
}

#[derive(Serialize)]
struct PolicyRecord {
    policy: PolicyKind,
    networks: Vec<ScaleOutcome>,
}

/// Simulates each number of caches with each policy.
///
/// # Errors
/// The trace cannot be read, a setting cannot be, or it was interrupted.
pub(super) fn caches(flags: &ClusterFlags) -> Result<(), Failure> {
    if flags.has_back_ends() {
        let what = "cannot use costs, `--mechanism`, `--http` and `--admitted`";
        return Err(Failure::usage(what, "they are for `--model back-ends`"));
    }
    let interrupt = Interrupt::on_signals()?;
    let recipe = Recipe::built_in(&flags.trace);
    let length = recipe.as_ref().map(Recipe::requests);
    let requests = match flags.requests.or(length) {
        Some(requests) => requests,
        None => Reader::open(Path::new(&flags.trace))?.row_count(),
    };
    let setting = |policy: PolicyKind| ScaleSetting {
        nodes: or(&flags.nodes, &NODES).to_vec(),
        cache_bytes: flags.cache_size.map_or(CACHE_BYTES, |size| size.bytes()),
        eviction: flags.eviction.unwrap_or_default(),
        policy,
        requests: NonZero::new(requests).unwrap_or(NonZero::<u64>::MIN),
        one_in: flags.caches.sample.unwrap_or(ONE_IN),
        rate_per_s: flags.caches.rate.unwrap_or(RATE_PER_S),
        seed: flags.seed,
    };
    let open = || match &recipe {
        Some(recipe) => Ok(Box::new(recipe.rows(requests, flags.seed).map(Ok)) as Rows<'_>),
        None => {
            let rows = Reader::open(Path::new(&flags.trace))?.rows(columns());
            Ok(Box::new(rows) as Rows<'_>)
        }
    };
    let mut record = CachesRecord {
        version: env!("CARGO_PKG_VERSION"),
        trace: flags.trace.clone(),
        requests,
        one_in: setting(PolicyKind::ReplicatedHash).one_in,
        rate_per_s: setting(PolicyKind::ReplicatedHash).rate_per_s,
        cache_bytes: setting(PolicyKind::ReplicatedHash).cache_bytes,
        eviction: setting(PolicyKind::ReplicatedHash).eviction,
        seed: flags.seed,
        policies: Vec::new(),
    };
    for policy in or(&flags.policy, &[PolicyKind::ReplicatedHash]) {
        tell(&format!("{policy}: {requests} requests"));
        let threads = threads(flags.threads);
        let networks = simulate(&setting(*policy), &open, threads, &|| interrupt.is_set())
            .map_err(|error| failure(&flags.trace, error))?;
        record.policies.push(PolicyRecord {
            policy: *policy,
            networks,
        });
    }
    if flags.json {
        return give_json(&record);
    }
    give(&text(&record))
}

fn columns() -> Columns {
    Columns::of(&[
        Column::client,
        Column::connection,
        Column::target,
        Column::method,
        Column::status,
        Column::received_bytes,
        Column::declared_bytes,
    ])
}

fn failure(trace: &str, error: ScaleError) -> Failure {
    match error {
        ScaleError::Trace(error) => error.into(),
        ScaleError::Stopped => Failure::check_said_no("the network is not simulated", error),
        error => Failure::usage(format!("cannot simulate `{trace}`"), error),
    }
}

fn text(record: &CachesRecord) -> String {
    let mut text = format!(
        "{}: {} requests, one target in {}; nodes of {} bytes, {}, {} requests a second each\n",
        record.trace,
        record.requests,
        record.one_in,
        record.cache_bytes,
        record.eviction,
        record.rate_per_s,
    );
    for PolicyRecord { policy, networks } in &record.policies {
        text.push_str(&format!("\n{policy}\n"));
        text.push_str(&of_requests(networks));
        text.push_str(&of_messages(networks));
        text.push_str(&of_events(networks));
    }
    text
}

fn of_requests(networks: &[ScaleOutcome]) -> String {
    let mut text = format!(
        "{:>5} {:>16} {:>16} {:>20} {:>16} {:>20} {:>14}\n",
        "nodes",
        "hits %",
        "own hits %",
        "origin requests",
        "busiest, mean=1",
        "lateral GB",
        "stored each"
    );
    for network in networks {
        text.push_str(&format!(
            "{:>5} {:>16} {:>16} {:>20} {:>16} {:>20} {:>14}\n",
            network.nodes,
            with_error(network.hit_ratio, 100.0, 2),
            with_error(network.own_hit_ratio, 100.0, 2),
            with_error(network.origin_requests, 1.0, 0),
            with_error(network.busiest, 1.0, 2),
            with_error(network.lateral_bytes, 1e-9, 1),
            network.residents,
        ));
    }
    text
}

fn of_messages(networks: &[ScaleOutcome]) -> String {
    let mut text = format!(
        "\n{:>5} {:>14} {:>14} {:>14} {:>14} {:>14} {:>16} {:>16}\n",
        "nodes",
        "a digest, B",
        "all held, B",
        "digests B/s",
        "states /s",
        "states B/s",
        "purge 0.2 ms RTT",
        "purge 60 ms RTT"
    );
    for network in networks {
        let messages = &network.messages;
        let bytes = |bytes: Option<u64>| bytes.map_or("too many".to_owned(), |it| it.to_string());
        let purge = |round_trip_ms| messages.purge_ms(MESSAGE_US, round_trip_ms);
        text.push_str(&format!(
            "{:>5} {:>14} {:>14} {:>14.0} {:>14.1} {:>14.0} {:>13.1} ms {:>13.1} ms\n",
            network.nodes,
            bytes(messages.digest_bytes),
            bytes(messages.digests_held_bytes),
            messages.digest_bytes_per_s,
            messages.state_messages_per_s,
            messages.state_bytes_per_s,
            purge(0.2),
            purge(60.0),
        ));
    }
    text
}

/// What a message costs the node that sends it, microseconds: as much as a lateral hit costs it
/// (`docs/cluster.md`, figures). Not measured for purges.
const MESSAGE_US: f64 = 23.5;

fn of_events(networks: &[ScaleOutcome]) -> String {
    let mut text = format!(
        "\n{:>5} {:>20} {:>20} {:>16} {:>14} {:>14} {:>14}\n",
        "nodes",
        "join, origin",
        "death, origin",
        "crowd everywhere",
        "crowd, origin",
        "busiest 0.1 s",
        "busiest later"
    );
    for network in networks {
        let event = |it: Option<Estimated>| it.map_or("-".to_owned(), |it| with_error(it, 1.0, 0));
        let (everywhere, origin, first, later) = match network.flash_crowd {
            Some(crowd) => (
                crowd
                    .everywhere_ms
                    .map_or("over 1 s".to_owned(), |ms| format!("{ms:.1} ms")),
                crowd.origin_requests.to_string(),
                format!("{:.2}", crowd.busiest_at_first),
                format!("{:.2}", crowd.busiest_later),
            ),
            None => (
                "-".to_owned(),
                "-".to_owned(),
                "-".to_owned(),
                "-".to_owned(),
            ),
        };
        text.push_str(&format!(
            "{:>5} {:>20} {:>20} {everywhere:>16} {origin:>14} {first:>14} {later:>14}\n",
            network.nodes,
            event(network.join),
            event(network.death),
        ));
    }
    text
}

fn with_error(estimated: Estimated, times: f64, digits: usize) -> String {
    format!(
        "{:.digits$} +-{:.digits$}",
        estimated.value * times,
        estimated.error * times
    )
}
