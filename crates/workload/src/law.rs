//! Laws of chance as a scenario file writes them: `exp(4.5KB)`, `normal(2.5s, 1s)`, `zipf(64)`.
//!
//! The forms and their meaning are those of Web Polygraph's language PGL where it has them:
//! `zipf(N)` is `floor((N+1)^u)`, `normal` is a sum of twelve uniforms, `lognormal` is given by
//! mean and standard deviation of the drawn value (not of its logarithm), a KB has 1024 bytes.
//! `pareto` is the Wisconsin Proxy Benchmark's, with a largest value, without which its mean is a
//! matter of luck.

mod moments;
mod quantity;
mod text;

use crate::chance::Chance;
use std::fmt;

pub use quantity::Dimension;
pub(crate) use quantity::Quantity;
pub use text::LawError;
pub(crate) use text::SHARES_SLACK;

/// A distribution of sizes, times or counts. Its text form is the same read and written: see
/// [`Law::from_str`](std::str::FromStr).
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    dimension: Dimension,
    shape: Shape,
}

impl Law {
    /// Draws a value: bytes, seconds, or a plain number, as [`dimension`](Law::dimension) says.
    /// `normal` may draw less than zero, and the caller decides what that means; the others never
    /// do.
    pub fn draw(&self, chance: &mut Chance) -> f64 {
        self.shape.draw(chance)
    }

    /// The expected value, if there is one: a Pareto law with alpha of 1 or less and no maximum has
    /// none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        moments::mean(&self.shape)
    }

    /// No smaller value is drawn. For `normal` six standard deviations below the mean.
    #[must_use]
    pub fn minimum(&self) -> f64 {
        moments::minimum(&self.shape)
    }

    /// No larger value is drawn, where there is such a bound.
    #[must_use]
    pub fn maximum(&self) -> Option<f64> {
        moments::maximum(&self.shape)
    }

    /// What a value is of. Zero is of everything: a law that draws nothing but zero is
    /// [`Dimension::Plain`].
    #[must_use]
    pub fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Whether it draws values of this kind.
    #[must_use]
    pub fn is_of(&self, dimension: Dimension) -> bool {
        self.dimension == dimension || self.shape.is_zero()
    }

    /// The law of a value `factor` times as large. A `zipf` law draws counts and stays what it is.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        Self {
            dimension: self.dimension,
            shape: self.shape.times(factor),
        }
    }

    fn new(dimension: Dimension, shape: Shape) -> Self {
        let dimension = if shape.is_zero() {
            Dimension::Plain
        } else {
            dimension
        };
        Self { dimension, shape }
    }
}

/// The laws, with parameters in bytes, seconds or plain numbers.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Constant(f64),
    /// From `min` to `max`, without `max`.
    Uniform {
        min: f64,
        max: f64,
    },
    Exponential {
        mean: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    LogNormal {
        mean: f64,
        deviation: f64,
        /// Mean and standard deviation of the logarithm, which follow from the other two.
        logarithm: (f64, f64),
    },
    Zipf {
        most: u32,
    },
    /// `F(x) = 1 - (least/x)^alpha`; what exceeds `most` is `most`.
    Pareto {
        alpha: f64,
        least: f64,
        most: Option<f64>,
    },
    /// Shares that add up to 1.
    Mix(Vec<(f64, Shape)>),
}

impl Shape {
    fn log_normal(mean: f64, deviation: f64) -> Self {
        let ratio = deviation / mean;
        let variance = libm::log1p(ratio * ratio);
        Self::LogNormal {
            mean,
            deviation,
            logarithm: (libm::log(mean) - variance / 2.0, libm::sqrt(variance)),
        }
    }

    fn draw(&self, chance: &mut Chance) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform { min, max } => min + (max - min) * chance.unit(),
            // 1 - u is never zero
            Self::Exponential { mean } => -mean * libm::log(1.0 - chance.unit()),
            Self::Normal { mean, deviation } => {
                let sum: f64 = (0..12).map(|_| chance.unit()).sum();
                mean + deviation * (sum - 6.0)
            }
            Self::LogNormal {
                logarithm: (mu, sigma),
                ..
            } => libm::exp(mu + sigma * standard_normal(chance)),
            Self::Zipf { most } => {
                let ends = f64::from(*most) + 1.0;
                // rounding must not reach N + 1
                libm::pow(ends, chance.unit()).floor().min(ends - 1.0)
            }
            Self::Pareto { alpha, least, most } => {
                let drawn = least * libm::pow(1.0 - chance.unit(), -1.0 / alpha);
                most.map_or(drawn, |most| drawn.min(most))
            }
            Self::Mix(parts) => choose(parts, chance.unit()).draw(chance),
        }
    }

    fn times(&self, factor: f64) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(value * factor),
            Self::Uniform { min, max } => Self::Uniform {
                min: min * factor,
                max: max * factor,
            },
            Self::Exponential { mean } => Self::Exponential {
                mean: mean * factor,
            },
            Self::Normal { mean, deviation } => Self::Normal {
                mean: mean * factor,
                deviation: deviation * factor,
            },
            Self::LogNormal {
                mean, deviation, ..
            } => Self::log_normal(mean * factor, deviation * factor),
            Self::Zipf { most } => Self::Zipf { most: *most },
            Self::Pareto { alpha, least, most } => Self::Pareto {
                alpha: *alpha,
                least: least * factor,
                most: most.map(|most| most * factor),
            },
            Self::Mix(parts) => {
                let scaled = |(share, part): &(f64, Self)| (*share, part.times(factor));
                Self::Mix(parts.iter().map(scaled).collect())
            }
        }
    }

    /// Whether all its values are zero, so that no unit is needed to say what they are of.
    fn is_zero(&self) -> bool {
        match self {
            Self::Constant(value) => *value == 0.0,
            Self::Mix(parts) => parts.iter().all(|(_, part)| part.is_zero()),
            _ => false,
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(&self.shape, self.dimension, f)
    }
}

fn choose(parts: &[(f64, Shape)], unit: f64) -> &Shape {
    let mut end = 0.0;
    for (share, part) in parts {
        end += share;
        if unit < end {
            return part;
        }
    }
    // the shares add up to a hair less than 1
    &parts[parts.len() - 1].1
}

/// Box and Muller 1958. Twelve uniforms, as `normal` is defined, would draw the mean of a wide
/// log-normal law 6 % too low.
fn standard_normal(chance: &mut Chance) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - chance.unit()));
    radius * libm::cos(core::f64::consts::TAU * chance.unit())
}
