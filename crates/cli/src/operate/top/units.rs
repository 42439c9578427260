//! Numbers and names in a few characters of visible ASCII.

/// A count: `999`, `12.3k`, `4.56M`. It is cut, not rounded.
pub(super) fn count(value: u64) -> String {
    scaled(value, &["", "k", "M", "G", "T", "P"], "")
}

/// A number of bytes: `999 B`, `12.3 MB`.
pub(super) fn bytes(value: u64) -> String {
    scaled(value, &["B", "kB", "MB", "GB", "TB", "PB", "EB"], " ")
}

/// A time in microseconds: `999 us`, `1.25 ms`, `12.0 s`.
pub(super) fn micros(value: u64) -> String {
    scaled(value, &["us", "ms", "s"], " ")
}

/// Three digits and a unit, each a thousand of the one before it.
fn scaled(value: u64, units: &[&str], space: &str) -> String {
    let (mut scale, mut place) = (1, 0);
    while value / scale >= 1000 && place + 1 < units.len() {
        scale *= 1000;
        place += 1;
    }
    let (whole, rest) = (value / scale, value % scale);
    let digits = match whole {
        _ if place == 0 => whole.to_string(),
        0..10 => format!("{whole}.{:02}", rest / (scale / 100)),
        10..100 => format!("{whole}.{}", rest / (scale / 10)),
        _ => whole.to_string(),
    };
    format!("{digits}{space}{}", units[place])
}

/// A part of a whole: `93.1 %`, or `-` of nothing. It is rounded, as on the page for browsers.
pub(super) fn share(part: u64, whole: u64) -> String {
    match rounded(part, whole, 1000) {
        Some(share) => format!("{}.{} %", share / 10, share % 10),
        None => "-".to_owned(),
    }
}

/// The same without a fraction.
#[cfg(feature = "top")]
pub(super) fn percent(part: u64, whole: u64) -> String {
    match rounded(part, whole, 100) {
        Some(share) => format!("{share}%"),
        None => "-".to_owned(),
    }
}

/// How many of `parts` equal parts of a whole are the nearest to `part`; all of them at most.
fn rounded(part: u64, whole: u64, parts: u128) -> Option<u128> {
    let whole = u128::from(whole);
    (whole > 0).then(|| ((u128::from(part) * parts + whole / 2) / whole).min(parts))
}

/// A span of time, in two units at most.
pub(super) fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// The time of the day, UTC.
pub(super) fn clock(unix_s: u64) -> String {
    let (hours, minutes) = (unix_s / 3600 % 24, unix_s / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}Z", unix_s % 60)
}

/// A name that comes from strangers, as visible ASCII of at most `width` characters: a terminal
/// gets no escape sequence, no text from right to left and no character of another width of it.
pub(super) fn visible(name: &str, width: usize) -> String {
    let mut shown = String::new();
    for character in name.chars() {
        match character {
            ' '..='~' => shown.push(character),
            _ => shown.extend(character.escape_default()),
        }
        // characters of the name that would not be shown are not looked at
        if shown.len() > width {
            shown.truncate(width);
            let end = width.saturating_sub(CUT.len());
            shown.replace_range(end.., &CUT[..CUT.len().min(width)]);
            break;
        }
    }
    shown
}

/// What stands for the rest of a name.
const CUT: &str = "...";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_three_digits_and_a_unit() {
        for (value, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.00k"),
            (12_399, "12.3k"),
            (999_999, "999k"),
            (4_560_000, "4.56M"),
            (u64::MAX, "18446P"),
        ] {
            assert_eq!(count(value), expected, "{value}");
        }
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1_050_000), "1.05 MB");
        assert_eq!(micros(999), "999 us");
        assert_eq!(micros(12_000_000), "12.0 s");
        assert_eq!(micros(1_250), "1.25 ms");
    }

    #[test]
    fn share_of_nothing_is_unknown_and_none_is_above_all() {
        assert_eq!(share(0, 0), "-");
        assert_eq!(share(4, 3), "100.0 %");
        assert_eq!(share(u64::MAX, u64::MAX), "100.0 %");
    }

    #[test]
    fn share_is_rounded_to_the_nearest_digit_that_is_shown() {
        for (part, whole, expected) in [
            (1, 3, "33.3 %"),
            (2, 3, "66.7 %"),
            (1, 2000, "0.1 %"),
            (1, 2001, "0.0 %"),
            (9995, 10_000, "100.0 %"),
            (9994, 10_000, "99.9 %"),
        ] {
            assert_eq!(share(part, whole), expected, "{part} of {whole}");
        }
        #[cfg(feature = "top")]
        for (part, whole, expected) in [(2, 3, "67%"), (1, 200, "1%"), (1, 201, "0%")] {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn span_has_two_units_at_most() {
        for (seconds, expected) in [
            (59, "59 s"),
            (60, "1 min"),
            (3_660, "1 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(span(seconds), expected);
        }
        assert_eq!(clock(86_400 + 3_723), "01:02:03Z");
    }

    #[test]
    fn hostile_name_is_visible_ascii_of_bounded_width() {
        for (name, width, expected) in [
            ("http://a/", 9, "http://a/"),
            ("http://a/b", 9, "http:/..."),
            ("\u{1b}[2J", 80, r"\u{1b}[2J"),
            ("a\u{202e}b", 80, r"a\u{202e}b"),
            ("\u{6f22}\u{5b57}", 80, r"\u{6f22}\u{5b57}"),
            ("e\u{301}\u{9b}\u{7f}", 80, r"e\u{301}\u{9b}\u{7f}"),
            ("\u{1b}[2J", 5, r"\u..."),
            ("abc", 2, ".."),
            ("abc", 0, ""),
            ("it's \"x\"\\", 80, "it's \"x\"\\"),
        ] {
            assert_eq!(visible(name, width), expected, "{name:?}");
        }
        let long = "\u{202e}".repeat(1 << 20);
        assert_eq!(visible(&long, 20).len(), 20);
    }
}
