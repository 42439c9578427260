//! What a hit costs that another node has: CPU time of all processes on its way.

use crate::cluster::Record;
use crate::cluster::load::Load;
use crate::cluster::nodes::{Bed, NodeRules, Nodes};
use crate::cluster::setup::{OwnedBed, Setup};
use crate::cluster::site::{Pick, Site};
use crate::cluster::system::{HAPROXY, System};
use crate::record::markdown::ratio;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use xtask::failure::Failure;

const MEMORY_MIB: u64 = 64;

const SIZE_BYTES: u64 = 1 << 10;

/// So many that two clients seldom request the same one, which would be one fetch.
const TARGETS: u64 = 1000;

/// Of each run at scale 1.
const REQUESTS: u64 = 20_000;

const CLIENTS: u64 = 8;

/// The ways of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cluster) enum Way {
    /// The node that is asked has it.
    Own,
    /// Another node has it, and both prove to know the secret.
    Lateral,
    /// The same without a secret.
    LateralWithoutSecret,
    /// HAProxy is asked, and asks the node that has it.
    HaProxy,
}

/// In the order of the table.
pub(in crate::cluster) const WAYS: [Way; 4] = [
    Way::Own,
    Way::Lateral,
    Way::LateralWithoutSecret,
    Way::HaProxy,
];

impl Way {
    /// For people.
    pub(in crate::cluster) const fn name(self) -> &'static str {
        match self {
            Self::Own => "at the node that is asked",
            Self::Lateral => "at another node",
            Self::LateralWithoutSecret => "at another node, without a secret",
            Self::HaProxy => HAPROXY.name,
        }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct LateralRun {
    pub(in crate::cluster) round: u32,
    pub(in crate::cluster) way: Way,
    pub(in crate::cluster) requests: u64,
    /// Of all processes.
    pub(in crate::cluster) cpu_us: u64,
}

impl LateralRun {
    /// CPU time of a request.
    pub(in crate::cluster) fn cpu_us_per_request(&self) -> f64 {
        ratio(self.cpu_us, self.requests)
    }
}

/// Nodes that are ready, and the targets that clients of the entrance request.
struct Prepared {
    way: Way,
    system: Measured,
    site: Site,
    targets: Vec<u64>,
}

/// Whose CPU time is measured.
enum Measured {
    Nodes(Nodes),
    System(System),
}

impl Measured {
    fn cpu_us(&self) -> u64 {
        match self {
            Self::Nodes(nodes) => nodes.cpu_us().iter().sum(),
            Self::System(system) => system.cpu_us(),
        }
    }

    fn entrance(&self) -> Option<SocketAddr> {
        match self {
            Self::Nodes(nodes) => nodes.addresses().first().copied(),
            Self::System(system) => system.entrances().first().copied(),
        }
    }

    /// Requests to other nodes.
    fn lateral(&self) -> Result<u64, Failure> {
        match self {
            Self::Nodes(nodes) => Ok(nodes.metric("weir_peer_requests_total")?.iter().sum()),
            Self::System(_) => Ok(0),
        }
    }
}

/// Measures all ways in turn, into the record.
pub(in crate::cluster) fn measure(record: &mut Record, setup: &Setup) -> Result<(), Failure> {
    let bed = setup.bed("lateral")?;
    let mut all = Vec::new();
    for way in WAYS {
        let prepared = prepare(setup, &bed, way);
        all.extend(record.kept(format!("hits {}", way.name()), prepared));
    }
    for round in 1..=record.settings.rounds {
        for prepared in &all {
            let what = format!("hits {}, round {round}", prepared.way.name());
            if let Some(run) = record.kept(what, run(setup, prepared, round)) {
                let (name, cpu) = (run.way.name(), run.cpu_us_per_request());
                eprintln!("  {name}: {cpu:.1} us");
                record.figures.laterals.push(run);
            }
        }
    }
    Ok(())
}

fn prepare(setup: &Setup, bed: &OwnedBed<'_>, way: Way) -> Result<Prepared, Failure> {
    let bed = bed.bed();
    let directory = bed.directory.join(format!("{way:?}"));
    let bed = Bed {
        directory: &directory,
        ..bed
    };
    let rules = NodeRules {
        count: if way == Way::Own { 1 } else { 2 },
        memory_mib: MEMORY_MIB,
        // of the other policies some keep copies of what is requested often
        policy: (way != Way::Own).then_some("hash"),
        has_secret: way == Way::Lateral,
    };
    let system = match way {
        Way::HaProxy => Measured::System(System::start(&bed, HAPROXY, (2, MEMORY_MIB))?),
        _ => Measured::Nodes(Nodes::start(&bed, rules)?),
    };
    let site = Site::new(format!("/lateral/{way:?}"), TARGETS, SIZE_BYTES);
    let mut targets: Vec<u64> = (0..TARGETS).collect();
    if let (Measured::Nodes(nodes), Some(_)) = (&system, rules.policy)
        && let [first, other, ..] = nodes.nodes.as_slice()
    {
        let mut others = Vec::new();
        for target in targets {
            if first.owner_of(&site.target(Some(target)))? == other.name {
                others.push(target);
            }
        }
        targets = others;
    }
    let prepared = Prepared {
        way,
        system,
        site,
        targets,
    };
    let fill = Load {
        pick: Pick::InTurn,
        ..load(setup, &prepared, (TARGETS, 0))?
    };
    fill.run()?;
    Ok(prepared)
}

fn run(setup: &Setup, prepared: &Prepared, round: u32) -> Result<LateralRun, Failure> {
    let system = &prepared.system;
    let (used, asked) = (system.cpu_us(), system.lateral()?);
    let requests = setup.scaled(REQUESTS, 1000);
    let load = load(setup, prepared, (requests, u64::from(round)))?;
    let result = load.run()?;
    let cpu_us = system.cpu_us() - used;
    let asked = system.lateral()? - asked;
    let is_lateral = matches!(prepared.way, Way::Lateral | Way::LateralWithoutSecret);
    // two clients that request the same at the same time are served by one fetch
    if is_lateral && asked * 100 < result.requests * 97 {
        let what = format!("only {asked} of {} went to the other node", result.requests);
        return Err(Failure::Refused(what));
    }
    Ok(LateralRun {
        round,
        way: prepared.way,
        requests: result.requests,
        cpu_us,
    })
}

fn load<'a>(
    setup: &Setup,
    prepared: &'a Prepared,
    (requests, round): (u64, u64),
) -> Result<Load<'a>, Failure> {
    let entrance = prepared.system.entrance();
    Ok(Load {
        entrances: vec![entrance.ok_or_else(|| Failure::Refused("no node".to_owned()))?],
        clients: CLIENTS,
        site: &prepared.site,
        pick: Pick::Listed(prepared.targets.clone()),
        requests,
        seed: setup.options.seed + round,
        core: setup.cores.load,
    })
}
