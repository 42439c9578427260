//! A node is killed under load: which requests fail, and what the origin is asked again.

use crate::cluster::Record;
use crate::cluster::load::{Load, Progress};
use crate::cluster::setup::Setup;
use crate::cluster::site::{Pick, Site};
use crate::cluster::system::{SYSTEMS, System};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use xtask::failure::Failure;

const NODES: usize = 3;

const MEMORY_MIB: u64 = 64;

const TARGETS: u64 = 2000;

const SIZE_BYTES: u64 = 8 << 10;

const CLIENTS: u64 = 18;

/// Requests for each target, on average, before the node is killed, and in each of the two spans
/// after it: all targets but a few are requested in each.
const REQUESTS_A_TARGET: u64 = 8;

/// The longest that a span may take.
const SPAN_MAX: Duration = Duration::from_secs(120);

const POLL: Duration = Duration::from_millis(5);

/// What became of a cluster whose last node was killed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct KillRun {
    pub(in crate::cluster) round: u32,
    pub(in crate::cluster) targets: u64,
    /// Responses that the node had stored.
    pub(in crate::cluster) stored_there: u64,
    pub(in crate::cluster) requests: u64,
    /// Connections of clients to the node: each may have had one request there.
    pub(in crate::cluster) connections_there: u64,
    /// Requests that were sent to the node and failed.
    pub(in crate::cluster) failed_there: u64,
    /// Requests that were sent to other nodes and failed.
    pub(in crate::cluster) failed_elsewhere: u64,
    /// Requests that the origin had in the first span after the kill, and in the second.
    pub(in crate::cluster) origin_requests: [u64; 2],
}

/// Measures, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) {
    for round in 1..=record.settings.rounds {
        let what = format!("a node is killed, round {round}");
        if let Some(run) = record.kept(what, run(setup, round)) {
            eprintln!("  {run:?}");
            record.figures.kills.push(run);
        }
    }
}

fn run(setup: &Setup, round: u32) -> Result<KillRun, Failure> {
    let bed = setup.bed(&format!("kill-{round}"))?;
    let mut system = System::start(&bed.bed(), SYSTEMS[0], (NODES, MEMORY_MIB))?;
    let targets = setup.scaled(TARGETS, 100);
    let site = Site::new(format!("/kill/{round}"), targets, SIZE_BYTES);
    let load = |pick, requests| Load {
        entrances: system.entrances(),
        clients: CLIENTS,
        site: &site,
        pick,
        requests,
        seed: setup.options.seed + u64::from(round),
        core: setup.cores.load,
    };
    load(Pick::InTurn, targets).run()?;
    let under_load = load(Pick::Uniform(targets), u64::MAX);
    let killed = under_load.entrances[NODES - 1];
    let (result, (stored_there, origin_requests)) =
        under_load.run_while(|progress| kill_under(&mut system, (setup, &site), progress))?;
    let failed = |is_there: bool| {
        let is_of = |entrance: SocketAddr| (entrance == killed) == is_there;
        let failed = result.failures.iter().filter(|it| is_of(it.entrance));
        failed.count() as u64
    };
    for failure in result.failures.iter().filter(|it| it.entrance != killed) {
        eprintln!("  failed: {failure:?}");
    }
    Ok(KillRun {
        round,
        targets,
        stored_there,
        requests: result.requests,
        connections_there: CLIENTS / NODES as u64,
        failed_there: failed(true),
        failed_elsewhere: failed(false),
        origin_requests,
    })
}

/// Kills the last node after one span. What it had stored, and what the origin was asked in each of
/// two more.
fn kill_under(
    system: &mut System,
    (setup, site): (&Setup, &Site),
    progress: &Progress,
) -> Result<(u64, [u64; 2]), Failure> {
    let span = || wait_for(progress, site.targets * REQUESTS_A_TARGET);
    span()?;
    let node = system.nodes.nodes.last_mut();
    let node = node.ok_or_else(|| Failure::Refused("there is no node".to_owned()))?;
    let stored = node.metric("weir_store_entries")?;
    let before = setup.fetches(&site.path)?;
    node.server.kill();
    span()?;
    let first = setup.fetches(&site.path)?;
    span()?;
    let second = setup.fetches(&site.path)?;
    Ok((stored, [first - before, second - first]))
}

/// Waits until so many more requests are answered.
fn wait_for(progress: &Progress, requests: u64) -> Result<(), Failure> {
    let end = progress.requests.load(Ordering::Relaxed) + requests;
    let deadline = Instant::now() + SPAN_MAX;
    while progress.requests.load(Ordering::Relaxed) < end {
        if Instant::now() > deadline {
            let what = format!("{requests} requests took longer than {SPAN_MAX:?}");
            return Err(Failure::Outside(what));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
