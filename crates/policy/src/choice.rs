//! Choices with a name: an enum whose variants are words.
//!
//! A choice is declared once, with [`choice!`](crate::choice!). Configuration, flags, messages,
//! records and documents use the words of that declaration, so a new variant needs no second list.

use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

#[doc(hidden)]
pub use serde;

/// Declares an enum whose variants are words: the enum, its words, `Display`, `FromStr` and serde's
/// traits. `ALL`, `WORDS` and `FORM` (the words for a message) are associated constants.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $Type:ident {
            $(#[$first_meta:meta])* $First:ident = $first_word:literal,
            $( $(#[$variant_meta:meta])* $Variant:ident = $word:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Type {
            $(#[$first_meta])* $First,
            $( $(#[$variant_meta])* $Variant, )*
        }

        impl $Type {
            /// Every word, in the order of declaration.
            pub const WORDS: &'static [&'static str] = &[$first_word $(, $word)*];

            /// Every choice, in the order of declaration.
            pub const ALL: [Self; Self::WORDS.len()] = [Self::$First $(, Self::$Variant)*];

            /// How a value is written, for messages and reference pages.
            pub const FORM: &'static str = concat!("one of \"", $first_word, "\"" $(, " \"", $word, "\"")*);

            /// Every word with a comma between them, as a flag takes several.
            pub const LIST: &'static str = concat!($first_word $(, ",", $word)*);

            /// The word that stands for this choice in files, flags and messages.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { Self::$First => $first_word, $( Self::$Variant => $word, )* }
            }
        }

        impl ::core::fmt::Display for $Type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::core::str::FromStr for $Type {
            type Err = $crate::choice::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $first_word => Ok(Self::$First),
                    $( $word => Ok(Self::$Variant), )*
                    _ => Err($crate::choice::UnknownWord::new(text, Self::WORDS)),
                }
            }
        }

        impl $crate::choice::serde::Serialize for $Type {
            fn serialize<S: $crate::choice::serde::Serializer>(
                &self,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::choice::serde::Deserialize<'de> for $Type {
            fn deserialize<D: $crate::choice::serde::Deserializer<'de>>(
                from: D,
            ) -> Result<Self, D::Error> {
                $crate::choice::deserialize(from, Self::FORM)
            }
        }
    };
}

/// A word that no variant of a choice has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    word: String,
    known: &'static [&'static str],
}

impl UnknownWord {
    /// `word` is none of the `known` ones.
    #[must_use]
    pub fn new(word: &str, known: &'static [&'static str]) -> Self {
        Self {
            word: word.into(),
            known,
        }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown value `{}`, expected one of ", self.word)?;
        for (place, word) in self.known.iter().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}`{word}`")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownWord {}

/// Reads a choice from its word.
#[doc(hidden)]
pub fn deserialize<'de, T, D>(from: D, form: &'static str) -> Result<T, D::Error>
where
    T: FromStr<Err = UnknownWord>,
    D: serde::Deserializer<'de>,
{
    from.deserialize_str(Visitor(form, PhantomData))
}

struct Visitor<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = UnknownWord>> serde::de::Visitor<'_> for Visitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use crate::eviction::EvictionKind;

    #[test]
    fn unknown_word_is_refused_with_the_known_ones() {
        let refusal = "LRU".parse::<EvictionKind>().unwrap_err().to_string();
        let known = EvictionKind::ALL.map(|kind| format!("`{kind}`")).join(", ");
        assert_eq!(
            refusal,
            format!("unknown value `LRU`, expected one of {known}")
        );
    }
}
