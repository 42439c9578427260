//! One worker of the proxy: what the network has for its thread, and the memory and settings of its
//! requests.

use crate::client::peer_listener::PeerListener;
use crate::log::client::{ClientFacts, ForPeers};
use crate::log::report::LogSinks;
use crate::log::served::ServedRequest;
use crate::log::top::TargetName;
use crate::log::top::accumulator::Accumulator;
use crate::modules::hosts::{MakeHost, ModuleHosts};
use crate::modules::request_modules::RequestModules;
use crate::request::recent_heads::RecentHeads;
use crate::settings::Settings;
use crate::worker::content_in_queues::ContentInQueues;
use crate::worker::deferred_stores::DeferredStores;
use crate::worker::shared::Shared;
use crate::worker::write_behind::WriteBehind;
use std::cell::{Cell, RefCell, RefMut};
use std::rc::{Rc, Weak};
use std::sync::{self, Arc};
use std::time::Instant;
use weir_measure::Counters;
use weir_net::tls::server::Handshakes;
use weir_net::workers as net;
use weir_net::workers::Network;
use weir_policy::rule::RecentTargets;
use weir_policy::{Digest, Now};
use weir_semantics::Target;

/// Bytes that are lent to a task to read into.
pub(crate) use weir_net::workers::SCRATCH_BYTES;

/// What the tasks of one thread share. Nothing here is locked: a task borrows between two awaits
/// only.
pub(crate) struct Worker {
    net: Rc<net::Worker>,
    /// What all workers share.
    pub(crate) shared: Arc<Shared>,
    /// Memory to make responses in.
    pub(crate) output: RefCell<Vec<u8>>,
    /// Memory for what is reported when it is sent.
    pub(crate) served: RefCell<Vec<ServedRequest>>,
    /// What heavy hitters are made of.
    pub(crate) top: RefCell<Accumulator>,
    /// The rules for what was requested of late.
    pub(crate) recent_rules: RefCell<RecentRules>,
    /// Heads that were received of late.
    pub(crate) recent_heads: RefCell<RecentHeads>,
    /// Content in memory that sockets of its clients may have.
    pub(crate) content_in_queues: ContentInQueues,
    /// Responses that are stored once the disk has taken more of them.
    pub(crate) deferred_stores: DeferredStores,
    /// Responses whose last content is still being written to disk.
    pub(crate) write_behind: WriteBehind,
    /// Seconds since it began.
    pub(crate) ticks: Cell<u32>,
    /// What requests of other nodes of the cluster are received as.
    pub(crate) peers: PeerListener,
    /// TLS handshakes of its clients that are under way.
    pub(crate) handshakes: Handshakes,
    /// What modules have of this worker.
    pub(crate) hosts: ModuleHosts,
    /// Memory for small content on its way to a client, 8 KiB at most; of the last relay.
    pub(crate) spare_content: Cell<Vec<u8>>,
    /// What modules had of the last request that was answered at once.
    pub(crate) spare_modules: Cell<Option<Box<RequestModules>>>,
    settings: RefCell<arc_swap::Cache<Arc<arc_swap::ArcSwap<Settings>>, Arc<Settings>>>,
}

/// The rules for what was requested of late, of the settings in force.
#[derive(Default)]
pub(crate) struct RecentRules {
    /// The settings that they are of.
    settings: sync::Weak<Settings>,
    targets: RecentTargets,
}

impl RecentRules {
    /// Those of these settings: another configuration has others.
    #[inline]
    pub(crate) fn of(&mut self, settings: &Arc<Settings>) -> &mut RecentTargets {
        // no other settings get the place of these while there is a reference to it
        if !std::ptr::eq(self.settings.as_ptr(), Arc::as_ptr(settings)) {
            *self = Self {
                settings: Arc::downgrade(settings),
                targets: RecentTargets::default(),
            };
        }
        &mut self.targets
    }
}

impl Worker {
    /// A worker whose modules have hosts that `maker` makes.
    pub(crate) fn new(
        net: Rc<net::Worker>,
        shared: Arc<Shared>,
        maker: fn(&Weak<Self>, usize) -> MakeHost,
    ) -> Rc<Self> {
        let settings = arc_swap::Cache::new(Arc::clone(&shared.settings));
        Rc::new_cyclic(|worker| Self {
            hosts: ModuleHosts::new(maker(worker, net.index())),
            top: RefCell::new(Accumulator::new(&shared.tops, net.index())),
            net,
            shared,
            output: RefCell::new(Vec::with_capacity(SCRATCH_BYTES)),
            served: RefCell::default(),
            recent_rules: RefCell::default(),
            recent_heads: RefCell::default(),
            content_in_queues: ContentInQueues::default(),
            deferred_stores: DeferredStores::default(),
            write_behind: WriteBehind::default(),
            ticks: Cell::new(0),
            peers: PeerListener::new(),
            handshakes: Handshakes::default(),
            spare_content: Cell::default(),
            spare_modules: Cell::default(),
            settings: RefCell::new(settings),
        })
    }

    /// The settings in force; a request keeps what it started with.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(self.settings.borrow_mut().load())
    }

    /// Drops what would hold the modules of a configuration that is not in force any more. Called
    /// each second.
    pub(crate) fn forget_unused_modules(&self) {
        let settings = self.settings();
        let spare = self.spare_modules.take();
        let spare = spare.filter(|spare| spare.is_of(&settings.modules));
        self.spare_modules.set(spare);
        self.hosts.forget_unused();
    }

    /// The worker of the network, for what connects.
    pub(crate) fn net(&self) -> &Rc<net::Worker> {
        &self.net
    }

    /// What the workers share of the network.
    pub(crate) fn network(&self) -> &Arc<Network> {
        self.net.network()
    }

    /// The time.
    pub(crate) fn now(&self) -> Now {
        self.net.now()
    }

    /// The time at a `moment` that was read from the machine's clock just now.
    pub(crate) fn now_at(&self, moment: Instant) -> Now {
        self.net.now_at(moment)
    }

    /// The time as an HTTP-date.
    pub(crate) fn date(&self) -> [u8; 29] {
        self.net.date()
    }

    /// This worker's counters, which no other thread writes.
    pub(crate) fn counters(&self) -> &Counters {
        self.net.counters()
    }

    /// Where this worker's requests are written down.
    pub(crate) fn log_sinks(&self) -> LogSinks<'_> {
        LogSinks {
            counters: self.counters(),
            access_log: &self.shared.access_log,
            recorder: self.shared.record.as_ref(),
        }
    }

    /// Notes for the heavy hitters that the last of `served` was a hit of a client for the target
    /// of `key`. Part of the way of every hit.
    #[inline]
    pub(crate) fn note_hit(
        &self,
        settings: &Settings,
        client: ClientFacts<'_>,
        (key, target): (Digest, &Target<'_>),
        served: &[ServedRequest],
    ) {
        let admin = &settings.config.admin;
        if admin.top && client.listener.peers == ForPeers::No {
            let bytes = served.last().map_or(0, ServedRequest::response_bytes);
            let name = || TargetName::of(target);
            self.top.borrow_mut().hit(admin, key, name, bytes);
        }
    }

    /// Memory to read into, until the next await.
    pub(crate) fn scratch(&self) -> RefMut<'_, Box<[u8]>> {
        self.net.scratch()
    }
}
