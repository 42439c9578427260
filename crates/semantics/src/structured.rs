//! Writing structured field values, RFC 9651 §4.1, as far as we send them.

use alloc::vec::Vec;

use crate::field::is_tchar;

/// The largest magnitude of a structured integer: fifteen digits (RFC 9651 §3.3.1).
const INTEGER_MAX: i64 = 999_999_999_999_999;

/// Appends `text` as a token if it is one, otherwise as a string.
pub(crate) fn write_token_or_string(text: &str, out: &mut Vec<u8>) {
    let is_token = match text.as_bytes() {
        [first, rest @ ..] => {
            (first.is_ascii_alphabetic() || *first == b'*')
                && rest
                    .iter()
                    .all(|&byte| is_tchar(byte) || matches!(byte, b':' | b'/'))
        }
        [] => false,
    };
    if is_token {
        out.extend_from_slice(text.as_bytes())
    } else {
        write_string(text, out)
    }
}

/// Appends `text` as a string. A string holds visible ASCII and spaces only (RFC 9651 §3.3.3): each other character
/// becomes `?`.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte @ (b'"' | b'\\')) => out.extend_from_slice(&[b'\\', byte]),
            Ok(byte @ b' '..=b'~') => out.push(byte),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

/// Appends `number` in decimal; clamped to fifteen digits.
pub(crate) fn write_integer(number: i64, out: &mut Vec<u8>) {
    let number = number.clamp(-INTEGER_MAX, INTEGER_MAX);
    if number < 0 {
        out.push(b'-');
    }
    write_decimal(number.unsigned_abs(), out);
}

/// Appends `number` in decimal; all of its digits.
pub(crate) fn write_decimal(mut number: u64, out: &mut Vec<u8>) {
    // the longest u64 has 20 digits
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        let digit = (number % 10) as u8;
        digits[start] = b'0' + digit;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let mut out = Vec::new();
        write_token_or_string(text, &mut out);
        assert_eq!(str::from_utf8(&out).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn what_is_no_token_is_quoted() {
        check("weir", "weir");
        check("weir.example:8080/a", "weir.example:8080/a");
        check("*", "*");
        check("", r#""""#);
        check("1a", r#""1a""#);
        check("a b", r#""a b""#);
        check(r#"a"\"#, r#""a\"\\""#);
        check("é\n\u{7f}ÿ€", r#""?????""#);
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_std_does(number: i64, decimal: u64) {
            let mut out = Vec::new();
            write_integer(number, &mut out);
            prop_assert_eq!(str::from_utf8(&out).unwrap(), number.clamp(-INTEGER_MAX, INTEGER_MAX).to_string());
            out.clear();
            write_decimal(decimal, &mut out);
            prop_assert_eq!(str::from_utf8(&out).unwrap(), decimal.to_string());
        }
    }
}
