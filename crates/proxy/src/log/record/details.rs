//! What only a recorder reads of a request that left the fast path.

use super::{ContentTimes, NextHop};
use std::time::Instant;
use weir_net::http::NextHopFacts;

/// The details of one request, part of its log.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordDetails {
    /// The request head as it was received, empty lines in front included.
    pub(super) request: Box<[u8]>,
    /// The head that was made for the client last.
    pub(super) response: Option<Box<[u8]>>,
    pub(super) next_hop: Option<NextHop>,
    /// When the request's head had been sent to it.
    asked: Option<Instant>,
    pub(super) content_times: ContentTimes,
    /// Content of the request that was read to be forwarded.
    pub(super) request_content_bytes: Option<u64>,
    /// Content that a fetch for the request brought.
    pub(super) fetched_bytes: u64,
    /// Through a tunnel, to the client.
    pub(super) tunnel_bytes: u64,
}

impl RecordDetails {
    pub(crate) fn new(request: &[u8]) -> Self {
        Self {
            request: request.into(),
            ..Self::default()
        }
    }

    /// A head was made for the client; one that was made before was not sent.
    pub(crate) fn response_head(&mut self, head: &[u8]) {
        self.response = Some(head.into());
    }

    /// A connection to a next hop is there.
    pub(crate) fn connected(&mut self, next_hop: &NextHopFacts<'_>) {
        let uses = next_hop.uses;
        self.asked = None;
        self.next_hop = Some(NextHop {
            connection: uses.number,
            setup_us: (uses.requests <= 1).then_some(uses.setup_us),
            response_us: None,
            is_persistent: false,
        });
    }

    /// What the next hop was asked for was had elsewhere.
    pub(crate) fn forget_next_hop(&mut self) {
        self.asked = None;
        self.next_hop = None;
    }

    /// The request's head was sent on it.
    pub(crate) fn request_head_sent(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// A final head was received; `is_persistent` if the connection can be used again after it.
    pub(crate) fn answered(&mut self, is_persistent: bool) {
        if let (Some(next_hop), Some(asked)) = (&mut self.next_hop, self.asked) {
            next_hop.response_us = Some(micros(asked, Instant::now()));
            next_hop.is_persistent = is_persistent;
        }
    }

    /// Whether the connection to the next hop could be used again.
    pub(crate) fn connection_kept(&mut self, is_persistent: bool) {
        if let Some(next_hop) = &mut self.next_hop {
            next_hop.is_persistent = is_persistent;
        }
    }

    /// So much content of the request was read.
    pub(crate) fn request_content(&mut self, content_bytes: u64) {
        self.request_content_bytes = Some(content_bytes);
    }

    /// A fetch brought so much content.
    pub(crate) fn fetched(&mut self, content_bytes: u64) {
        self.fetched_bytes += content_bytes;
    }

    /// A tunnel has ended after so many bytes each way.
    pub(crate) fn tunnelled(&mut self, to_client: u64, to_next_hop: u64) {
        self.tunnel_bytes = to_client;
        self.request_content_bytes = Some(to_next_hop);
    }

    /// When content was sent.
    pub(crate) fn content_left(&mut self, times: ContentTimes) {
        self.content_times = times;
    }
}

/// Microseconds from one moment to another.
pub(super) fn micros(from: Instant, to: Instant) -> u64 {
    let span = to.saturating_duration_since(from);
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
