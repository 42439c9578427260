//! Field lines as text, and the facts that are gathered from them.

use weir_semantics::FieldLine;
use weir_vectors::{Field, FieldContext};

/// Field lines, owned.
pub(crate) type Lines = Vec<(String, String)>;

/// The lines as they are sent in `context`.
pub(crate) fn render(fields: &[Field], context: FieldContext<'_>) -> Lines {
    fields
        .iter()
        .map(|field| (field.name.clone(), field.value(context)))
        .collect()
}

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
