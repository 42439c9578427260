//! CPU time of requests whose responses all fit into the nodes' memory, all systems in turn.

use crate::cluster::Record;
use crate::cluster::load::Load;
use crate::cluster::setup::Setup;
use crate::cluster::site::{Pick, Site};
use crate::cluster::system::{HAPROXY, SYSTEMS, System};
use crate::record::markdown::ratio;
use serde::{Deserialize, Serialize};
use xtask::failure::Failure;

const NODES: usize = 4;

const MEMORY_MIB: u64 = 64;

const TARGETS: u64 = 2000;

const SIZE_BYTES: u64 = 8 << 10;

/// Of each run at scale 1.
const REQUESTS: u64 = 20_000;

const CLIENTS: u64 = 32;

/// One run of a system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct SpeedRun {
    pub(in crate::cluster) round: u32,
    pub(in crate::cluster) system: String,
    pub(in crate::cluster) requests: u64,
    pub(in crate::cluster) duration_us: u64,
    /// Of all processes of the system.
    pub(in crate::cluster) cpu_us: u64,
    /// Responses that the node had that was asked by the client, or by the front end.
    pub(in crate::cluster) hits_here: u64,
    /// A front end that bounds load sends requests to nodes that do not have the response.
    pub(in crate::cluster) origin_requests: u64,
}

impl SpeedRun {
    /// CPU time of a request.
    pub(in crate::cluster) fn cpu_us_per_request(&self) -> f64 {
        ratio(self.cpu_us, self.requests)
    }

    /// Requests that a second of CPU time is enough for.
    pub(in crate::cluster) fn requests_per_cpu_second(&self) -> f64 {
        ratio(self.requests * 1_000_000, self.cpu_us)
    }

    /// Per cent.
    pub(in crate::cluster) fn hits_here_percent(&self) -> f64 {
        100.0 * ratio(self.hits_here, self.requests)
    }
}

/// Starts all systems, fills them, and measures them in turn, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) -> Result<(), Failure> {
    let bed = setup.bed("speed")?;
    let mut systems = Vec::new();
    for kind in SYSTEMS {
        let started = System::start(&bed.bed(), kind, (NODES, MEMORY_MIB));
        let filled = started.and_then(|system| fill(setup, system));
        systems.extend(record.kept(format!("speed of {}", kind.name), filled));
    }
    for round in 1..=record.settings.rounds {
        for (system, site) in &systems {
            let name = system.kind.name;
            let run = run(setup, (system, site), round);
            if let Some(run) = record.kept(format!("speed of {name}, round {round}"), run) {
                let (cpu, here) = (run.cpu_us_per_request(), run.hits_here_percent());
                eprintln!("  {name}: {cpu:.1} us, {here:.0} % here");
                record.figures.speeds.push(run);
            }
        }
    }
    Ok(())
}

/// All responses are stored, and what is often requested is where it will be.
fn fill(setup: &Setup, system: System) -> Result<(System, Site), Failure> {
    let path = format!("/speed/{}", system.kind.name.replace(' ', "-"));
    let targets = setup.scaled(TARGETS, 100);
    let site = Site::new(path, targets, SIZE_BYTES);
    for (pick, requests) in [
        (Pick::InTurn, targets),
        (Pick::Zipf(site.zipf()), setup.scaled(REQUESTS, 1000)),
    ] {
        load(setup, (&system, &site), pick, (requests, 0)).run()?;
    }
    Ok((system, site))
}

/// One run, of which no request of a cluster reaches the origin.
fn run(setup: &Setup, (system, site): (&System, &Site), round: u32) -> Result<SpeedRun, Failure> {
    let (fetched, used) = (setup.fetches(&site.path)?, system.cpu_us());
    let requests = setup.scaled(REQUESTS, 1000);
    let how = (requests, u64::from(round));
    let result = load(setup, (system, site), Pick::Zipf(site.zipf()), how).run()?;
    let cpu_us = system.cpu_us() - used;
    let origin_requests = setup.fetches(&site.path)? - fetched;
    if origin_requests > 0 && system.kind != HAPROXY {
        let what = format!("{origin_requests} requests reached the origin");
        return Err(Failure::Refused(what));
    }
    Ok(SpeedRun {
        round,
        system: system.kind.name.to_owned(),
        requests: result.requests,
        duration_us: u64::try_from(result.duration.as_micros()).unwrap_or(u64::MAX),
        cpu_us,
        hits_here: result.hits_here,
        origin_requests,
    })
}

fn load<'a>(
    setup: &Setup,
    (system, site): (&System, &'a Site),
    pick: Pick,
    (requests, round): (u64, u64),
) -> Load<'a> {
    Load {
        entrances: system.entrances(),
        clients: CLIENTS,
        site,
        pick,
        requests,
        seed: setup.options.seed + round,
        core: setup.cores.load,
    }
}
