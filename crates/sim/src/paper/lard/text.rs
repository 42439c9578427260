//! The paper as people read it on a terminal.

use super::claims::{Claim, ClaimUnit, Within};
use super::shown::{Grid, Paper, ShownExhibit};
use std::fmt;

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "LARD (USENIX 1999) made again by weir {}",
            self.about.version
        )?;
        writeln!(f, "{}\n", self.about_words())?;
        for shown in &self.exhibits {
            writeln!(f, "{shown}")?;
        }
        writeln!(f, "{}", self.count_words())?;
        writeln!(
            f,
            "docs/lard.md says which numbers were calibrated, to what, and why others differ"
        )
    }
}

impl Paper {
    /// What it was made with.
    pub(super) fn about_words(&self) -> String {
        let about = &self.about;
        format!(
            "{}: {} requests for {} targets on {} connections; {}; seed {}, forwarding at {} of a send",
            about.trace,
            about.requests,
            about.targets,
            about.connections,
            about.grouping,
            about.seed,
            about.scale
        )
    }
}

impl fmt::Display for ShownExhibit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} [{}]", self.exhibit.title(), self.exhibit)?;
        if !self.claims.is_empty() {
            f.write_str(&aligned(&claim_lines(&self.claims), 3))?;
        }
        for grid in &self.grids {
            writeln!(f, "  {}", grid.title)?;
            f.write_str(&aligned(&grid_lines(grid), 1))?;
        }
        Ok(())
    }
}

/// Columns side by side: the first `left` held at the left, the others at the right.
fn aligned(lines: &[Vec<String>], left: usize) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column < left {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        let cells: Vec<String> = cells.collect();
        text.push_str("    ");
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn claim_lines(claims: &[Claim]) -> Vec<Vec<String>> {
    let heads = [
        "number", "server", "kind", "ours", "paper", "within", "holds",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    lines.extend(claims.iter().map(|claim| {
        vec![
            claim.what.to_owned(),
            claim.server.to_string(),
            claim.kind.as_str().to_owned(),
            ours(claim),
            number(claim.published, claim.unit),
            within(claim.within),
            holds(claim).to_owned(),
        ]
    }));
    lines
}

/// Our number.
pub(super) fn ours(claim: &Claim) -> String {
    claim
        .ours
        .map_or_else(|| "-".to_owned(), |ours| number(ours, claim.unit))
}

/// Whether it is as published.
pub(super) const fn holds(claim: &Claim) -> &'static str {
    match claim.holds {
        true => "yes",
        false => "no",
    }
}

/// How far it may be off.
pub(super) fn within(within: Within) -> String {
    match within {
        Within::Percent(percent) => format!("{percent} %"),
        Within::Points(points) => format!("{points} points"),
        Within::AtLeast => "at least".to_owned(),
    }
}

pub(super) fn number(value: f64, unit: ClaimUnit) -> String {
    match unit {
        ClaimUnit::Percent => format!("{value:.1} %"),
        ClaimUnit::PerSecond => format!("{value:.0}/s"),
        ClaimUnit::Kilobytes => format!("{value:.1} KB"),
        ClaimUnit::Times => format!("{value:.2} x"),
    }
}

fn grid_lines(grid: &Grid) -> Vec<Vec<String>> {
    let heads = grid.heads.iter().map(ToString::to_string);
    let mut lines = vec![[grid.along.clone()].into_iter().chain(heads).collect()];
    lines.extend(grid.rows.iter().map(|row| {
        let values = row.values.iter().map(|value| cell(*value, grid.digits));
        [row.name.clone()].into_iter().chain(values).collect()
    }));
    lines
}

/// A number of a figure.
pub(super) fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}
