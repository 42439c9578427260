//! `cargo xtask count --check`: whether a request costs more than the newest record has.

use super::case::Case;
use super::{Build, Count, Figures, Quantity, Record, Setup, TOOLS, WEIRS, record_is_whole};
use crate::proxy::contender::{self, WEIR};
use crate::proxy::template::Words;
use crate::record::markdown::{line, row, table};
use crate::record::{host, newest};
use clap::Args;
use std::path::PathBuf;
use xtask::failure::Failure;
use xtask::workplace::Workplace;

/// What the tests use, and CI has built.
const BUILD: Build = Build::Dev;

/// More than this, to the record, fails.
const OVER_MAX: f64 = 1.02;

/// Calls and allocations that come once in many requests are in one run and not in the other.
const SLACK: f64 = 0.1;

/// The same of a follower's allocations: 10.9 to 11.9 were counted of one program, as the response
/// is read in one part or in two. One more in the code is one more here.
const FOLLOWER_SLACK: f64 = 0.5;

/// A case that seems to cost more is counted again, so often in all: what disturbs a run only adds
/// to it.
const ROUNDS_MAX: u32 = 8;

/// What to compare with.
#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// Compare instead of writing a record
    #[arg(long, required = true)]
    check: bool,
    /// The record [default: the newest below records/]
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

/// What is kept, and what is now, of a request.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    case: Case,
    quantity: Quantity,
    kept: f64,
    now: f64,
}

impl Comparison {
    fn is_over(&self) -> bool {
        let slack = match (self.case, self.quantity) {
            (_, Quantity::Instructions) => 0.0,
            (Case::Follower, Quantity::Allocations) => FOLLOWER_SLACK,
            (_, Quantity::SystemCalls | Quantity::ClockReadings | Quantity::Allocations) => SLACK,
        };
        self.now > self.kept * OVER_MAX + slack
    }

    fn percent(&self) -> f64 {
        (self.now / self.kept.max(f64::MIN_POSITIVE) - 1.0) * 100.0
    }
}

/// Counts all cases, and compares.
///
/// # Errors
/// A count is more than two percent over the record; or there is no record, or a case fails.
pub(crate) fn check(options: &CheckOptions) -> Result<(), Failure> {
    let (record, path) = match &options.against {
        Some(file) => (Record::read(file)?, file.display().to_string()),
        None => newest::record::<Figures>(record_is_whole)?,
    };
    contender::prepare(&WEIRS[..1], &[], &TOOLS, false)?;
    let mut words = Words::default();
    words.set("WEIR", BUILD.weir()?);
    words.set("MODULE_TABLES", "");
    let workplace = Workplace::make("count")?;
    let setup = Setup::new(words, BUILD, &workplace)?;
    let quantities = quantities(&record, &setup.words);
    let mut all = Vec::new();
    for case in Case::ALL {
        all.extend(compared(&record, &quantities, &setup, case)?);
    }
    print!("{}", render(&all));
    let over: Vec<String> = all
        .iter()
        .filter(|it| it.is_over())
        .map(described)
        .collect();
    if over.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "requests cost more than {path} has:\n  {}\n\
         hint: where that is worth it, `cargo xtask count` writes a new record; say why in the commit",
        over.join("\n  ")
    )))
}

/// What can be compared: another compiler makes other instructions, and how often clocks are read
/// depends on the time between two requests.
fn quantities(record: &Record, words: &Words) -> Vec<Quantity> {
    let here = host::version("rustc --version", words);
    let there = record.versions.get("rustc").map_or("", String::as_str);
    let is_same = here == there;
    if !is_same {
        println!("instructions are not compared: the record is of {there}, this is {here}");
    }
    let is_compared = |quantity: &Quantity| match quantity {
        Quantity::Instructions => is_same,
        Quantity::ClockReadings => false,
        Quantity::SystemCalls | Quantity::Allocations => true,
    };
    Quantity::ALL.into_iter().filter(is_compared).collect()
}

/// Counts a case until it is not over the record, or as often as is worth it.
fn compared(
    record: &Record,
    quantities: &[Quantity],
    setup: &Setup<'_>,
    case: Case,
) -> Result<Vec<Comparison>, Failure> {
    let mut counts: Vec<Count> = Vec::new();
    for round in 1..=ROUNDS_MAX {
        counts.push(setup.count(case, record.settings.requests, round)?);
        let comparisons = compare(record, quantities, &counts);
        if round == ROUNDS_MAX || !comparisons.iter().any(Comparison::is_over) {
            return Ok(comparisons);
        }
    }
    Ok(Vec::new())
}

/// The least of what was counted of a case, beside the record.
fn compare(record: &Record, quantities: &[Quantity], counts: &[Count]) -> Vec<Comparison> {
    let Some(case) = counts.first().map(|count| count.case) else {
        return Vec::new();
    };
    let comparisons = quantities.iter().filter_map(|&quantity| {
        let each = counts.iter().map(|count| count.each(quantity));
        Some(Comparison {
            case,
            quantity,
            kept: record.figures.least((BUILD, case), quantity)?,
            now: each.min_by(f64::total_cmp)?,
        })
    });
    comparisons.collect()
}

fn described(comparison: &Comparison) -> String {
    let Comparison {
        case,
        quantity,
        kept,
        now,
    } = comparison;
    let (case, quantity) = (case.name(), quantity.name());
    let percent = comparison.percent();
    format!("{case}: {now:.2} {quantity}, {percent:+.1} % of {kept:.2}")
}

fn render(all: &[Comparison]) -> String {
    let mut out = String::new();
    let rows = all.iter().map(|it| {
        row([
            format!("{}, {}", it.case.name(), it.quantity.name()),
            format!("{:.2}", it.now),
            format!("{:.2}", it.kept),
            format!("{:+.2}", it.now - it.kept),
        ])
    });
    let columns = format!("| | {WEIR} | record | more |");
    table(&mut out, "", &columns, rows);
    line(&mut out, "");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::callgrind::ThreadWork;

    fn record(counts: Vec<Count>) -> Record {
        let text = r#"{"schema":1,"command":"cargo xtask count","commit":"none","begun":"now",
            "host":{"cpu":"c","cores":2,"kernel":"k","load_average":"0","memory_kib":"1"},
            "settings":{"builds":["dev"],"cases":["hit"],"requests":100,"rounds":2},"counts":[]}"#;
        let mut record: Record = serde_json::from_str(text).expect("a record");
        record.figures.counts = counts;
        record
    }

    fn count(instructions: u64, system_calls: u64) -> Count {
        Count {
            build: BUILD,
            case: Case::Hit,
            round: 1,
            requests: 100,
            work: ThreadWork {
                instructions,
                system_calls,
                ..ThreadWork::default()
            },
        }
    }

    #[test]
    fn count_fails_only_beyond_two_percent_over_the_least_of_the_record() {
        let record = record(vec![count(1_000_000, 300), count(900_000, 310)]);
        let over = |counts: &[Count]| {
            let all = compare(&record, &Quantity::ALL, counts);
            assert_eq!(all.len(), 4);
            let over = all.iter().filter(|it| it.is_over()).map(|it| it.quantity);
            over.collect::<Vec<Quantity>>()
        };
        assert_eq!(over(&[count(918_000, 316)]), []);
        assert_eq!(over(&[count(918_100, 300)]), [Quantity::Instructions]);
        assert_eq!(over(&[count(900_000, 317)]), [Quantity::SystemCalls]);
        // the least of several counts is what counts
        assert_eq!(over(&[count(999_000, 300), count(900_000, 400)]), []);
        assert!(!record_is_whole(&record), "it has one case");
        let text = described(&compare(&record, &Quantity::ALL, &[count(990_000, 300)])[0]);
        assert_eq!(text, "hit 1 KiB: 9900.00 instructions, +10.0 % of 9000.00");
    }
}
