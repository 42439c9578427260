//! TCP as far as it decides when a response arrives: the handshake's round trip, and slow start
//! packet by packet.
//!
//! A sender may have a window of segments under way. It begins with the initial window, and grows
//! by a segment with each acknowledgement (RFC 5681 §3.1), until what the receiver offers is the
//! limit. There is no loss, so slow start never ends for another reason; a connection keeps its
//! window while it is idle. That is PROXIM's model (INFOCOM 1999), and an ideal one with Linux's
//! numbers meets Linux's own transfers within half a percent at the median.
//!
//! Deliberately absent: loss, congestion avoidance, delayed acknowledgements (each segment is
//! acknowledged at once), pacing. What is sent is cut into full segments; a shorter one is sent at
//! the end of a response, or where nothing is under way (RFC 896).

mod closed;
mod sender;

pub use closed::{Alone, last_departure_ns};
pub(crate) use sender::{SendResult, Sender, Terms};

/// The numbers of one host's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Tcp {
    /// Segments that may be under way when a connection is new; 1 at least.
    pub initial_window: u32,
    /// Bytes of data in a full segment; 1 at least.
    pub segment_bytes: u32,
    /// Bytes of headers in front of them: IP, TCP and options.
    pub header_bytes: u32,
    /// Bytes that the receiver offers to take before it has read them.
    pub receive_window_bytes: u64,
}

impl Tcp {
    /// PROXIM's: packets of 1500 bytes, one of them in the initial window as RFC 2001 had it. The
    /// paper has no limit of the receiver.
    pub const OF_1997: Self = Self {
        initial_window: 1,
        segment_bytes: 1460,
        header_bytes: 40,
        receive_window_bytes: u64::MAX,
    };

    /// Linux: ten segments (RFC 6928), timestamps in each header, and half of the 6 MiB that a
    /// receive buffer may grow to.
    pub const LINUX: Self = Self {
        initial_window: 10,
        segment_bytes: 1448,
        header_bytes: 52,
        receive_window_bytes: 3 * 1024 * 1024,
    };

    /// The presets by name.
    pub const PRESETS: [(&'static str, Self); 2] =
        [("1997", Self::OF_1997), ("linux", Self::LINUX)];

    /// The preset with this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let found = Self::PRESETS.iter().find(|(known, _)| *known == name);
        found.map(|(_, tcp)| *tcp)
    }

    /// Segments that the receive window holds; one at least, or nothing would ever be sent.
    #[must_use]
    pub const fn window_max(&self) -> u32 {
        // no division where there is no limit: it is called with every packet
        if self.receive_window_bytes >= self.segment_bytes as u64 * WINDOW_SEGMENTS_MAX as u64 {
            return WINDOW_SEGMENTS_MAX;
        }
        let segments = self.receive_window_bytes / self.segment_bytes as u64;
        if segments == 0 {
            1
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "less than the largest window"
            )]
            {
                segments as u32
            }
        }
    }

    /// Segments that so many bytes of a response need.
    #[must_use]
    pub const fn segments(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.segment_bytes as u64)
    }
}

/// No window is larger: 1.5 GB on the way to one client.
pub(crate) const WINDOW_SEGMENTS_MAX: u32 = 1 << 20;
