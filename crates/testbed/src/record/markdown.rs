//! Tables and lists of records, as Markdown.

use crate::record::{Benchmark, Record};
use std::fmt::{self, Display, Write};
use weir_measure::float;
use weir_measure::quantile::Spread;

/// A target of weir, and whether it is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) is_met: bool,
}

impl Target {
    pub(crate) fn new(what: String, is_met: bool) -> Self {
        Self { what, is_met }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_met { "met" } else { "MISSED" };
        write!(f, "{}: {verdict}", self.what)
    }
}

/// Appends a line.
pub(crate) fn line(out: &mut String, text: impl Display) {
    // writing to a string cannot fail
    let _ = writeln!(out, "{text}");
}

/// A row of a table.
pub(crate) fn row(cells: impl IntoIterator<Item = impl Display>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.to_string()).collect();
    format!("| {} |", cells.join(" | "))
}

/// Appends a table below `title`; nothing if it has no rows. `columns` has its first line and the
/// rule below that: a text column, then numbers.
pub(crate) fn table(
    out: &mut String,
    title: &str,
    columns: &str,
    rows: impl IntoIterator<Item = String>,
) {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return;
    }
    let numbers = columns.matches(" | ").count();
    if !title.is_empty() {
        line(out, format_args!("\n{title}\n"));
    }
    line(out, columns);
    line(out, format_args!("| --- |{}", " --: |".repeat(numbers)));
    rows.for_each(|row| line(out, row));
}

/// Appends a list; nothing if it has no entries.
pub(crate) fn list(out: &mut String, title: &str, entries: impl IntoIterator<Item = impl Display>) {
    let mut entries = entries.into_iter().peekable();
    if entries.peek().is_some() {
        line(out, format_args!("\n### {title}\n"));
        entries.for_each(|entry| line(out, format_args!("* {entry}")));
    }
}

/// Where and from what a record was made; without an end, so that more can be said.
pub(crate) fn origin<B: Benchmark>(record: &Record<B>, break_after_commit: &str) -> String {
    let Record {
        command,
        begun,
        commit,
        host,
        ..
    } = record;
    format!(
        "`{command}`, begun {begun}, commit `{commit}`{break_after_commit}{}, {} cores, Linux {}, load average {} at the beginning",
        host.cpu, host.cores, host.kernel, host.load_average
    )
}

/// What was measured, by version.
pub(crate) fn versions<B: Benchmark>(out: &mut String, record: &Record<B>) {
    for (name, version) in &record.versions {
        line(out, format_args!("* {name}: {version}"));
    }
}

/// What did not take part, with the reason.
pub(crate) fn left_out<B: Benchmark>(record: &Record<B>) -> Vec<String> {
    let left_out = record.left_out.iter();
    left_out
        .map(|(what, why)| format!("{what}: {why}"))
        .collect()
}

/// What a benchmark could not measure.
pub(crate) const COULD_NOT: &str = "What could not be";

/// What was agreed that weir reaches.
pub(crate) const TARGETS: &str = "Targets of weir";

/// A count by another one, which counts as 1 if it is 0.
pub(crate) fn ratio(of: u64, to: u64) -> f64 {
    float(of) / float(to.max(1))
}

/// KiB below a megabyte, as for the read-ahead; above, decimal as for downloads.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0 => "0".to_owned(),
        1..1_000_000 => format!("{:.0} KiB", ratio(count, 1024)),
        _ => format!("{:.1} MB", ratio(count, 1_000_000)),
    }
}

/// The median alone.
pub(crate) fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    Spread::of(numbers).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_without_rows_is_left_out() {
        let mut out = String::new();
        table(&mut out, "", "| a | b |", []);
        list(&mut out, "c", [""; 0]);
        assert_eq!(out, "");
        table(&mut out, "", "| a | b |", [row(["1", "2"])]);
        assert_eq!(out, "| a | b |\n| --- | --: |\n| 1 | 2 |\n");
    }

    #[test]
    fn bytes_are_in_kib_below_one_megabyte_and_in_mb_from_there() {
        for (count, expected) in [
            (0, "0"),
            (65_536, "64 KiB"),
            (999_999, "977 KiB"),
            (1_000_000, "1.0 MB"),
            (59_640_000, "59.6 MB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }
}
