//! `cargo xtask cluster --figure 13`: figure 13 of M. Aron, P. Druschel, W. Zwaenepoel: Efficient
//! Support for P-HTTP in Cluster-Based Web Servers (USENIX 1999), from nodes that run.
//!
//! All nodes are on one machine: each has little memory and a disk of few reads a second, by
//! control groups, and so takes hardly any CPU. Each has all content, in a copy of its own: the
//! page cache counts for the group that read a page first. Nodes and front ends share one core;
//! clients and the origin, of which the stores of weir were filled, have the other one.

mod content;
mod load;
mod machines;
mod node_kind;
mod nodes;
mod program;
mod responses;
mod run;
mod schedule;
mod setup;
mod systems;
mod table;

use crate::process::affinity::Cores;
use crate::record::Benchmark;
use crate::record::benchmark::{self, Participants};
use clap::{Args, value_parser};
use node_kind::{NodeKind, NodeMemory};
use program::ProgramInMemory;
use responses::Http;
use run::{Run, RunKind, RunLength};
use schedule::Schedule;
use serde::{Deserialize, Serialize};
use setup::Setup;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
pub(crate) use systems::PROGRAMS;
use systems::{SYSTEMS, System};
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

pub(crate) type Record = crate::record::Record<Figures>;

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// The figure of the paper
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(13..=13))]
    figure: u32,
    /// Numbers of nodes, comma separated; of the largest one all is measured, of the others Weir
    /// with persistent connections
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,6", value_parser = value_parser!(u8).range(1..=6))]
    nodes: Vec<u8>,
    /// What is measured, comma separated [default: all]
    #[arg(long, value_delimiter = ',', value_enum)]
    systems: Vec<System>,
    /// What the nodes are, comma separated
    #[arg(long, value_delimiter = ',', value_enum, default_value = "weir,nginx")]
    kinds: Vec<NodeKind>,
    /// How clients speak, comma separated
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "1.0,persistent"
    )]
    http: Vec<Http>,
    /// Runs of each kind, in turn
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How much of the trace is used; less has fewer targets, and nodes have less memory for them
    #[arg(long, default_value_t = 1.0, value_parser = super::scale)]
    scale: f64,
    /// How long memories fill before a run is measured, from disks that are twice as fast
    #[arg(long, value_name = "SECONDS", default_value_t = 45, value_parser = value_parser!(u64).range(1..=3600))]
    fill: u64,
    /// How long each run is measured then
    #[arg(long, default_value_t = 45, value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Reads a second of the disk of a node
    #[arg(long, default_value_t = 40, value_parser = value_parser!(u32).range(1..=1_000_000))]
    reads: u32,
    /// Of the trace
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program to measure [default: it is built]
    #[arg(long, value_name = "FILE")]
    weir: Option<PathBuf>,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    trace: TraceFacts,
    memory: NodeMemory,
    runs: Vec<Run>,
}

/// What clients requested.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TraceFacts {
    name: String,
    requests: u64,
    connections: u64,
    targets: u64,
    content_bytes: u64,
}

/// Room under the limit of open files: each client is two, before the front end and behind it.
const CONNECTIONS: usize = 4096;

impl Benchmark for Figures {
    type Options = Options;

    // not one of the names that begin with `cluster-`, which are records of another kind
    const FILE: &'static str = "figure13";
    const SCHEMA: u32 = 1;

    fn measure(record: &mut Record, file: &Path) -> Result<(), Failure> {
        if !rustix::process::geteuid().is_root() {
            let what = "nodes are limited by control groups, which takes root";
            return Err(Failure::Outside(what.to_owned()));
        }
        let weir = record.settings.weir.clone();
        let find = |weir: PathBuf| {
            let found = std::fs::canonicalize(&weir);
            found.during(format_args!("find `{}`", weir.display()))
        };
        let weir = weir.map(find).transpose()?;
        let with = (CONNECTIONS, weir.map(|weir| weir.display().to_string()));
        let participants = Participants::prepare_with(record, (&PROGRAMS, &[]), &["cp"], with)?;
        measure_all(record, &participants, file)
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = crate::record::markdown::left_out(record);
        faults.extend(benchmark::missed(table::judge(record)));
        faults
    }
}

fn measure_all(
    record: &mut Record,
    participants: &Participants,
    file: &Path,
) -> Result<(), Failure> {
    let options = record.settings.clone();
    record.seed = Some(options.seed.to_string());
    record.figures.cores = Cores::choose()?;
    let workplace = Workplace::make("figure13")?;
    let schedule = Schedule::make(options.scale, options.seed)?;
    let nodes_max = options.nodes.iter().copied().max().unwrap_or(1);
    let copies = 1 + u64::from(nodes_max) * options.kinds.len() as u64;
    content::require_room(workplace.path(), &schedule, copies)?;
    let mut words = participants.words.clone();
    let program = ProgramInMemory::copy(Path::new(&words.fill("@WEIR@")?))?;
    words.set("WEIR", program.path().display());
    let setup = Setup::open(record.figures.cores, &schedule, &words, workplace.path())?;
    record.figures.trace = facts(&schedule);
    record.figures.memory = setup.memory;
    for kind in &options.kinds {
        let begun = Instant::now();
        nodes::prepare(&setup, *kind, usize::from(nodes_max))?;
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("content of {}: {seconds:.0} s", kind.name());
    }
    for round in 1..=options.rounds {
        let length = RunLength {
            round,
            fill: Duration::from_secs(options.fill),
            measured: Duration::from_secs(options.seconds),
            reads_per_s: options.reads,
        };
        for kind in runs(&options) {
            let what = format!("{}, round {round}", kind.name());
            if let Some(run) = record.kept(what.clone(), run::run(&setup, kind, length)) {
                eprintln!(
                    "  {what}: {:.0} requests/s, {:.1} reads for 100, core {:.0} %",
                    run.requests_per_s(),
                    run.reads_percent(),
                    run.core_percent()
                );
                record.figures.runs.push(run);
            }
            // what was measured stays, whatever happens to the runs that follow
            record.write(file)?;
        }
    }
    Ok(())
}

fn facts(schedule: &Schedule) -> TraceFacts {
    TraceFacts {
        name: schedule::TRACE.to_owned(),
        requests: schedule.requests() as u64,
        connections: schedule.connections() as u64,
        targets: schedule.targets() as u64,
        content_bytes: schedule.content_bytes(),
    }
}

/// All runs of a round.
fn runs(options: &Options) -> Vec<RunKind> {
    let systems = match options.systems.as_slice() {
        [] => SYSTEMS.to_vec(),
        some => some.to_vec(),
    };
    let max = options.nodes.iter().copied().max();
    let mut runs = Vec::new();
    for nodes in &options.nodes {
        let is_whole = Some(*nodes) == max;
        for node_kind in &options.kinds {
            for http in &options.http {
                let is_first = *node_kind == NodeKind::Weir && *http == Http::Persistent;
                let systems = systems.iter().copied();
                let these = systems.filter(|it| it.takes_part(*node_kind, *http));
                runs.extend(
                    these
                        .filter(|_| is_whole || is_first)
                        .map(|system| RunKind {
                            system,
                            node_kind: *node_kind,
                            http: *http,
                            nodes: usize::from(*nodes),
                        }),
                );
            }
        }
    }
    runs
}

/// Whether the record has what its table judges.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    table::rows(record).len() == table::ROWS
}

pub(crate) use table::figures as render_figures;

#[cfg(test)]
mod tests {
    use super::*;

    fn options(nodes: &[u8]) -> Options {
        Options {
            figure: 13,
            nodes: nodes.to_vec(),
            systems: Vec::new(),
            kinds: vec![NodeKind::Weir, NodeKind::Nginx],
            http: vec![Http::V1_0, Http::Persistent],
            rounds: 1,
            scale: 1.0,
            fill: 45,
            seconds: 45,
            reads: 40,
            seed: 1,
            weir: None,
        }
    }

    #[test]
    fn smaller_clusters_are_measured_with_weir_and_persistent_connections_alone() {
        let all = runs(&options(&[1, 6]));
        let small: Vec<_> = all.iter().filter(|run| run.nodes == 1).collect();
        assert_eq!(small.len(), SYSTEMS.len());
        let are_first =
            |run: &&RunKind| run.node_kind == NodeKind::Weir && run.http == Http::Persistent;
        assert!(small.iter().all(are_first));
        // peers are weir, and lard by connection takes persistent connections
        assert_eq!(all.len() - small.len(), 8 + 6 + 6 + 5);
    }

    #[test]
    fn connections_at_once_are_those_of_the_papers() {
        let all = runs(&options(&[1, 2, 6]));
        let of = |nodes| {
            all.iter()
                .find(|run| run.nodes == nodes)
                .map(|it| it.clients())
        };
        assert_eq!([1, 2, 6].map(of), [Some(29), Some(109), Some(429)]);
    }

    #[test]
    fn memory_for_the_whole_content_is_64_mib_beside_that_of_the_process() {
        let memory = NodeMemory::for_content(1_015_000_000);
        assert_eq!(memory.cache_mib, 64);
        assert_eq!(memory.group_mib(NodeKind::Weir), 136);
        assert_eq!(memory.group_mib(NodeKind::Nginx), 80);
    }
}
