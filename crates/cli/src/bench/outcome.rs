//! What is done with a record when a run is over.

use crate::messages::{Failure, give, tell};
use std::path::Path;
use weir_bench::record;
use weir_bench::report::{self, RecordFile};
use weir_measure::record::Record;
use weir_workload::output;

/// Writes it, prints its table, and says whether it is valid.
///
/// # Errors
/// The run is not valid (exit 1), or the file cannot be written.
pub(super) fn settle(record: Record, path: &Path) -> Result<(), Failure> {
    let RecordFile { record, .. } = keep(record, path)?;
    give(&record::text(&record))?;
    verdict(&[record])
}

/// Writes the report of an experiment's runs, and says whether all of them are valid.
///
/// # Errors
/// A run is not valid or the experiment was interrupted (exit 1), or the report cannot be written.
pub(super) fn finish(
    experiment: &str,
    runs: Vec<RecordFile>,
    folder: &Path,
    is_interrupted: bool,
) -> Result<(), Failure> {
    if !runs.is_empty() {
        let page = folder.join("report.html");
        report::write(&runs, &page, Some(&folder.join("figures")))?;
        tell(&format!("report: {}", page.display()));
    }
    if is_interrupted {
        return Err(Failure::check_said_no(
            format!("the {experiment} is not whole"),
            format!("interrupted after {} runs", runs.len()),
        ));
    }
    let records: Vec<Record> = runs.into_iter().map(|run| run.record).collect();
    verdict(&records)
}

/// Tries where results are to go, before hours are spent on them.
///
/// # Errors
/// A file cannot be written (exit 3).
pub(super) fn try_files<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Failure> {
    paths
        .into_iter()
        .try_for_each(|path| output::try_path(path).map_err(|error| Failure::output(path, &error)))
}

/// Writes it.
pub(super) fn keep(record: Record, path: &Path) -> Result<RecordFile, Failure> {
    record::write(&record, path)?;
    let file = path.display().to_string();
    tell(&format!("record: {file}"));
    Ok(RecordFile { file, record })
}

/// All of them are valid.
pub(super) fn verdict(records: &[Record]) -> Result<(), Failure> {
    let mut invalid = records.iter().filter(|record| !record.is_valid).peekable();
    let Some(first) = invalid.peek() else {
        return Ok(());
    };
    let cause = first.reasons.first().cloned().unwrap_or_default();
    let count = invalid.clone().count();
    let what = match records.len() {
        1 => "the run is not valid".to_owned(),
        all => format!("{count} of {all} runs are not valid"),
    };
    let more: usize = invalid.map(|record| record.reasons.len()).sum::<usize>() - 1;
    let hint = (more > 0).then(|| format!("there are {more} more reasons in the record"));
    Err(Failure::check_said_no(what, cause).hint_if(hint))
}
