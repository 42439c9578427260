//! The result of receiving content of a request.

use std::fmt;
use weir_wire::BodyError;

/// What follows the content that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedContent {
    /// More content.
    More,
    /// Nothing: the content is whole.
    Whole,
}

/// Why no more content can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentError {
    /// It is not framed as HTTP has it.
    Invalid(BodyError),
    /// The client ended the connection or the stream within it.
    Disconnected,
    /// The filter of the content has failed.
    Filter,
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Disconnected => f.write_str("the client closed within the content"),
            Self::Filter => f.write_str("a module cannot change the content"),
        }
    }
}

impl std::error::Error for ContentError {}
