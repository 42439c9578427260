//! Why a transaction fails.

use core::error::Error;
use core::fmt;

use crate::message::error::MessageError;

/// Why an answer is refused. The connection must be closed.
///
/// `Display` is a fragment that fits "failed to read the answer of the ICAP server: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientError {
    /// The answer is malformed.
    Message(MessageError),
    /// Bytes arrived before any of the request was sent, or an answer other than an error before
    /// its heads were: they answer another request.
    AnswerBeforeRequest,
    /// 100 where no preview was ended without the end of the content, or a second one.
    UnexpectedContinue,
    /// 204 without `Allow: 204` and not in answer to a preview.
    UnmodifiedNotAllowed,
    /// A status that is no answer to this request.
    UnexpectedStatus(u16),
    /// The connection closed before the answer was over. What was read must not pass for whole.
    Incomplete,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message(error) => return error.fmt(f),
            Self::UnexpectedStatus(status) => {
                return write!(f, "status {status} does not answer this request");
            }
            Self::AnswerBeforeRequest => "the answer came before the request was sent",
            Self::UnexpectedContinue => "status 100 without a preview that waits for it",
            Self::UnmodifiedNotAllowed => "status 204 without `Allow: 204` or a preview",
            Self::Incomplete => "the connection closed before the end of the answer",
        })
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Message(error) => Some(error),
            _ => None,
        }
    }
}

impl From<MessageError> for ClientError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}
