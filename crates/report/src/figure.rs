//! A figure as data: two axes and some lines.

use super::axis::Axis;
use super::palette::Colour;

/// A figure, before it is drawn.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name of its file, without `.svg`.
    pub name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What a reader has to know to read it: a sentence or two; may be empty.
    pub note: String,
    /// The axis along.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// A line with its name at its end.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Each point is a measurement of its own and gets a mark, and a line over its range; otherwise
    /// they are many, and their ranges are a band.
    pub has_marks: bool,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// One line.
    Solid,
    /// Dashes.
    Dashed,
    /// Dots.
    Dotted,
}

/// A point, in values; the axes say where that is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Its value along.
    pub x: f64,
    /// Its value up.
    pub y: f64,
    /// `false` for a number of a run that is not valid: its mark is hollow.
    pub is_valid: bool,
    /// From where to where repetitions went, or an error reaches, if there is one.
    pub range: Option<(f64, f64)>,
}

impl Point {
    /// Of a valid run.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            is_valid: true,
            range: None,
        }
    }
}

impl Figure {
    /// A figure of these lines.
    #[must_use]
    pub fn new(name: &str, title: &str, note: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            note: note.to_owned(),
            x,
            y,
            lines,
        }
    }

    /// Nothing would be seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty())
    }
}

/// The values of all lines on one axis.
pub fn ys(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.y)
}

/// As [`ys`], for the other axis.
pub fn xs(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.x)
}
