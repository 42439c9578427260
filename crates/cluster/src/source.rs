//! Where members are listed, as a setting says it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where members are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In this file, as `[[member]]` tables: `file:/etc/weir/members.toml`.
    File(PathBuf),
}

/// Why a text is no source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSource(pub String);

impl fmt::Display for InvalidSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSource {}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl FromStr for Source {
    type Err = InvalidSource;

    fn from_str(text: &str) -> Result<Self, InvalidSource> {
        let invalid = |why: &str| Err(InvalidSource(format!("`{text}` {why}")));
        match text.split_once(':') {
            Some(("file", "")) => invalid("has no path"),
            Some(("file", path)) => Ok(Self::File(PathBuf::from(path))),
            _ => invalid("is no place where members are listed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_written_as_it_was_read() {
        for text in ["file:/etc/weir/members.toml", "file:members.toml"] {
            let source: Source = text.parse().unwrap();
            assert_eq!(source.to_string(), text);
        }
    }

    #[test]
    fn text_that_names_no_source_is_refused() {
        for bad in ["", "file", "file:", "/etc/weir/members.toml", "consul:a"] {
            assert!(bad.parse::<Source>().is_err(), "{bad}");
        }
    }
}
