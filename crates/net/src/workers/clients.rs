//! How many client connections are open, and how many may be.

use super::network::Network;
use super::worker::Worker;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use weir_measure::Metric;

/// The client connections of all workers.
#[derive(Debug)]
pub(super) struct ClientCounts {
    open: AtomicUsize,
    /// Maximum of `open` so far.
    open_max: AtomicUsize,
    /// How many may be open.
    limit: AtomicUsize,
    /// Work that goes on without its client.
    detached: AtomicUsize,
    /// Work that is finished when the last client has been served.
    last: AtomicUsize,
    /// Called when one closes or such work is over, and when a worker accepts no more.
    closed: Notify,
}

impl ClientCounts {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            open: AtomicUsize::new(0),
            open_max: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            detached: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
            closed: Notify::new(),
        }
    }

    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn open_max(&self) -> usize {
        self.open_max.load(Ordering::Relaxed)
    }

    pub(super) fn has_room(&self) -> bool {
        self.open() < self.limit()
    }

    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether no connection is open, and no work of clients goes on without one.
    pub(super) fn is_idle(&self) -> bool {
        // work is counted before its connection closes
        self.open.load(Ordering::Acquire) == 0 && self.detached.load(Ordering::Acquire) == 0
    }

    /// Whether no work is left that is finished behind all clients.
    pub(super) fn is_last_done(&self) -> bool {
        self.last.load(Ordering::Acquire) == 0
    }

    /// Ready when one has closed, work is over, or a worker accepts no more, after this call.
    pub(super) fn closed(&self) -> Notified<'_> {
        self.closed.notified()
    }

    pub(super) fn notify(&self) {
        self.closed.notify_waiters();
    }

    fn begin(&self) {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.open_max.fetch_max(open, Ordering::Relaxed);
    }

    fn end(&self) {
        self.open.fetch_sub(1, Ordering::Release);
        self.notify();
    }
}

/// The place of one client connection among those that may be open; given back when dropped.
///
/// It must be dropped with the connection: a drain waits until all are. If it is dropped by a
/// panic, the panic is counted.
pub struct ClientPlace(Rc<Worker>);

impl ClientPlace {
    /// One more client connection is open on `worker`: one that it has accepted, or was handed.
    pub fn take(worker: &Rc<Worker>) -> Self {
        let counters = worker.counters();
        counters.inc(Metric::ClientsAccepted);
        counters.inc(Metric::ClientsOpen);
        worker.network().clients().begin();
        Self(Rc::clone(worker))
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let counters = self.0.counters();
        if std::thread::panicking() {
            counters.inc(Metric::Panics);
        }
        counters.dec(Metric::ClientsOpen);
        self.0.network().clients().end();
    }
}

/// Work of a client that has disconnected, which is to be finished; over when dropped. A drain
/// waits for it as for a client.
pub struct DetachedWork(Arc<Network>);

impl DetachedWork {
    /// Begins while the place of its client is still taken.
    pub fn begin(network: &Arc<Network>) -> Self {
        network.clients().detached.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(network))
    }
}

impl Drop for DetachedWork {
    fn drop(&mut self) {
        let clients = self.0.clients();
        clients.detached.fetch_sub(1, Ordering::Release);
        clients.notify();
    }
}

/// Work that is finished when the last client has been served; over when dropped. A drain waits for
/// it behind all clients ([`Network::served`]).
pub struct LastWork(Arc<Network>);

impl LastWork {
    /// Begins before the drain may.
    pub fn begin(network: &Arc<Network>) -> Self {
        network.clients().last.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(network))
    }
}

impl Drop for LastWork {
    fn drop(&mut self) {
        let clients = self.0.clients();
        clients.last.fetch_sub(1, Ordering::Release);
        clients.notify();
    }
}
