//! The paper as people read it on a terminal.

use super::compared::{Cell, PERCENT_MAX, POINTS_MAX};
use super::experiment::Kind;
use super::published::{Bound, Unit};
use super::shown::{ComparedExhibit, Line, Paper};
use std::fmt::{self, Write as _};

/// Ours, the paper's, difference, mark.
type Columns = [String; 4];

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "PROXIM (INFOCOM 1999) made again by weir {}: {} requests of each trace, seed {}\n",
            self.about.version, self.about.requests, self.about.seed
        )?;
        for shown in &self.exhibits {
            writeln!(f, "{shown}")?;
        }
        writeln!(f, "{}", self.count_words())?;
        if self.count.as_published < self.count.published {
            writeln!(f, "docs/proxim.md says more of why the others are not")?;
        }
        Ok(())
    }
}

impl Paper {
    /// How many numbers are as published, and what that means.
    pub(super) fn count_words(&self) -> String {
        format!(
            "{} of the paper's {} numbers shown here are as published: percentages within {POINTS_MAX} points, other numbers within \
             {PERCENT_MAX} %, statements kept",
            self.count.as_published, self.count.published
        )
    }
}

impl fmt::Display for ComparedExhibit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} [{}]", self.exhibit.title(), self.exhibit)?;
        let kinds: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| self.lines.iter().any(|line| line.cell(*kind).is_some()))
            .collect();
        let width = self
            .lines
            .iter()
            .map(|line| line.what.chars().count())
            .max();
        let width = width.unwrap_or(0);
        let columns: Vec<(Kind, Vec<Columns>)> = kinds
            .into_iter()
            .map(|kind| {
                (
                    kind,
                    self.lines.iter().map(|line| cells(line, kind)).collect(),
                )
            })
            .collect();
        let mut text = [format!("  {:width$}", ""), format!("  {:width$}", "")];
        let mut lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| format!("  {:<width$}", line.what))
            .collect();
        for (kind, cells) in &columns {
            let heads = ["ours", "paper", "differs"].map(str::to_owned);
            let widths = [0, 1, 2].map(|column: usize| {
                let lengths = cells.iter().map(|cells| cells[column].chars().count());
                lengths.chain([heads[column].len()]).max().unwrap_or(0)
            });
            let whole: usize = widths.iter().sum::<usize>() + 9;
            let _infallible = write!(text[0], "   {:^whole$}", kind.as_str());
            let row = |cells: [&str; 4]| {
                let [ours, paper, differs, mark] = cells;
                let [first, second, third] = widths;
                format!("   {ours:>first$}  {paper:>second$}  {differs:>third$} {mark:<4}")
            };
            text[1].push_str(&row([&heads[0], &heads[1], &heads[2], ""]));
            for (line, cells) in lines.iter_mut().zip(cells) {
                line.push_str(&row([&cells[0], &cells[1], &cells[2], &cells[3]]));
            }
        }
        for line in text.iter().chain(&lines) {
            writeln!(f, "{}", line.trim_end())?;
        }
        for note in &self.notes {
            writeln!(f, "  [{}] {}", note.number, note.text)?;
        }
        Ok(())
    }
}

fn cells(line: &Line, kind: Kind) -> Columns {
    let Some(cell) = line.cell(kind) else {
        return Columns::default();
    };
    [
        ours(cell, line.unit),
        paper(cell),
        difference(cell),
        mark(cell),
    ]
}

/// Our number.
pub(super) fn ours(cell: &Cell, unit: Unit) -> String {
    cell.ours
        .map_or_else(|| "-".to_owned(), |value| number(value, unit))
}

/// The paper's number.
pub(super) fn paper(cell: &Cell) -> String {
    let Some(paper) = cell.paper else {
        return String::new();
    };
    let number = number(paper.value, paper.unit);
    match paper.bound {
        Bound::Exactly => number,
        Bound::UpTo => format!("up to {number}"),
        Bound::MoreThan => format!("more than {number}"),
        Bound::LessThan => format!("less than {number}"),
    }
}

/// How far ours is from it.
pub(super) fn difference(cell: &Cell) -> String {
    let Some(paper) = cell.paper else {
        return String::new();
    };
    match (cell.difference, cell.ours) {
        (Some(off), _) if paper.unit == Unit::Percent => format!("{off:+.1} points"),
        (Some(off), _) => format!("{off:+.0} %"),
        (None, Some(_)) => "holds".to_owned(),
        (None, None) => "-".to_owned(),
    }
}

/// Which note is meant; `[?]` where none is.
pub(super) fn mark(cell: &Cell) -> String {
    match (cell.is_off, cell.note) {
        (false, _) => String::new(),
        (true, Some(number)) => format!("[{number}]"),
        (true, None) => "[?]".to_owned(),
    }
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => format!("{value:.1} %"),
        Unit::Seconds if value.abs() < 0.1 => format!("{:.1} ms", value * 1000.0),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Bytes => format!("{value:.0} B"),
        Unit::Gigabytes => format!("{value:.2} GB"),
        Unit::Count => format!("{value:.0}"),
        Unit::Mean => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::published::PublishedValue;
    use super::*;

    #[test]
    fn numbers_keep_their_unit_and_bounds_their_word() {
        assert_eq!(number(30.204, Unit::Percent), "30.2 %");
        assert_eq!(number(0.0123, Unit::Seconds), "12.3 ms");
        assert_eq!(number(1.3, Unit::Seconds), "1.30 s");
        let up_to = PublishedValue::of("over-proxy.both", Kind::Modem);
        let cell = Cell::new(Some(20.0), up_to);
        assert_eq!(paper(&cell), "up to 28.0 %");
        assert_eq!(
            (difference(&cell), mark(&cell)),
            ("-8.0 points".to_owned(), "[?]".to_owned())
        );
        let holds = Cell::new(
            Some(-2.0),
            PublishedValue::of("latency.nothing", Kind::Modem),
        );
        assert_eq!(
            (difference(&holds), mark(&holds)),
            ("holds".to_owned(), String::new())
        );
    }
}
