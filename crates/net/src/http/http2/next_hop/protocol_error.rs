//! How a next hop breaks HTTP/2.

use h2::Reason;
use std::fmt;
use weir_policy::connections::Flood;

/// What a next hop has sent in place of a response.
///
/// `Display` is a fragment that fits "the next hop's response is not valid HTTP: …".
#[derive(Clone, Copy, Debug)]
pub enum HopProtocolError {
    /// Something else than frames of HTTP/2, from the first byte on.
    Foreign,
    /// A head that is malformed (RFC 9113 §8.1.1).
    Head,
    /// Frames for which `h2` has ended the stream or the connection, with this code.
    Frames(Reason),
    /// More frames than responses need: the connection has ended.
    Flood(Flood),
}

impl HopProtocolError {
    /// That of an error of `h2`; `None` if that is no fault of what was received.
    pub(super) fn of(error: &h2::Error) -> Option<Self> {
        let reason = error.is_library().then(|| error.reason())?;
        Some(Self::Frames(reason.unwrap_or(Reason::PROTOCOL_ERROR)))
    }
}

impl fmt::Display for HopProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("it does not speak HTTP/2 (route[].http2 = true)"),
            Self::Head => f.write_str("its head has a field or a status that HTTP/2 does not have"),
            Self::Frames(reason) => write!(f, "HTTP/2, {}", reason.description()),
            Self::Flood(Flood::Resets) => f.write_str("HTTP/2, too many streams were reset"),
            Self::Flood(Flood::Control) => f.write_str("HTTP/2, too many frames without content"),
            Self::Flood(Flood::FieldLines) => f.write_str("HTTP/2, too many field lines"),
            Self::Flood(Flood::WindowUpdates) => f.write_str("HTTP/2, too many WINDOW_UPDATE"),
        }
    }
}
