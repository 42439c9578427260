//! What one request cost, gathered on its way and told once at the end: to the counters and to the
//! access log.

use crate::log::record::End;
use std::net::SocketAddr;
use std::time::Instant;

/// The account of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// First byte of the request seen.
    pub(crate) started: Instant,
    /// Bytes of the request, head and content.
    pub(crate) request_bytes: u64,
    /// Bytes of the response sent to the client, head and content.
    pub(crate) response_bytes: u64,
    /// Content bytes among them.
    pub(crate) body_bytes: u64,
    /// Content bytes among them that came from the store.
    pub(crate) store_bytes: u64,
    /// Content bytes among these that were kept as a part of a response.
    pub(crate) recovered_bytes: u64,
    /// Content bytes among them that are our own.
    pub(crate) own_bytes: u64,
    /// Bytes read from the next hop up to the head of a response under construction and what came
    /// with it.
    pub(crate) from_next_hop_bytes: u64,
    /// Content that the fetch this request began brought behind that, until it or the client ended.
    /// The fetch itself adds it to the counters: it is for the log line alone.
    pub(crate) fetched_bytes: u64,
    /// Content bytes among `from_next_hop_bytes`.
    pub(crate) next_hop_content_bytes: u64,
    /// Heads, framing and all else among `from_next_hop_bytes`.
    pub(crate) next_hop_overhead_bytes: u64,
    /// What among `from_next_hop_bytes` went through a tunnel.
    pub(crate) tunnel_bytes: u64,
    /// Content bytes read from the next hop that went to nobody.
    pub(crate) wasted_bytes: u64,
    /// Bytes written to the next hop.
    pub(crate) to_next_hop_bytes: u64,
    /// The most a fetch for it was ahead of its fastest reader, bytes.
    pub(crate) read_ahead_max_bytes: u64,
    /// Status sent to the client; 0 if none was.
    pub(crate) status: u16,
    /// The next hop asked, if one was.
    pub(crate) next_hop: Option<SocketAddr>,
    /// Its connection was open before.
    pub(crate) next_hop_reused: bool,
    /// From the first byte of the request to the end of its head, microseconds.
    pub(crate) head_us: u64,
    /// Microseconds from the start: the decision was made.
    pub(crate) chosen_us: u64,
    /// A connection to the next hop was ready.
    pub(crate) connected_us: Option<u64>,
    /// The first byte of the response was ready.
    pub(crate) first_byte_us: Option<u64>,
    /// The times of phases are wanted.
    pub(crate) timed: bool,
    /// What went wrong, as a word.
    pub(crate) error: Option<&'static str>,
    /// How the response ended.
    pub(crate) end: End,
}

impl Account {
    pub(crate) fn new(started: Instant, head_bytes: usize, timed: bool) -> Self {
        Self {
            started,
            request_bytes: head_bytes as u64,
            response_bytes: 0,
            body_bytes: 0,
            store_bytes: 0,
            recovered_bytes: 0,
            own_bytes: 0,
            wasted_bytes: 0,
            from_next_hop_bytes: 0,
            fetched_bytes: 0,
            next_hop_content_bytes: 0,
            next_hop_overhead_bytes: 0,
            tunnel_bytes: 0,
            to_next_hop_bytes: 0,
            read_ahead_max_bytes: 0,
            status: 0,
            next_hop: None,
            next_hop_reused: false,
            head_us: 0,
            chosen_us: 0,
            connected_us: None,
            first_byte_us: None,
            timed,
            error: None,
            end: End::Whole,
        }
    }

    /// Content that was read from the next hop goes to nobody.
    pub(crate) fn waste(&mut self, content_bytes: u64) {
        self.next_hop_content_bytes += content_bytes;
        self.wasted_bytes += content_bytes;
    }

    /// The response has ended early: who is to blame, and the word for it.
    pub(crate) fn break_off(&mut self, end: End, word: &'static str) {
        self.end = end;
        self.error = Some(word);
    }

    /// Microseconds since the start if the phases are timed: only the access log wants them.
    pub(crate) fn mark_us(&self) -> u64 {
        if self.timed { self.elapsed_us() } else { 0 }
    }

    /// Microseconds since the start.
    pub(crate) fn elapsed_us(&self) -> u64 {
        self.us_until(Instant::now())
    }

    /// Microseconds from the start to `moment`.
    pub(crate) fn us_until(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.started);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}
