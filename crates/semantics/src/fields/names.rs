//! Names of fields as recipients may read them, and what is left out of a message by its name.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Whether two names are of one field to some recipient: without regard to case (RFC 9110 §5.1),
/// and an underscore as a hyphen. A server that hands fields to a program by the rules of CGI (RFC
/// 3875 §4.1.18) reads `X_Real_IP` as it reads `X-Real-IP`.
#[must_use]
pub fn is_same_field(one: &str, other: &str) -> bool {
    let read = |byte: u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    one.len() == other.len() && one.bytes().map(read).eq(other.bytes().map(read))
}

/// Names of fields that a message is not to have, compared by [`is_same_field`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames(Option<Box<[Box<str>]>>);

impl FieldNames {
    /// None.
    pub const NONE: Self = Self(None);

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this field is one of them.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        let mut names = self.0.iter().flatten();
        names.any(|name| is_same_field(name, field))
    }

    /// The lines of a head or of a trailer section that are not of these fields.
    #[must_use]
    pub fn without(&self, section: &[u8]) -> Vec<u8> {
        let lines = section.split_inclusive(|byte| *byte == b'\n');
        let is_named = |line: &[u8]| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            core::str::from_utf8(name).is_ok_and(|name| self.has(name))
        };
        lines
            .filter(|line| !is_named(line))
            .flatten()
            .copied()
            .collect()
    }
}

impl<'n> FromIterator<&'n str> for FieldNames {
    fn from_iter<T: IntoIterator<Item = &'n str>>(names: T) -> Self {
        let names: Box<[Box<str>]> = names.into_iter().map(Into::into).collect();
        Self((!names.is_empty()).then_some(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_neither_by_case_nor_by_underscores() {
        for (one, other, expected) in [
            ("X-Real-IP", "x_real_ip", true),
            ("X-Real-IP", "X-Real_Ip", true),
            ("X-Real-IP", "XReal-IP", false),
            ("A", "A-", false),
            ("", "", true),
        ] {
            assert_eq!(is_same_field(one, other), expected, "{one} {other}");
            assert_eq!(is_same_field(other, one), expected, "{one} {other}");
        }
    }

    #[test]
    fn section_is_left_with_the_lines_of_other_fields() {
        let names: FieldNames = ["X-Secret", "Server"].into_iter().collect();
        let head =
            b"HTTP/1.1 103 Early: Hints\r\nx_secret: a\r\nLink: Server: b\r\nSERVER:c\r\n\r\n";
        let left = b"HTTP/1.1 103 Early: Hints\r\nLink: Server: b\r\n\r\n";
        assert_eq!(names.without(head), left);
        assert_eq!(FieldNames::NONE.without(head), head);
        assert!(FieldNames::NONE.is_empty() && !names.is_empty());
        assert_eq!([].into_iter().collect::<FieldNames>(), FieldNames::NONE);
    }
}
