//! What is done with a record when a run is over.

use crate::messages::{Exit, Failure, give, tell};
use std::path::Path;
use weir_bench::record;
use weir_measure::record::Record;
use weir_workload::output;

/// Writes it, prints its table, and says whether it is valid.
///
/// # Errors
/// The run is not valid (exit 1), or the file cannot be written.
pub(super) fn settle(record: &Record, path: &Path) -> Result<(), Failure> {
    keep(record, path)?;
    give(&record::text(record))?;
    verdict(std::slice::from_ref(record))
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
pub(super) fn keep(record: &Record, path: &Path) -> Result<(), Failure> {
    record::write(record, path)?;
    tell(&format!("record: {}", path.display()));
    Ok(())
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
    Err(Failure {
        exit: Exit::CheckSaidNo,
        what,
        cause,
        hint: (more > 0).then(|| format!("there are {more} more reasons in the record")),
    })
}
