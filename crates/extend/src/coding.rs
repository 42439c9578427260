//! Content codings of a response (RFC 9110 §8.4.1), to be undone for a module.

use crate::content::TransformError;
use crate::fields::Fields;
use alloc::vec::Vec;

/// Most codings of one message that are undone, one after the other.
pub const CODINGS_MAX: usize = 3;

/// A content coding that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip` and `x-gzip`, RFC 1952.
    Gzip,
    /// `deflate`: the zlib format, RFC 1950; some send RFC 1951 without it.
    Deflate,
    /// `br`, RFC 7932.
    Brotli,
    /// `zstd`, RFC 8878.
    Zstd,
}

impl Coding {
    /// The coding of this name, in any case.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let names: [(&[u8], Self); 5] = [
            (b"gzip", Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"deflate", Self::Deflate),
            (b"br", Self::Brotli),
            (b"zstd", Self::Zstd),
        ];
        let mut names = names.into_iter();
        names
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, coding)| coding)
    }
}

/// The codings of a message, in the order in which they are undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codings(Vec<Coding>);

impl Codings {
    /// Those that Content-Encoding names. `identity` is none.
    ///
    /// # Errors
    ///
    /// One is not known, or there are more than [`CODINGS_MAX`].
    pub fn of(fields: &Fields) -> Result<Self, TransformError> {
        let mut codings = Vec::new();
        for line in fields.all("content-encoding") {
            for name in line.split(|byte| *byte == b',') {
                let name = name.trim_ascii();
                if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
                    continue;
                }
                let coding = Coding::parse(name).ok_or(TransformError::Coding)?;
                if codings.len() >= CODINGS_MAX {
                    return Err(TransformError::Coding);
                }
                codings.push(coding);
            }
        }
        codings.reverse();
        Ok(Self(codings))
    }

    /// None.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// In the order in which they are undone: the one applied last comes first.
    pub fn iter(&self) -> impl Iterator<Item = Coding> {
        self.0.iter().copied()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: Result<&[Coding], TransformError>) {
        let lines = lines
            .iter()
            .map(|line| ("Content-Encoding", line.as_bytes()));
        let found = Codings::of(&Fields::received(lines));
        assert_eq!(found, expected.map(|codings| Codings(codings.to_vec())));
    }

    #[test]
    fn codings_are_undone_from_the_last_to_the_first() {
        check(&[], Ok(&[]));
        check(&["identity"], Ok(&[]));
        check(&["GZIP"], Ok(&[Coding::Gzip]));
        check(
            &["x-gzip, br", "zstd"],
            Ok(&[Coding::Zstd, Coding::Brotli, Coding::Gzip]),
        );
    }

    #[test]
    fn unknown_coding_and_more_than_three_are_not_undone() {
        check(&["compress"], Err(TransformError::Coding));
        check(&["gzip, gzip, gzip"], Ok(&[Coding::Gzip; 3]));
        check(&["gzip, gzip, gzip, gzip"], Err(TransformError::Coding));
    }
}
