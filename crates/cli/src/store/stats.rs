//! `weir store stats`: how much is there, and in what state.

use super::directories::{self, failure};
use super::flags::Directories;
use super::ls::word;
use crate::messages::{Failure, give};
use weir_disk::offline::{Directory, RecordState, State, StoredItem, Survey};

const STATES: [RecordState; 4] = [
    RecordState::Live,
    RecordState::Purged,
    RecordState::Superseded,
    RecordState::Doubtful,
];

/// Prints the figures of each directory.
///
/// # Errors
///
/// A directory cannot be read (exit 3).
pub(super) fn stats(named: &Directories) -> Result<(), Failure> {
    for directory in directories::open(named)? {
        let survey = directory.survey().map_err(|error| failure(&error))?;
        give(&text(&directory, &survey))?;
    }
    Ok(())
}

fn text(directory: &Directory, survey: &Survey) -> String {
    let mut text = format!("{}\n", directory.path().display());
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<12} {value}\n"));
    line("directory", directory.volume().directory.to_string());
    let bytes: u64 = survey.segments.iter().map(|segment| segment.bytes).sum();
    let open = survey.segments.iter();
    let open = open.filter(|segment| segment.state == State::Open).count();
    line(
        "segments",
        format!(
            "{}, {bytes} bytes, {open} without a table",
            survey.segments.len()
        ),
    );
    for life in STATES {
        let these = survey
            .records()
            .filter(|found| survey.state_of(directory, found) == life);
        let (count, bytes) = totals(these);
        line(word(life), format!("{count} records, {bytes} bytes"));
    }
    let (count, bytes) = totals(survey.found.iter().filter(|found| found.kind.is_none()));
    line(
        "extents",
        format!("{count}, {bytes} bytes (content of large responses)"),
    );
    line(
        "purges",
        format!(
            "{} in the journal, newest of generation {}",
            directory.purges().entries(),
            directory.purges().newest()
        ),
    );
    line("set aside", format!("{} segments", directory.aside().len()));
    line(
        "problems",
        format!(
            "{} (content was not looked at: `weir store verify`)",
            survey.problems.len()
        ),
    );
    text
}

/// How many there are, and their bytes.
fn totals<'a>(items: impl Iterator<Item = &'a StoredItem>) -> (u64, u64) {
    items.fold((0, 0), |(count, bytes), item| {
        (count + 1, bytes + u64::from(item.bytes))
    })
}
