//! `cargo xtask attack`: what attacks of a few bytes cost weir, and its other clients.
//!
//! For each attack a weir with its defaults is started on one core. Clients on the other core
//! request a response that is stored, by HTTP/1.1 on connections of their own, before the attack
//! and during it. Before it, a process takes as much CPU time as the attacker and does nothing, as
//! the other clients wait for that, too. The attacker is a process of its own there, with a lower
//! priority, which opens the next connection once one has ended, and takes no more than its share
//! of the core: an attack that costs weir ten times as much can then not fill weir's core.
//!
//! A row is an attack: CPU time of the attacker and the bytes that it sent, kernel included, beside
//! CPU time of weir beyond what the other clients take, the growth of its resident memory at most,
//! and the response times of the others.

mod attacker;
mod attacks;
mod frames;
mod others;
mod renegotiation;
mod role;
mod rounds;
mod session;
mod table;
mod tls;

use crate::process::affinity::Cores;
use crate::proxy::contender::Contender;
use crate::record::Benchmark;
use crate::record::benchmark::{Participants, missed};
use attacker::Report;
use clap::builder::PossibleValuesParser;
use clap::{Args, value_parser};
use others::ResponseTimes;
pub(crate) use role::{Options as AttackerOptions, ROLE, run};
use serde::{Deserialize, Serialize};
use std::path::Path;
use xtask::failure::Failure;

pub(crate) type Record = crate::record::Record<Figures>;

pub(crate) static CONTENDERS: [Contender; 1] = [Contender::WEIR.with("attack")];

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Attacks to run, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(attacks::names()))]
    only: Vec<String>,
    /// Length of an attack, and of the time before it
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Attacks of each kind
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The attacker's share of a core, per cent
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..=100))]
    share: u32,
    /// The weir to attack, instead of one that is built
    #[arg(long, value_name = "FILE")]
    weir: Option<String>,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    runs: Vec<Run>,
}

/// One attack.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    round: u32,
    attack: String,
    attacker: Report,
    /// CPU time of weir in the time before, and during the attack, microseconds.
    before_us: u64,
    during_us: u64,
    /// Resident memory before, and at most during the attack.
    before_kib: u64,
    during_max_kib: u64,
    /// The same in the middle of the attack, and at its end.
    middle_kib: u64,
    end_kib: u64,
    others_before: ResponseTimes,
    others_during: ResponseTimes,
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "attack";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let weir = record.settings.weir.clone();
        let all = (&CONTENDERS[..], &[][..]);
        let mut participants =
            Participants::prepare_with(record, all, &["openssl"], (OPEN_MAX, weir))?;
        record.figures.cores = Cores::choose()?;
        rounds::fill(record, &mut participants)
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = table::troubles(record);
        if record.figures.runs.is_empty() {
            faults.push("nothing was measured".to_owned());
        }
        faults.extend(missed(table::targets(record)));
        faults
    }
}

/// Whether every attack is in the record.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let runs = &record.figures.runs;
    let has = |name: &str| runs.iter().any(|run| run.attack == name);
    attacks::names().all(has)
}

/// Connections that an attack has open at once, at most.
const OPEN_MAX: usize = 500;
