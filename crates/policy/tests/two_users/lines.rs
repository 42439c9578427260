//! Field lines as text.

use crate::origin::Lines;
use weir_semantics::FieldLine;

/// The lines as semantics takes them.
pub(crate) fn borrow(lines: &Lines) -> Vec<FieldLine<'_>> {
    lines
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect()
}

/// The value of the first line with this name.
pub(crate) fn value<'a>(lines: &'a Lines, name: &str) -> Option<&'a str> {
    let line = lines.iter().find(|line| line.0.eq_ignore_ascii_case(name));
    line.map(|line| line.1.as_str())
}
