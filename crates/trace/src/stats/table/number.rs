//! Numbers as they are read.

use weir_measure::float;

/// In groups of three, from five digits on.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A share of 1 in per cent, with two digits behind the point as in the paper.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

/// Bytes, in units of a thousand.
pub(super) fn bytes(number: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(unit, _)| number >= *unit) {
        Some((unit, name)) => format!("{} {name}", digits(number / unit)),
        None => format!("{} B", digits(number)),
    }
}

/// The same of a whole number.
pub(crate) fn whole_bytes(number: u64) -> String {
    bytes(float(number))
}

/// Megabytes of 10^6 bytes, whole, as in the paper; less than ten of them with digits that count.
pub(super) fn megabytes(number: u64) -> String {
    if number >= 10_000_000 {
        return count(number.saturating_add(500_000) / 1_000_000);
    }
    digits(float(number) / 1e6)
}

/// A time in microseconds.
pub(super) fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{} us", digits(us)),
        us if us < 1e6 => format!("{} ms", digits(us / 1e3)),
        us => format!("{} s", digits(us / 1e6)),
    }
}

/// The same of a whole number.
pub(crate) fn whole_time(us: u64) -> String {
    time(float(us))
}

/// A long time in microseconds.
pub(super) fn span(us: u64) -> String {
    let seconds = float(us) / 1e6;
    match seconds {
        seconds if seconds < 120.0 => time(float(us)),
        seconds if seconds < 7200.0 => format!("{} minutes", digits(seconds / 60.0)),
        seconds if seconds < 172_800.0 => format!("{} hours", digits(seconds / 3600.0)),
        seconds => format!("{} days", digits(seconds / 86_400.0)),
    }
}

/// Three digits that count, and no zeros behind the point that say nothing.
pub(super) fn digits(number: f64) -> String {
    let places = match number {
        number if number >= 100.0 => 0,
        number if number >= 10.0 => 1,
        number if number >= 1.0 => 2,
        number if number >= 0.1 || number == 0.0 => 3,
        number if number >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{number:.places$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_few_digits_and_fitting_units() {
        assert_eq!(
            [count(9999), count(10_000), count(3_236_869)],
            ["9999", "10 000", "3 236 869"]
        );
        assert_eq!([percent(0.301_99), percent(0.0)], ["30.20", "0.00"]);
        assert_eq!(
            [
                whole_bytes(999),
                whole_bytes(12_345),
                whole_bytes(2_747_282_740)
            ],
            ["999 B", "12.3 kB", "2.75 GB"]
        );
        assert_eq!(
            [megabytes(33_731_400_000), megabytes(151_000), megabytes(0)],
            ["33 731", "0.151", "0"]
        );
        assert_eq!(
            [whole_time(7), whole_time(1_300_000), whole_time(2500)],
            ["7 us", "1.3 s", "2.5 ms"]
        );
        assert_eq!(
            [span(90_000_000), span(298_859_000_000)],
            ["90 s", "3.46 days"]
        );
        assert_eq!(
            [span(7_199_000_000), span(7_200_000_000)],
            ["120 minutes", "2 hours"]
        );
        assert_eq!([digits(0.0335), digits(0.000_012)], ["0.0335", "0.000012"]);
    }
}
