//! `weir trace compare`.

use crate::messages::{Failure, give, give_json};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;
use weir_proxy::config::Span;
use weir_trace::Reader;
use weir_trace::compare::{
    Aspect, CompareSettings, Differences, EXAMPLES_MAX, compare as compare_traces, text,
};

/// The flags of `weir trace compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompareFlags {
    /// A trace: a recording, or the rows of a simulation
    #[arg(value_name = "A")]
    a: PathBuf,

    /// Another trace of the same requests
    #[arg(value_name = "B")]
    b: PathBuf,

    /// What must be equal beside the requests
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        value_delimiter = ',',
        default_value = "verdicts,bytes"
    )]
    equal: Vec<What>,

    /// Response times that differ by no more are equal
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    tolerance: Span,

    /// Pairs that are shown of each kind of difference
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = examples)]
    examples: usize,

    /// Print all numbers as JSON
    #[arg(long)]
    json: bool,
}

/// What must be equal, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// How requests were handled
    Verdicts,
    /// What clients received, and how much of it came from the cache
    Bytes,
    /// Response times, within the tolerance
    Times,
}

impl What {
    const fn aspect(self) -> Aspect {
        match self {
            Self::Verdicts => Aspect::Verdicts,
            Self::Bytes => Aspect::Bytes,
            Self::Times => Aspect::Times,
        }
    }

    /// Its word for `--equal`.
    const fn flag(&self) -> &'static str {
        match self {
            Self::Verdicts => "verdicts",
            Self::Bytes => "bytes",
            Self::Times => "times",
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Verdicts => "verdicts",
            Self::Bytes => "bytes",
            Self::Times => "response times",
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    a: String,
    b: String,
    /// Nothing that must be equal differs.
    is_equal: bool,
    #[serde(flatten)]
    found: &'a Differences,
}

/// Reads both traces once and prints where they differ.
///
/// # Errors
///
/// They differ in what must be equal (exit 1); one is no trace or they cannot be compared (2); one
/// cannot be read or is damaged (3).
pub(super) fn compare(flags: &CompareFlags) -> Result<(), Failure> {
    let (a, b) = (Reader::open(&flags.a)?, Reader::open(&flags.b)?);
    let settings = CompareSettings {
        tolerance_us: flags.tolerance.as_micros(),
        examples: flags.examples,
    };
    let found = compare_traces(&a, &b, settings)?;
    let differences = flags.differences(&found);
    let name = |path: &PathBuf| path.display().to_string();
    let (name_a, name_b) = (name(&flags.a), name(&flags.b));
    if flags.json {
        let record = Record {
            a: name_a,
            b: name_b,
            is_equal: differences.is_empty(),
            found: &found,
        };
        give_json(&record)?;
    } else {
        give(&text(&name_a, &name_b, &found))?;
    }
    if differences.is_empty() {
        return Ok(());
    }
    let cause = differences.join("; ");
    Err(Failure::check_said_no("the traces differ", cause).hint(flags.hint(&found)))
}

impl CompareFlags {
    /// What to do: about what no pair says, if that is all that is wrong.
    fn hint(&self, found: &Differences) -> String {
        let is_said = |what: &What| found.is_said(what.aspect());
        let said = |among: &[What]| -> Vec<&str> {
            let said = among.iter().filter(|what| is_said(what));
            said.map(What::flag).collect()
        };
        let asked_for = said(&self.equal);
        let said = if asked_for.is_empty() {
            said(&[What::Verdicts, What::Bytes, What::Times])
        } else {
            asked_for
        };
        if self.equal.iter().all(is_said) || said.is_empty() {
            return "`--equal` says what must be equal, `--tolerance` how nearly times".to_owned();
        }
        format!(
            "a log that was imported, or a trace that was made, does not say all: `--equal {}` compares what both say",
            said.join(",")
        )
    }

    /// What is not as it must be.
    fn differences(&self, found: &Differences) -> Vec<String> {
        let mut differences = Vec::new();
        for what in &self.equal {
            let (name, count) = (what.as_str(), found.different(what.aspect()));
            if count > 0 {
                differences.push(format!("{count} pairs differ in {name}"));
            } else if !found.is_said(what.aspect()) && found.rows.a + found.rows.b > 0 {
                differences.push(format!("no pair has {name} on both sides"));
            }
        }
        let without = found.without_partner.a + found.without_partner.b;
        if without > 0 {
            differences.push(format!("{without} rows have no partner"));
        }
        differences
    }
}

fn examples(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number <= EXAMPLES_MAX);
    number.ok_or_else(|| format!("it is a number from 0 to {EXAMPLES_MAX}"))
}
