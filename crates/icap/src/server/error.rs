//! Why a request fails, and why an answer cannot be written.

use core::error::Error;
use core::fmt;

use crate::message::encapsulated::EncapsulatedError;
use crate::message::error::MessageError;
use crate::server::refusal::RefusalStatus;

/// Why a request is refused. The connection must be closed, after an answer with
/// [`status`](Self::status) if none was begun.
///
/// `Display` is a fragment that fits "failed to read the ICAP request: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerError {
    /// The request is malformed.
    Message(MessageError),
    /// Bytes follow a preview before the server continued: they may be content or the next request.
    BytesBeforeContinue,
    /// The connection closed before the request was over.
    Incomplete,
}

impl ServerError {
    /// The status to answer with.
    #[must_use]
    pub const fn status(self) -> RefusalStatus {
        match self {
            Self::Message(MessageError::UnknownMethod) => RefusalStatus::NotImplemented,
            Self::Message(MessageError::UnsupportedVersion) => RefusalStatus::VersionNotSupported,
            _ => RefusalStatus::BadRequest,
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message(error) => return error.fmt(f),
            Self::BytesBeforeContinue => "bytes follow a preview before the server continued",
            Self::Incomplete => "the connection closed before the end of the request",
        })
    }
}

impl Error for ServerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Message(error) => Some(error),
            _ => None,
        }
    }
}

impl From<MessageError> for ServerError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

/// Why an answer is not written. Nothing was appended.
///
/// `Display` is a fragment that fits "failed to write the ICAP answer: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerError {
    /// There is no request to answer, its answer was begun, content was not announced, or the
    /// request failed.
    Order,
    /// The method of the request has another answer, or a service is announced without a method of
    /// its own.
    Method,
    /// 100 where no preview waits for it.
    ContinueNotAwaited,
    /// 204, which the client does not allow, and which does not answer a preview.
    UnmodifiedNotAllowed,
    /// A further field is malformed, or one that this crate writes.
    Field,
    /// The announced preview is greater than
    /// [`Limits::preview_bytes_max`](crate::Limits::preview_bytes_max).
    PreviewTooLarge,
    /// The HTTP head is not whole, malformed, too large, or of a kind that the method does not
    /// have.
    Head(MessageError),
    /// A piece of content is empty or has more than
    /// [`PIECE_BYTES_MAX`](crate::PIECE_BYTES_MAX) bytes.
    Piece,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head(error) => return error.fmt(f),
            Self::Order => "no request waits for this part of an answer",
            Self::Method => "this method does not go with this answer",
            Self::ContinueNotAwaited => "status 100 without a preview that waits for it",
            Self::UnmodifiedNotAllowed => "status 204 without `Allow: 204` or a preview",
            Self::Field => "a field of the ICAP head is malformed or not the caller's to set",
            Self::PreviewTooLarge => "the announced preview is greater than the limit",
            Self::Piece => "a piece of content is empty or too large",
        })
    }
}

impl Error for AnswerError {}

impl From<EncapsulatedError> for AnswerError {
    fn from(error: EncapsulatedError) -> Self {
        Self::Head(MessageError::Encapsulated(error))
    }
}
