//! The file with the secret of the cluster, or with two of them while the nodes change from one to
//! the other.

use crate::admin::{TOKEN_LINE_BYTES_MAX, Token, TokenError, read_private};
use crate::cluster::ClusterSecret;
use std::fmt;
use std::path::Path;

/// What a file of secrets holds.
#[derive(Debug)]
pub(crate) struct SecretFile {
    /// The first line: what this node proves with.
    own: Token,
    /// The second one: what it accepts, too.
    accepted: Option<Token>,
}

/// Why a file gives no secret.
#[derive(Debug)]
pub(crate) enum SecretError {
    /// It cannot be read, or others can.
    File(TokenError),
    /// A line is no secret; both numbers are from 1 on.
    Line {
        line: usize,
        column: usize,
        why: TokenError,
    },
    /// The second line is the first one again.
    Twice,
    /// There is a third line.
    ThirdLine,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Line { line, column, why } => write!(f, "line {line}, column {column}: {why}"),
            Self::Twice => f.write_str(
                "line 2, column 1: it is the same as line 1; a second line is for another secret",
            ),
            Self::ThirdLine => f.write_str(
                "line 3, column 1: there are at most two secrets, the one to prove with and one to accept, too",
            ),
        }
    }
}

impl std::error::Error for SecretError {}

impl SecretError {
    /// What to do, where its text does not say.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::File(error) => error.hint("cluster.secret_file"),
            _ => None,
        }
    }
}

impl SecretFile {
    /// Reads the secrets in `path`, one a line, in a file that its owner alone can read.
    ///
    /// # Errors
    ///
    /// Each [`SecretError`]. An empty line is none that is left out: nothing is proved with it.
    pub(crate) fn read(path: &Path) -> Result<Self, SecretError> {
        let text = read_private(path, 2 * TOKEN_LINE_BYTES_MAX);
        Self::of_text(&text.map_err(SecretError::File)?)
    }

    fn of_text(text: &[u8]) -> Result<Self, SecretError> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let mut lines = text.split(|byte| *byte == b'\n');
        let own = secret_of(1, lines.next().unwrap_or_default())?;
        let accepted = lines.next().map(|line| secret_of(2, line)).transpose()?;
        if accepted.as_ref() == Some(&own) {
            return Err(SecretError::Twice);
        }
        match lines.next() {
            Some(_) => Err(SecretError::ThirdLine),
            None => Ok(Self { own, accepted }),
        }
    }

    /// For the cluster.
    pub(crate) fn secret(&self) -> ClusterSecret {
        match &self.accepted {
            Some(accepted) => ClusterSecret::changing(self.own.as_str(), accepted.as_str()),
            None => ClusterSecret::new(Some(self.own.as_str())),
        }
    }
}

fn secret_of(line: usize, text: &[u8]) -> Result<Token, SecretError> {
    Token::of_line(text).map_err(|(at, why)| SecretError::Line {
        line,
        column: at + 1,
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an-old-secret-of-nodes";
    const NEW: &str = "a-new-secret-of-nodes=";

    #[test]
    fn file_has_one_secret_or_two_and_the_first_is_proved_with() {
        for (text, accepted) in [
            (NEW.to_owned(), None),
            (format!("{NEW}\n"), None),
            (format!("{NEW}\r\n"), None),
            (format!("{NEW}\n{OLD}"), Some(OLD)),
            (format!("{NEW}\r\n{OLD}\r\n"), Some(OLD)),
        ] {
            let file = SecretFile::of_text(text.as_bytes()).expect("secrets");
            assert_eq!(file.own.as_str(), NEW, "{text:?}");
            let other = file.accepted.as_ref().map(Token::as_str);
            assert_eq!(other, accepted, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_with_line_and_column() {
        let long = "x".repeat(1025);
        for (text, expected) in [
            (String::new(), "line 1, column 1: it holds 0 bytes"),
            ("\n".to_owned(), "line 1, column 1: it holds 0 bytes"),
            (format!("\n{OLD}\n"), "line 1, column 1: it holds 0 bytes"),
            (format!("{NEW}\n\n"), "line 2, column 1: it holds 0 bytes"),
            (format!("{NEW}\n\r\n"), "line 2, column 1: it holds 0 bytes"),
            (
                format!("{NEW}\nshort"),
                "line 2, column 6: it holds 5 bytes",
            ),
            (
                format!("{NEW}\nwith a space in it"),
                "line 2, column 5: a token is one line",
            ),
            (format!(" {NEW}"), "line 1, column 1: a token is one line"),
            (
                format!("{NEW}\n{long}"),
                "line 2, column 1025: it holds more than 1024 bytes",
            ),
            (
                format!("{NEW}\n{NEW}\n"),
                "line 2, column 1: it is the same",
            ),
            (
                format!("{NEW}\n{OLD}\n\n"),
                "line 3, column 1: there are at most two",
            ),
            (
                format!("{NEW}\n{OLD}\n{OLD}"),
                "line 3, column 1: there are at most two",
            ),
        ] {
            let refused = SecretFile::of_text(text.as_bytes());
            let refused = refused.expect_err("no secrets").to_string();
            assert!(refused.starts_with(expected), "{text:?}: {refused}");
        }
    }
}
