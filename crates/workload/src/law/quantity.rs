//! Numbers with units, as people write them.

use std::fmt;
use std::str::FromStr;

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// A count, a factor, an exponent.
    Plain,
    /// A part of a whole, from 0 to 1; written in percent.
    Share,
    /// Bytes, in steps of 1024 as in PGL.
    Bytes,
    /// Seconds.
    Seconds,
    /// Bits a second, in steps of 1000 as links are sold.
    BitsPerSecond,
}

impl Dimension {
    /// What to write instead, for a message.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Plain => "a number such as 64",
            Self::Share => "a share such as 5%",
            Self::Bytes => "a size such as 40KB",
            Self::Seconds => "a time such as 3s",
            Self::BitsPerSecond => "a rate such as 28.8kbit/s",
        }
    }
}

/// A number and what it is of, in the dimension's base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) dimension: Dimension,
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
            .unwrap_or(text.len());
        let (digits, unit) = (&text[..end], text[end..].trim());
        let number = digits
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(|| QuantityError::Number(text.to_owned()))?;
        if unit.is_empty() {
            let dimension = Dimension::Plain;
            return Ok(Self {
                value: number,
                dimension,
            });
        }
        let unit = UNITS
            .iter()
            .find(|known| known.name == unit)
            .ok_or_else(|| QuantityError::Unit(unit.to_owned()))?;
        let value = unit.scale.apply(number);
        let dimension = unit.dimension;
        if value.is_finite() {
            Ok(Self { value, dimension })
        } else {
            Err(QuantityError::Number(text.to_owned()))
        }
    }
}

/// The shortest text that reads as exactly this quantity again.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value == 0.0 {
            return f.write_str("0");
        }
        let units = UNITS.iter().filter(|unit| unit.dimension == self.dimension);
        let texts = units.filter_map(|unit| Some((unit.digits_of(self.value)?, unit.name)));
        match texts.min_by_key(|(digits, _)| digits.len()) {
            Some((digits, unit)) => write!(f, "{digits}{unit}"),
            None => write!(f, "{}", self.value),
        }
    }
}

/// What is wrong with a text that should be a number with a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuantityError {
    /// It does not begin with a finite number.
    Number(String),
    /// There is no such unit.
    Unit(String),
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(text) => write!(f, "`{text}` is not a number with a unit"),
            Self::Unit(unit) => write!(f, "unknown unit `{unit}`; did you mean {}?", nearest(unit)),
        }
    }
}

fn nearest(unit: &str) -> String {
    let alike = UNITS
        .iter()
        .find(|known| known.name.eq_ignore_ascii_case(unit));
    match alike {
        Some(known) => format!("`{}`", known.name),
        None => "one of B, KB, MB, GB, us, ms, s, min, h, d, y, %, kbit/s, Mbit/s".to_owned(),
    }
}

struct Unit {
    name: &'static str,
    dimension: Dimension,
    scale: Scale,
}

/// How many base units. Division keeps decimal fractions exact: 72.4 / 100 is the number nearest to
/// 0.724, 72.4 * 0.01 is not.
#[derive(Clone, Copy)]
enum Scale {
    Times(f64),
    Over(f64),
}

impl Scale {
    fn apply(self, number: f64) -> f64 {
        match self {
            Self::Times(factor) => number * factor,
            Self::Over(divisor) => number / divisor,
        }
    }

    fn undo(self, value: f64) -> f64 {
        match self {
            Self::Times(factor) => value / factor,
            Self::Over(divisor) => value * divisor,
        }
    }
}

impl Unit {
    /// The shortest digits that, with this unit, mean exactly `value`.
    fn digits_of(&self, value: f64) -> Option<String> {
        let near = self.scale.undo(value);
        (0..=16)
            .filter_map(|decimals| format!("{near:.decimals$e}").parse::<f64>().ok())
            .find(|&number| is_same(self.scale.apply(number), value))
            .map(|number| number.to_string())
    }
}

fn is_same(one: f64, other: f64) -> bool {
    one == other
}

const fn unit(name: &'static str, dimension: Dimension, scale: Scale) -> Unit {
    Unit {
        name,
        dimension,
        scale,
    }
}

/// Of two texts of one length the first is written, so `1h` and not `1y`-fractions or seconds; the
/// aliases stand last.
const UNITS: &[Unit] = &[
    unit("GB", Dimension::Bytes, Scale::Times(1_073_741_824.0)),
    unit("MB", Dimension::Bytes, Scale::Times(1_048_576.0)),
    unit("KB", Dimension::Bytes, Scale::Times(1024.0)),
    unit("B", Dimension::Bytes, Scale::Times(1.0)),
    unit("y", Dimension::Seconds, Scale::Times(365.0 * 86_400.0)),
    unit("d", Dimension::Seconds, Scale::Times(86_400.0)),
    unit("h", Dimension::Seconds, Scale::Times(3600.0)),
    unit("min", Dimension::Seconds, Scale::Times(60.0)),
    unit("s", Dimension::Seconds, Scale::Times(1.0)),
    unit("ms", Dimension::Seconds, Scale::Over(1e3)),
    unit("us", Dimension::Seconds, Scale::Over(1e6)),
    unit("Gbit/s", Dimension::BitsPerSecond, Scale::Times(1e9)),
    unit("Mbit/s", Dimension::BitsPerSecond, Scale::Times(1e6)),
    unit("kbit/s", Dimension::BitsPerSecond, Scale::Times(1e3)),
    unit("bit/s", Dimension::BitsPerSecond, Scale::Times(1.0)),
    unit("%", Dimension::Share, Scale::Over(100.0)),
    unit("GiB", Dimension::Bytes, Scale::Times(1_073_741_824.0)),
    unit("MiB", Dimension::Bytes, Scale::Times(1_048_576.0)),
    unit("KiB", Dimension::Bytes, Scale::Times(1024.0)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantity_parses_to_its_value_in_base_units() {
        let check = |text: &str, value: f64, dimension| {
            let expected = Quantity { value, dimension };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        };
        check("40KB", 40_960.0, Dimension::Bytes);
        check("1 MB", 1_048_576.0, Dimension::Bytes);
        check("4.5KiB", 4608.0, Dimension::Bytes);
        check("0.5y", 15_768_000.0, Dimension::Seconds);
        check("2min", 120.0, Dimension::Seconds);
        check("40ms", 0.04, Dimension::Seconds);
        check("28.8kbit/s", 28_800.0, Dimension::BitsPerSecond);
        check("0.05%", 0.0005, Dimension::Share);
        check("64", 64.0, Dimension::Plain);
        check("-1", -1.0, Dimension::Plain);
    }

    #[test]
    fn unreadable_quantity_is_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let found = text.parse::<Quantity>().unwrap_err().to_string();
            assert!(found.contains(expected), "{text}: {found}");
        };
        check("", "`` is not a number");
        check("KB", "`KB` is not a number");
        check("1.2.3s", "`1.2.3s` is not a number");
        check("1kb", "unknown unit `kb`; did you mean `KB`?");
        check("1S", "did you mean `s`?");
        check("3 weeks", "unknown unit `weeks`; did you mean one of B");
        check("-", "is not a number");
        check(&format!("1{}y", "0".repeat(308)), "is not a number");
    }

    #[test]
    fn quantity_is_written_in_its_shortest_usual_form() {
        let check = |text: &str| {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!(quantity.to_string(), text);
        };
        let texts = [
            "40KB",
            "1MB",
            "4.5KB",
            "3s",
            "2.5s",
            "40ms",
            "1h",
            "0.5y",
            "30d",
            "72.4%",
            "0.05%",
            "28.8kbit/s",
            "64",
            "0",
        ];
        texts.into_iter().for_each(check);
    }

    proptest! {
        #[test]
        fn written_quantity_parses_to_the_same_value_and_dimension(bits: u64, which in 0_usize..5) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let dimensions = [Dimension::Plain, Dimension::Share, Dimension::Bytes, Dimension::Seconds, Dimension::BitsPerSecond];
            let quantity = Quantity { value, dimension: dimensions[which] };
            let read: Quantity = quantity.to_string().parse().unwrap();
            prop_assert_eq!(read.value, value);
            // a share that no percentage is exactly is written as the number it is
            let is_bare = value == 0.0 || quantity.dimension == Dimension::Share;
            prop_assert!(read.dimension == quantity.dimension || (is_bare && read.dimension == Dimension::Plain));
        }
    }
}
