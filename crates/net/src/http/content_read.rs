//! The result of receiving content of a response.

/// The result of receiving content once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRead {
    /// Bytes that were received, with framing.
    pub bytes: u64,
    /// Bytes of content among them.
    pub content_bytes: u64,
    /// What follows.
    pub end: ContentEnd,
}

/// What follows the content that was received.
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

/// Why no more content can be received.
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
