//! How far an OPTIONS is forwarded (RFC 9110 §7.6.2). TRACE, the other method with this field, is
//! refused.

use weir_semantics::{FieldLine, lines_named};

/// What Max-Forwards says; `None` where it is absent, repeated or no number, and so says nothing.
/// More than can be counted is as much as can be.
pub(crate) fn remaining(fields: &[FieldLine<'_>]) -> Option<u32> {
    let mut lines = lines_named(fields, "max-forwards");
    let (Some(value), None) = (lines.next(), lines.next()) else {
        return None;
    };
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = std::str::from_utf8(value).ok()?;
    Some(digits.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str], expected: Option<u32>) {
        let fields: Vec<_> = values
            .iter()
            .map(|value| FieldLine::new("MAX-forwards", value.as_bytes()))
            .collect();
        assert_eq!(remaining(&fields), expected, "{values:?}");
    }

    #[test]
    fn malformed_or_repeated_max_forwards_is_ignored() {
        check(&["0"], Some(0));
        check(&["010"], Some(10));
        check(&["4294967295"], Some(u32::MAX));
        check(&["4294967296"], Some(u32::MAX));
        check(&["99999999999999999999999"], Some(u32::MAX));
        for value in ["", "-1", "+1", "1 1", "1,1", "0x0", "a"] {
            check(&[value], None);
        }
        check(&["0", "0"], None);
        check(&[], None);
    }
}
