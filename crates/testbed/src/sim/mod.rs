//! `cargo xtask sim-bench`: how fast the simulator is, and in how much memory.
//!
//! Hits alone are simulated beside libCacheSim on the same trace, and it is seen whether both count
//! the same. The trace is drawn from a seed and written in the form that both read as it is. Rounds
//! alternate, so that a machine that becomes slower does so for both; what is compared is processor
//! time. Packets and connections are simulated on a trace of 1997 that is made for it.
//! `docs/sim-hits.md` and `docs/sim.md` say what the figures mean.
//!
//! Parts can be measured one after the other into one record.

mod files;
mod hits;
mod logs;
mod packets;
pub(crate) mod scale;
mod table;

use crate::record::Benchmark;
use crate::record::benchmark;
use clap::{Args, value_parser};
use files::{MadeTrace, StreamedTrace};
use hits::Hits;
use logs::LogHits;
use packets::{Memory, Packets};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use xtask::failure::Failure;
use xtask::program;
use xtask::workplace::Workplace;

type Record = crate::record::Record<Figures>;

/// The parts that there are.
const PARTS: [&str; 6] = ["hits", "logs", "made", "packets", "memory", "streamed"];

/// Those that are measured if none is named: the others need more than there is everywhere.
const DEFAULT_PARTS: [&str; 5] = ["hits", "made", "packets", "memory", "streamed"];

/// What to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// What is measured, comma separated; a record that is there keeps its other parts
    #[arg(long, value_delimiter = ',', value_parser = PARTS, default_values_t = DEFAULT_PARTS.map(str::to_owned))]
    parts: Vec<String>,
    /// Requests drawn for the trace
    #[arg(long, default_value_t = 10_000_000, value_parser = value_parser!(u64).range(1000..=REQUESTS_MAX))]
    requests: u64,
    /// Responses that they are drawn from, Zipf-like with exponent 0.8
    #[arg(long, default_value_t = 2_000_000, value_parser = value_parser!(u64).range(10..=1 << 31))]
    keys: u64,
    /// Size of the cache, of all responses that are asked for
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=100))]
    percent: u64,
    /// Runs of each, in turn
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Of the traces
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Requests of the trace of 1997 that is made
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1000..=REQUESTS_MAX))]
    made: u64,
    /// Requests at most where memory is looked at; a quarter and a sixteenth of them before
    #[arg(long, default_value_t = 16_000_000, value_parser = value_parser!(u64).range(160_000..=REQUESTS_MAX))]
    memory: u64,
    /// Requests of the long trace, of half as many keys as the other
    #[arg(long, default_value_t = 100_000_000, value_parser = value_parser!(u64).range(1000..=REQUESTS_MAX))]
    streamed: u64,
    /// Folder of the public logs of `cargo xtask oracles`, for the part `logs`
    #[arg(long)]
    #[serde(skip)]
    data: Option<PathBuf>,
    /// A Python that may have the package `libcachesim`
    #[arg(long, default_value = "python3")]
    python: String,
}

const REQUESTS_MAX: u64 = 1_000_000_000;

impl Options {
    fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|named| named == part)
    }

    /// What two measurements must have in common, be they of other parts.
    fn sizes(&self) -> ([u64; 4], [u64; 3]) {
        let drawn = [self.requests, self.keys, self.percent, self.seed];
        (drawn, [self.made, self.memory, self.streamed])
    }
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Hits alone, beside the other.
    hits: Option<Hits>,
    /// Hit ratios on public logs, beside the other.
    #[serde(default)]
    logs: Vec<LogHits>,
    /// Packets and connections on a trace of 1997: each scenario of each round.
    packets: Vec<Packets>,
    /// The proxy alone, for more and more requests of the same keys.
    memory: Vec<Memory>,
    /// A trace made, read and run.
    made: Option<MadeTrace>,
    /// A long trace in a file.
    streamed: Vec<StreamedTrace>,
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "sim";
    const SCHEMA: u32 = 2;

    fn measure(record: &mut Record, file: &Path) -> Result<(), Failure> {
        let options = record.settings.clone();
        resume(record, file)?;
        let weir = program::build(&["-p", "weir-cli", "--bin", "weir"], "weir")?;
        let needs_speed = options.has("packets") || options.has("memory");
        let speed = if needs_speed {
            program::build(&["-p", "weir-sim", "--example", "sim_speed"], "sim_speed")?
        } else {
            String::new()
        };
        let place = Workplace::make("sim-bench")?;
        if options.has("hits") {
            record.figures.hits = Some(hits::measure(&options, &weir, place.path())?);
            record.write(file)?;
        }
        if options.has("logs") {
            record.figures.logs = logs::measure(&options, &weir, place.path())?;
            record.write(file)?;
        }
        if options.has("made") || options.has("packets") {
            let trace = place.path().join("modem-1997.parquet");
            let made = files::make(&weir, "modem-1997", options.made, options.seed, &trace)?;
            eprintln!(
                "made {} requests: {:.1} s",
                made.requests, made.took.seconds
            );
            if options.has("made") {
                record.figures.made = Some(made);
            }
            if options.has("packets") {
                record.figures.packets = packets(&options, &speed, &trace)?;
            }
            record.write(file)?;
        }
        if options.has("memory") {
            record.figures.memory.clear();
            for requests in [options.memory / 16, options.memory / 4, options.memory] {
                let run = packets::memory(&speed, requests, MEMORY_KEYS)?;
                eprintln!("{requests} requests: {} KiB", run.took.peak_rss_kib);
                record.figures.memory.push(run);
            }
            record.write(file)?;
        }
        if options.has("streamed") {
            record.figures.streamed = streamed(&options, &weir, place.path())?;
        }
        Ok(())
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        benchmark::missed(table::targets(record))
    }
}

/// Continues the record in `file`, if parts of it were measured before.
fn resume(record: &mut Record, file: &Path) -> Result<(), Failure> {
    if !file.exists() {
        return Ok(());
    }
    let former = Record::read(file)?;
    // the record itself is a change on top of the commit
    let bare = |commit: &str| commit.split(' ').next().map(str::to_owned);
    let is_same = bare(&former.commit) == bare(&record.commit)
        && former.host.cpu == record.host.cpu
        && former.settings.sizes() == record.settings.sizes();
    if !is_same {
        return Err(Failure::Usage(format!(
            "`{}` is of another commit, machine or size (commit {}): name another file with --out, or remove it",
            file.display(),
            former.commit
        )));
    }
    let command = format!("{}; {}", former.command, record.command);
    *record = Record { command, ..former };
    Ok(())
}

/// Targets of the requests that are drawn where memory is looked at.
const MEMORY_KEYS: u64 = 200_000;

/// Packets and connections.
fn packets(options: &Options, speed: &str, trace: &Path) -> Result<Vec<Packets>, Failure> {
    let mut all = Vec::new();
    for round in 1..=options.rounds {
        for run in packets::measure(speed, trace)? {
            eprintln!(
                "round {round}, {}: {:.0} requests/s",
                run.scenario,
                run.requests_s()
            );
            all.push(run);
        }
    }
    Ok(all)
}

/// A trace of a hundred million requests that is in a file, and one of a tenth beside it: memory
/// must be the same. Of half the keys, so that nearly all of them are requested in either.
fn streamed(options: &Options, weir: &str, place: &Path) -> Result<Vec<StreamedTrace>, Failure> {
    let mut all = Vec::new();
    for requests in [options.streamed / 10, options.streamed] {
        let trace = place.join("long.oracleGeneral.bin");
        eprintln!("drawing {requests} requests");
        let whole = hits::make_trace(weir, requests, options.keys / 2, options.seed, &trace)?;
        let capacity_bytes = whole.footprint_bytes / 100 * options.percent;
        for policy in ["lru", "s3-fifo"] {
            let run = files::stream(weir, policy, capacity_bytes, &trace)?;
            eprintln!(
                "{policy}: {:.1} s, {} KiB",
                run.took.seconds, run.took.peak_rss_kib
            );
            all.push(run);
        }
    }
    Ok(all)
}

/// An empty record with the options that there are without any.
#[cfg(test)]
fn record_of_defaults() -> Record {
    use clap::FromArgMatches;
    let command = Options::augment_args(clap::Command::new("sim-bench"));
    let matches = command.get_matches_from(["sim-bench"]);
    let options = Options::from_arg_matches(&matches).expect("every option has a default");
    Record::begin(options, &[])
}
