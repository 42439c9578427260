//! `Upgrade`: the protocols that a client offers, and those that a server switches to (RFC 9110
//! §7.8).

use crate::fields::field::{FieldLine, lines_named, list_elements};

/// Whether the `answer` of a server, the fields of its 101, names what it switches to, and nothing
/// that was not `offered` by the fields of the request (RFC 9110 §7.8, §15.2.2).
///
/// Protocols are compared whole and without regard to case: a version that was not offered is
/// another protocol.
#[must_use]
pub fn switches_as_offered(offered: &[FieldLine<'_>], answer: &[FieldLine<'_>]) -> bool {
    let mut chosen = protocols(answer).peekable();
    chosen.peek().is_some()
        && chosen.all(|chosen| protocols(offered).any(|it| it.eq_ignore_ascii_case(chosen)))
}

fn protocols<'a>(fields: &'a [FieldLine<'_>]) -> impl Iterator<Item = &'a [u8]> {
    lines_named(fields, "upgrade").flat_map(list_elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn lines<'a>(values: &[&'a str]) -> Vec<FieldLine<'a>> {
        let line = |value: &&'a str| FieldLine {
            name: "Upgrade",
            value: value.as_bytes(),
        };
        values.iter().map(line).collect()
    }

    fn check(offered: &[&str], answer: &[&str], expected: bool) {
        let (offered, answer) = (lines(offered), lines(answer));
        assert_eq!(
            switches_as_offered(&offered, &answer),
            expected,
            "{offered:?} {answer:?}"
        );
    }

    #[test]
    fn offered_protocol_is_switched_to_in_any_case_and_line() {
        check(&["websocket"], &["WebSocket"], true);
        check(&["foo/2, websocket"], &["websocket"], true);
        check(&["foo/2", ", websocket,"], &["foo/2"], true);
        check(&["foo/2, bar"], &["bar, foo/2"], true);
    }

    #[test]
    fn protocol_that_was_not_offered_is_not_switched_to() {
        check(&["websocket"], &["h2c"], false);
        check(&["websocket"], &["websocket, h2c"], false);
        check(&["websocket"], &["websocket", "h2c"], false);
        check(&["foo/2"], &["foo/3"], false);
        check(&["foo/2"], &["foo"], false);
        check(&["websocket"], &["websockets"], false);
        check(&[], &["websocket"], false);
    }

    #[test]
    fn answer_that_names_no_protocol_switches_to_none() {
        check(&["websocket"], &[], false);
        check(&["websocket"], &["", " , "], false);
        check(&[], &[], false);
    }
}
