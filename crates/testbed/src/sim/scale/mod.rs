//! `cargo xtask scale`: networks of up to 1024 caches, simulated by `weir sim cluster --model
//! caches`, and how long and in how much memory. What one node is measured to cost, from other
//! records, and what comes of both: what a large site would need, and what breaks first
//! (`docs/scale.md`).

pub(crate) mod costs;
pub(crate) mod limits;
pub(crate) mod needs;
pub(crate) mod networks;
pub(crate) mod table;

use crate::process::child::{self, RunCost};
use crate::record::Benchmark;
use crate::record::benchmark;
use crate::record::markdown::Target;
use clap::{Args, value_parser};
use networks::Networks;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_measure::float;
use xtask::failure::{During, Failure};
use xtask::program;

pub(crate) type Record = crate::record::Record<Figures>;

/// What to simulate; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Requests of the trace `web-2026`
    #[arg(long, default_value_t = 100_000_000, value_parser = value_parser!(u64).range(1000..=1_000_000_000))]
    requests: u64,
    /// Sizes of the networks, comma separated
    #[arg(long, value_delimiter = ',', value_parser = value_parser!(u16).range(1..=1024), default_values_t = NODES)]
    nodes: Vec<u16>,
    /// One target in so many is simulated
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(1..))]
    sample: u32,
    /// Of the trace, the sample, and where targets are kept
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program that simulates [default: it is built]
    #[arg(long, value_name = "FILE")]
    weir: Option<PathBuf>,
}

const NODES: [u16; 6] = [1, 4, 16, 64, 256, 1024];

/// Memory that the simulation of the largest network may take.
const MEMORY_MAX_KIB: u64 = 4 << 20;

/// What was simulated, and what it took.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    took: RunCost,
    /// What the command printed.
    output: serde_json::Value,
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "scale";
    const SCHEMA: u32 = 1;

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let options = record.settings.clone();
        record.seed = Some(options.seed.to_string());
        let weir = match &options.weir {
            Some(weir) => weir.display().to_string(),
            None => program::build(&["-p", "weir-cli", "--bin", "weir"], "weir")?,
        };
        let (output, took) = child::run_json(&mut simulation(&weir, &options))?;
        record.figures = Figures { took, output };
        Ok(())
    }

    fn render(record: &Record) -> String {
        networks(record).map_or_else(
            |failure| format!("{failure}\n"),
            |networks| table::render(record, &networks),
        )
    }

    fn faults(record: &Record) -> Vec<String> {
        let peak_kib = record.figures.took.peak_rss_kib;
        let gib = float(peak_kib) / float(1 << 20);
        let what = format!("memory: {gib:.2} GiB, to reach: below 4 GiB");
        benchmark::missed(vec![Target::new(what, peak_kib < MEMORY_MAX_KIB)])
    }
}

fn simulation(weir: &str, options: &Options) -> Command {
    let nodes: Vec<String> = options.nodes.iter().map(u16::to_string).collect();
    let mut command = Command::new(weir);
    command
        .args(["sim", "cluster", "web-2026", "--model", "caches"])
        .args(["--requests", &options.requests.to_string()])
        .args(["--nodes", &nodes.join(",")])
        .args(["--sample", &options.sample.to_string()])
        .args(["--seed", &options.seed.to_string(), "--json"]);
    command
}

/// What was simulated.
///
/// # Errors
/// The command has printed something else.
pub(crate) fn networks(record: &Record) -> Result<Networks, Failure> {
    let output = record.figures.output.clone();
    serde_json::from_value(output).during("understand the networks of a record")
}

/// Whether the record has the networks that tables need: the smallest and the largest.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let sizes: Vec<u16> = networks(record).map_or_else(
        |_| Vec::new(),
        |networks| networks.all().iter().map(|it| it.nodes).collect(),
    );
    NODES.iter().all(|nodes| sizes.contains(nodes))
}
