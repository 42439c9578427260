//! The connections of HTTP/2 that a worker has to next hops, and the requests that wait for one.

use super::connection::Connection;
use crate::next_hops::{ByHop, ConnectFailure, ConnectionRules, Destination, HopKey};
use crate::workers::Worker;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};
use weir_policy::Tick;
use weir_policy::connections::{
    ConnectionId, IdleLimits, MultiplexedHop, StreamChoice, StreamRules,
};
use weir_semantics::ProxyError;

/// Next hops that are remembered; beyond it those without connections are forgotten.
const HOPS_MAX: usize = 4096;

/// How long a next hop that has refused a request for HTTP/2 is spoken to by HTTP/1.1: one response
/// of it is not to decide for ever.
const HTTP1_FOR: Duration = Duration::from_mins(1);

/// Connections to one next hop that a worker opens at once for requests which have them for
/// themselves: all requests of a connection that has broken come at the same time. How many may be
/// open is up to the limits of connections and the shares of clients.
const EXCLUSIVE_SET_UPS_MAX: usize = 16;

/// The connections of one worker.
#[derive(Default)]
pub(super) struct Table {
    hops: RefCell<ByHop<Hop>>,
    numbered: Cell<u32>,
    waits: Cell<u64>,
}

struct Hop {
    streams: MultiplexedHop,
    connections: HashMap<ConnectionId, Rc<Connection>>,
    /// Requests that wait, in the order in which they began.
    waiting: BTreeMap<u64, oneshot::Sender<WaitResult>>,
    /// What the last connection has shown that the next hop speaks.
    speaks: Speaks,
    /// When that was found.
    since: Instant,
    /// Places of connections that are being opened for one request each.
    exclusive_set_ups: Arc<Semaphore>,
}

/// What a next hop speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Speaks {
    /// That is not known.
    #[default]
    Unknown,
    /// HTTP/2.
    Http2,
    /// HTTP/1.1 alone: it has refused requests by HTTP/2 for that (RFC 9113 §7,
    /// `HTTP_1_1_REQUIRED`).
    Http1,
}

/// To decide again, or why there is no connection.
type WaitResult = Result<(), ConnectFailure>;

impl Default for Hop {
    fn default() -> Self {
        Self {
            streams: MultiplexedHop::new(StreamRules::default()),
            connections: HashMap::new(),
            waiting: BTreeMap::new(),
            speaks: Speaks::Unknown,
            since: Instant::now(),
            exclusive_set_ups: Arc::new(Semaphore::new(EXCLUSIVE_SET_UPS_MAX)),
        }
    }
}

impl Hop {
    fn is_idle(&self) -> bool {
        let has_set_ups = self.exclusive_set_ups.available_permits() < EXCLUSIVE_SET_UPS_MAX;
        self.streams.is_empty() && self.waiting.is_empty() && !has_set_ups
    }

    /// Has as many requests decide again as there is room for.
    fn wake(&mut self) {
        let ids = self.connections.keys();
        let mut room: u32 = ids.map(|id| self.streams.room(*id)).sum();
        while room > 0
            && let Some((_, first)) = self.waiting.pop_first()
        {
            if first.send(Ok(())).is_ok() {
                room -= 1;
            }
        }
    }

    /// Has all decide again.
    fn wake_all(&mut self) {
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            let _ = waiting.send(Ok(()));
        }
    }
}

/// What a request does for a stream.
pub(super) enum Choice {
    /// It begins on this connection.
    Take(Rc<Connection>),
    /// It waits.
    Wait(Waiting),
    /// A connection is to be opened.
    Open,
}

impl Table {
    /// That of a worker.
    pub(super) fn of(worker: &Worker) -> Rc<Self> {
        worker.kept()
    }

    /// A number for a connection, which no other open one has.
    pub(super) fn number(&self) -> ConnectionId {
        let number = self.numbered.get();
        self.numbered.set(number.wrapping_add(1));
        ConnectionId(number)
    }

    /// What a request to `destination` does; with `fresh` it is repeated.
    pub(super) fn choose(
        self: &Rc<Self>,
        worker: &Worker,
        rules: &ConnectionRules,
        destination: &Destination,
        fresh: bool,
    ) -> Choice {
        let mut hops = self.hops.borrow_mut();
        let Some(hop) = hops.get_mut(&destination.hop) else {
            return Choice::Open;
        };
        let limits = worker.network().idle_limits();
        loop {
            match hop.streams.choose(worker.now().tick, limits, fresh) {
                StreamChoice::Take(id) => {
                    let Some(connection) = hop.connections.get(&id) else {
                        hop.streams.closed(id);
                        continue;
                    };
                    // a reload may have changed whom and what is allowed
                    let socket = &connection.shared.socket;
                    let is_usable = !connection.is_closing()
                        && socket.is_trusted(&connection.hop, rules)
                        && destination.check_rules(rules, connection.address).is_ok();
                    if is_usable {
                        return Choice::Take(Rc::clone(connection));
                    }
                    connection.close();
                    hop.streams.drain(id);
                }
                StreamChoice::Wait => {
                    let (sender, receiver) = oneshot::channel();
                    let place = self.waits.get();
                    self.waits.set(place + 1);
                    hop.waiting.insert(place, sender);
                    hop.streams.wait_begins();
                    return Choice::Wait(Waiting {
                        table: Rc::clone(self),
                        hop: destination.hop.clone(),
                        place,
                        receiver,
                    });
                }
                StreamChoice::Open => return Choice::Open,
            }
        }
    }

    /// What a next hop speaks, as far as is known.
    pub(super) fn speaks(&self, hop: &HopKey) -> Speaks {
        let hops = self.hops.borrow();
        match hops.get(hop) {
            Some(known) if known.speaks == Speaks::Http1 => match known.since.elapsed() {
                since if since < HTTP1_FOR => Speaks::Http1,
                _ => Speaks::Unknown,
            },
            known => known.map_or(Speaks::Unknown, |known| known.speaks),
        }
    }

    /// Whether there is a connection to a next hop.
    pub(super) fn has_connection(&self, hop: &HopKey) -> bool {
        let hops = self.hops.borrow();
        hops.get(hop).is_some_and(|hop| !hop.connections.is_empty())
    }

    /// Remembers that.
    pub(super) fn set_speaks(&self, hop: &HopKey, speaks: Speaks) {
        let mut hops = self.hops.borrow_mut();
        if hops.len() >= HOPS_MAX && !hops.contains_key(hop) {
            hops.retain(|_, hop| !hop.is_idle());
        }
        let known = hops.entry(hop.clone()).or_default();
        (known.speaks, known.since) = (speaks, Instant::now());
        if speaks != Speaks::Http2 {
            known.wake_all();
        }
    }

    /// Requests that a new connection to a next hop carries at once before its settings have come.
    pub(super) fn initial_streams_max(&self, hop: &HopKey) -> u32 {
        let hops = self.hops.borrow();
        let known = hops.get(hop).map(|hop| hop.streams.initial_streams_max());
        known.unwrap_or(StreamRules::default().streams_max)
    }

    /// A connection is about to be opened.
    pub(super) fn begin_opening(self: &Rc<Self>, hop: &HopKey) -> Opening {
        let mut hops = self.hops.borrow_mut();
        hops.entry(hop.clone())
            .or_default()
            .streams
            .opening_begins();
        Opening {
            table: Rc::clone(self),
            hop: hop.clone(),
            failure: None,
        }
    }

    /// A place to open a connection for one request alone, to be held until it is open.
    ///
    /// # Errors
    ///
    /// There is none within `limit`.
    pub(super) async fn begin_exclusive(
        &self,
        hop: &HopKey,
        limit: Duration,
    ) -> Result<OwnedSemaphorePermit, ConnectFailure> {
        let places = {
            let mut hops = self.hops.borrow_mut();
            Arc::clone(&hops.entry(hop.clone()).or_default().exclusive_set_ups)
        };
        let place = timeout(limit, places.acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| {
            let text = format!("too many connections to {hop} are being opened");
            ConnectFailure::new(ProxyError::ConnectionLimitReached, text)
        })
    }

    /// A connection is open; for the request that begins on it next if it `is_exclusive`.
    pub(super) fn opened(&self, worker: &Worker, connection: &Rc<Connection>, is_exclusive: bool) {
        self.set_speaks(&connection.hop, Speaks::Http2);
        self.change(&connection.hop, |hop| {
            let (now, id) = (worker.now().tick, connection.id);
            hop.streams.opened(now, id, connection.window_bytes);
            if is_exclusive {
                hop.streams.set_exclusive(id);
            }
            hop.connections.insert(id, Rc::clone(connection));
        });
    }

    /// A connection is closed.
    pub(super) fn closed(&self, connection: &Connection) {
        let mut gone = None;
        self.change(&connection.hop, |hop| {
            hop.streams.closed(connection.id);
            gone = hop.connections.remove(&connection.id);
            if hop.connections.is_empty() && !hop.streams.is_opening() {
                hop.wake_all();
            }
        });
        drop(gone);
    }

    /// A request begins on a connection.
    pub(super) fn stream_begins(&self, connection: &Connection) {
        self.change(&connection.hop, |hop| {
            hop.streams.stream_begins(connection.id)
        });
    }

    /// A request has ended that began at `began`.
    pub(super) fn stream_ends(
        &self,
        connection: &Connection,
        (began, now): (Tick, Tick),
        answered: bool,
    ) {
        self.change(&connection.hop, |hop| {
            hop.streams.stream_ends(now, connection.id, began, answered);
            hop.wake();
            // one that is idle may not be needed any more, now that this one has room
            let others = hop
                .connections
                .iter()
                .filter(|(id, _)| **id != connection.id);
            others.for_each(|(_, other)| other.shared.wake_driver());
        });
    }

    /// Whether a connection gets no further requests.
    pub(super) fn is_draining(&self, connection: &Connection) -> bool {
        let hops = self.hops.borrow();
        let hop = hops.get(&connection.hop);
        hop.is_none_or(|hop| hop.streams.is_draining(connection.id))
    }

    /// Something was received on a connection.
    pub(super) fn heard(&self, connection: &Connection, now: Tick) {
        self.change(&connection.hop, |hop| hop.streams.heard(now, connection.id));
    }

    /// The next hop permits so many requests at once on a connection.
    pub(super) fn set_peer_max(&self, connection: &Connection, streams: u32) {
        self.change(&connection.hop, |hop| {
            hop.streams.set_peer_max(connection.id, streams);
            hop.wake();
        });
    }

    /// A connection takes no further requests.
    pub(super) fn drain(&self, connection: &Connection) {
        self.change(&connection.hop, |hop| hop.streams.drain(connection.id));
    }

    /// The window to give the streams of a connection, if it changes.
    pub(super) fn window(&self, connection: &Connection, needed: u32) -> Option<u32> {
        let mut hops = self.hops.borrow_mut();
        let hop = hops.get_mut(&connection.hop)?;
        let window = hop.streams.window(connection.id, needed);
        if window.is_some() {
            hop.wake();
        }
        window
    }

    /// Milliseconds until a connection is closed as idle; `None` while it carries requests.
    pub(super) fn idle_timeout_ms(
        &self,
        connection: &Connection,
        now: Tick,
        limits: &IdleLimits,
    ) -> Option<u64> {
        let hops = self.hops.borrow();
        let hop = hops.get(&connection.hop);
        hop.map_or(Some(0), |hop| {
            hop.streams.idle_timeout_ms(now, connection.id, limits)
        })
    }

    fn change(&self, hop: &HopKey, change: impl FnOnce(&mut Hop)) {
        if let Some(hop) = self.hops.borrow_mut().get_mut(hop) {
            change(hop);
        }
    }
}

/// A connection that is being opened.
pub(super) struct Opening {
    table: Rc<Table>,
    hop: HopKey,
    failure: Option<ConnectFailure>,
}

impl Opening {
    /// It cannot be: all that wait learn why.
    pub(super) fn fail(mut self, failure: ConnectFailure) {
        self.failure = Some(failure);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let failure = self.failure.take();
        self.table.change(&self.hop, |hop| {
            hop.streams.opening_ends();
            let Some(failure) = failure else {
                return hop.wake_all();
            };
            for (_, waiting) in std::mem::take(&mut hop.waiting) {
                let _ = waiting.send(Err(failure.clone()));
            }
        });
    }
}

/// A request that waits.
pub(super) struct Waiting {
    table: Rc<Table>,
    hop: HopKey,
    place: u64,
    receiver: oneshot::Receiver<WaitResult>,
}

impl Waiting {
    /// Ready when it is to decide again.
    ///
    /// # Errors
    ///
    /// There is no connection.
    pub(super) async fn end(mut self) -> WaitResult {
        (&mut self.receiver).await.unwrap_or(Ok(()))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.receiver.close();
        // it was woken, and does not decide: another one does
        let is_unused = matches!(self.receiver.try_recv(), Ok(Ok(())));
        let place = self.place;
        self.table.change(&self.hop, |hop| {
            hop.waiting.remove(&place);
            hop.streams.wait_ends();
            if is_unused {
                hop.wake();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn few_connections_for_one_request_each_are_opened_at_once() {
        let (table, hop) = (Table::default(), HopKey::new("a.example", 443));
        let begin = async |hop| table.begin_exclusive(hop, Duration::ZERO).await;
        let mut places = Vec::new();
        for _ in 0..EXCLUSIVE_SET_UPS_MAX {
            places.push(begin(&hop).await.expect("a place"));
        }
        let refused = begin(&hop).await.expect_err("all are taken");
        assert_eq!(refused.error, ProxyError::ConnectionLimitReached);
        // those to another next hop are no concern of it
        let other = HopKey::new("b.example", 443);
        assert!(begin(&other).await.is_ok());
        // the next hop is not forgotten meanwhile
        assert!(!table.hops.borrow()[&hop].is_idle());
        places.pop();
        assert!(begin(&hop).await.is_ok());
        places.clear();
        assert!(table.hops.borrow()[&hop].is_idle());
    }
}
