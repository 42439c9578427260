//! `cargo xtask instructions`: instructions that weir executes for a request, counted by callgrind,
//! and user memory of an idle connection; of another weir beside it, or beside the numbers of an
//! earlier record, if one is named; and with rules of the operator.
//!
//! Two runs send N and 3N requests over one kept connection, or over several which are readable
//! together. The difference of the busiest thread by 2N is what a request costs: what the start,
//! the first request and the end cost is in both. Counts repeat within a percent or so on a busy
//! machine, where CPU time does not.

pub(crate) mod callgrind;
pub(crate) mod count;
pub(crate) mod counted;
mod rules;
mod run;

use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::idle::Idle;
use crate::record::Benchmark;
use crate::record::benchmark::{Participants, missed};
use crate::record::host;
use crate::record::markdown::{self, COULD_NOT, TARGETS, Target, list, ratio, row, table};
use clap::{Args, value_parser};
pub(crate) use counted::{Counted, Expected};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use xtask::failure::Failure;

/// What counts.
pub(crate) const PROGRAM: &str = callgrind::PROGRAM;

type Record = crate::record::Record<Figures>;

static CONTENDERS: [Contender; 1] = [Contender::WEIR];

/// The other binary, in records and tables.
const AGAINST: &str = "against";

/// The most that a hit may cost with rules of the operator, in hits without.
const WITH_RULES_MAX: f64 = 1.03;

/// What to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Another weir to measure in turn, or a record (`.json`) to compare with
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Hits beside so many rules of the operator, too: none of them for the target, and one
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u16).range(..=256))]
    #[serde(default)]
    rules: u16,
    /// Requests of the short run; the long one has three times as many
    #[arg(long, default_value_t = 2000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    requests: u32,
    /// Idle connections to hold; 0 leaves that part out
    #[arg(long = "idle", default_value_t = 2000, value_parser = value_parser!(u32).range(..=15_000))]
    idle_connections: u32,
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Case {
    /// Stored content of 1 KiB.
    Hit,
    /// The same, of many connections that are readable together.
    HitOfMany,
    /// 1 KiB that may not be stored.
    Forward,
    /// Stored content of 1 KiB, and rules of the operator, none of them for its target.
    HitBesideRules,
    /// The same, and one of the rules is for its target.
    HitByRule,
}

const CASES: [Case; 3] = [Case::Hit, Case::HitOfMany, Case::Forward];

const CASES_OF_RULES: [Case; 2] = [Case::HitBesideRules, Case::HitByRule];

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit 1 KiB",
            Self::HitOfMany => "hit 1 KiB, of 32 connections at once",
            Self::Forward => "forward 1 KiB",
            Self::HitBesideRules => "hit 1 KiB, no rule for it",
            Self::HitByRule => "hit 1 KiB, one rule for it",
        }
    }
}

/// What the requests of one case cost one binary.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count {
    binary: String,
    case: Case,
    /// More requests of the long run.
    requests: u64,
    /// More instructions of its busiest thread.
    instructions: u64,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    counts: Vec<Count>,
    idle: Vec<Idle>,
}

impl Figures {
    /// Instructions of a request.
    fn instructions(&self, binary: &str, case: Case) -> Option<f64> {
        let mut counts = self.counts.iter();
        let count = counts.find(|count| count.binary == binary && count.case == case)?;
        Some(ratio(count.instructions, count.requests))
    }

    /// Bytes of an idle connection.
    fn idle_bytes(&self, binary: &str) -> Option<f64> {
        let mut idle = self.idle.iter().filter(|idle| idle.trouble.is_none());
        let idle = idle.find(|idle| idle.contender == binary)?;
        Some(ratio(idle.bytes_per_connection(), 1))
    }
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "instructions";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: every request is the same, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let connections = usize::try_from(record.settings.idle_connections).unwrap_or(usize::MAX);
        let all = (&CONTENDERS[..], &[][..]);
        let participants = Participants::prepare(record, all, &[callgrind::PROGRAM], connections)?;
        let words = &participants.words;
        let version = host::version("valgrind --version", words);
        record
            .versions
            .insert(callgrind::PROGRAM.to_owned(), version);
        run::measure(record, words)
    }

    fn render(record: &Record) -> String {
        let figures = &record.figures;
        let mut out = format!("{}.\n\n", markdown::origin(record, "; "));
        markdown::versions(&mut out, record);
        let rows = CASES.map(|case| {
            let of = |binary| figures.instructions(binary, case);
            compared(&format!("instructions, {}", case.name()), of)
        });
        let idle = compared("bytes of an idle connection", |binary| {
            figures.idle_bytes(binary)
        });
        let rows: Vec<String> = rows.into_iter().chain([idle]).flatten().collect();
        let columns = format!("| | {WEIR} | {AGAINST} | {WEIR} / {AGAINST} |");
        table(
            &mut out,
            "### Cost of a request and of a connection",
            &columns,
            rows,
        );
        let rows = CASES_OF_RULES
            .into_iter()
            .filter_map(|case| with_rules(figures, case));
        let rows = rows.map(|(case, instructions, ratio)| {
            row([
                case.name().to_owned(),
                format!("{instructions:.0}"),
                format!("{ratio:.3}"),
            ])
        });
        let title = format!("### Cost of {} rules", record.settings.rules);
        table(&mut out, &title, "| | instructions | to no rules |", rows);
        list(&mut out, TARGETS, targets(record));
        list(&mut out, COULD_NOT, troubles(record));
        out
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = troubles(record);
        faults.extend(missed(targets(record)));
        if record.figures.counts.is_empty() && record.figures.idle.is_empty() {
            faults.push("nothing was measured".to_owned());
        }
        faults
    }
}

/// Whether weir is in the record with every case and idle connections.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let figures = &record.figures;
    let has = |case| figures.instructions(WEIR, case).is_some();
    // older ones have no hits of many connections
    [Case::Hit, Case::Forward].into_iter().all(has) && figures.idle_bytes(WEIR).is_some()
}

/// What a hit costs with rules, instructions and in hits without; `None` if it was not measured.
fn with_rules(figures: &Figures, case: Case) -> Option<(Case, f64, f64)> {
    let with = figures.instructions(WEIR, case)?;
    let without = figures.instructions(WEIR, Case::Hit)?;
    Some((case, with, with / without))
}

/// What is agreed of rules: those that are not for a target cost its hits little.
fn targets(record: &Record) -> Vec<Target> {
    let beside = with_rules(&record.figures, Case::HitBesideRules);
    let target = beside.map(|(case, _, ratio)| {
        let what = format!(
            "{} rules, {}: {ratio:.3} x no rules, at most {WITH_RULES_MAX:.3}",
            record.settings.rules,
            case.name()
        );
        Target::new(what, ratio <= WITH_RULES_MAX)
    });
    target.into_iter().collect()
}

/// A row of both binaries; `None` if neither has a number.
fn compared(what: &str, of: impl Fn(&'static str) -> Option<f64>) -> Option<String> {
    let (weir, against) = (of(WEIR), of(AGAINST));
    let ratio = weir.zip(against).map(|(weir, against)| weir / against);
    let cell = |number: Option<f64>, digits: usize| {
        number.map_or_else(String::new, |number| format!("{number:.digits$}"))
    };
    let cells = [
        what.to_owned(),
        cell(weir, 0),
        cell(against, 0),
        cell(ratio, 3),
    ];
    (weir.is_some() || against.is_some()).then(|| row(cells))
}

fn troubles(record: &Record) -> Vec<String> {
    let idle = record.figures.idle.iter().filter_map(|idle| {
        let trouble = idle.trouble.as_ref()?;
        Some(format!("idle, {}: {trouble}", idle.contender))
    });
    markdown::left_out(record).into_iter().chain(idle).collect()
}
