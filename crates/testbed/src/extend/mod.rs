//! `cargo xtask extend`: what modules cost, by what they do and where they run.
//!
//! *Instructions* of a hit are counted by callgrind, as `instructions` does it; *CPU* of requests
//! is measured in the bed of `peers`, all cases in turn; *Table 5* is that of the paper (Pai, Cox,
//! Pai, Zwaenepoel: A Flexible and Efficient Application Programming Interface for a Customizable
//! Proxy Cache. USITS 2003): the response times under PolyMix-3 mini, an open loop at a constant
//! rate, with its columns beside ours. *Read-ahead* is the experiment of `uneven`, with a module in
//! the way of the content; *transcoder* is the time of hits beside images that are converted.

mod cases;
mod copy;
mod costs;
mod counts;
mod cpu;
mod polymix;
mod read_ahead;
mod setup;
mod table;
mod table5;
mod targets;
mod transcoder;

use crate::instructions;
use crate::peers::Run;
use crate::process::affinity::Cores;
use crate::record::Benchmark;
use crate::record::benchmark::{self, Participants};
use crate::record::host;
pub(crate) use cases::PROGRAMS;
use cases::{AGAINST, BASELINE, CASES, Case, Way, Work};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum, value_parser};
use counts::Count;
use cpu::Pair;
use polymix::PolyMixRun;
use read_ahead::ModuleReadAhead;
use serde::{Deserialize, Serialize};
use setup::Setup;
use std::path::{Path, PathBuf};
use std::time::Instant;
use transcoder::TranscoderSet;
use xtask::failure::Failure;
use xtask::workplace::Workplace;

pub(crate) type Record = crate::record::Record<Figures>;

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Part {
    Instructions,
    Cpu,
    Table5,
    ReadAhead,
    Transcoder,
}

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// What is measured, comma separated
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "instructions,cpu,read-ahead,transcoder,table5"
    )]
    parts: Vec<Part>,
    /// A case to measure; may be repeated. The one without a module is always measured [default:
    /// all]
    #[arg(long, value_parser = PossibleValuesParser::new(CASES.each_ref().map(Case::name)))]
    case: Vec<String>,
    /// Requests of the short run under callgrind; the long one has three times as many
    #[arg(long, default_value_t = 2000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    requests: u32,
    /// Length of a run of the CPU time
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Runs of each kind, interleaved over the cases
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Length of PolyMix-3 mini, 1 is the whole scenario of 15 minutes
    #[arg(long, default_value_t = 0.4, value_parser = scale)]
    scale: f64,
    /// Another weir to measure in turn without a module, such as one from before there were any
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Of its requests and content
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn scale(value: &str) -> Result<f64, String> {
    let scale = value.parse().ok();
    let scale = scale.filter(|scale| *scale > 0.0 && *scale <= 1.0);
    scale.ok_or_else(|| "it is not a number above 0 and up to 1".to_owned())
}

impl Options {
    /// The cases that were named, or all.
    fn cases(&self) -> Vec<&'static Case> {
        let is_named = |case: &&Case| {
            let is_named = self.case.is_empty() || self.case.iter().any(|name| name == case.name());
            match case.name() {
                BASELINE => true,
                AGAINST => self.against.is_some(),
                _ => is_named,
            }
        };
        CASES.iter().filter(is_named).collect()
    }
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    counts: Vec<Count>,
    runs: Vec<Run>,
    /// CPU times of the runs beside those of no module next to them; empty in older records.
    #[serde(default)]
    pairs: Vec<Pair>,
    /// Copies of 256 KiB, microseconds each; empty in older records.
    #[serde(default)]
    copies_us: Vec<f64>,
    polymix: Vec<PolyMixRun>,
    read_ahead: Vec<ModuleReadAhead>,
    transcoder: Vec<TranscoderSet>,
}

/// Room under the limit of open files.
const CONNECTIONS: usize = 4000;

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "extend";
    const SCHEMA: u32 = 1;
    const WEIR_FEATURES: &'static str = "wasm";

    fn measure(record: &mut Record, file: &Path) -> Result<(), Failure> {
        let options = record.settings.clone();
        record.seed = Some(options.seed.to_string());
        let tools = [instructions::PROGRAM, "wrk"];
        let all = (&PROGRAMS[..], &[][..]);
        let participants = Participants::prepare(record, all, &tools, CONNECTIONS)?;
        let words = &participants.words;
        for (tool, command) in tools.into_iter().zip(["valgrind --version", "wrk -v"]) {
            let version = host::version(command, words);
            record.versions.insert(tool.to_owned(), version);
        }
        record.figures.cores = Cores::choose()?;
        let workplace = Workplace::make("extend")?;
        let setup = Setup::open(record, &participants, workplace.path());
        for part in options.parts {
            let name = part.to_possible_value();
            let name = name.as_ref().map_or("", PossibleValue::get_name);
            eprintln!("part {name}");
            let begun = Instant::now();
            let measured = match part {
                Part::Instructions => {
                    counts::measure(record, &setup);
                    Ok(())
                }
                Part::Cpu => cpu::measure(record, &setup),
                Part::ReadAhead => read_ahead::measure(record, &setup),
                Part::Transcoder => transcoder::measure(record, &setup),
                Part::Table5 => polymix::measure(record, &setup),
            };
            record.kept(format!("part {name}"), measured);
            eprintln!("part {name} took {:.0} s", begun.elapsed().as_secs_f64());
            // what was measured stays, whatever happens to the parts that follow
            record.write(file)?;
        }
        Ok(())
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = table::troubles(record);
        faults.extend(benchmark::missed(targets::judge(record)));
        faults
    }
}

/// Whether the record has all that the tables of a document show of native modules.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let figures = &record.figures;
    let cases = || {
        CASES
            .iter()
            .filter(|case| {
                case.way == Way::Native
                    && Work::COLUMNS.contains(&case.work)
                    && case.name() != AGAINST
            })
            .map(Case::name)
    };
    let is_counted = |name| figures.counts.iter().any(|count| count.case == name);
    let is_run = |name| figures.runs.iter().any(|run| run.contender == name);
    cases().all(is_counted) && cases().all(is_run)
}
