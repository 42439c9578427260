//! A figure as data: two axes and some lines.

use super::axis::Axis;
use super::palette::Colour;

/// A figure, before it is drawn.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// The name of its file, without `.svg`.
    pub(super) name: String,
    /// What it shows, in a few words.
    pub(super) title: String,
    /// What a reader has to know to read it: a sentence or two; may be empty.
    pub(super) note: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

/// A line with its name at its end.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) colour: Colour,
    pub(super) stroke: Stroke,
    /// Each point is a measurement of its own and gets a mark; otherwise they are many.
    pub(super) has_marks: bool,
    pub(super) points: Vec<Point>,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

/// A point, in values; the axes say where that is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// `false` for a number of a run that is not valid: its mark is hollow.
    pub(super) is_valid: bool,
    /// From where to where repetitions went, if there were any.
    pub(super) range: Option<(f64, f64)>,
}

impl Point {
    /// Of a valid run.
    pub(super) const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            is_valid: true,
            range: None,
        }
    }
}

impl Figure {
    /// Nothing would be seen.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty())
    }
}

/// The values of all lines on one axis.
pub(super) fn ys(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.y)
}

/// As [`ys`], for the other axis.
pub(super) fn xs(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.x)
}
