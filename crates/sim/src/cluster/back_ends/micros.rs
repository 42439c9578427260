//! The time that a step takes at a station.

use crate::world::{MICROSECOND, Nanos};
use serde::{Serialize, Serializer};
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// A cost: above 0, at most [`Micros::MAX_US`] microseconds, in whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(NonZero<u64>);

/// A cost that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostError(String);

impl Micros {
    /// The largest cost: 1000 seconds.
    pub const MAX_US: f64 = 1e9;

    /// So many microseconds; one nanosecond for 0.
    pub(super) const fn whole(us: u64) -> Self {
        Self(match NonZero::new(us * MICROSECOND) {
            Some(ns) => ns,
            None => NonZero::<u64>::MIN,
        })
    }

    /// So many microseconds, to the nanosecond.
    ///
    /// # Errors
    /// It is 0, negative, no number, above the maximum, or less than half a nanosecond.
    pub fn of_us(us: f64) -> Result<Self, CostError> {
        let refused = || CostError(us.to_string());
        if !(us > 0.0 && us <= Self::MAX_US) {
            return Err(refused());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above 0 and below 2^53"
        )]
        let ns = (us * MICROSECOND as f64).round() as u64;
        NonZero::new(ns).map(Self).ok_or_else(refused)
    }

    pub(super) const fn nanos(self) -> Nanos {
        self.0.get()
    }

    /// In microseconds.
    #[must_use]
    pub const fn us(self) -> f64 {
        self.0.get() as f64 / MICROSECOND as f64
    }

    /// This `times` over; one nanosecond at least.
    pub(super) fn scaled(self, times: f64) -> Result<Self, CostError> {
        Self::of_us(self.us() * times)
    }
}

impl FromStr for Micros {
    type Err = CostError;

    fn from_str(text: &str) -> Result<Self, CostError> {
        let us: f64 = text.parse().map_err(|_| CostError(text.to_owned()))?;
        Self::of_us(us)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.us().fmt(f)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.us())
    }
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no cost: microseconds, above 0 and at most {}",
            self.0,
            Micros::MAX_US
        )
    }
}

impl std::error::Error for CostError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_of_zero_or_less_or_of_no_number_is_refused() {
        for text in ["0", "-1", "NaN", "inf", "1e10", "0.0001", "", "12us"] {
            assert!(text.parse::<Micros>().is_err(), "{text}");
        }
        for (text, ns) in [("0.001", 1), ("278", 278_000), ("1e9", 1_000_000_000_000)] {
            assert_eq!(text.parse().map(Micros::nanos), Ok(ns), "{text}");
        }
    }
}
