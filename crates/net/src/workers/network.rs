//! What all workers of a process share: clock, resolver, counters, next-hop connections, limits.

use super::clients::ClientCounts;
use super::shutdown::{Shutdown, Stage};
use crate::clock::Clock;
use crate::is_local;
use crate::next_hops::OpenConnections;
use crate::next_hops::pool::IdlePool;
use crate::resolver::{Resolver, ResolverConfig};
use arc_swap::ArcSwap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::futures::Notified;
use tokio::sync::watch;
use weir_measure::Counters;
use weir_policy::connections::IdleLimits;
use weir_policy::destination::{Denial, OwnAddresses};

/// What a [`Network`] is made from.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// Worker threads, at least 1.
    pub workers: usize,
    /// The source of the time.
    pub clock: Clock,
    /// How names are resolved.
    pub resolver: ResolverConfig,
    /// Idle next-hop connections of all workers together.
    pub idle: IdleLimits,
    /// Client connections that may be open, over all workers; see [`Network::set_clients_max`].
    pub clients_max: usize,
}

impl Default for NetworkSettings {
    /// A worker for each core, the machine's clocks, name servers as `/etc/resolv.conf` has them,
    /// at most 64 idle connections to one next hop and 1024 in all, each idle for 30 s and open for
    /// an hour at most, and 10 000 clients.
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            clock: Clock::system(),
            resolver: ResolverConfig::default(),
            idle: IdleLimits {
                per_hop_max: 64,
                total_max: 1024,
                idle_timeout_ms: 30_000,
                lifetime_ms: 3_600_000,
            },
            clients_max: 10_000,
        }
    }
}

/// The state that all workers share. Everything in it is immutable, atomic, or behind a lock that
/// is held for a list operation and never across an await.
pub struct Network {
    clock: Clock,
    resolver: Resolver,
    own: ArcSwap<OwnAddresses>,
    counters: Box<[Arc<Counters>]>,
    pools: Box<[IdlePool]>,
    idle: IdleLimits,
    open: Arc<OpenConnections>,
    clients: ClientCounts,
    shutdown: Shutdown,
}

impl Network {
    /// Starts the resolver's thread; workers are started by a [`WorkerPool`].
    ///
    /// [`WorkerPool`]: super::WorkerPool
    ///
    /// # Errors
    ///
    /// The resolver's thread or its runtime cannot be started.
    pub fn new(settings: NetworkSettings) -> io::Result<Self> {
        let workers = settings.workers.max(1);
        let counters: Box<[Arc<Counters>]> = (0..=workers).map(|_| Arc::default()).collect();
        Ok(Self {
            resolver: Resolver::start(settings.resolver, Arc::clone(&counters[workers]))?,
            clock: settings.clock,
            own: ArcSwap::default(),
            counters,
            pools: (0..workers)
                .map(|_| IdlePool::new(settings.idle, workers))
                .collect(),
            idle: settings.idle,
            open: Arc::new(OpenConnections::default()),
            clients: ClientCounts::new(settings.clients_max),
            shutdown: Shutdown::new(workers),
        })
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.pools.len()
    }

    /// The source of the time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Names to addresses.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// One block of counters for each worker, which no other thread writes, and one more for what
    /// no worker owns.
    pub fn counters(&self) -> &[Arc<Counters>] {
        &self.counters
    }

    /// The block that no worker owns; to be written with the `_shared` operations.
    pub fn common_counters(&self) -> &Arc<Counters> {
        &self.counters[self.workers()]
    }

    /// The addresses at which this process listens: no connection is opened to them.
    pub fn own_addresses(&self) -> Arc<OwnAddresses> {
        self.own.load_full()
    }

    /// Sets the addresses at which this process listens. To be called before a listener is opened,
    /// and after one was closed.
    pub fn set_own_addresses(&self, own: Arc<OwnAddresses>) {
        self.own.store(own);
    }

    /// Whether `address` is none at which this process listens.
    ///
    /// # Errors
    ///
    /// It is one of them.
    pub fn check_not_own(&self, address: SocketAddr) -> Result<(), Denial> {
        self.own.load().check(address, is_local)
    }

    /// The number of open next-hop connections, and the requests that wait for one.
    pub fn open_connections(&self) -> &Arc<OpenConnections> {
        &self.open
    }

    /// How long next-hop connections may be idle and open.
    pub(crate) const fn idle_limits(&self) -> &IdleLimits {
        &self.idle
    }

    /// Next-hop connections that are idle now.
    pub fn idle_connections(&self) -> usize {
        self.pools.iter().map(IdlePool::len).sum()
    }

    /// The idle next-hop connections of each worker.
    pub(crate) fn pools(&self) -> &[IdlePool] {
        &self.pools
    }

    /// Maximum number of client connections that were open at once.
    pub fn clients_open_max(&self) -> usize {
        self.clients.open_max()
    }

    /// Sets how many client connections may be open, over all workers. Those that are open stay so;
    /// further ones wait in the kernel.
    pub fn set_clients_max(&self, clients: usize) {
        self.clients.set_limit(clients);
    }

    /// How many client connections may be open, over all workers.
    pub fn clients_max(&self) -> usize {
        self.clients.limit()
    }

    /// Whether another client connection may be open.
    pub fn has_room_for_client(&self) -> bool {
        self.clients.has_room()
    }

    pub(super) fn clients(&self) -> &ClientCounts {
        &self.clients
    }

    /// Ready when a client connection has closed after this call: its descriptor is free.
    pub(crate) fn client_closed(&self) -> Notified<'_> {
        self.clients.closed()
    }

    /// Whether the shutdown has begun: connections are closed after the exchange that is under way.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.shutdown.is_draining()
    }

    /// Advances the shutdown to `stage`; never back.
    pub fn advance(&self, stage: Stage) {
        self.shutdown.advance(stage);
    }

    /// How far the shutdown has come, and what it becomes.
    pub fn stage(&self) -> watch::Receiver<Stage> {
        self.shutdown.subscribe()
    }

    /// Ready when the drain's time is over ([`Stage::Cut`]).
    pub async fn cut(&self) {
        let mut stage = self.stage();
        // the sender lives as long as `self`
        let _ = stage.wait_for(|stage| *stage == Stage::Cut).await;
    }

    /// Waits until no client is connected, no worker accepts any, the work of clients that have
    /// gone is over, and so is what is finished behind all of them: `true`; or until what is under
    /// way is cut: `false`.
    pub async fn drained(&self) -> bool {
        self.until(|| self.serves_none() && self.clients.is_last_done())
            .await
    }

    /// The same without what is finished behind all clients.
    pub async fn served(&self) -> bool {
        self.until(|| self.serves_none()).await
    }

    fn serves_none(&self) -> bool {
        // in this order: a client that the last worker accepted is counted before it stops
        !self.shutdown.is_accepting() && self.clients.is_idle()
    }

    /// Waits until `is_over`: `true`; or until what is under way is cut: `false`.
    async fn until(&self, is_over: impl Fn() -> bool) -> bool {
        let cut = self.cut();
        tokio::pin!(cut);
        loop {
            let closed = self.client_closed();
            if is_over() {
                return true;
            }
            tokio::select! {
                () = closed => {}
                () = &mut cut => return false,
            }
        }
    }

    /// A worker accepts no more, and has taken what the kernel had accepted for it.
    pub(super) fn accepts_no_more(&self) {
        self.shutdown.accepts_no_more();
        self.clients.notify();
    }
}
