//! HTTP over one connection: which response answers which request (RFC 9112 §9.2, §9.3.2).
//!
//! Two streams go in, each in its order; which of them is read on is decided here: a response waits
//! until its request was read, a tunnel's bytes until the tunnel stands. Responses answer requests
//! in order. Where bytes are missing that is not enough, and the acknowledgements help: a response
//! answers no request that its sender had not received, and a client that does not pipeline had
//! received all earlier responses when it sent a request.

mod requests;
mod responses;

use std::collections::VecDeque;

use weir_wire::BodyReader;

use super::counts::Counts;
use super::head::Head;
use super::transaction::{CloseTimes, Transaction};
use super::window::{Begun, Window};
use crate::import::Hide;

/// What connections and exchanges need of the import around them.
pub(super) struct ImportContext<'a> {
    pub(super) hide: &'a dyn Hide,
    pub(super) window: Window,
    pub(super) counts: Counts,
    /// Nothing more is received in time: transactions that wait continue without it.
    pub(super) is_impatient: bool,
}

/// Which end of the connection sent a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Where and when bytes came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) time_us: i64,
    /// The sequence number of the first of them.
    pub(super) sequence: u32,
    /// What their segment acknowledged of the other side.
    pub(super) acknowledgement: Option<u32>,
}

impl Place {
    /// So many bytes later.
    fn plus(self, bytes: usize) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
        let bytes = bytes as u32;
        Self {
            sequence: self.sequence.wrapping_add(bytes),
            ..self
        }
    }
}

/// The two ends of a connection.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    /// The client, hidden.
    pub(super) client: u64,
    /// The connection's number.
    pub(super) connection: u64,
    /// The server's address and port, for targets that do not say a host.
    pub(super) server: String,
}

/// The requests and responses of one connection.
#[derive(Debug)]
pub(super) struct Exchange {
    endpoints: Endpoints,
    /// The connection's SYN, until the first request takes it over.
    opened: Option<Begun>,
    /// From SYN to SYN-ACK, for the first request.
    setup_us: Option<u64>,
    /// Requests so far; `None` if the first were not seen.
    sequence: Option<u32>,
    requests: RequestState,
    responses: ResponseState,
    request_head: Head,
    response_head: Head,
    /// Where the thread of the responses was lost, until one is known to answer a request again.
    lost_since: Option<u32>,
    /// Where requests may have been that were not captured, the last time.
    lost_requests: Option<(u32, u32)>,
    /// Where the head began that is being read.
    request_begun: Option<Place>,
    response_begun: Option<Place>,
    /// Requests whose responses are not over, oldest first.
    pending: VecDeque<Transaction>,
    /// The one whose response is over before all of its content has come.
    answered_early: Option<Transaction>,
    /// The bytes of their heads.
    pending_bytes: usize,
    closed: CloseTimes,
}

/// What is expected of the client.
#[derive(Debug)]
enum RequestState {
    /// A request's head, after bytes that do not matter.
    Lost,
    Head,
    /// Content; `begun` is that of its transaction. `may_be_refused`: none of it was seen, and a
    /// response may make it superfluous.
    Content {
        reader: Box<BodyReader>,
        begun: Begun,
        may_be_refused: bool,
    },
    /// Nothing, until it is known whether it becomes a tunnel.
    Waiting,
    Tunnel,
    /// Nothing that is HTTP.
    Over,
}

/// What is expected of the server.
#[derive(Debug)]
enum ResponseState {
    /// A response's head, after bytes that do not matter.
    Lost,
    /// A head. `is_orphan`: it answers no request that was seen.
    Head {
        is_orphan: bool,
    },
    Content {
        reader: Box<BodyReader>,
        is_orphan: bool,
        to_close: bool,
    },
    Tunnel,
    Over,
}

impl Exchange {
    /// For a connection that was seen from its beginning (`opened`), or joined in the middle at
    /// this sequence number of the server's.
    pub(super) fn new(endpoints: Endpoints, opened: Option<Begun>, server_at: u32) -> Self {
        let is_whole = opened.is_some();
        Self {
            endpoints,
            opened,
            setup_us: None,
            sequence: is_whole.then_some(0),
            requests: if is_whole {
                RequestState::Head
            } else {
                RequestState::Lost
            },
            responses: match is_whole {
                true => ResponseState::Head { is_orphan: false },
                false => ResponseState::Lost,
            },
            lost_since: (!is_whole).then_some(server_at),
            lost_requests: None,
            request_head: Head::default(),
            response_head: Head::default(),
            request_begun: None,
            response_begun: None,
            pending: VecDeque::new(),
            answered_early: None,
            pending_bytes: 0,
            closed: CloseTimes::default(),
        }
    }

    /// The SYN-ACK came so long after the SYN.
    pub(super) fn set_up(&mut self, setup_us: Option<u64>) {
        if self.setup_us.is_none() {
            self.setup_us = setup_us;
        }
    }

    /// The same where what was said before was not of this connection.
    pub(super) fn set_up_again(&mut self, setup_us: Option<u64>) {
        self.setup_us = setup_us;
    }

    /// A side has said that it is done, or reset the connection.
    pub(super) fn close(&mut self, side: Side, time_us: i64, is_reset: bool) {
        let slot = match (side, is_reset) {
            (Side::Client, false) => &mut self.closed.client_fin_us,
            (Side::Client, true) => &mut self.closed.client_rst_us,
            (Side::Server, false) => &mut self.closed.server_fin_us,
            (Side::Server, true) => &mut self.closed.server_rst_us,
        };
        slot.get_or_insert(time_us);
        if side == Side::Client
            && let Some(transaction) = self.pending.front_mut()
        {
            let so_far = transaction.received_bytes;
            transaction.received_at_close.get_or_insert(so_far);
        }
    }

    /// Both have sent a FIN, and one acknowledged the other's with its own: which was first,
    /// whatever the order of the packets.
    pub(super) fn server_closed_first(&mut self, is_so: bool) {
        self.closed.server_was_first = Some(is_so);
    }

    /// What it holds for later, bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.request_head.held_bytes() + self.response_head.held_bytes() + self.pending_bytes
    }

    /// Whether nothing of what comes can become a row any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.requests, RequestState::Over)
            && self.pending.is_empty()
            && self.answered_early.is_none()
            && !matches!(self.responses, ResponseState::Content { .. })
    }

    /// No more content comes of the request that was answered early.
    fn finish_answered_early(&mut self, context: &mut ImportContext<'_>) {
        if let Some(transaction) = self.answered_early.take() {
            context.window.finish(transaction.complete(true));
        }
    }

    /// The connection is over, as far as it will be seen. What is open becomes rows of transactions
    /// that did not come to their end.
    pub(super) fn finish(mut self, context: &mut ImportContext<'_>) {
        context.window.forget(self.opened.take());
        self.finish_answered_early(context);
        let (is_content, to_close) = match self.responses {
            ResponseState::Content {
                to_close,
                is_orphan,
                ..
            } => (!is_orphan, to_close && !is_orphan),
            _ => (false, false),
        };
        let is_tunnel = matches!(self.responses, ResponseState::Tunnel);
        let is_lost = matches!(self.responses, ResponseState::Over | ResponseState::Lost);
        for (place, transaction) in self.pending.into_iter().enumerate() {
            let is_first = place == 0;
            context.counts.unanswered += u64::from(!transaction.is_answered);
            let finished = if is_first && is_tunnel && self.closed.is_closed() {
                transaction.complete(false)
            } else if is_lost {
                transaction.lose()
            } else {
                transaction.break_off(&self.closed, is_first && is_content && to_close)
            };
            context.window.finish(finished);
        }
    }
}
