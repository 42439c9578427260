//! An open connection to a next hop, in use or idle.

use super::dial::NewStream;
use super::failure::ConnectFailure;
use super::hop_key::HopKey;
use super::link::{ConnectionLink, Links};
use super::open_connections::Permit;
use super::socket::NextHopSocket;
use super::uses::Uses;
use crate::workers::Worker;
use std::net::SocketAddr;
use weir_measure::{Metric, Supply};
use weir_policy::Now;
use weir_semantics::ProxyError;

/// A connection in use by one exchange. Dropping it closes it and gives its place back.
pub struct Connection {
    /// The socket, registered with the worker that uses it; its handshake is complete.
    pub stream: NextHopSocket,
    /// The address it is connected to, which was checked.
    pub address: SocketAddr,
    /// The next hop it leads to.
    pub hop: HopKey,
    /// It was idle before: the next hop may have closed it just when the request was sent.
    pub reused: bool,
    /// Its place among the open connections.
    pub permit: Permit,
    /// Its uses; boxed, since a connection is moved with every request.
    pub uses: Box<Uses>,
    /// What its exchange uses of a link, if there is one.
    pub(crate) link: Option<Box<ConnectionLink>>,
}

/// A connection that no exchange uses.
#[derive(Debug)]
pub struct IdleConnection {
    pub(super) stream: NextHopSocket,
    pub(super) address: SocketAddr,
    pub(super) hop: HopKey,
    pub(super) permit: Permit,
    pub(super) uses: Box<Uses>,
}

impl Connection {
    /// A connection that has not been used yet; `in_advance` if it was not opened for a request.
    pub(crate) fn new(
        worker: &Worker,
        stream: NewStream,
        hop: HopKey,
        permit: Permit,
        in_advance: bool,
    ) -> Self {
        let mut uses = Uses::new(worker.index(), worker.now().tick, in_advance);
        uses.number = worker.number();
        uses.setup_us = stream.setup_us;
        Self {
            stream: stream.stream,
            address: stream.address,
            hop,
            reused: false,
            permit,
            uses: Box::new(uses),
            link: None,
        }
    }

    /// The same in use over the link that its next hop is behind, if it is behind one.
    pub(crate) fn over(mut self, links: &Links) -> Self {
        let link = links.of(&self.hop);
        self.link = link.map(|link| Box::new(ConnectionLink::new(link, self.stream.tcp())));
        self.count_moved();
        self
    }

    /// Checks that a request may be sent on it: what the next hop of a new one has sent before
    /// would be taken for the response (RFC 9112 §9.2). An idle one was looked at when it was
    /// found.
    ///
    /// # Errors
    ///
    /// The next hop has sent something.
    pub(crate) fn check_silent(&self) -> Result<(), ConnectFailure> {
        if self.reused || !self.stream.has_spoken_first() {
            return Ok(());
        }
        let text = format!("{} sends a response before it was sent a request", self.hop);
        Err(ConnectFailure::new(ProxyError::HttpProtocolError, text))
    }

    /// Whether HTTP/2 is spoken on it: it can then carry many requests.
    pub(crate) fn is_http2(&self) -> bool {
        self.hop.http2 && (self.hop.tls.is_none() || self.stream.has_chosen_http2())
    }

    /// It is closed: what was received and is not read counts for its link.
    pub(crate) fn count_unread(&mut self) {
        self.count_moved();
        if let Some(link) = &mut self.link {
            link.count_unread(self.stream.tcp());
        }
    }

    /// Counts what records of the TLS protocol itself were of its last use, and since.
    fn count_moved(&mut self) {
        if let Some(link) = &mut self.link {
            link.count_moved(self.stream.take_moved());
        }
    }

    /// What is kept of it while it is idle.
    pub(super) fn into_idle(self) -> IdleConnection {
        IdleConnection {
            stream: self.stream,
            address: self.address,
            hop: self.hop,
            permit: self.permit,
            uses: self.uses,
        }
    }

    /// A request begins on it, which `waited` for it or found it idle.
    pub(super) fn begin(&mut self, worker: &Worker, now: Now, waited: bool) {
        let uses = &mut self.uses;
        let supply = match (uses.requests, waited) {
            (0, true) if !uses.in_advance => Supply::New,
            (0, _) => Supply::Ahead,
            (_, true) => Supply::Waited,
            (_, false) => Supply::Idle,
        };
        self.reused = supply != Supply::New;
        if uses.worker != worker.index() {
            uses.worker = worker.index();
            if uses.requests > 0 {
                worker.counters().inc(Metric::ReusesByOtherWorker);
            }
        }
        self.count_request(worker, now, supply);
    }

    /// The request that it was opened for begins on it.
    pub(super) fn begin_new(&mut self, worker: &Worker) {
        self.count_request(worker, worker.now(), Supply::New);
    }

    fn count_request(&mut self, worker: &Worker, now: Now, supply: Supply) {
        self.uses.requests = self.uses.requests.saturating_add(1);
        self.uses.busy_since = now.tick;
        // those of HTTP/2 are counted as they begin: another connection may carry this one
        if !self.is_http2() {
            worker.counters().inc(Metric::NextHopRequests(supply));
        }
    }
}
