//! Nodes with a share of the memory each, beside one node with all of it.

use crate::cluster::Record;
use crate::cluster::load::Load;
use crate::cluster::nodes::{NodeRules, Nodes};
use crate::cluster::setup::Setup;
use crate::cluster::site::{Pick, Site};
use crate::cluster::system::{SYSTEMS, System};
use crate::record::markdown::ratio;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use xtask::failure::Failure;

/// Nodes of the cluster.
const NODES: u64 = 3;

/// Memory of each at scale 1.
const MEMORY_MIB: u64 = 16;

const SIZE_BYTES: u64 = 8 << 10;

/// Requests for each target, on average: once while the nodes fill, and once when they are full.
const REQUESTS_A_TARGET: u64 = 4;

const CLIENTS: u64 = 6;

/// The name of the node that has all the memory.
pub(in crate::cluster) const ONE_NODE: &str = "one node";

/// What a system did with the requests of a seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct HitRatioRun {
    pub(in crate::cluster) round: u32,
    pub(in crate::cluster) system: String,
    pub(in crate::cluster) targets: u64,
    /// Of the second half, when the nodes are full.
    pub(in crate::cluster) requests: u64,
    pub(in crate::cluster) origin_requests: u64,
    /// Of the whole run, from empty nodes on.
    pub(in crate::cluster) origin_requests_of_all: u64,
}

impl HitRatioRun {
    /// Requests that did not reach the origin, per cent.
    pub(in crate::cluster) fn hit_percent(&self) -> f64 {
        100.0 * (1.0 - ratio(self.origin_requests, self.requests))
    }
}

/// Measures all systems in turn, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) {
    for round in 1..=record.settings.rounds {
        let one = one_node(setup, round);
        keep(record, (ONE_NODE, round), one);
        for kind in SYSTEMS {
            let run = || {
                let bed = setup.bed(&format!("{round}"))?;
                let memory_mib = memory_mib(setup);
                let nodes = (NODES.try_into().unwrap_or(1), memory_mib);
                let system = System::start(&bed.bed(), kind, nodes)?;
                run(setup, (kind.name, round), &system.entrances())
            };
            keep(record, (kind.name, round), run());
        }
    }
}

fn keep(record: &mut Record, (system, round): (&str, u32), run: Result<HitRatioRun, Failure>) {
    let what = format!("hit ratio of {system}, round {round}");
    if let Some(run) = record.kept(what, run) {
        eprintln!("  {run:?} {:.2} %", run.hit_percent());
        record.figures.hit_ratios.push(run);
    }
}

fn memory_mib(setup: &Setup) -> u64 {
    setup.scaled(MEMORY_MIB, 1)
}

fn one_node(setup: &Setup, round: u32) -> Result<HitRatioRun, Failure> {
    let bed = setup.bed(&format!("{round}-one"))?;
    let rules = NodeRules {
        count: 1,
        memory_mib: NODES * memory_mib(setup),
        policy: None,
        has_secret: false,
    };
    let node = Nodes::start(&bed.bed(), rules)?;
    run(setup, (ONE_NODE, round), &node.addresses())
}

fn run(
    setup: &Setup,
    (system, round): (&str, u32),
    entrances: &[SocketAddr],
) -> Result<HitRatioRun, Failure> {
    // content of all targets is as large as all the memory
    let targets = NODES * (memory_mib(setup) << 20) / SIZE_BYTES;
    let path = format!("/ratio/{round}/{}", system.replace(' ', "-"));
    let site = Site::new(path, targets, SIZE_BYTES);
    let half = |half: u64| {
        let load = Load {
            entrances: entrances.to_vec(),
            clients: CLIENTS,
            site: &site,
            pick: Pick::Zipf(site.zipf()),
            requests: targets * REQUESTS_A_TARGET,
            // the same requests for every system
            seed: setup.options.seed + u64::from(round) * 2 + half,
            core: setup.cores.load,
        };
        load.run()
    };
    half(0)?;
    let filled = setup.fetches(&site.path)?;
    let result = half(1)?;
    let all = setup.fetches(&site.path)?;
    Ok(HitRatioRun {
        round,
        system: system.to_owned(),
        targets,
        requests: result.requests,
        origin_requests: all - filled,
        origin_requests_of_all: all,
    })
}
