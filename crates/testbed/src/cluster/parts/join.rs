//! A node joins: what the origin is asked again.

use crate::cluster::Record;
use crate::cluster::load::Load;
use crate::cluster::setup::Setup;
use crate::cluster::site::{Pick, Site};
use crate::cluster::system::{HAPROXY, SYSTEMS, System, SystemKind};
use serde::{Deserialize, Serialize};
use xtask::failure::Failure;

/// Nodes before one joins.
const NODES: usize = 3;

const MEMORY_MIB: u64 = 64;

const TARGETS: u64 = 2000;

const SIZE_BYTES: u64 = 8 << 10;

/// Requests for each target, on average, before the node is there and once it is: all but a few are
/// requested.
const REQUESTS_A_TARGET: u64 = 6;

const CLIENTS: u64 = 16;

/// What the origin had to answer when a node joined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct JoinRun {
    pub(in crate::cluster) round: u32,
    pub(in crate::cluster) system: String,
    pub(in crate::cluster) targets: u64,
    /// After the node had joined.
    pub(in crate::cluster) requests: u64,
    pub(in crate::cluster) origin_requests: u64,
}

/// Measures the default of clusters and the front end, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) {
    for round in 1..=record.settings.rounds {
        for kind in [SYSTEMS[0], HAPROXY] {
            let what = format!("a node joins, {}, round {round}", kind.name);
            if let Some(run) = record.kept(what, run(setup, kind, round)) {
                eprintln!("  {run:?}");
                record.figures.joins.push(run);
            }
        }
    }
}

fn run(setup: &Setup, kind: SystemKind, round: u32) -> Result<JoinRun, Failure> {
    let bed = setup.bed(&format!("join-{round}"))?;
    let mut system = System::start(&bed.bed(), kind, (NODES, MEMORY_MIB))?;
    let path = format!("/join/{round}/{}", kind.name.replace(' ', "-"));
    let targets = setup.scaled(TARGETS, 100);
    let site = Site::new(path, targets, SIZE_BYTES);
    let load = |system: &System, pick, requests| {
        let load = Load {
            entrances: system.entrances(),
            clients: CLIENTS,
            site: &site,
            pick,
            requests,
            seed: setup.options.seed + u64::from(round),
            core: setup.cores.load,
        };
        load.run()
    };
    load(&system, Pick::InTurn, targets)?;
    // a front end that bounds load has some targets fetched by several nodes: that is not for the
    // one that joins
    let requests = targets * REQUESTS_A_TARGET;
    load(&system, Pick::Uniform(targets), requests)?;
    let before = setup.fetches(&site.path)?;
    system.join(&bed.bed())?;
    let result = load(&system, Pick::Uniform(targets), requests)?;
    Ok(JoinRun {
        round,
        system: kind.name.to_owned(),
        targets,
        requests: result.requests,
        origin_requests: setup.fetches(&site.path)? - before,
    })
}
