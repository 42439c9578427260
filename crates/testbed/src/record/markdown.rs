//! Tables and lists of records, as Markdown.

use crate::record::{Benchmark, Record};
use std::fmt::{self, Display, Write};

/// What is wanted of weir, and whether it is so.
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

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a measurement are far below 2^52"
)]
pub(crate) fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to.max(1) as f64
}

/// KiB below a megabyte, since read-ahead is promised in them; above, decimal as downloads are.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0 => "0".to_owned(),
        1..1_000_000 => format!("{:.0} KiB", ratio(count, 1024)),
        _ => format!("{:.1} MB", ratio(count, 1_000_000)),
    }
}

/// Least, median and most of several measurements of one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// `None` of nothing. Of an even number the median lies between the two in the middle.
    pub(crate) fn of(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let mut numbers: Vec<f64> = numbers.collect();
        numbers.sort_by(f64::total_cmp);
        let (least, most) = (*numbers.first()?, *numbers.last()?);
        let middle = numbers.len() / 2;
        let below = (numbers.len() - 1) / 2;
        let median = f64::midpoint(numbers[below], numbers[middle]);
        Some(Self {
            least,
            median,
            most,
        })
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
    fn median_is_the_middle_value_or_the_mean_of_the_two_middle_ones() {
        let check = |numbers: &[f64], expected: Option<(f64, f64, f64)>| {
            let found = Spread::of(numbers.iter().copied());
            let found = found.map(|spread| (spread.least, spread.median, spread.most));
            assert_eq!(found, expected, "{numbers:?}");
        };
        check(&[], None);
        check(&[3.0], Some((3.0, 3.0, 3.0)));
        check(&[9.0, 1.0, 2.0], Some((1.0, 2.0, 9.0)));
        check(&[9.0, 1.0, 2.0, 4.0], Some((1.0, 3.0, 9.0)));
    }

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
