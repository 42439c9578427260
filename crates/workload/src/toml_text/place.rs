//! A line of a text with a caret under what is meant.

use std::fmt;
use std::ops::Range;

/// A place in a text. `Display` is the line with a caret under what is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line, at most [`LINE_CHARS_MAX`] characters of it, without controls.
    excerpt: String,
    /// Characters of the excerpt before the caret.
    indent: usize,
    /// Carets.
    width: usize,
}

impl Place {
    /// The place of these bytes of a text; `span` may lie beyond its end.
    #[must_use]
    pub fn of(text: &str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = text[line_start..].split('\n').next().unwrap_or("");
        let before = text[line_start..start].chars().count();
        let end = text
            .floor_char_boundary(span.end)
            .clamp(start, (line_start + line_text.len()).max(start));
        let skipped = before.saturating_sub(LINE_CHARS_MAX / 2);
        let excerpt: String = line_text
            .chars()
            .skip(skipped)
            .take(LINE_CHARS_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let indent = before - skipped;
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: before + 1,
            width: text[start..end]
                .chars()
                .count()
                .clamp(1, LINE_CHARS_MAX - indent),
            excerpt: excerpt.trim_end().to_owned(),
            indent,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:6} | {}", self.line, self.excerpt)?;
        write!(
            f,
            "       | {}{}",
            " ".repeat(self.indent),
            "^".repeat(self.width)
        )
    }
}

/// Longer lines are shown in part: so many characters.
pub const LINE_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caret_is_under_the_reported_span() {
        let check = |text: &str, span: Range<usize>, expected: (usize, usize, &str)| {
            let place = Place::of(text, &span);
            let (line, column, shown) = expected;
            assert_eq!((place.line, place.column), (line, column), "{text:?}");
            assert_eq!(place.to_string(), shown, "{text:?}");
        };
        check("a = 1", 4..5, (1, 5, "     1 | a = 1\n       |     ^"));
        check("a\nbb = 1\n", 2..4, (2, 1, "     2 | bb = 1\n       | ^^"));
        check("é = 1", 5..6, (1, 5, "     1 | é = 1\n       |     ^"));
        check("é", 1..1, (1, 1, "     1 | é\n       | ^"));
        check("a", 1..1, (1, 2, "     1 | a\n       |  ^"));
        check("a\n", 2..2, (2, 1, "     2 | \n       | ^"));
        check("", 0..0, (1, 1, "     1 | \n       | ^"));
        check(
            "a = [\n1\n]",
            4..9,
            (1, 5, "     1 | a = [\n       |     ^"),
        );
        check("\u{1b}[31m", 1..2, (1, 2, "     1 |  [31m\n       |  ^"));
    }

    #[test]
    fn long_line_is_shortened_around_the_reported_span() {
        let text = format!("{}X{}", "a".repeat(5000), "b".repeat(5000));
        let place = Place::of(&text, &(5000..10_001));
        assert_eq!(place.column, 5001);
        assert_eq!(place.excerpt.len(), LINE_CHARS_MAX);
        assert_eq!(place.excerpt.as_bytes()[place.indent], b'X');
        assert_eq!(place.indent + place.width, LINE_CHARS_MAX);
    }
}
