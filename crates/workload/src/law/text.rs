//! The text form of a law, read and written.

use super::quantity::{Dimension, Quantity};
use super::{Law, Shape};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Reads `constant(3s)`, `uniform(0, 40KB)`, `exp(4.5KB)`, `lognormal(300KB, 300KB)` (mean,
/// standard deviation), `normal(2.5s, 1s)`, `zipf(64)`, `pareto(1.1, 3KB, max 100MB)` (alpha, least
/// value, and, if wanted, a largest; or `mean 33KB` instead of alpha), `mix(99%: uniform(0, 40KB),
/// 1%: constant(1MB))`; a value alone is a constant.
impl FromStr for Law {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        if text.len() > TEXT_BYTES_MAX {
            let what = format!("it is longer than {TEXT_BYTES_MAX} bytes");
            return Err(LawError {
                law: text.chars().take(40).collect(),
                what,
            });
        }
        let mut units = Units::default();
        let shape = read(text, &mut units, 0).map_err(|what| LawError {
            law: text.to_owned(),
            what,
        })?;
        let dimension = units.found.unwrap_or(Dimension::Plain);
        Ok(Self::new(dimension, shape))
    }
}

/// A text that is no law. `Display` quotes it and says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawError {
    law: String,
    what: String,
}

impl fmt::Display for LawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law `{}`: {}", self.law, self.what)
    }
}

impl std::error::Error for LawError {}

impl Serialize for Law {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Law {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

pub(super) fn write(
    shape: &Shape,
    dimension: Dimension,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let of = |value: &f64| Quantity {
        value: *value,
        dimension,
    };
    match shape {
        Shape::Constant(value) => write!(f, "constant({})", of(value)),
        Shape::Uniform { min, max } => write!(f, "uniform({}, {})", of(min), of(max)),
        Shape::Exponential { mean } => write!(f, "exp({})", of(mean)),
        Shape::Normal { mean, deviation } => write!(f, "normal({}, {})", of(mean), of(deviation)),
        Shape::LogNormal {
            mean, deviation, ..
        } => {
            write!(f, "lognormal({}, {})", of(mean), of(deviation))
        }
        Shape::Zipf { most } => write!(f, "zipf({most})"),
        Shape::Pareto {
            alpha,
            least,
            most: None,
        } => write!(f, "pareto({alpha}, {})", of(least)),
        Shape::Pareto {
            alpha,
            least,
            most: Some(most),
        } => write!(f, "pareto({alpha}, {}, max {})", of(least), of(most)),
        Shape::Mix(parts) => {
            f.write_str("mix(")?;
            for (index, (share, part)) in parts.iter().enumerate() {
                let gap = if index == 0 { "" } else { ", " };
                let share = Quantity {
                    value: *share,
                    dimension: Dimension::Share,
                };
                write!(f, "{gap}{share}: ")?;
                write(part, dimension, f)?;
            }
            f.write_str(")")
        }
    }
}

/// The longest text of a law, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// How deep mixes may stand in mixes.
const DEPTH_MAX: u32 = 4;

/// How far the shares of a mix may add up beside 1: a third written as 33.3333 % is meant to.
pub(crate) const SHARES_SLACK: f64 = 1e-5;

/// The one unit of all values of a law.
#[derive(Default)]
struct Units {
    found: Option<Dimension>,
}

impl Units {
    /// Reads a value that has the law's unit; zero needs none.
    fn read(&mut self, text: &str) -> Result<f64, String> {
        let Quantity { value, dimension } = quantity(text)?;
        if value == 0.0 && dimension == Dimension::Plain {
            return Ok(value);
        }
        match self.found {
            Some(found) if found != dimension => Err(format!(
                "`{}` is not {}, which the law's other values are",
                text.trim(),
                found.example()
            )),
            _ => {
                self.found = Some(dimension);
                Ok(value)
            }
        }
    }

    fn read_positive(&mut self, text: &str) -> Result<f64, String> {
        let value = self.read(text)?;
        positive(value, text)
    }

    fn read_from_zero(&mut self, text: &str) -> Result<f64, String> {
        let value = self.read(text)?;
        if value < 0.0 {
            return Err(format!("`{}` is less than zero", text.trim()));
        }
        Ok(value)
    }
}

fn quantity(text: &str) -> Result<Quantity, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn positive(value: f64, text: &str) -> Result<f64, String> {
    if value > 0.0 {
        Ok(value)
    } else {
        Err(format!("`{}` is not more than zero", text.trim()))
    }
}

fn read(text: &str, units: &mut Units, depth: u32) -> Result<Shape, String> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else {
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(format!("`{text}` has no parameters{KNOWN}"));
        }
        return Ok(Shape::Constant(units.read_from_zero(text)?));
    };
    let inside = rest
        .strip_suffix(')')
        .ok_or_else(|| "the closing parenthesis is missing".to_owned())?;
    let parts = split(inside)?;
    match (name.trim(), parts.as_slice()) {
        ("constant", [value]) => Ok(Shape::Constant(units.read_from_zero(value)?)),
        ("uniform", [min, max]) => {
            let (min, max) = (units.read_from_zero(min)?, units.read_positive(max)?);
            if min > max {
                return Err("the first value is the larger one".to_owned());
            }
            Ok(Shape::Uniform { min, max })
        }
        ("exp", [mean]) => Ok(Shape::Exponential {
            mean: units.read_positive(mean)?,
        }),
        ("normal", [mean, deviation]) => Ok(Shape::Normal {
            mean: units.read(mean)?,
            deviation: units.read_from_zero(deviation)?,
        }),
        ("lognormal", [mean, deviation]) => {
            let (mean, deviation) = (units.read_positive(mean)?, units.read_from_zero(deviation)?);
            Ok(Shape::log_normal(mean, deviation))
        }
        ("zipf", [most]) => read_zipf(most),
        ("pareto", [alpha, least]) => read_pareto(alpha, least, None, units),
        ("pareto", [alpha, least, most]) => read_pareto(alpha, least, Some(most), units),
        ("mix", parts) if depth < DEPTH_MAX => read_mix(parts, units, depth),
        ("mix", _) => Err(format!("more than {DEPTH_MAX} mixes stand in each other")),
        (name, parts) => Err(match usage(name) {
            Some(usage) => format!(
                "`{name}` has {} parameters; did you mean `{usage}`?",
                parts.len()
            ),
            None => format!("unknown law `{name}`{KNOWN}"),
        }),
    }
}

fn read_zipf(most: &str) -> Result<Shape, String> {
    let digits = most.trim();
    match digits.parse() {
        Ok(most) if most > 0 => Ok(Shape::Zipf { most }),
        _ => Err(format!(
            "`{digits}` is not an integer from 1 to {}",
            u32::MAX
        )),
    }
}

fn read_pareto(
    alpha: &str,
    least: &str,
    most: Option<&str>,
    units: &mut Units,
) -> Result<Shape, String> {
    let alpha_text = alpha;
    let least = units.read_positive(least)?;
    let most = match most.map(|most| (most, most.trim().strip_prefix("max "))) {
        None => None,
        Some((_, Some(most))) => Some(units.read_positive(most)?),
        Some((most, None)) => {
            return Err(format!(
                "`{most}` has no `max` before it; did you mean `max {}`?",
                most.trim()
            ));
        }
    };
    if most.is_some_and(|most| most < least) {
        return Err("the largest value is less than the least".to_owned());
    }
    let alpha = match alpha.trim().strip_prefix("mean ") {
        // Wisconsin Proxy Benchmark 1.0: mean = alpha * k / (alpha - 1)
        Some(mean) => {
            let mean = units.read_positive(mean)?;
            if mean <= least {
                return Err("the mean is not more than the least value".to_owned());
            }
            mean / (mean - least)
        }
        None => match quantity(alpha)? {
            Quantity {
                value,
                dimension: Dimension::Plain,
            } => value,
            _ => {
                return Err(format!(
                    "alpha is a plain number, `{}` has a unit",
                    alpha.trim()
                ));
            }
        },
    };
    Ok(Shape::Pareto {
        alpha: positive(alpha, alpha_text)?,
        least,
        most,
    })
}

fn read_mix(parts: &[&str], units: &mut Units, depth: u32) -> Result<Shape, String> {
    let mut mixed = Vec::with_capacity(parts.len());
    for part in parts {
        let Some((share_text, law)) = part.split_once(':') else {
            return Err(format!(
                "`{}` has no share; did you mean `50%: {}`?",
                part.trim(),
                part.trim()
            ));
        };
        let Quantity { value, dimension } = quantity(share_text)?;
        if !matches!(dimension, Dimension::Plain | Dimension::Share)
            || !(0.0..=1.0).contains(&value)
        {
            return Err(format!(
                "`{}` is not a share from 0% to 100%",
                share_text.trim()
            ));
        }
        mixed.push((value, read(law, units, depth + 1)?));
    }
    let sum: f64 = mixed.iter().map(|(share, _)| share).sum();
    if (sum - 1.0).abs() > SHARES_SLACK {
        return Err(format!(
            "the shares add up to {}%, not to 100%",
            sum * 100.0
        ));
    }
    Ok(Shape::Mix(mixed))
}

/// The parameters between commas that stand in no inner parentheses.
fn split(inside: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| "a closing parenthesis has no opening one".to_owned())?;
            }
            b',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a closing parenthesis is missing".to_owned());
    }
    parts.push(&inside[start..]);
    Ok(parts)
}

fn usage(name: &str) -> Option<&'static str> {
    USAGES
        .into_iter()
        .find(|usage| usage.split('(').next() == Some(name))
}

const USAGES: [&str; 7] = [
    "constant(3s)",
    "uniform(0, 40KB)",
    "exp(4.5KB)",
    "normal(2.5s, 1s)",
    "lognormal(25KB, 10KB)",
    "zipf(64)",
    "pareto(1.1, 3KB, max 100MB)",
];

const KNOWN: &str =
    "; did you mean one of constant, uniform, exp, normal, lognormal, zipf, pareto, mix?";
