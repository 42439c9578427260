//! The file with the admin interface's token, or none.

use crate::config::values::text::{BadValue, Form, text_value};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where the token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFile {
    /// None is required: `"off"`.
    Off,
    /// In this file.
    At(PathBuf),
}

impl TokenFile {
    /// The path, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Off => None,
            Self::At(path) => Some(path),
        }
    }
}

impl fmt::Display for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(path) => path.display().fmt(f),
        }
    }
}

impl std::str::FromStr for TokenFile {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "off" => Ok(Self::Off),
            "" => Err(BadValue::new(
                "`` is not a file; a path or \"off\" is expected",
            )),
            _ => Ok(Self::At(PathBuf::from(text))),
        }
    }
}

impl Form for TokenFile {
    const FORM: &'static str = "a path, or \"off\"";
}

text_value!(TokenFile);
