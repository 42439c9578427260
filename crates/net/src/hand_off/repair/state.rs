//! What a kernel must know of a connection to go on with it.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// Bytes that the client has sent and this side has not used, the read ones included.
pub const UNREAD_BYTES_MAX: usize = 320 * 1024;

/// Bytes that were written and that the client has not acknowledged.
pub const UNACKNOWLEDGED_BYTES_MAX: usize = 256 * 1024;

/// The least and the largest segment that the kernel takes (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`).
pub(super) const SEGMENT_BYTES: RangeInclusive<u16> = 88..=32_767;

/// An open TCP connection, as its next kernel has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionState {
    /// The client's end.
    pub client: SocketAddr,
    /// This end, which every machine of the service has.
    pub service: SocketAddr,
    /// The sequence number behind the last byte that was received.
    pub received_to: u32,
    /// The sequence number behind the last byte that was written.
    pub written_to: u32,
    /// What both ends said when they connected.
    pub agreed: AgreedOptions,
    /// What each end may send.
    pub windows: Windows,
    /// The last bytes that were received: those that this side has not used. At most
    /// [`UNREAD_BYTES_MAX`].
    pub unread: Vec<u8>,
    /// Bytes that were sent and not acknowledged. With `unsent` at most
    /// [`UNACKNOWLEDGED_BYTES_MAX`].
    pub unacknowledged: Vec<u8>,
    /// The last bytes that were written: those that were not sent yet.
    pub unsent: Vec<u8>,
}

impl ConnectionState {
    /// Bytes in its queues: nearly all that it takes.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.unread.len() + self.unacknowledged.len() + self.unsent.len()
    }
}

/// What the segments with SYN of both ends agreed on (RFC 9293 §3.2, RFC 7323, RFC 2018).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreedOptions {
    /// Bytes of content in the largest segment that is sent, without options: what the client
    /// announced, bounded by what this end can send.
    pub segment_max: u16,
    /// Places by which windows are shifted: those that the client announces, and ours. 0 if windows
    /// are not scaled.
    pub window_scales: [u8; 2],
    /// Selective acknowledgements are understood by both.
    pub selective_acknowledgements: bool,
    /// The clock of our timestamps, as its kernel has it; `None` if segments have none.
    pub timestamp: Option<u32>,
}

/// The windows of both ends, as the kernel's `struct tcp_repair_window` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The sequence number of the segment that last changed the window of the client.
    pub send_changed_at: u32,
    /// Bytes that the client takes.
    pub send: u32,
    /// The largest window that the client has announced, bytes.
    pub send_max: u32,
    /// Bytes that this end takes, as it has last announced.
    pub receive: u32,
    /// The sequence number from which they count.
    pub receive_from: u32,
}
