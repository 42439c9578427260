//! What is wrong with a scenario, and where.

use crate::toml_text::Place;
use std::fmt;
use std::ops::Range;

/// A scenario that cannot be used. `Display` is `file:line:column: what`, followed by the line and
/// a caret, where there is a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as the caller named it; `--set` for an assignment.
    pub file: String,
    /// Where in it.
    pub place: Option<Box<Place>>,
    /// What is wrong: a lower-case fragment with the value.
    pub what: String,
    /// What to do, if that is known.
    pub hint: Option<String>,
}

impl ScenarioError {
    pub(super) fn new(file: &str, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            what: what.into(),
            hint: None,
        }
    }

    pub(super) fn at(mut self, text: &str, span: Option<Range<usize>>) -> Self {
        self.place = span.map(|span| Box::new(Place::of(text, &span)));
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file, place, what, ..
        } = self;
        match place {
            None => write!(f, "{file}: {what}"),
            Some(place) => write!(f, "{file}:{}:{}: {what}\n{place}", place.line, place.column),
        }
    }
}

impl std::error::Error for ScenarioError {}
