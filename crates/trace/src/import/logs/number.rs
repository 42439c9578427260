//! Numbers as logs write them.

/// `1*DIGIT` that fits; no sign, no space.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value: u64 = 0;
    for byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    Some(value)
}

/// The last second of the year 9999, since 1970: no log has a later one, and microseconds of it fit
/// easily.
pub(crate) const SECONDS_MAX: u64 = 253_402_300_799;

/// Seconds since 1970 with or without decimals, as microseconds; further decimals are cut off.
pub(crate) fn unix_us(text: &[u8]) -> Option<i64> {
    let (seconds, decimals) = match text.iter().position(|&byte| byte == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &b"0"[..]),
    };
    let seconds = unsigned(seconds).filter(|&seconds| seconds <= SECONDS_MAX)?;
    if decimals.is_empty() || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    i64::try_from(seconds * 1_000_000 + decimals_us(decimals)).ok()
}

/// Decimals of a second, which are digits, in microseconds.
pub(crate) fn decimals_us(digits: &[u8]) -> u64 {
    (0..6).fold(0, |us, place| {
        us * 10 + u64::from(digits.get(place).map_or(0, |digit| digit - b'0'))
    })
}

/// A value as a message may show it: what is not printable is escaped, and no more than a line of
/// it.
pub(crate) fn shown(value: &[u8]) -> String {
    let cut = &value[..value.len().min(SHOWN_BYTES_MAX)];
    let dots = if cut.len() < value.len() { "..." } else { "" };
    format!("{}{dots}", cut.escape_ascii())
}

/// Bytes of a value that a message shows.
const SHOWN_BYTES_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unsigned_64_bit_number_is_accepted() {
        for (text, expected) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("000000000000000000001", None),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1 ", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn unix_time_keeps_its_fraction_to_the_microsecond() {
        for (text, expected) in [
            ("1286536308.779", Some(1_286_536_308_779_000)),
            ("1286536308", Some(1_286_536_308_000_000)),
            ("0.0000019", Some(1)),
            ("253402300799.999999", Some(253_402_300_799_999_999)),
            ("253402300800", None),
            ("1.", None),
            (".5", None),
            ("1.5.2", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(unix_us(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn shown_text_is_escaped_and_shortened() {
        assert_eq!(shown(b"a\x1b[2J\xff`"), r"a\x1b[2J\xff`");
        assert_eq!(shown(&[b'a'; 81]).len(), 83);
    }
}
