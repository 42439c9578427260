//! What follows a response head, as far as its framing depends on it.

use weir_semantics::Method;
use weir_wire::BodyLength;

/// What follows a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentForm {
    /// No content: the response to a HEAD, a 204 or a 304.
    None,
    /// Content of the length that the head says.
    Sized,
    /// Content of a length that is not known yet: its end needs framing.
    Unsized,
}

impl ContentForm {
    /// The form of a response with `status` and content of `length`, to a request with `method`
    /// (RFC 9112 §6.3).
    #[must_use]
    pub fn of(method: Method, status: u16, length: BodyLength) -> Self {
        if method == Method::Head || matches!(status, 204 | 304) {
            return Self::None;
        }
        match length {
            BodyLength::None | BodyLength::Exact(_) => Self::Sized,
            BodyLength::Chunked | BodyLength::UntilClose => Self::Unsized,
        }
    }
}
