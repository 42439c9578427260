//! `weir trace stats`.

use crate::messages::{Failure, give, give_json};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use weir_trace::stats::{COLUMNS, Stats, Summary, text};
use weir_trace::{Meta, Reader};

/// The flags of `weir trace stats`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatsFlags {
    /// A trace: of `weir trace import` or `make`, or any Parquet file with its columns
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print all numbers as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints: null is what the trace does not say.
#[derive(Serialize)]
struct TraceStatistics<'a> {
    file: String,
    meta: &'a Meta,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Reads the trace once and prints what is in it.
///
/// # Errors
///
/// It is no trace (exit 2), or cannot be read or is damaged (exit 3).
pub(super) fn stats(flags: &StatsFlags) -> Result<(), Failure> {
    let reader = Reader::open(&flags.file)?;
    let mut stats = Stats::default();
    for row in reader.rows(COLUMNS) {
        stats.add(&row?);
    }
    let summary = stats.finish();
    let name = flags.file.display().to_string();
    if !flags.json {
        return give(&text(&name, reader.meta(), &summary));
    }
    let found = TraceStatistics {
        file: name,
        meta: reader.meta(),
        summary: &summary,
    };
    give_json(&found)
}
