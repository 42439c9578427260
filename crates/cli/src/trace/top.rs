//! `weir trace top`.

use crate::messages::{Failure, give, give_json};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use weir_trace::heavy_hitters::{COLUMNS, HeavyBy, HeavyHitters, HeavyOf, HeavySummary};
use weir_trace::{Meta, Reader};

/// The flags of `weir trace top`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TopFlags {
    /// A trace: of `weir trace import` or `make`, or any Parquet file with its columns
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Of what
    #[arg(long, value_name = "WORD", default_value = "targets")]
    of: Of,

    /// By what
    #[arg(long, value_name = "WORD", default_value = "bytes")]
    by: By,

    /// How many sketches the requests are shared among, by their connections: the workers of a
    /// proxy
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    sketches: u16,

    /// Rows that are printed
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rows: u16,

    /// Print all numbers as JSON
    #[arg(long)]
    json: bool,
}

/// Of what.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Of {
    Targets,
    Servers,
    Clients,
}

/// By what.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    Bytes,
    Requests,
}

/// What `--json` prints.
#[derive(Serialize)]
struct TopOfTrace<'a> {
    file: String,
    meta: &'a Meta,
    #[serde(flatten)]
    summary: &'a HeavySummary,
}

/// Reads the trace once and prints its heavy hitters.
///
/// # Errors
///
/// It is no trace (exit 2), or cannot be read or is damaged (exit 3).
pub(super) fn top(flags: &TopFlags) -> Result<(), Failure> {
    let reader = Reader::open(&flags.file)?;
    let of = match flags.of {
        Of::Targets => HeavyOf::Targets,
        Of::Servers => HeavyOf::Servers,
        Of::Clients => HeavyOf::Clients,
    };
    let by = match flags.by {
        By::Bytes => HeavyBy::Bytes,
        By::Requests => HeavyBy::Requests,
    };
    let mut hitters = HeavyHitters::new(of, by, usize::from(flags.sketches));
    for row in reader.rows(COLUMNS) {
        hitters.add(&row?);
    }
    let summary = hitters.finish(usize::from(flags.rows));
    if !flags.json {
        return give(&text(&summary));
    }
    let found = TopOfTrace {
        file: flags.file.display().to_string(),
        meta: reader.meta(),
        summary: &summary,
    };
    give_json(&found)
}

fn text(summary: &HeavySummary) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: &str| {
        // a string takes all
        let _infallible = writeln!(text, "{what:<42}{value}");
    };
    line("rows", &summary.rows.to_string());
    line("different names", &summary.names.to_string());
    line("sum", &summary.total.to_string());
    line("sketches", &summary.sketches.to_string());
    line(
        "most of what has no counter",
        &summary.resolution.to_string(),
    );
    line(
        "true counts are within the bounds",
        if summary.bounds_hold { "yes" } else { "no" },
    );
    let last = summary.last_of_true_ten;
    let last = last.map_or("not listed".to_owned(), |place| format!("place {place}"));
    line("the last of the true ten", &last);
    let _infallible = writeln!(
        text,
        "\n{:>5} {:>10} {:>16} {:>16} {:>16}  hash",
        "place", "true place", "true count", "at most", "at least"
    );
    for (row, place) in summary.heaviest.iter().zip(1..) {
        let _infallible = writeln!(
            text,
            "{place:>5} {:>10} {:>16} {:>16} {:>16}  {}",
            row.exact_rank,
            row.exact,
            row.count,
            row.count - row.error,
            row.hash
        );
    }
    text
}
