//! The result of receiving content, of a request or a response.

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

/// The result of receiving content of a response once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRead {
    /// Bytes that were received, with framing.
    pub bytes: u64,
    /// Bytes of content among them.
    pub content_bytes: u64,
    /// What follows.
    pub end: ContentEnd,
}

/// What follows the content of a response that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEnd {
    /// More content.
    More,
    /// Nothing: the content is whole.
    Whole,
    /// It is not framed as HTTP has it; nothing more can be read.
    BrokenFraming,
    /// The receiver of the content takes no more.
    Stopped,
}

/// Why no more content of a response can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCut {
    /// The next hop broke the connection or the stream.
    Reset,
    /// It ended it before the content was whole.
    ClosedEarly,
    /// The link that its connection leads over has spent its quota.
    LinkSpent,
    /// The filter of the content has failed.
    Filter,
}
