//! Numbers as they are read: three digits, a unit that fits, and a thin space between thousands.

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time, in microseconds.
    Time,
    /// A share, 0 to 1.
    Share,
    /// Bytes; units of a thousand.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Something else that is counted; nothing is written behind it.
    Count,
}

/// A scale for all numbers of an axis: divide by `divisor` and call the result `name`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// How many of the base unit it is.
    pub divisor: f64,
    /// Its name.
    pub name: &'static str,
}

impl Unit {
    /// The scale in which `largest` is read most easily.
    pub fn scale(self, largest: f64) -> Scale {
        let steps: &[(f64, f64, &'static str)] = match self {
            Self::Time => &[(1e6, 1e6, "s"), (1e3, 1e3, "ms"), (0.0, 1.0, "µs")],
            Self::Share => &[(0.0, 0.01, "%")],
            Self::Bytes => &[
                (1e9, 1e9, "GB"),
                (1e6, 1e6, "MB"),
                (1e3, 1e3, "kB"),
                (0.0, 1.0, "B"),
            ],
            Self::BytesPerSecond => &[
                (1e9, 1e9, "GB/s"),
                (1e6, 1e6, "MB/s"),
                (1e3, 1e3, "kB/s"),
                (0.0, 1.0, "B/s"),
            ],
            Self::Count => &[(0.0, 1.0, "")],
        };
        let fits = |(from, _, _): &&(f64, f64, &'static str)| largest.abs() >= *from;
        let (divisor, name) = steps
            .iter()
            .find(fits)
            .map_or((1.0, ""), |&(_, divisor, name)| (divisor, name));
        Scale { divisor, name }
    }

    /// The number with its unit.
    pub fn write(self, value: f64) -> String {
        let scale = self.scale(value);
        let number = match self {
            Self::Count => grouped(value),
            _ => digits(value / scale.divisor),
        };
        if scale.name.is_empty() {
            return number;
        }
        format!("{number}\u{a0}{}", scale.name)
    }
}

/// Three digits that count, at most; no zeros behind the point that say nothing.
pub fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    spaced(&text)
}

/// A count: whole if it is, and in groups of three.
fn grouped(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 100.0 {
        return spaced(&format!("{value:.0}"));
    }
    digits(value)
}

/// A count in groups of three.
pub fn count(value: u64) -> String {
    spaced(&value.to_string())
}

/// A count as a number to compute with.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts stay far below 2^53, and are shown with three digits"
)]
pub const fn float(value: u64) -> f64 {
    value as f64
}

fn spaced(digits: &str) -> String {
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("-", rest));
    if digits.len() <= 4 {
        return format!("{sign}{digits}");
    }
    let mut out = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: Unit, value: f64, expected: &str) {
        let text = unit.write(value).replace(['\u{a0}', '\u{202f}'], " ");
        assert_eq!(text, expected, "{unit:?} {value}");
    }

    #[test]
    fn value_is_rounded_and_scaled_to_a_readable_unit() {
        check(Unit::Time, 412.0, "412 µs");
        check(Unit::Time, 1_234.0, "1.23 ms");
        check(Unit::Time, 45_678.0, "45.7 ms");
        check(Unit::Time, 3_000_000.0, "3 s");
        check(Unit::Time, 0.0, "0 µs");
        check(Unit::Share, 0.2436, "24.4 %");
        check(Unit::Share, -0.02, "-2 %");
        check(Unit::Share, 0.0004, "0.04 %");
        check(Unit::Bytes, 75e6, "75 MB");
        check(Unit::BytesPerSecond, 1_500.0, "1.5 kB/s");
        check(Unit::Count, 1_234_567.0, "1 234 567");
        check(Unit::Count, 9_999.0, "9999");
        check(Unit::Count, 0.25, "0.25");
    }

    #[test]
    fn axis_scale_gives_one_unit_for_all_its_ticks() {
        let scale = Unit::Time.scale(2_500_000.0);
        assert_eq!((scale.divisor, scale.name), (1e6, "s"));
        assert_eq!(digits(500_000.0 / scale.divisor), "0.5");
    }
}
