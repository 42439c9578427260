//! `weir store stats`: how much is there, and in what state.

use super::flags::WholeStore;
use super::source::{self, Source, failure};
use crate::messages::{Failure, give, give_json};
use weir_disk::offline::{Directory, RecordState, State, Survey};
use weir_proxy::on_disk::report::{DirectoryStats, Totals};

/// Prints the figures of each directory.
///
/// # Errors
///
/// A directory cannot be read, or the proxy that uses it does not answer (exit 3).
pub(super) fn stats(flags: &WholeStore) -> Result<(), Failure> {
    let mut all: Vec<DirectoryStats> = Vec::new();
    match source::open(&flags.store(), "stats")? {
        Source::Files(directories) => {
            for directory in &directories {
                let survey = directory.survey().map_err(|error| failure(&error))?;
                all.push(of(directory, &survey));
            }
        }
        Source::Proxy(proxy) => {
            let mut take = |page: Vec<DirectoryStats>| {
                for part in page {
                    match all.last_mut() {
                        Some(last) if last.directory == part.directory => last.merge(&part),
                        _ => all.push(part),
                    }
                }
                Ok(())
            };
            proxy.each_page("stats?", "cannot count what is stored", &mut take)?;
        }
    }
    if flags.json {
        return give_json(&all);
    }
    all.iter().try_for_each(|stats| give(&text(stats)))
}

fn of(directory: &Directory, survey: &Survey) -> DirectoryStats {
    let open = survey.segments.iter();
    let open = open.filter(|segment| segment.state == State::Open).count();
    let mut stats = DirectoryStats {
        path: directory.path().display().to_string(),
        directory: directory.volume().directory,
        segments: survey.segments.len() as u64,
        segment_bytes: survey.segments.iter().map(|segment| segment.bytes).sum(),
        open_segments: open as u64,
        purges: directory.purges().entries(),
        newest_purge: directory.purges().newest(),
        set_aside: directory.aside().len() as u64,
        problems: survey.problems.len() as u64,
        ..DirectoryStats::default()
    };
    for found in &survey.found {
        if found.is_response() {
            let state = survey.state_of(directory, found);
            stats.of_state(state).add(found);
        } else if found.kind.is_none() {
            stats.extents.add(found);
        }
    }
    stats
}

fn text(stats: &DirectoryStats) -> String {
    let mut text = format!("{}\n", stats.path);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<12} {value}\n"));
    line("directory", stats.directory.to_string());
    line(
        "segments",
        format!(
            "{}, {} bytes, {} without a table",
            stats.segments, stats.segment_bytes, stats.open_segments
        ),
    );
    let mut state = |state: RecordState, Totals { count, bytes }| {
        line(state.as_str(), format!("{count} records, {bytes} bytes"));
    };
    state(RecordState::Live, stats.live);
    state(RecordState::Purged, stats.purged);
    state(RecordState::Superseded, stats.superseded);
    state(RecordState::Doubtful, stats.doubtful);
    // the files alone do not say so
    if stats.forgotten.count > 0 {
        state(RecordState::Forgotten, stats.forgotten);
    }
    let Totals { count, bytes } = stats.extents;
    line(
        "extents",
        format!("{count}, {bytes} bytes (content of large responses)"),
    );
    line(
        "purges",
        format!(
            "{} in the journal, newest of generation {}",
            stats.purges, stats.newest_purge
        ),
    );
    line("set aside", format!("{} segments", stats.set_aside));
    line(
        "problems",
        format!(
            "{} (content was not looked at: `weir store verify`)",
            stats.problems
        ),
    );
    text
}
