//! A target becomes hot: how many requests the busiest node serves, and how soon all nodes have it.

use crate::cluster::Record;
use crate::cluster::load::Load;
use crate::cluster::setup::Setup;
use crate::cluster::site::{Pick, Site};
use crate::cluster::system::{SYSTEMS, System, SystemKind};
use crate::record::markdown::ratio;
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use xtask::failure::Failure;

const NODES: usize = 4;

const MEMORY_MIB: u64 = 64;

const TARGETS: u64 = 2000;

const SIZE_BYTES: u64 = 8 << 10;

/// Of all requests, those for the hot target.
const HOT_SHARE: f64 = 0.3;

/// As many as keep some requests outstanding at each node.
const CLIENTS: u64 = 64;

/// From when on nodes are looked at, after the target became hot: by then it should be replicated.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// How long nodes are looked at, at scale 1; a tenth of that is the least.
const LOOK_MS: u64 = 4000;

/// The metric of requests that a node served, those of other nodes included.
const SERVED: &str = "weir_requests_total";

/// What became of a hot target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct HotRun {
    pub(in crate::cluster) round: u32,
    pub(in crate::cluster) system: String,
    /// Of the clients, all of them.
    pub(in crate::cluster) requests: u64,
    pub(in crate::cluster) hot_requests: u64,
    pub(in crate::cluster) lasts_ms: u64,
    /// By node, from a second on: requests that it served, for clients and for other nodes.
    pub(in crate::cluster) served: Vec<u64>,
    /// The same of its CPU time.
    pub(in crate::cluster) cpu_us: Vec<u64>,
    /// When the last response for the target came that was fetched from another node.
    pub(in crate::cluster) last_fetched_ms: Option<u64>,
}

impl HotRun {
    /// Requests of the busiest node, as a multiple of the mean.
    pub(in crate::cluster) fn busiest(&self) -> f64 {
        busiest(&self.served)
    }

    /// CPU time of the busiest node, as a multiple of the mean.
    pub(in crate::cluster) fn busiest_by_cpu(&self) -> f64 {
        busiest(&self.cpu_us)
    }

    /// Whether each node had the target itself before the end, and stayed with that.
    pub(in crate::cluster) fn is_replicated(&self) -> bool {
        let last = self.last_fetched_ms.unwrap_or_default();
        last < self.lasts_ms / 2
    }
}

fn busiest(by_node: &[u64]) -> f64 {
    let max = by_node.iter().copied().max().unwrap_or_default();
    let nodes = u64::try_from(by_node.len()).unwrap_or_default();
    ratio(max * nodes, by_node.iter().sum())
}

/// Measures all systems in turn, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) {
    for round in 1..=record.settings.rounds {
        for kind in SYSTEMS {
            let what = format!("a hot target, {}, round {round}", kind.name);
            if let Some(run) = record.kept(what, run(setup, kind, round)) {
                eprintln!("  {run:?} busiest {:.2}", run.busiest());
                record.figures.hots.push(run);
            }
        }
    }
}

fn run(setup: &Setup, kind: SystemKind, round: u32) -> Result<HotRun, Failure> {
    let bed = setup.bed(&format!("hot-{round}"))?;
    let system = System::start(&bed.bed(), kind, (NODES, MEMORY_MIB))?;
    let path = format!("/hot/{round}/{}", kind.name.replace(' ', "-"));
    let targets = setup.scaled(TARGETS, 100);
    let site = Site::new(path, targets, SIZE_BYTES);
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
    let hot = load(Pick::Hot(HOT_SHARE, site.zipf()), u64::MAX);
    let look = Duration::from_millis(setup.scaled(LOOK_MS, LOOK_MS / 10));
    let (result, (served, cpu_us)) = hot.run_while(|_| look_at(&system, look))?;
    let result = result.without_failures()?;
    Ok(HotRun {
        round,
        system: kind.name.to_owned(),
        requests: result.requests,
        hot_requests: result.hot_requests,
        lasts_ms: millis(result.duration),
        served,
        cpu_us,
        last_fetched_ms: result.last_hot_miss.map(millis),
    })
}

/// Requests that each node served in a while, and its CPU time.
fn look_at(system: &System, look: Duration) -> Result<(Vec<u64>, Vec<u64>), Failure> {
    let begun = Instant::now();
    std::thread::sleep(LOOK_AFTER);
    let (served, cpu_us) = (system.nodes.metric(SERVED)?, system.nodes.cpu_us());
    std::thread::sleep((LOOK_AFTER + look).saturating_sub(begun.elapsed()));
    let later = (system.nodes.metric(SERVED)?, system.nodes.cpu_us());
    let differences = |before: &[u64], after: &[u64]| {
        let pairs = before.iter().zip(after);
        pairs.map(|(before, after)| after - before).collect()
    };
    Ok((
        differences(&served, &later.0),
        differences(&cpu_us, &later.1),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busiest_node_is_beside_the_mean_of_all() {
        assert!((busiest(&[100, 100, 100, 100]) - 1.0).abs() < 1e-9);
        assert!((busiest(&[250, 50, 50, 50]) - 2.5).abs() < 1e-9);
        assert!(busiest(&[]) < 1e-9);
    }
}
