//! Why a service did not adapt a message.

use std::fmt;
use std::io;
use weir_extend::{Answer, Progress};
use weir_icap::{ClientError, MessageError, RequestError};

/// Why a service did not adapt a message. `Display` is a fragment that fits "failed: …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// All connections to the server that there may be are in use.
    Busy,
    /// No connection to the server can be had.
    Connect(io::ErrorKind),
    /// The server closed the connection before its answer was over.
    Closed,
    /// The server broke off within the content that it made of the message.
    Cut,
    /// The server did not answer in time.
    Timeout,
    /// Its answer is not valid.
    Answer(ClientError),
    /// Its answer to OPTIONS is not valid.
    Options(MessageError),
    /// It refused OPTIONS, or is overloaded.
    Overloaded(u16),
    /// It refused the message.
    Refused(u16),
    /// The message cannot be sent to a service.
    Request(RequestError),
    /// The service made of the message what is none.
    Adapted(&'static str),
    /// The content must not be changed.
    Unchangeable,
}

impl Failure {
    /// Whether the service failed, and not on this message alone. Messages come from clients and
    /// origins, which must not be able to take the service from others.
    pub(crate) const fn is_of_service(&self) -> bool {
        match self {
            Self::Connect(_)
            | Self::Closed
            | Self::Timeout
            | Self::Answer(_)
            | Self::Options(_)
            | Self::Overloaded(_) => true,
            // clients that receive slowly hold connections
            Self::Busy
            | Self::Cut
            | Self::Refused(_)
            | Self::Request(_)
            | Self::Adapted(_)
            | Self::Unchangeable => false,
        }
    }

    /// What a module answers then.
    pub(crate) const fn answer(&self) -> Answer {
        if self.is_of_service() {
            Answer::Unavailable
        } else {
            Answer::Fail
        }
    }

    /// What a transform answers then.
    pub(crate) const fn progress(&self) -> Progress {
        if self.is_of_service() {
            Progress::Unavailable
        } else {
            Progress::Fail
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("all connections to the ICAP server are in use"),
            Self::Connect(kind) => write!(f, "cannot connect to the ICAP server: {kind}"),
            Self::Closed => f.write_str("the ICAP server closed the connection within its answer"),
            Self::Cut => f.write_str("the ICAP server broke off within the content of its answer"),
            Self::Timeout => f.write_str("the ICAP server does not answer"),
            Self::Answer(error) => write!(f, "the answer of the ICAP server is not valid: {error}"),
            Self::Options(error) => write!(f, "the answer to OPTIONS is not valid: {error}"),
            Self::Overloaded(status) => write!(f, "the ICAP server answers {status}"),
            Self::Refused(status) => write!(f, "the ICAP service refuses the message: {status}"),
            Self::Request(error) => write!(f, "the message cannot be sent: {error}"),
            Self::Adapted(what) => write!(f, "the ICAP service made {what}"),
            Self::Unchangeable => {
                f.write_str("the content must not be changed, or is a part of a representation")
            }
        }
    }
}

impl std::error::Error for Failure {}
