//! What all workers share.

use crate::fetch::collapse::CollapsedRequests;
use crate::fetch::in_flight::PassingRoom;
use crate::log::access_log::AccessLog;
use crate::log::record::Record;
use crate::net::clock::Clock;
use crate::net::next_hops::open_connections::OpenConnections;
use crate::net::next_hops::pool::Pool;
use crate::net::resolver::Resolver;
use crate::settings::Settings;
use crate::worker::demand::{Background, Popularity, Refreshes};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Notify, watch};
use weir_measure::Counters;
use weir_policy::destination::OwnAddresses;
use weir_store::MemoryStore;

/// The state of one proxy. Everything in it is either immutable, atomic, or behind a lock that is
/// held for a list operation and never across an await.
pub(crate) struct Shared {
    pub(crate) settings: Arc<ArcSwap<Settings>>,
    /// Where this proxy itself listens, listeners and admin interface: no request goes there.
    pub(crate) own: ArcSwap<OwnAddresses>,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) resolver: Resolver,
    pub(crate) access_log: AccessLog,
    /// Hears of every request that has ended, if anybody is to.
    pub(crate) record: Option<Record>,
    /// One block a worker, and one more for what no worker owns.
    pub(crate) counters: Box<[Arc<Counters>]>,
    pub(crate) pools: Box<[Pool]>,
    pub(crate) open: Arc<OpenConnections>,
    /// Client connections open, over all workers.
    pub(crate) clients: AtomicUsize,
    /// Most client connections that were open at once.
    pub(crate) clients_most: AtomicUsize,
    /// Client connections that may be open.
    pub(crate) clients_max: AtomicUsize,
    /// Workers that may still accept clients.
    pub(crate) accepting: AtomicUsize,
    /// Told when a client's connection closes, and when a worker accepts no more.
    pub(crate) client_closed: Notify,
    /// How far the shutdown is.
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) draining: AtomicBool,
    /// Stale responses that are validated in the background.
    pub(crate) refreshes: Refreshes,
    /// Targets that are being asked for.
    pub(crate) collapsed: Arc<CollapsedRequests>,
    /// For readers far behind of what is not kept.
    pub(crate) passing: Arc<PassingRoom>,
    pub(crate) popularity: Popularity,
    pub(crate) background: Background,
    /// The furthest a fetch was ahead of its fastest reader, bytes.
    pub(crate) read_ahead_max_bytes: AtomicU64,
}

impl Shared {
    /// A fetch was `bytes` ahead.
    pub(crate) fn note_read_ahead(&self, bytes: u64) {
        self.read_ahead_max_bytes
            .fetch_max(bytes, Ordering::Relaxed);
    }

    /// The furthest one was.
    pub(crate) fn read_ahead_max_bytes(&self) -> u64 {
        self.read_ahead_max_bytes.load(Ordering::Relaxed)
    }
}

/// From serving to stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Accepting and serving.
    Serving,
    /// Not accepting; what is under way may finish.
    Draining,
    /// What is still under way is cut.
    Cut,
}

impl Shared {
    /// Whether new requests are no longer welcome.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Moves the shutdown on; never back.
    pub(crate) fn advance(&self, stage: Stage) {
        self.draining
            .store(stage > Stage::Serving, Ordering::Relaxed);
        self.stage.send_if_modified(|known| {
            let moves = *known < stage;
            *known = stage.max(*known);
            moves
        });
    }

    /// Ready when the drain's time is over.
    pub(crate) async fn cut(&self) {
        let mut stage = self.stage.subscribe();
        // the sender lives as long as `self`
        let _ = stage.wait_for(|stage| *stage == Stage::Cut).await;
    }

    /// Client connections that may be open.
    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max.load(Ordering::Relaxed)
    }

    /// A worker accepts no more, and has taken what the kernel had accepted for it.
    pub(crate) fn accepts_no_more(&self) {
        self.accepting.fetch_sub(1, Ordering::Release);
        self.client_closed.notify_waiters();
    }

    /// Whether nobody is served and nobody can come.
    pub(crate) fn is_deserted(&self) -> bool {
        // in this order: who is accepted before the last worker stops is counted
        self.accepting.load(Ordering::Acquire) == 0 && self.clients.load(Ordering::Relaxed) == 0
    }

    /// A client's connection is open.
    pub(crate) fn client_came(&self) {
        let open = self.clients.fetch_add(1, Ordering::Relaxed) + 1;
        self.clients_most.fetch_max(open, Ordering::Relaxed);
    }

    /// A client's connection has closed.
    pub(crate) fn client_left(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
        self.client_closed.notify_waiters();
    }

    /// The numbers no worker owns; to be written with the `_shared` operations.
    pub(crate) fn common_counters(&self) -> &Arc<Counters> {
        &self.counters[self.counters.len() - 1]
    }
}
