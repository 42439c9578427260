//! Values written as text: how a refusal is worded, and the glue between `FromStr`, `Display` and
//! serde.
//!
//! Every value of the configuration has one text form, the same in a file, on the command line and
//! in `--print-config`. Its `FromStr` is the only parser, so that no second spelling can creep in.

use std::fmt;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::AbortKind;
use weir_policy::{Profile, SetCookieRule};

/// Why a text is not a value of its kind.
///
/// `Display` is the problem, followed by `; did you mean …?` where a correction is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// What is wrong, with the text in back quotes.
    pub problem: String,
    /// What was probably meant, as it would have to be written.
    pub suggestion: Option<String>,
}

impl BadValue {
    /// A refusal without a correction.
    #[must_use]
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            suggestion: None,
        }
    }

    /// The same refusal with what was probably meant.
    #[must_use]
    pub fn suggesting(self, suggestion: impl Into<String>) -> Self {
        Self {
            suggestion: Some(suggestion.into()),
            ..self
        }
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BadValue {}

/// The form of a value, for the reference page and for "invalid type" messages.
pub trait Form {
    /// A noun phrase with an example, such as `a duration with its unit, such as "30s"`.
    const FORM: &'static str;
}

impl Form for String {
    const FORM: &'static str = "a string";
}

impl Form for u8 {
    const FORM: &'static str = "an integer";
}

impl Form for u16 {
    const FORM: &'static str = "an integer";
}

impl Form for u32 {
    const FORM: &'static str = "an integer";
}

/// Gives a type with `FromStr<Err = BadValue>`, `Display` and `Form` its serde form: a string.
macro_rules! text_value {
    ($Type:ty) => {
        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::config::values::text::TextVisitor::<Self>::default())
            }
        }
    };
}
pub(in crate::config) use text_value;

/// A choice of the configuration: what [`weir_policy::choice!`] declares, and its form.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $Type:ident { $($variants:tt)* }
    ) => {
        weir_policy::choice! {
            $(#[$meta])*
            pub enum $Type { $($variants)* }
        }

        impl $crate::config::values::text::Form for $Type {
            const FORM: &'static str = Self::FORM;
        }
    };
}
pub(in crate::config) use choice;

impl Form for EvictionKind {
    const FORM: &'static str = Self::FORM;
}

impl Form for Profile {
    const FORM: &'static str = Self::FORM;
}

impl Form for SetCookieRule {
    const FORM: &'static str = Self::FORM;
}

impl Form for AbortKind {
    const FORM: &'static str = Self::FORM;
}

/// The refusal of a word that is not in a closed list, worded as serde words it for field names.
pub(in crate::config) fn unknown(what: &str, word: &str, known: &[&str]) -> BadValue {
    let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    BadValue::new(format!(
        "unknown {what} `{word}`, expected one of {}",
        known.join(", ")
    ))
}

/// The serde visitor behind `text_value!`.
pub(in crate::config) struct TextVisitor<T>(std::marker::PhantomData<T>);

impl<T> Default for TextVisitor<T> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<T> serde::de::Visitor<'_> for TextVisitor<T>
where
    T: std::str::FromStr<Err = BadValue> + Form,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::FORM)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
