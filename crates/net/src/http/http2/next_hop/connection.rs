//! A connection of HTTP/2 to a next hop, which carries many requests.

use super::driver::Driver;
use super::shared::Shared;
use super::table::Table;
use super::transport::Transport;
use crate::flow::{NextHopFlow, first_window};
use crate::http::http2::piece::Piece;
use crate::http::http2::{FRAME_BYTES_MAX, SEND_BYTES_MAX};
use crate::next_hops::{self, ConnectFailure, Destination, HopKey, IdlePlace, Uses};
use crate::workers::Worker;
use h2::client::{Builder, SendRequest};
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use weir_measure::{Counters, Metric, Reuse, Supply};
use weir_policy::connections::ConnectionId;
use weir_semantics::ProxyError;

/// Bytes of a decoded head, with 32 for each field (RFC 9113 §6.5.2).
const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// Content of all streams that is received and not taken, bytes: more than their windows have
/// together (`StreamRules::windows_bytes_max`). Were it less, readers that stop would hold back the
/// others.
const CONNECTION_WINDOW: u32 = 32 << 20;

/// Streams that were reset and are remembered for what may be on its way for them.
const RESET_STREAMS_MAX: usize = 256;

/// How long they are.
const RESET_REMEMBERED: Duration = Duration::from_secs(10);

/// The window that a stream begins with, bytes: that of a read-ahead at rest, within these. What
/// more it needs follows from what is measured.
const WINDOW_BYTES_MIN: u32 = 4 * 1024;
const WINDOW_BYTES_MAX: u32 = 64 * 1024 - 1;

/// A connection.
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) hop: HopKey,
    pub(super) address: SocketAddr,
    pub(super) shared: Rc<Shared>,
    pub(super) table: Rc<Table>,
    /// The window that its streams begin with, bytes.
    pub(super) window_bytes: u32,
    /// None once it is to end when it carries no request.
    sender: RefCell<Option<SendRequest<Piece>>>,
    uses: RefCell<Uses>,
    /// It has carried no request.
    is_unused: Cell<bool>,
    /// The look-up that has opened it is counted, and its request has not begun.
    is_looked_up: Cell<bool>,
    /// Whether it had been opened in advance.
    was_idle: bool,
    /// While it carries no request.
    pub(super) idle: RefCell<Option<IdlePlace>>,
}

impl Connection {
    /// Speaks HTTP/2 on a connection that was opened for it, in a task that lasts as long. If it
    /// `is_exclusive`, no other request begins on it before the next one has ended.
    ///
    /// # Errors
    ///
    /// It is broken already.
    pub(super) async fn begin(
        worker: &Rc<Worker>,
        destination: &Destination,
        (opened, is_exclusive): (next_hops::Connection, bool),
    ) -> Result<Rc<Self>, ConnectFailure> {
        let next_hops::Connection {
            stream,
            address,
            hop,
            reused: was_idle,
            mut permit,
            uses,
            link: _,
        } = opened;
        permit.becomes_multiplexed();
        let (now, table) = (worker.now(), Table::of(worker));
        let base = first_window(destination.read_ahead, now);
        // its bounds are the windows of the streams
        let mut flow = NextHopFlow::of(stream.tcp(), base.unwrap_or_default());
        flow.set_window(stream.tcp(), None, None);
        let base = base.unwrap_or(WINDOW_BYTES_MAX);
        let window_bytes = base.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        let shared = Rc::new(Shared::new(stream, window_bytes, now.tick));
        let begun = Builder::new()
            .enable_push(false)
            .max_header_list_size(HEAD_BYTES_MAX)
            .max_frame_size(FRAME_BYTES_MAX)
            .initial_window_size(window_bytes)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(table.initial_streams_max(&hop) as usize)
            .max_concurrent_reset_streams(RESET_STREAMS_MAX)
            .reset_stream_duration(RESET_REMEMBERED)
            // what resets it brings about is bounded by its budget of frames
            .max_local_error_reset_streams(None)
            .max_send_buffer_size(SEND_BYTES_MAX)
            .handshake::<_, Piece>(Transport(Rc::clone(&shared)))
            .await;
        let (sender, connection) = begun.map_err(|error| {
            let text = format!("no HTTP/2 with {hop}: {error}");
            ConnectFailure::new(ProxyError::ConnectionTerminated, text)
        })?;
        let begun = Rc::new(Self {
            id: table.number(),
            hop,
            address,
            shared,
            table: Rc::clone(&table),
            window_bytes,
            sender: RefCell::new(Some(sender)),
            uses: RefCell::new(*uses),
            is_unused: Cell::new(true),
            is_looked_up: Cell::new(false),
            was_idle,
            idle: RefCell::default(),
        });
        table.opened(worker, &begun, is_exclusive);
        let driver = Driver::new(Rc::clone(worker), Rc::clone(&begun), connection, permit);
        tokio::task::spawn_local(driver.run());
        Ok(begun)
    }

    /// What sends requests; `None` if it takes no further ones.
    pub(super) fn sender(&self) -> Option<SendRequest<Piece>> {
        self.sender.borrow().clone()
    }

    /// It takes no further requests, and ends once those that it carries have ended.
    pub(super) fn close(&self) {
        let sender = self.sender.borrow_mut().take();
        drop(sender);
        self.shared.wake_driver();
    }

    /// Whether that is so.
    pub(super) fn is_closing(&self) -> bool {
        self.sender.borrow().is_none()
    }

    /// How many requests the next hop permits at once.
    pub(super) fn streams_max(&self) -> u32 {
        let sender = self.sender.borrow();
        let most = sender
            .as_ref()
            .map_or(0, SendRequest::current_max_send_streams);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// It was opened for the request that begins on it next, whichever that is.
    pub(super) fn set_opened_for_next(&self) {
        self.is_looked_up.set(true);
    }

    /// A request begins on it, and is counted, and so is its look-up unless that `is_counted`:
    /// whether the connection had carried one before, or could have, and what is known of its uses.
    pub(super) fn begin_request(&self, counters: &Counters, is_counted: bool) -> (bool, Uses) {
        self.idle.take();
        let mut uses = self.uses.borrow_mut();
        let is_first = self.is_unused.replace(false);
        if !is_first {
            uses.requests = uses.requests.saturating_add(1);
        }
        counters.inc(Metric::NextHopRequests(match (is_first, self.was_idle) {
            (true, false) => Supply::New,
            (true, true) => Supply::Ahead,
            (false, _) => Supply::Shared,
        }));
        if !self.is_looked_up.replace(false) && !is_counted {
            counters.inc(Metric::ConnectionCache(Reuse::Hit));
        }
        (!is_first || self.was_idle, uses.of_connection())
    }

    /// Whether it has carried more than one request.
    pub(super) fn has_carried_others(&self) -> bool {
        self.uses.borrow().requests > 1
    }

    /// Counts that it carries a request of the client at `client`.
    pub(super) fn count_client(&self, counters: &Counters, client: IpAddr) {
        self.uses.borrow_mut().serve(counters, client);
    }
}
