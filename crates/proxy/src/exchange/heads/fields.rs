//! Fields of a response that rules of the operator set, add and remove for its client.
//!
//! They are changed in the head as it is written, behind the store and all modules, so what is
//! stored has nothing of one client.

use crate::send::heads::line_bytes;
use weir_extend::{FieldRule, HeadFields};
use weir_policy::rule::{Bits, RuleSet, Values, is_targeted_field};
use weir_semantics::is_same_field;
use weir_wire::write;

/// Changes the head that begins at `before` in `out`, a status line and fields, as the `matched`
/// rules say. A value that no field can have is left out, and so is the field.
pub(crate) fn change_response(
    rules: &RuleSet,
    matched: Bits,
    status: u16,
    values: &Values<'_>,
    (out, before): (&mut Vec<u8>, usize),
) {
    let from = before + line_bytes(&out[before..]);
    let fields = HeadFields::of_section(&out[from..]);
    let content_type = fields.get("content-type").unwrap_or_default();
    let Some(changes) = rules.response(matched, status, content_type) else {
        return;
    };
    let is_for_one = changes.makes_private(&fields);
    for change in changes.iter() {
        if !matches!(change, FieldRule::Add(..)) {
            remove(out, from, |name| is_same_field(name, change.name()));
        }
        if let Some(Ok(value)) = change.value().map(|value| values.fill(value)) {
            write::field(out, change.name(), value.as_bytes());
        }
    }
    if is_for_one {
        keep_private(out, from);
    }
}

/// Has caches behind this one keep a response for its client alone.
fn keep_private(out: &mut Vec<u8>, from: usize) {
    remove(out, from, is_targeted_field);
    write::field(out, "Cache-Control", b"private");
}

/// Removes the lines behind `from` whose name is one that is `removed`.
fn remove(out: &mut Vec<u8>, from: usize, removed: impl Fn(&str) -> bool) {
    let (mut read, mut written) = (from, from);
    while read < out.len() {
        let length = out[read..].iter().position(|byte| *byte == b'\n');
        let end = length.map_or(out.len(), |length| read + length + 1);
        let line = out[read..end].split(|byte| *byte == b':').next();
        let is_named = line.is_some_and(|name| str::from_utf8(name).is_ok_and(&removed));
        if !is_named {
            out.copy_within(read..end, written);
            written += end - read;
        }
        read = end;
    }
    out.truncate(written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_with_a_name_are_removed_and_no_others() {
        let check = |name: &str, expected: &str| {
            let mut out = b"before\r\nA: 1\r\na:2\r\nAB: 3\r\nB: A: 4\r\n".to_vec();
            remove(&mut out, 8, |other| is_same_field(other, name));
            assert_eq!(str::from_utf8(&out), Ok(expected), "{name}");
        };
        check("a", "before\r\nAB: 3\r\nB: A: 4\r\n");
        check("AB", "before\r\nA: 1\r\na:2\r\nB: A: 4\r\n");
        check("b", "before\r\nA: 1\r\na:2\r\nAB: 3\r\n");
        check("a_b", "before\r\nA: 1\r\na:2\r\nAB: 3\r\nB: A: 4\r\n");
        check("before", "before\r\nA: 1\r\na:2\r\nAB: 3\r\nB: A: 4\r\n");
    }
}
