//! Why a command gets no reply of an admin interface, and what to do about it.

use crate::messages::Failure;
use std::io;
use std::time::Duration;
use weir_proxy::config::{AdminAddress, Span};

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// The address is `off`.
    Off,
    /// Nothing listens there.
    Nothing,
    /// It closes connections and says nothing.
    Silent,
    /// It has not answered within this time.
    Late(Duration),
    /// It cannot be reached, or the connection broke.
    Io(io::Error),
    /// Another program answers, or another part of a Weir.
    Other,
    /// A Weir answers that does not know what was asked for.
    Older,
    /// A Weir answers whose interface is not the one that this program knows.
    Newer,
}

impl From<io::Error> for NoReply {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Self::Nothing,
            _ => Self::Io(error),
        }
    }
}

const ELSEWHERE: &str = "`--admin ADDR` names another address";

impl NoReply {
    /// The failure of `what`, which was to be done at `address`.
    pub(crate) fn failure(self, what: &str, address: &AdminAddress) -> Failure {
        let (cause, hint) = match self {
            Self::Off => ("the admin interface is off".to_owned(), ELSEWHERE.to_owned()),
            Self::Nothing => (
                "nothing listens there".to_owned(),
                "start a proxy with `weir serve`, or name the address of its admin interface: `--admin ADDR`".to_owned(),
            ),
            Self::Silent => (
                "what listens there does not answer".to_owned(),
                format!("is it the admin interface of a Weir? {ELSEWHERE}"),
            ),
            Self::Late(limit) => (
                format!("what listens there has not answered within {}", Span::from_millis(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))),
                format!(
                    "is it the admin interface of a Weir? {ELSEWHERE}, and `--timeout TIME` waits longer"
                ),
            ),
            Self::Io(error) => (error.to_string(), ELSEWHERE.to_owned()),
            Self::Other => (
                "what answers there is not the admin interface of a Weir".to_owned(),
                format!(
                    "another program has this address, or it is a listener for clients; {ELSEWHERE}, that of `admin.address`"
                ),
            ),
            Self::Older => (
                "the Weir there is older than this command, and does not know it".to_owned(),
                format!(
                    "start it again as {}, the version of this `weir`, or use the `weir` of its version",
                    env!("CARGO_PKG_VERSION")
                ),
            ),
            Self::Newer => (
                "the Weir there is newer than this command".to_owned(),
                format!(
                    "use the `weir` of its version; this one is {}",
                    env!("CARGO_PKG_VERSION")
                ),
            ),
        };
        Failure::outside(format!("{what} at {address}"), cause).hint(hint)
    }
}
