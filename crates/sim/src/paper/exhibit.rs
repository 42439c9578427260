//! What the tables and figures of all papers have in common: commands take their words as values,
//! and records have them.

/// Has an enum of [`words!`](weir_semantics::words) written and read as its words.
macro_rules! written_as_words {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                let known = Self::ALL.into_iter().find(|one| one.as_str() == word);
                known.ok_or_else(|| {
                    let names = Self::ALL.map(Self::as_str).join(", ");
                    format!("`{word}` is none of {names}")
                })
            }
        }
    };
}

pub(super) use written_as_words;
