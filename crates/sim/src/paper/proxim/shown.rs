//! The paper made again: every exhibit with its lines, its pictures, and notes on what differs.

use super::compared::Cell;
use super::exhibit::Exhibit;
use super::experiment::Kind;
use super::findings::Findings;
use super::published::Unit;
use super::tables;
use super::why::why;
use crate::paper::drawing::Picture;
use serde::Serialize;

/// What it was made with: the same makes the same, to the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    /// Of weir.
    pub version: &'static str,
    /// Requests of each trace.
    pub requests: u64,
    /// Of traces and simulators.
    pub seed: u64,
}

/// All that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Paper {
    /// What it was made with.
    pub about: About,
    /// How many of the paper's numbers are among it, and how many are as published.
    pub count: Count,
    /// Tables and figures.
    pub exhibits: Vec<ComparedExhibit>,
}

/// Numbers of the paper that have one of ours beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// All.
    pub published: usize,
    /// Those that are as published.
    pub as_published: usize,
}

/// A table or a figure.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedExhibit {
    /// Which.
    pub exhibit: Exhibit,
    /// What is seen in it.
    pub about: String,
    /// Numbers.
    pub lines: Vec<Line>,
    /// Why numbers are not as published.
    pub notes: Vec<Note>,
    /// Pictures.
    pub(super) pictures: Vec<Picture>,
}

/// Numbers of one thing, for each trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// A word for it.
    pub key: String,
    /// What it is.
    pub what: String,
    /// What its numbers are of.
    pub unit: Unit,
    /// Behind modems; `None` where there is nothing to say.
    pub modem: Option<Cell>,
    /// On the research network.
    pub research: Option<Cell>,
}

/// Why numbers are not as published; docs/proxim.md has more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// By which cells mean it.
    pub number: usize,
    /// The reason.
    pub text: &'static str,
}

impl Paper {
    pub(super) fn of(about: About, exhibits: &[Exhibit], findings: &[Findings]) -> Self {
        let exhibits: Vec<ComparedExhibit> = exhibits
            .iter()
            .map(|exhibit| ComparedExhibit::of(*exhibit, findings))
            .collect();
        let mut count = Count::default();
        for cell in exhibits.iter().flat_map(ComparedExhibit::cells) {
            count.published += usize::from(cell.paper.is_some());
            count.as_published += usize::from(cell.paper.is_some() && !cell.is_off);
        }
        Self {
            about,
            count,
            exhibits,
        }
    }
}

impl ComparedExhibit {
    fn of(exhibit: Exhibit, findings: &[Findings]) -> Self {
        let table = tables::of(exhibit, findings);
        let mut lines: Vec<Line> = table
            .rows
            .iter()
            .map(|row| row.line(findings))
            .filter(|line| line.modem.is_some() || line.research.is_some())
            .collect();
        let notes = note(&mut lines);
        Self {
            exhibit,
            about: table.about,
            lines,
            notes,
            pictures: table.pictures,
        }
    }

    /// All its numbers.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.lines.iter().flat_map(Line::cells)
    }
}

impl Line {
    /// Its number of this trace.
    #[must_use]
    pub const fn cell(&self, kind: Kind) -> Option<&Cell> {
        match kind {
            Kind::Modem => self.modem.as_ref(),
            Kind::Research => self.research.as_ref(),
        }
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.modem.iter().chain(&self.research)
    }
}

/// Gives cells that are off the number of the note that says why; the notes that are needed, once
/// each.
fn note(lines: &mut [Line]) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for line in lines {
        for (kind, cell) in [
            (Kind::Modem, &mut line.modem),
            (Kind::Research, &mut line.research),
        ] {
            let Some(cell) = cell.as_mut().filter(|cell| cell.is_off) else {
                continue;
            };
            let Some(text) = why(&line.key, kind) else {
                continue;
            };
            let known = notes.iter().find(|note| note.text == text);
            let number = known.map_or(notes.len() + 1, |note| note.number);
            if known.is_none() {
                notes.push(Note { number, text });
            }
            cell.note = Some(number);
        }
    }
    notes
}
