//! What a client prefers: `Accept-Language`, `Accept-Encoding` (RFC 9110 §12.4, §12.5).

use super::field::list_elements;

/// A weight of 1, in thousandths.
const WEIGHT_MAX: u16 = 1000;

/// The members of a line of preferences, each with its weight in thousandths (RFC 9110 §12.4.2); 0
/// says that it is not acceptable. A member with a malformed weight is left out.
pub fn preferences(value: &[u8]) -> impl Iterator<Item = (&[u8], u16)> {
    list_elements(value).filter_map(|element| {
        let mut parts = element.split(|byte| *byte == b';');
        let name = parts.next()?.trim_ascii();
        let weights = parts.filter_map(|part| {
            let (key, weight) = part.trim_ascii().split_at_checked(2)?;
            key.eq_ignore_ascii_case(b"q=").then_some(weight)
        });
        let weight = weights.map(weight_of).next().unwrap_or(Some(WEIGHT_MAX))?;
        (!name.is_empty()).then_some((name, weight))
    })
}

/// `qvalue` in thousandths.
fn weight_of(text: &[u8]) -> Option<u16> {
    let [whole @ (b'0' | b'1'), fraction @ ..] = text else {
        return None;
    };
    let digits = match fraction {
        [] => fraction,
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    let mut weight = u16::from(whole - b'0') * WEIGHT_MAX;
    let mut unit = WEIGHT_MAX;
    for digit in digits {
        unit /= 10;
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        weight += u16::from(digit) * unit;
    }
    (weight <= WEIGHT_MAX).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &[(&str, u16)]) {
        let found = preferences(value.as_bytes());
        let found: Vec<_> = found
            .map(|(name, weight)| (str::from_utf8(name).expect("text"), weight))
            .collect();
        assert_eq!(found, expected, "{value}");
    }

    #[test]
    fn members_are_read_with_their_weights() {
        check("", &[]);
        check("gzip", &[("gzip", 1000)]);
        check(
            "de-AT , en;q=0.5,*; Q=0",
            &[("de-AT", 1000), ("en", 500), ("*", 0)],
        );
        check(
            "a;q=1.000, b;q=0.001, c;x=y;q=0.25",
            &[("a", 1000), ("b", 1), ("c", 250)],
        );
    }

    #[test]
    fn member_with_a_malformed_weight_is_left_out() {
        check(
            "a;q=2, b;q=1.001, c;q=0.0001, d;q=, e;q=.5, f;q=0x, ;q=1, g",
            &[("g", 1000)],
        );
    }
}
