//! What is wrong with a message.

use crate::route::cache_digest::DIGEST_BYTES_MAX;
use core::fmt;

/// Why the message of a node was not taken; the digest from before stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestError {
    /// It does not begin as a message does.
    Magic,
    /// It is of another version.
    Version(u8),
    /// Its kind is not known.
    Kind(u8),
    /// Its bytes are not as many as it says, or no whole number of blocks or keys.
    Length(usize),
    /// Its blocks or additions have more bytes than may come, at most [`DIGEST_BYTES_MAX`].
    TooLarge(usize),
    /// Its key is sealed with another secret, or for another node.
    Key,
    /// It adds to a digest that this reader does not have: the whole must be asked for.
    Unconnected,
}

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("this is no cache digest"),
            Self::Version(version) => write!(f, "version {version} of cache digests is not known"),
            Self::Kind(kind) => write!(f, "kind {kind} of cache digests is not known"),
            Self::Length(bytes) => {
                write!(
                    f,
                    "a cache digest of {bytes} bytes is not as long as it says"
                )
            }
            Self::TooLarge(bytes) => write!(
                f,
                "a cache digest of {bytes} bytes has more than may come, at most {DIGEST_BYTES_MAX}"
            ),
            Self::Key => f.write_str("the key of the cache digest is sealed with another secret"),
            Self::Unconnected => f.write_str("it adds to another cache digest than is known"),
        }
    }
}

impl core::error::Error for DigestError {}
