//! What is wrong with a scenario, and where.

use std::fmt;
use std::ops::Range;

/// A scenario that cannot be used. `Display` is `file:line:column: what`, followed by the line and a caret, where there is a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as the caller named it; `--set` for an assignment.
    pub file: String,
    /// Where in it.
    pub place: Option<Place>,
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
        self.place = span.map(|span| Place::of(text, &span));
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

/// A place in a text. `Display` is the line with a caret under what is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line from its begin, at most [`LINE_CHARS_MAX`] characters of it, without controls.
    excerpt: String,
    /// Carets, none where the place is beyond the excerpt.
    width: usize,
}

impl Place {
    fn of(text: &str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = text[line_start..].split('\n').next().unwrap_or("");
        let before = text[line_start..start].chars().count();
        let end = text
            .floor_char_boundary(span.end)
            .min(line_start + line_text.len())
            .max(start);
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let excerpt: String = line_text
            .chars()
            .map(printable)
            .take(LINE_CHARS_MAX)
            .collect();
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: before + 1,
            excerpt: excerpt.trim_end().to_owned(),
            width: text[start..end]
                .chars()
                .count()
                .max(1)
                .min(LINE_CHARS_MAX.saturating_sub(before)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6} | {}", self.line, self.excerpt)?;
        if self.width == 0 {
            return Ok(());
        }
        let indent = " ".repeat(self.column - 1);
        write!(f, "\n       | {indent}{}", "^".repeat(self.width))
    }
}

/// Longer lines are shown in part.
const LINE_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caret_is_beside_what_is_meant() {
        let check = |text: &str, span: Range<usize>, expected: &str| {
            assert_eq!(Place::of(text, &span).to_string(), expected, "{text:?}");
        };
        check("a = 1", 4..5, "     1 | a = 1\n       |     ^");
        check("a\nbb = 1\n", 2..4, "     2 | bb = 1\n       | ^^");
        check("é = 1", 5..6, "     1 | é = 1\n       |     ^");
        check("a\n", 2..2, "     2 | \n       | ^");
        check("", 0..0, "     1 | \n       | ^");
        check("a = [\n1\n]", 4..9, "     1 | a = [\n       |     ^");
        check("\u{1b}[31m", 1..2, "     1 |  [31m\n       |  ^");
    }

    #[test]
    fn long_line_is_printed_whole() {
        let text = "a".repeat(5000);
        let place = Place::of(&text, &(4000..4001));
        assert_eq!(
            (place.column, place.excerpt.len(), place.width),
            (4001, 100, 0)
        );
        assert!(!place.to_string().contains('^'));
    }
}
