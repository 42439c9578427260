//! `cargo xtask cluster`: several weirs that share what they store, on this machine, beside one
//! weir with all the memory and beside HAProxy before weirs that know nothing of each other.
//!
//! Nodes, and HAProxy, are confined to one core; clients and the origin have the other one. What is
//! compared is measured in turn, round by round, and by counts or by the CPU time of all processes
//! of a system: on one machine a cluster has no more of it than one node. The table has what is to
//! be reached beside what was reached.

pub(crate) mod figure13;
mod load;
mod nodes;
mod parts;
mod row;
mod setup;
mod site;
mod system;
mod table;
mod targets;

use crate::process::affinity::Cores;
use crate::proxy::template::Words;
use crate::record::Benchmark;
use crate::record::benchmark::{self, Participants};
use crate::uneven::{Herd, SEND_BUFFER_BYTES};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, value_parser};
use parts::choice::{self, ChoiceTime};
use parts::hand_off::{self, HandOffRun};
use parts::hit_ratio::{self, HitRatioRun};
use parts::hot::{self, HotRun};
use parts::join::{self, JoinRun};
use parts::kill::{self, KillRun};
use parts::lateral::{self, LateralRun, Way};
use parts::links::{self, ClusterReadAhead};
use parts::purge::{self, PurgeRun};
use parts::speed::{self, SpeedRun};
use serde::{Deserialize, Serialize};
use setup::Setup;
use std::path::{Path, PathBuf};
use std::time::Instant;
pub(crate) use system::PROGRAMS;
pub(crate) use table::figures as render_figures;
pub(crate) use table::hand_off as render_hand_off;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

pub(crate) type Record = crate::record::Record<Figures>;

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Part {
    /// Three nodes with a third of the memory each, beside one with all of it
    HitRatio,
    /// CPU time of requests that are hits somewhere, beside HAProxy
    Speed,
    /// What the origin is asked when a node joins, beside HAProxy
    Join,
    /// A target that takes a third of all requests
    Hot,
    /// Ten thousand clients and one target that is stored nowhere
    Herd,
    /// How far two nodes are ahead of a slow client
    ReadAhead,
    /// A node is killed under load
    Kill,
    /// CPU time of a hit that another node has
    Lateral,
    /// CPU time of a purge's messages, and time until all nodes have it
    Purge,
    /// Time of a choice among nodes
    Choice,
    /// CPU time of a front end that hands connections over, beside one that passes responses on;
    /// as root
    HandOff,
}

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// What is measured, comma separated
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "hit-ratio,speed,join,hot,herd,read-ahead,kill,lateral,purge,choice"
    )]
    parts: Vec<Part>,
    /// Runs of each kind, interleaved over what is compared
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Size of the measurement: memory, targets and requests; 1 is the whole
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program to measure [default: it is built]
    #[arg(long, value_name = "FILE")]
    weir: Option<PathBuf>,
}

fn scale(value: &str) -> Result<f64, String> {
    let scale = value.parse().ok();
    let scale = scale.filter(|scale| *scale > 0.0 && *scale <= 1.0);
    scale.ok_or_else(|| "it is not a number above 0 and up to 1".to_owned())
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    hit_ratios: Vec<HitRatioRun>,
    speeds: Vec<SpeedRun>,
    joins: Vec<JoinRun>,
    hots: Vec<HotRun>,
    herd: Option<Herd>,
    read_aheads: Vec<ClusterReadAhead>,
    kills: Vec<KillRun>,
    laterals: Vec<LateralRun>,
    #[serde(default)]
    purges: Vec<PurgeRun>,
    choices: Vec<ChoiceTime>,
    #[serde(default)]
    hand_offs: Vec<HandOffRun>,
}

/// Room under the limit of open files: each client of the large herd is one, and so is what a node
/// has open for it.
const CONNECTIONS: usize = 12_000;

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "cluster";
    const SCHEMA: u32 = 1;

    fn measure(record: &mut Record, file: &Path) -> Result<(), Failure> {
        let all = (&PROGRAMS[..], &[][..]);
        let weir = record.settings.weir.clone();
        let find = |weir: PathBuf| {
            let found = std::fs::canonicalize(&weir);
            found.during(format_args!("find `{}`", weir.display()))
        };
        let weir = weir.map(find).transpose()?;
        let weir = weir.map(|weir| weir.display().to_string());
        let with = (CONNECTIONS, weir);
        let participants = Participants::prepare_with(record, all, &[], with)?;
        measure_parts(record, &participants.words, file)
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

/// Measures what the options say, with the programs that are named in `words`.
fn measure_parts(record: &mut Record, words: &Words, file: &Path) -> Result<(), Failure> {
    let options = record.settings.clone();
    record.seed = Some(options.seed.to_string());
    record.figures.cores = Cores::choose()?;
    let workplace = Workplace::make("cluster")?;
    for part in &options.parts {
        let name = part.to_possible_value();
        let name = name.as_ref().map_or("", PossibleValue::get_name).to_owned();
        eprintln!("part {name}");
        let begun = Instant::now();
        let directory = workplace.path().join(&name);
        let buffer = (*part == Part::ReadAhead).then_some(SEND_BUFFER_BYTES);
        let how = (&options, record.figures.cores);
        let setup = Setup::open(how, words, &directory, buffer)?;
        let measured = measure_part(record, &setup, *part);
        record.kept(format!("part {name}"), measured);
        eprintln!("part {name} took {:.0} s", begun.elapsed().as_secs_f64());
        // what was measured stays, whatever happens to the parts that follow
        record.write(file)?;
    }
    Ok(())
}

fn measure_part(record: &mut Record, setup: &Setup, part: Part) -> Result<(), Failure> {
    match part {
        Part::HitRatio => hit_ratio::measure(record, setup),
        Part::Speed => speed::measure(record, setup)?,
        Part::Join => join::measure(record, setup),
        Part::Hot => hot::measure(record, setup),
        Part::Herd => links::herd(record, setup),
        Part::ReadAhead => links::read_aheads(record, setup)?,
        Part::Kill => kill::measure(record, setup),
        Part::Lateral => lateral::measure(record, setup)?,
        Part::Purge => purge::measure(record, setup),
        Part::Choice => {
            let choices = choice::measure(setup.cores.server);
            record.figures.choices = record.kept("choices", choices).unwrap_or_default();
        }
        Part::HandOff => hand_off::measure(record, setup)?,
    }
    Ok(())
}

/// Whether the record has all rows of the table but those of hand-off, which takes root: there is a
/// record of that alone.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    targets::rows_without_root(record).len() == targets::ROWS
}

/// Whether the record has all that is measured of hand-off.
pub(crate) fn record_has_hand_off(record: &Record) -> bool {
    hand_off::table::rows(&record.figures.hand_offs).len() == hand_off::table::ROWS
}

/// CPU time of a hit at the node that is asked, and of one at another node, of both nodes:
/// microseconds.
pub(crate) fn hit_costs_us(record: &Record) -> Option<(f64, f64)> {
    let us = |way| Some(targets::laterals(record, way)?.median);
    Some((us(Way::Own)?, us(Way::Lateral)?))
}

/// CPU time of a message to another node at its sender and at its receiver, microseconds: of purges
/// of the largest cluster.
pub(crate) fn message_costs_us(record: &Record) -> Option<(f64, f64)> {
    let nodes = record.figures.purges.iter().map(|run| run.nodes).max()?;
    let us = |number: fn(&PurgeRun) -> f64| Some(targets::purges(record, nodes, number)?.median);
    Some((us(PurgeRun::sender_us)?, us(PurgeRun::receiver_us)?))
}

/// A choice of the default policy among 16 and among 64 nodes, nanoseconds.
pub(crate) fn choice_ns(record: &Record) -> Option<[f64; 2]> {
    let mut choices = record.figures.choices.iter();
    let choice = choices.find(|choice| choice.policy == system::DEFAULT_POLICY)?;
    Some([choice.ns_of_16_nodes, choice.ns_of_64_nodes].map(weir_measure::float))
}
