//! The requests under way to next hops, by client: a client has a share of the connections to each
//! (`weir_policy::connections::ClientShares`), and of those to all (`has_share_left`).
//!
//! Tables behind locks that are held for an operation on a map. A next hop, and a client, has an
//! entry while requests are under way, and some keep it beyond that: the next request of one of few
//! clients to one of few next hops allocates nothing.

use super::{OpenConnections, Waiting};
use crate::next_hops::destination::Destination;
use crate::next_hops::failure::ConnectFailure;
use crate::next_hops::hop_key::{ByHop, HopKey, MadeHash, half};
use crate::next_hops::rules::ConnectionRules;
use crate::workers::{Network, Worker};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::time::timeout;
use weir_measure::{Metric, WaitEnd, WaitReason};
use weir_policy::connections::{ClientShares, HeldBackRequest, has_share_left};
use weir_policy::destination::ClientNetwork;
use weir_semantics::ProxyError;

/// Tables, each with its own lock: requests to different next hops seldom wait for one another.
const TABLES: usize = 16;

/// Entries that a table may have before those are removed that no request needs.
const KEPT_ENTRIES_MAX: usize = 16;

/// The requests under way to all next hops.
#[derive(Debug, Default)]
pub(super) struct ClientUses {
    tables: [Mutex<ByHop<HopUses>>; TABLES],
    /// How many each client has under way, to whatever next hops.
    clients: [Mutex<ByClient>; TABLES],
    hasher: RandomState,
}

type ByClient = HashMap<ClientKey, usize, BuildHasherDefault<MadeHash>>;

/// A client with its hash, which a request needs when it begins and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClientKey {
    client: ClientNetwork,
    hash: u32,
}

impl Hash for ClientKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

#[derive(Debug, Default)]
struct HopUses {
    shares: ClientShares,
    /// Those that are held back.
    waiting: HashMap<HeldBackRequest, oneshot::Sender<()>>,
}

impl HopUses {
    /// Has requests go on that are not held back any more.
    fn release(&mut self) {
        while let Some((_, request)) = self.shares.release() {
            if let Some(sender) = self.waiting.remove(&request) {
                // the receiver is there: `HeldBack` takes the sender out before it is dropped
                let _ = sender.send(());
            }
        }
    }
}

/// A request under way, which counts for its client until this is dropped.
#[derive(Debug)]
pub struct ClientUse {
    _of_hop: HopUse,
    _of_all: AllUse,
}

/// The same of one next hop.
#[derive(Debug)]
struct HopUse {
    open: Arc<OpenConnections>,
    hop: HopKey,
    client: Option<ClientNetwork>,
}

impl Drop for HopUse {
    fn drop(&mut self) {
        self.open.uses.change(&self.hop, |uses| {
            uses.shares.end(self.client);
            uses.release();
        });
    }
}

/// The same of all next hops.
#[derive(Debug)]
struct AllUse {
    open: Arc<OpenConnections>,
    client: Option<ClientKey>,
}

impl Drop for AllUse {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            self.open.uses.end_of_all(client);
            // another one of this client may wait, also where no connection was closed
            self.open.announce();
        }
    }
}

/// Why a request does not begin.
enum HeldBack {
    /// Its client has its share of the connections to its next hop.
    OfHop(HeldBackByHop),
    /// It has its share of all.
    OfAll,
}

/// A request that is held back by the share of a next hop.
struct HeldBackByHop {
    open: Arc<OpenConnections>,
    hop: HopKey,
    client: ClientNetwork,
    request: HeldBackRequest,
    released: oneshot::Receiver<()>,
    /// It is under way, as a [`HopUse`].
    is_taken: bool,
}

impl HeldBackByHop {
    /// Waits until it is under way.
    async fn released(mut self) -> HopUse {
        // the sender is dropped with this alone
        let _ = (&mut self.released).await;
        self.is_taken = true;
        HopUse {
            open: Arc::clone(&self.open),
            hop: self.hop.clone(),
            client: Some(self.client),
        }
    }
}

impl Drop for HeldBackByHop {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        self.open.uses.change(&self.hop, |uses| {
            if uses.waiting.remove(&self.request).is_some() {
                uses.shares.leave(self.client, self.request);
            } else {
                uses.shares.end(Some(self.client));
                uses.release();
            }
        });
    }
}

impl ClientUses {
    fn table(&self, hop: &HopKey) -> MutexGuard<'_, ByHop<HopUses>> {
        lock(&self.tables, hop.made_hash())
    }

    fn clients(&self, client: ClientKey) -> MutexGuard<'_, ByClient> {
        lock(&self.clients, client.hash)
    }

    fn client_key(&self, client: ClientNetwork) -> ClientKey {
        let hash = half(self.hasher.hash_one(client));
        ClientKey { client, hash }
    }

    /// Begins a request to a next hop as `begin` does with its entry.
    fn begin<T>(&self, hop: &HopKey, begin: impl FnOnce(&mut HopUses) -> T) -> T {
        let mut table = self.table(hop);
        match table.get_mut(hop) {
            Some(uses) => begin(uses),
            None => begin(table.entry(hop.clone()).or_default()),
        }
    }

    /// Changes an entry, and removes it if it is of no use any more.
    fn change(&self, hop: &HopKey, change: impl FnOnce(&mut HopUses)) {
        let mut table = self.table(hop);
        let Some(uses) = table.get_mut(hop) else {
            return;
        };
        change(uses);
        if uses.shares.is_idle() && table.len() > KEPT_ENTRIES_MAX {
            table.remove(hop);
        }
    }

    fn end_of_all(&self, client: ClientKey) {
        let mut clients = self.clients(client);
        let Some(held) = clients.get_mut(&client) else {
            return;
        };
        *held = held.saturating_sub(1);
        if *held == 0 && clients.len() > KEPT_ENTRIES_MAX {
            clients.remove(&client);
        }
    }
}

fn lock<T>(tables: &[Mutex<T>; TABLES], hash: u32) -> MutexGuard<'_, T> {
    // the table itself goes by the bits at both ends
    let at = usize::from(hash.to_le_bytes()[2]) % TABLES;
    tables[at].lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenConnections {
    /// A request to `destination` is under way from now on.
    ///
    /// # Errors
    ///
    /// Its client has its share of the connections to it, or of all:
    /// [`ProxyError::ConnectionLimitReached`].
    pub(crate) fn try_begin_use(
        self: &Arc<Self>,
        network: &Network,
        rules: &ConnectionRules,
        destination: &Destination,
    ) -> Result<ClientUse, ConnectFailure> {
        let (client, max) = (destination.client, rules.open.per_hop_max);
        let begin = |uses: &mut HopUses| uses.shares.try_begin(client, max);
        if !self.uses.begin(&destination.hop, begin) {
            return Err(has_its_share(destination, false));
        }
        self.begin_of_all(network, rules, self.of_hop(destination))
            .ok_or_else(|| has_its_share(destination, true))
    }

    /// The same of a request that waits until others of its client, or of all, have ended.
    ///
    /// # Errors
    ///
    /// As above, after [`ConnectionRules::wait_limit`].
    pub(crate) async fn begin_use(
        self: &Arc<Self>,
        worker: &Worker,
        rules: &ConnectionRules,
        destination: &Destination,
    ) -> Result<ClientUse, ConnectFailure> {
        match self.begin_or_wait(worker.network(), rules, destination) {
            Ok(begun) => Ok(begun),
            Err(held_back) => Box::pin(self.wait(worker, rules, destination, held_back)).await,
        }
    }

    fn begin_or_wait(
        self: &Arc<Self>,
        network: &Network,
        rules: &ConnectionRules,
        destination: &Destination,
    ) -> Result<ClientUse, HeldBack> {
        let (client, max) = (destination.client, rules.open.per_hop_max);
        let held_back = self.uses.begin(&destination.hop, |uses| {
            let request = uses.shares.begin(client, max).err()?;
            let (sender, released) = oneshot::channel();
            uses.waiting.insert(request, sender);
            Some((client?, request, released))
        });
        if let Some((client, request, released)) = held_back {
            return Err(HeldBack::OfHop(HeldBackByHop {
                open: Arc::clone(self),
                hop: destination.hop.clone(),
                client,
                request,
                released,
                is_taken: false,
            }));
        }
        self.begin_of_all(network, rules, self.of_hop(destination))
            .ok_or(HeldBack::OfAll)
    }

    fn of_hop(self: &Arc<Self>, destination: &Destination) -> HopUse {
        HopUse {
            open: Arc::clone(self),
            hop: destination.hop.clone(),
            client: destination.client,
        }
    }

    /// The same among those to all next hops; `None` if its client has its share of them.
    ///
    /// What is shared are connections: many requests by HTTP/2 use few, and idle ones are closed
    /// where their places are needed.
    fn begin_of_all(
        self: &Arc<Self>,
        network: &Network,
        rules: &ConnectionRules,
        of_hop: HopUse,
    ) -> Option<ClientUse> {
        let client = of_hop.client.map(|client| self.uses.client_key(client));
        if let Some(client) = client {
            let mut clients = self.uses.clients(client);
            let held = clients.entry(client).or_default();
            let (max, open) = (rules.open.total_max, self.total());
            let in_use = || {
                let idle = network.idle_connections() + self.idle_places.len();
                open.saturating_sub(idle)
            };
            // without any it has one left
            if !has_share_left(*held, open, max) && !has_share_left(*held, in_use(), max) {
                return None;
            }
            *held += 1;
        }
        Some(ClientUse {
            _of_all: AllUse {
                open: Arc::clone(self),
                client,
            },
            _of_hop: of_hop,
        })
    }

    async fn wait(
        self: &Arc<Self>,
        worker: &Worker,
        rules: &ConnectionRules,
        destination: &Destination,
        held_back: HeldBack,
    ) -> Result<ClientUse, ConnectFailure> {
        let is_of_all = Cell::new(false);
        let mut counted = Counted::begin(worker);
        let waiting = self.wait_until_begun(worker, rules, destination, held_back, &is_of_all);
        if let Ok(begun) = timeout(rules.wait_limit, waiting).await {
            counted.end = WaitEnd::Place;
            return Ok(begun);
        }
        counted.end = WaitEnd::Refused;
        Err(has_its_share(destination, is_of_all.get()))
    }

    /// Waits; notes in `is_of_all` for which share.
    async fn wait_until_begun(
        self: &Arc<Self>,
        worker: &Worker,
        rules: &ConnectionRules,
        destination: &Destination,
        mut held_back: HeldBack,
        is_of_all: &Cell<bool>,
    ) -> ClientUse {
        let network = worker.network();
        loop {
            is_of_all.set(matches!(held_back, HeldBack::OfAll));
            held_back = match held_back {
                HeldBack::OfHop(waits) => {
                    let of_hop = waits.released().await;
                    match self.begin_of_all(network, rules, of_hop) {
                        Some(begun) => return begun,
                        // its place at the next hop is for others meanwhile
                        None => HeldBack::OfAll,
                    }
                }
                HeldBack::OfAll => {
                    let _waiting = Waiting::begin(self);
                    // before it looks: what is given back from now on wakes it
                    let freed = self.freed();
                    match self.begin_or_wait(network, rules, destination) {
                        Ok(begun) => return begun,
                        Err(HeldBack::OfAll) => {
                            freed.await;
                            HeldBack::OfAll
                        }
                        Err(of_hop) => of_hop,
                    }
                }
            };
        }
    }
}

fn has_its_share(destination: &Destination, is_of_all: bool) -> ConnectFailure {
    let to = match is_of_all {
        true => String::new(),
        false => format!(" to {}", destination.hop),
    };
    ConnectFailure::new(
        ProxyError::ConnectionLimitReached,
        format!(
            "this client has as many requests under way{to} as connections are left for others"
        ),
    )
}

/// A wait; counted when it begins and when it ends.
struct Counted<'a> {
    worker: &'a Worker,
    end: WaitEnd,
}

impl<'a> Counted<'a> {
    fn begin(worker: &'a Worker) -> Self {
        let counters = worker.counters();
        counters.inc(Metric::ConnectionWaits(WaitReason::ClientShare));
        Self {
            worker,
            end: WaitEnd::Left,
        }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let ended = Metric::ConnectionWaitEnds(self.end);
        self.worker.counters().inc(ended);
    }
}
