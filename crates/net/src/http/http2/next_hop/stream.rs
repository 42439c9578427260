//! A request to a next hop on a stream of HTTP/2, and the response to it.

use super::connection::Connection;
use super::need::ConnectionNeed;
use super::reception::{Http2Reception, Reception};
use super::request::{Http2Request, Sending};
use super::table::Speaks;
use crate::http::http2::piece::Piece;
use crate::http::next_hop_facts::NextHopFacts;
use crate::next_hops::Uses;
use crate::workers::Worker;
use h2::client::ResponseFuture;
use h2::{Reason, SendStream};
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Waker;
use weir_measure::Counters;
use weir_policy::Tick;

/// A request on a stream of HTTP/2 to a next hop. Dropping it before the response is whole resets
/// the stream.
pub(in crate::http) struct Http2NextHop {
    sending: Sending,
    reception: Reception,
    stream: StreamState,
    uses: Uses,
    reused: bool,
    place: StreamPlace,
}

/// What both halves of a stream have.
#[derive(Default)]
pub(super) struct StreamState {
    /// Once the head of the request was sent.
    pub(super) halves: RefCell<Halves>,
    /// The next hop will not act upon the request.
    pub(super) is_unprocessed: Cell<bool>,
    /// The connection has ended before there was a response, and has carried other requests.
    has_shared_connection_broken: Cell<bool>,
    /// So it has, and one of the requests on it may be why.
    may_have_broken: Cell<bool>,
    /// The request is a HEAD.
    pub(super) is_head: Cell<bool>,
}

/// The stream as `h2` has it.
#[derive(Default)]
pub(super) struct Halves {
    pub(super) request: Option<SendStream<Piece>>,
    /// Until the head of the response has come.
    pub(super) response: Option<ResponseFuture>,
    /// Waits for the response before the request was sent.
    pub(super) waits: Option<Waker>,
}

/// The place of a stream on its connection.
pub(super) struct StreamPlace {
    pub(super) connection: Rc<Connection>,
    worker: Rc<Worker>,
    /// What it needs among the windows of the streams.
    pub(super) window: usize,
    began: Tick,
    is_answered: Cell<bool>,
}

impl Http2NextHop {
    /// A stream on a connection that has room, for a request whose look-up `is_counted` or not.
    pub(super) fn begin(worker: &Rc<Worker>, connection: Rc<Connection>, is_counted: bool) -> Self {
        let (reused, uses) = connection.begin_request(worker.counters(), is_counted);
        connection.table.stream_begins(&connection);
        let window = connection.shared.take_window();
        Self {
            sending: Sending::default(),
            reception: Reception::default(),
            stream: StreamState::default(),
            uses,
            reused,
            place: StreamPlace {
                worker: Rc::clone(worker),
                window,
                began: worker.now().tick,
                is_answered: Cell::new(false),
                connection,
            },
        }
    }

    pub(in crate::http) fn facts(&self) -> NextHopFacts<'_> {
        NextHopFacts {
            address: self.place.connection.address,
            hop: &self.place.connection.hop,
            reused: self.reused,
            is_http2: true,
            uses: &self.uses,
            link: None,
        }
    }

    pub(in crate::http) fn count_request(&self, counters: &Counters, client: IpAddr) {
        self.place.connection.count_client(counters, client);
    }

    pub(in crate::http) fn split(&mut self) -> (Http2Request<'_>, Http2Reception<'_>) {
        let request = Http2Request::new(&mut self.sending, &self.stream, &self.place);
        let response = Http2Reception::new(&mut self.reception, &self.stream, &self.place);
        (request, response)
    }

    /// Whether the next hop will not act upon the request: it may be sent again.
    pub(in crate::http) fn is_unprocessed(&self) -> bool {
        self.stream.is_unprocessed.get()
    }

    /// Whether the connection has ended without a response, and has carried other requests, too.
    pub(in crate::http) fn has_shared_connection_broken(&self) -> bool {
        self.stream.has_shared_connection_broken.get()
    }

    /// What its repetition needs.
    pub(in crate::http) fn repetition_need(&self) -> ConnectionNeed {
        match self.stream.may_have_broken.get() {
            true => ConnectionNeed::Exclusive,
            false => ConnectionNeed::Fresh,
        }
    }

    /// Ends it; whether the response was whole.
    pub(in crate::http) fn release(self) -> bool {
        self.reception.is_whole()
    }
}

impl Drop for Http2NextHop {
    fn drop(&mut self) {
        let queue = &self.place.connection.shared.queue;
        self.sending.forget(queue);
    }
}

impl StreamState {
    /// Notes why the stream, or its connection, has failed before there was a response.
    pub(super) fn note(&self, error: &h2::Error, place: &StreamPlace) {
        let is_broken = error.is_io() || error.is_go_away();
        // with a connection for itself alone it fails as by HTTP/1.1
        let is_shared = place.connection.has_carried_others();
        self.has_shared_connection_broken
            .set(is_broken && is_shared);
        // a next hop that ends connections in order does so for reasons of its own
        let is_in_order = error.is_remote() && error.reason() == Some(Reason::NO_ERROR);
        self.may_have_broken
            .set(is_broken && is_shared && !is_in_order);
        if !error.is_remote() {
            return;
        }
        match error.reason() {
            // above the last stream that it acts upon (RFC 9113 §6.8)
            _ if error.is_go_away() => self.is_unprocessed.set(true),
            Some(Reason::REFUSED_STREAM) => self.is_unprocessed.set(true),
            Some(Reason::HTTP_1_1_REQUIRED) => {
                let connection = &place.connection;
                connection.table.set_speaks(&connection.hop, Speaks::Http1);
                self.is_unprocessed.set(true);
            }
            _ => {}
        }
    }

    /// Resets the stream, for what the next hop has sent on it.
    pub(super) fn reset(&self, reason: Reason) {
        if let Some(request) = &mut self.halves.borrow_mut().request {
            request.send_reset(reason);
        }
    }
}

impl StreamPlace {
    /// The response is whole.
    pub(super) fn answered(&self) {
        self.is_answered.set(true);
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let now = self.worker.now().tick;
        let Connection { shared, table, .. } = &*self.connection;
        shared.give_window(self.window);
        table.stream_ends(&self.connection, (self.began, now), self.is_answered.get());
        // whether it is idle now, and its windows
        shared.wake_driver();
    }
}
