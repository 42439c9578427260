//! A [`Summary`] as tables for a terminal.

pub(crate) mod number;
mod sections;

use super::super::{Anonymisation, Meta};
use super::Summary;
use number::{count, span};
use std::fmt::Write as _;
use weir_semantics::{Timestamp, write_http_date};

/// What is said where no row says anything.
const ABSENT: &str = "not in this trace";

/// The text of a value, where any row says it.
fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), text)
}

/// All tables. `name` is what the trace is called.
#[must_use]
pub fn text(name: &str, meta: &Meta, summary: &Summary) -> String {
    let mut table = Table::default();
    table.line(&format!("{name}: {} requests", count(summary.requests)));
    head(&mut table, meta, summary);
    sections::write(&mut table, summary);
    table.text
}

fn head(table: &mut Table, meta: &Meta, summary: &Summary) {
    table.fact("source", &meta.source);
    table.fact(
        "names",
        &match (meta.anonymisation, &meta.key_id) {
            (Some(Anonymisation::None), _) => "as they are".to_owned(),
            (_, Some(key)) => format!("hashed under key {key}"),
            (Some(Anonymisation::Keyed), None) => "hashed, with a key that has no name".to_owned(),
            (None, None) => "not said".to_owned(),
        },
    );
    if let Some(seed) = meta.seed {
        table.fact("seed", &seed.to_string());
    }
    if !meta.note.is_empty() {
        table.fact("note", &meta.note);
    }
    if !meta.dropped.is_empty() {
        let dropped = meta.dropped.iter();
        let dropped: Vec<String> = dropped
            .map(|(why, number)| format!("{}: {why}", count(*number)))
            .collect();
        table.fact("not here", &dropped.join("; "));
    }
    if let Some(found) = &summary.span {
        let us = found.last_us.abs_diff(found.first_us);
        let (first, last) = (date(found.first_us), date(found.last_us));
        table.fact("time", &format!("{first} to {last}, {}", span(us)));
        let mut rate = found.requests_per_s.map_or_else(
            || "all at once".to_owned(),
            |rate| format!("{} requests/s", number::digits(rate)),
        );
        let _ = write!(
            rate,
            ", {} in the busiest minute",
            count(found.busiest_minute)
        );
        if found.out_of_order > 0 {
            let _ = write!(
                rate,
                "; {} rows are not in order of time",
                count(found.out_of_order)
            );
        }
        table.fact("rate", &rate);
    }
}

fn date(us: i64) -> String {
    let mut text = [0; 29];
    write_http_date(Timestamp(us.div_euclid(1_000_000)), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Text that is put together from facts and aligned rows.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) text: String,
}

/// Columns of a fact's name.
const FACT_WIDTH: usize = 14;

impl Table {
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    pub(crate) fn fact(&mut self, name: &str, value: &str) {
        self.line(&format!("  {name:<FACT_WIDTH$}{value}"));
    }

    /// A section's title, with a line in front.
    pub(crate) fn title(&mut self, title: &str) {
        self.line("");
        self.line(title);
    }

    /// Rows under heads; see [`Table::rows`].
    pub(crate) fn rows_under(
        &mut self,
        heads: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
        self.rows(&rows);
    }

    /// The first column to the left, numbers to the right; a row of one or two cells is a sentence
    /// and moves nothing.
    pub(crate) fn rows(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let those = rows.iter().filter(|row| column == 0 || row.len() > 2);
            let cells = those.filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows {
            let mut text = String::from("  ");
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // a String takes whatever is written
                let _ = match column {
                    0 => write!(text, "{cell:<width$}"),
                    _ => write!(text, "  {cell:>width$}"),
                };
            }
            self.line(&text);
        }
    }
}
