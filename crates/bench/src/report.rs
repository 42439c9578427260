//! Records as a page: the best proxies, then figures, then the numbers and their sources.
//!
//! One HTML file that holds everything: drawings are SVG with text in it, there is no script, and
//! nothing is fetched. It is drawn by `plotters`; each figure can be had as a file of its own too.
//!
//! The main choice: a report is a function of records alone. Whatever it says can be computed again
//! from the files it names, and runs that were made on different days lie side by side.
//!
//! Runs are compared with each other only where scenario, seed, links and host are equal; a run
//! that was repeated is a median and a range.
//!
//! Deliberately absent: thresholds that call a proxy good or bad, and statistics over repetitions
//! that were not made.

mod comparison;
mod conditions;
mod figures;
mod median_range;
mod metric;
mod modem;
mod page;
mod paper;
mod phase_tables;
mod provenance;
mod source;
mod summary;
mod table;
mod validity;

pub use source::{RecordFile, read};

use crate::failure::Failure;
use std::path::Path;
use weir_measure::record::Record;
use weir_workload::{Scenario, Workload, output};

/// Writes the report of some runs into one HTML file, and each figure as an SVG file into the
/// directory `figures`, if one is named. Directories are made.
///
/// # Errors
/// There is no run, or a file cannot be written.
pub fn write(runs: &[RecordFile], out: &Path, figures: Option<&Path>) -> Result<(), Failure> {
    if runs.is_empty() {
        return Err(
            Failure::usage("cannot write a report", "no record was named")
                .with_hint("name the files that `weir bench run`, `sweep` or `modem` wrote"),
        );
    }
    let page = page::page(runs);
    put(out, &page.html)?;
    let Some(directory) = figures else {
        return Ok(());
    };
    for figure in &page.figures {
        let file = directory.join(format!("{}.svg", figure.name));
        put(&file, &weir_report::file(figure))?;
    }
    Ok(())
}

/// A load that is offered whether it is answered or not. What cannot be read is taken for a closed
/// loop.
fn is_open_loop(record: &Record) -> bool {
    let scenario = Scenario::parse("the record's scenario", &record.scenario);
    scenario
        .is_ok_and(|scenario| matches!(scenario.workload, Workload::PolyMix(_) | Workload::Web(_)))
}

/// A name as part of a file's name: letters, digits and hyphens.
fn file_name(name: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() {
            character.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    name.chars().take(40).map(plain).collect()
}

fn put(file: &Path, text: &str) -> Result<(), Failure> {
    output::write(file, text.as_bytes()).map_err(|error| {
        let what = format!("cannot write `{}`", file.display());
        Failure::output(what, file, &error)
    })
}
