//! The tag of a service's state (RFC 3507 §4.7).

use alloc::string::String;
use core::error::Error;
use core::fmt;

/// The most bytes of an [`IsTag`], without its quotation marks (RFC 3507 §4.7).
pub const ISTAG_BYTES_MAX: usize = 32;

/// An `ISTag`: answers of a service with another tag are stale.
///
/// 1 to [`ISTAG_BYTES_MAX`] bytes of visible ASCII or space, without `"` and `\`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IsTag(String);

/// Why a tag is refused. `Display` is a fragment that fits "failed to read the ISTag: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsTagError {
    /// It is not within quotation marks.
    Unquoted,
    /// It is empty.
    Empty,
    /// It has more than [`ISTAG_BYTES_MAX`] bytes.
    TooLong,
    /// It holds a quotation mark, a backslash, a control character or a byte that is not ASCII.
    Octet,
}

impl fmt::Display for IsTagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unquoted => f.write_str("the tag is not within quotation marks"),
            Self::Empty => f.write_str("the tag is empty"),
            Self::TooLong => write!(f, "the tag has more than {ISTAG_BYTES_MAX} bytes"),
            Self::Octet => f.write_str("the tag holds a byte that is not plain ASCII text"),
        }
    }
}

impl Error for IsTagError {}

impl IsTag {
    /// A tag from its text, without quotation marks.
    ///
    /// # Errors
    ///
    /// The text is empty, too long, or holds other bytes than the type allows.
    pub fn new(text: &str) -> Result<Self, IsTagError> {
        if text.is_empty() {
            return Err(IsTagError::Empty);
        }
        if text.len() > ISTAG_BYTES_MAX {
            return Err(IsTagError::TooLong);
        }
        let is_plain = |byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if !text.bytes().all(is_plain) {
            return Err(IsTagError::Octet);
        }
        Ok(Self(text.into()))
    }

    /// A tag from the value of an `ISTag` field.
    ///
    /// # Errors
    ///
    /// The value is not a quoted string, or one that [`new`](Self::new) refuses.
    pub fn parse(value: &[u8]) -> Result<Self, IsTagError> {
        let [b'"', inner @ .., b'"'] = value else {
            return Err(IsTagError::Unquoted);
        };
        Self::new(core::str::from_utf8(inner).map_err(|_| IsTagError::Octet)?)
    }

    /// The text, without quotation marks.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: Result<&str, IsTagError>) {
        let parsed = IsTag::parse(value.as_bytes());
        assert_eq!(
            parsed.as_ref().map(IsTag::as_str).map_err(|&error| error),
            expected,
            "{value:?}"
        );
    }

    #[test]
    fn tag_is_a_quoted_string_of_at_most_32_bytes() {
        check("\"W3E4R7U9-L2E4-2\"", Ok("W3E4R7U9-L2E4-2"));
        let longest = "x".repeat(ISTAG_BYTES_MAX);
        check(&format!("\"{longest}\""), Ok(&longest));
        check(&format!("\"{longest}x\""), Err(IsTagError::TooLong));
        check("\"\"", Err(IsTagError::Empty));
        for unquoted in ["", "x", "\"", "\"x", "x\"", "'x'"] {
            check(unquoted, Err(IsTagError::Unquoted));
        }
        for octets in ["\"a\"b\"", "\"a\\b\"", "\"a\tb\"", "\"\u{e9}\""] {
            check(octets, Err(IsTagError::Octet));
        }
        assert_eq!(IsTag::parse(b"\"\xff\""), Err(IsTagError::Octet));
    }
}
