//! How times, sizes, shares and rates stand in a scenario file: `"15s"`, `"64MB"`, `"0.1%"`,
//! `"28.8kbit/s"`.
//!
//! `#[serde(with = "As::<Seconds>")]` on a field of base units (`f64` or `u64`, or an option of
//! one) reads and writes that.

use crate::law::{Dimension, Quantity};
use crate::number::whole;
use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use std::fmt;
use std::marker::PhantomData;

/// A field in the unit that `U` names.
pub(crate) struct As<U>(PhantomData<U>);

/// What a text measures.
pub(crate) trait Unit {
    const DIMENSION: Dimension;
    const MAX: f64;
}

pub(crate) enum Seconds {}
pub(crate) enum Bytes {}
pub(crate) enum Share {}
pub(crate) enum BitsPerSecond {}

impl Unit for Seconds {
    const DIMENSION: Dimension = Dimension::Seconds;
    /// A hundred years: nothing here waits longer, and its microseconds fit an integer.
    const MAX: f64 = 100.0 * 365.0 * 86_400.0;
}

impl Unit for Bytes {
    const DIMENSION: Dimension = Dimension::Bytes;
    /// 2^53, where an `f64` stops counting bytes one by one.
    const MAX: f64 = 9_007_199_254_740_992.0;
}

impl Unit for Share {
    const DIMENSION: Dimension = Dimension::Share;
    const MAX: f64 = 1.0;
}

impl Unit for BitsPerSecond {
    const DIMENSION: Dimension = Dimension::BitsPerSecond;
    /// A terabit a second.
    const MAX: f64 = 1e12;
}

/// A number that a field holds in base units.
pub(crate) trait Number: Sized {
    fn from_base(value: f64) -> Self;
    /// Nothing where an option is empty; such a field is not written.
    fn to_base(&self) -> Option<f64>;
}

impl Number for f64 {
    fn from_base(value: f64) -> Self {
        value
    }

    fn to_base(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Number for u64 {
    fn from_base(value: f64) -> Self {
        whole(value.round())
    }

    fn to_base(&self) -> Option<f64> {
        Some(*self as f64)
    }
}

impl<N: Number> Number for Option<N> {
    fn from_base(value: f64) -> Self {
        Some(N::from_base(value))
    }

    fn to_base(&self) -> Option<f64> {
        self.as_ref().and_then(N::to_base)
    }
}

impl<U: Unit> As<U> {
    pub(crate) fn serialize<N: Number, S: Serializer>(
        number: &N,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match number.to_base() {
            None => serializer.serialize_none(),
            Some(value) => serializer.collect_str(&Quantity {
                value,
                dimension: U::DIMENSION,
            }),
        }
    }

    pub(crate) fn deserialize<'de, N: Number, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<N, D::Error> {
        deserializer
            .deserialize_any(Reader::<U>(PhantomData))
            .map(N::from_base)
    }
}

/// Reads `text` as a quantity of this kind.
pub(crate) fn read<U: Unit>(text: &str) -> Result<f64, String> {
    let quantity: Quantity = text.parse().map_err(|error| format!("{error}"))?;
    of_unit::<U>(quantity, text)
}

fn of_unit<U: Unit>(quantity: Quantity, text: &str) -> Result<f64, String> {
    let Quantity { value, dimension } = quantity;
    let bare = dimension == Dimension::Plain && (value == 0.0 || U::DIMENSION == Dimension::Share);
    if dimension != U::DIMENSION && !bare {
        return Err(format!("`{text}` is not {}", U::DIMENSION.example()));
    }
    if !(0.0..=U::MAX).contains(&value) {
        let most = Quantity {
            value: U::MAX,
            dimension: U::DIMENSION,
        };
        return Err(format!("`{text}` is not between 0 and {most}"));
    }
    Ok(value)
}

struct Reader<U>(PhantomData<U>);

impl<U: Unit> Reader<U> {
    fn take<E: de::Error>(value: f64, text: &str) -> Result<f64, E> {
        let dimension = Dimension::Plain;
        of_unit::<U>(Quantity { value, dimension }, text).map_err(E::custom)
    }
}

impl<U: Unit> Visitor<'_> for Reader<U> {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(U::DIMENSION.example())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<f64, E> {
        read::<U>(text).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<f64, E> {
        Self::take(value, &value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<f64, E> {
        Self::take(value as f64, &value.to_string())
    }
}

/// A type is read and written as the text that its `FromStr` and `Display` know.
macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

pub(crate) use as_text;

pub(crate) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
