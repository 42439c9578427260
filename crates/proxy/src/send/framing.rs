//! How content is framed toward a client.

use weir_semantics::Method;
use weir_wire::BodyLength;

/// How content is framed toward the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No content follows the head.
    None,
    /// As many bytes as Content-Length says.
    Length,
    /// Chunked.
    Chunked,
    /// Ends with the connection: for clients that know no chunks.
    Close,
}

impl Framing {
    /// The framing for a response with content `body` toward a client. What arrives without a
    /// length leaves in chunks, so that its end can be told from a cut.
    pub(crate) fn toward(http11: bool, method: Method, status: u16, body: BodyLength) -> Self {
        if method == Method::Head || matches!(status, 204 | 304) {
            return Self::None;
        }
        match body {
            BodyLength::None | BodyLength::Exact(_) => Self::Length,
            BodyLength::Chunked | BodyLength::UntilClose if http11 => Self::Chunked,
            BodyLength::Chunked | BodyLength::UntilClose => Self::Close,
        }
    }
}
