//! What all workers share.

use crate::client::hand_off::HandOffs;
use crate::cluster::digests::Digests;
use crate::cluster::purges::ClusterPurges;
use crate::fetch::collapse::CollapsedRequests;
use crate::fetch::in_flight::PassingRoom;
use crate::log::access_log::{AccessLog, Say};
use crate::log::client::ListenerFacts;
use crate::log::module_log::ModuleLog;
use crate::log::record::Record;
use crate::log::top::tops::Tops;
use crate::modules::loaded::ModuleKinds;
use crate::modules::own_work::OwnWork;
use crate::settings::Settings;
use crate::worker::abandoned_waits::AbandonedWaits;
use crate::worker::client_rate::ClientRates;
use crate::worker::demand::{Background, Popularity, Refreshes};
use crate::worker::heartbeats::Heartbeats;
use crate::worker::jobs::Jobs;
use crate::worker::kept_content::AllKeptContent;
use crate::worker::links::LinkSet;
use crate::worker::paused_fetches::PausedFetches;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;
use weir_acme::PendingChallenges;
use weir_measure::Counters;
use weir_net::clock::Clock;
use weir_net::workers::Network;
use weir_store::MemoryStore;

/// The state of one proxy. Everything in it is either immutable, atomic, or behind a lock that is
/// held for a list operation and never across an await.
pub(crate) struct Shared {
    pub(crate) settings: Arc<ArcSwap<Settings>>,
    /// The kinds of modules that a configuration may name.
    pub(crate) module_kinds: ModuleKinds,
    /// Clock, resolver, counters, connections, and the stage of the shutdown.
    pub(crate) network: Arc<Network>,
    pub(crate) store: Arc<MemoryStore>,
    /// What authorities are answered that validate names.
    pub(crate) challenges: Arc<PendingChallenges>,
    pub(crate) access_log: AccessLog,
    /// Writes a line for the operator.
    pub(crate) say: Say,
    /// Where modules write lines, and what is said of them.
    pub(crate) module_log: Arc<ModuleLog>,
    /// What modules have under way of their own.
    pub(crate) own_work: Arc<OwnWork>,
    /// Purges for all nodes of the cluster.
    pub(crate) cluster_purges: ClusterPurges,
    /// Connections that are handed over.
    pub(crate) hand_offs: Arc<HandOffs>,
    /// Waits for members whose clients have gone.
    pub(crate) abandoned_waits: Arc<AbandonedWaits>,
    /// What nodes of the cluster hold, as far as their digests say.
    pub(crate) digests: Arc<Digests>,
    /// What other threads have the first worker do.
    pub(crate) jobs: Jobs,
    /// That workers turn.
    pub(crate) heartbeats: Heartbeats,
    /// Tells workers that the settings were replaced.
    pub(crate) reloaded: watch::Sender<()>,
    /// Gets a row for every request that has ended, if there is a recorder.
    pub(crate) record: Option<Record>,
    /// The URLs, hosts, clients and next hops that take most.
    pub(crate) tops: Arc<Tops>,
    /// Has the allocator give unused memory back to the system.
    pub(crate) give_back_memory: fn(),
    /// Stale responses that are validated in the background.
    pub(crate) refreshes: Refreshes,
    /// Targets with collapsed requests.
    pub(crate) collapsed: Arc<CollapsedRequests>,
    /// For readers far behind of what is not kept.
    pub(crate) passing: Arc<PassingRoom>,
    pub(crate) popularity: Popularity,
    pub(crate) background: Background,
    /// How fast clients are sent responses that rules of the operator limit.
    pub(crate) client_rates: ClientRates,
    pub(crate) kept_content: AllKeptContent,
    /// What may be moved over links to next hops.
    pub(crate) links: LinkSet,
    /// Parts that are to be completed once their links have room.
    pub(crate) paused: PausedFetches,
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

impl Shared {
    /// Whether new requests are no longer welcome.
    pub(crate) fn is_draining(&self) -> bool {
        self.network.is_draining()
    }

    /// Whether connections of `listener` carry no further request: a reload has closed it, or the
    /// proxy drains.
    pub(crate) fn has_closed(&self, listener: &ListenerFacts) -> bool {
        listener.is_closed() || self.is_draining()
    }

    /// Ready when the drain's time is over.
    pub(crate) async fn cut(&self) {
        self.network.cut().await;
    }

    /// Says so if large content does not move to the file in memory any more, or does again.
    pub(crate) fn tell_of_memory_file(&self) {
        match self.store.take_file_news() {
            Some(Some(fault)) => (self.say)(&format!(
                "warning: the file in memory is not used any more: {fault}; large responses are \
                 copied from memory for each client, which takes more CPU time"
            )),
            Some(None) => (self.say)("the file in memory is used again for large responses"),
            None => {}
        }
    }

    /// Reads that wait for the disk, a part of the miss pressure of a node.
    pub(crate) fn reads_waiting(&self) -> u32 {
        let reads = self.store.disk().map_or(0, |disk| disk.reads_waiting());
        u32::try_from(reads).unwrap_or(u32::MAX)
    }

    /// The clock of all workers.
    pub(crate) fn clock(&self) -> &Clock {
        self.network.clock()
    }

    /// The numbers no worker owns; to be written with the `_shared` operations.
    pub(crate) fn common_counters(&self) -> &Arc<Counters> {
        self.network.common_counters()
    }
}
