//! The record of one request.

pub use crate::log::phase_times::PhaseTimes;
use std::net::IpAddr;
use std::sync::Arc;
use weir_semantics::TargetedFields;

/// A request that has ended, and its response, as far as they were received.
///
/// Times are microseconds from [`Finished::arrival_us`]. What is `None` did not take place, or is
/// not known.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The client's address.
    pub client: IpAddr,
    /// The client's connection: unique while the process runs, among those to next hops too.
    pub connection: u64,
    /// Which request of its connection it is, from 1.
    pub sequence: u32,
    /// When its first byte was read, microseconds since 1970. For a pipelined request: when the
    /// response before it had ended.
    pub arrival_us: i64,
    /// When it reached its phases.
    pub reached: PhaseTimes,
    /// When the kernel took the first byte of content for the client.
    pub first_byte_us: Option<u64>,
    /// When it took the last one; without content, when the request was done with.
    pub last_byte_us: u64,
    /// The next hop of the last attempt, if the request was forwarded.
    pub next_hop: Option<NextHop>,
    /// Status sent to the client.
    pub status: Option<u16>,
    /// Content of the response that the kernel took for the client, without framing; through a
    /// tunnel, all bytes.
    pub received_bytes: u64,
    /// Content received from next hops for this request while it lasted; through a tunnel, all
    /// bytes.
    pub next_hop_bytes: u64,
    /// Content of the request that was read, without framing; through a tunnel, all bytes. Not
    /// known where it was not forwarded.
    pub request_content_bytes: Option<u64>,
    /// How it ended.
    pub end: End,
    /// The client's connection is used further.
    pub is_persistent: bool,
    /// The word of the verdict, as in `Cache-Status`, log and counters.
    pub verdict: &'static str,
    /// The word of why this node of the cluster was asked, or the origin since this node has the
    /// target, as in log and counters; if a node was chosen.
    pub node_choice: Option<&'static str>,
    /// The word of why this next hop of its route was asked; if a route was used.
    pub next_hop_choice: Option<&'static str>,
    /// The targeted fields that decided on this listener in place of Cache-Control (RFC 9213).
    pub targeted: Arc<TargetedFields>,
    /// The listener's own host and port, where the request does not say for which host it is.
    pub authority: Option<Box<str>>,
    pub(super) request_bytes: usize,
    pub(super) heads: Box<[u8]>,
}

impl Finished {
    /// The request's head as it was received, empty lines in front included.
    #[must_use]
    pub fn request(&self) -> &[u8] {
        &self.heads[..self.request_bytes]
    }

    /// The response's head as it was made for the client; empty if there was none.
    #[must_use]
    pub fn response(&self) -> &[u8] {
        &self.heads[self.request_bytes..]
    }

    pub(super) fn heads_bytes(&self) -> usize {
        self.heads.len()
    }
}

/// What the next hop did for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The connection to it: unique while the process runs, among those of clients too.
    pub connection: u64,
    /// From SYN to SYN-ACK, microseconds, if it was the first request on it.
    pub setup_us: Option<u64>,
    /// From the request's head, sent, to the response's head, received; microseconds.
    pub response_us: Option<u64>,
    /// The connection could be used again, as far as the response head says it, or the relay found
    /// it.
    pub is_persistent: bool,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// It was complete, whatever its status.
    #[default]
    Whole,
    /// The client disconnected, or received nothing more.
    ClientLeft,
    /// The next hop cut it.
    NextHopCut,
    /// We did: it could not be read from disk, or a tunnel was idle for too long.
    Ours,
}
