//! The requests under way to next hops, by client: a client has a share of the connections to each
//! (`weir_policy::connections::ClientShares`).
//!
//! Tables behind locks that are held for an operation on a map. A next hop has an entry while
//! requests are under way to it.

use crate::next_hops::destination::Destination;
use crate::next_hops::failure::ConnectFailure;
use crate::next_hops::hop_key::HopKey;
use crate::next_hops::rules::ConnectionRules;
use crate::workers::Worker;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::time::timeout;
use weir_measure::{Metric, WaitEnd, WaitReason};
use weir_policy::connections::{ClientShares, HeldBackRequest};
use weir_policy::destination::ClientNetwork;
use weir_semantics::ProxyError;

/// Tables, each with its own lock: requests to different next hops seldom wait for one another.
const TABLES: usize = 16;

/// The requests under way to all next hops.
#[derive(Debug, Default)]
pub(crate) struct ClientUses {
    tables: [Mutex<HashMap<HopKey, HopUses>>; TABLES],
    hasher: RandomState,
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
    uses: Arc<ClientUses>,
    hop: HopKey,
    client: Option<ClientNetwork>,
}

impl Drop for ClientUse {
    fn drop(&mut self) {
        self.uses.change(&self.hop, |uses| {
            uses.shares.end(self.client);
            uses.release();
        });
    }
}

/// A request that is held back.
struct HeldBack {
    uses: Arc<ClientUses>,
    hop: HopKey,
    client: ClientNetwork,
    request: HeldBackRequest,
    released: oneshot::Receiver<()>,
    /// It is under way, as a [`ClientUse`].
    is_taken: bool,
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        self.uses.change(&self.hop, |uses| {
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
    fn table(&self, hop: &HopKey) -> MutexGuard<'_, HashMap<HopKey, HopUses>> {
        let at = usize::from(self.hasher.hash_one(hop).to_le_bytes()[0]) % TABLES;
        self.tables[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an entry, and removes it if it is of no use any more.
    fn change(&self, hop: &HopKey, change: impl FnOnce(&mut HopUses)) {
        let mut table = self.table(hop);
        if let Some(uses) = table.get_mut(hop) {
            change(uses);
            if uses.shares.is_idle() {
                table.remove(hop);
            }
        }
    }

    fn of(self: &Arc<Self>, destination: &Destination) -> ClientUse {
        ClientUse {
            uses: Arc::clone(self),
            hop: destination.hop.clone(),
            client: destination.client,
        }
    }

    /// A request to `destination` is under way from now on.
    ///
    /// # Errors
    ///
    /// Its client has its share of the connections to it: [`ProxyError::ConnectionLimitReached`].
    pub(crate) fn try_begin(
        self: &Arc<Self>,
        rules: &ConnectionRules,
        destination: &Destination,
    ) -> Result<ClientUse, ConnectFailure> {
        let mut table = self.table(&destination.hop);
        let uses = table.entry(destination.hop.clone()).or_default();
        let begins = uses
            .shares
            .try_begin(destination.client, rules.open.per_hop_max);
        drop(table);
        match begins {
            true => Ok(self.of(destination)),
            false => Err(has_its_share(destination)),
        }
    }

    /// The same of a request that waits until others of its client, or of all, have ended.
    ///
    /// # Errors
    ///
    /// As above, after [`ConnectionRules::wait_limit`].
    pub(crate) async fn begin(
        self: &Arc<Self>,
        worker: &Worker,
        rules: &ConnectionRules,
        destination: &Destination,
    ) -> Result<ClientUse, ConnectFailure> {
        match self.begin_or_wait(rules, destination) {
            None => Ok(self.of(destination)),
            Some(held_back) => Box::pin(self.wait(worker, rules, destination, held_back)).await,
        }
    }

    fn begin_or_wait(
        self: &Arc<Self>,
        rules: &ConnectionRules,
        destination: &Destination,
    ) -> Option<HeldBack> {
        let mut table = self.table(&destination.hop);
        let uses = table.entry(destination.hop.clone()).or_default();
        let (client, max) = (destination.client, rules.open.per_hop_max);
        let request = uses.shares.begin(client, max).err()?;
        let (sender, released) = oneshot::channel();
        uses.waiting.insert(request, sender);
        drop(table);
        Some(HeldBack {
            uses: Arc::clone(self),
            hop: destination.hop.clone(),
            client: client?,
            request,
            released,
            is_taken: false,
        })
    }

    async fn wait(
        self: &Arc<Self>,
        worker: &Worker,
        rules: &ConnectionRules,
        destination: &Destination,
        mut held_back: HeldBack,
    ) -> Result<ClientUse, ConnectFailure> {
        let mut counted = Counted::begin(worker);
        let released = timeout(rules.wait_limit, &mut held_back.released).await;
        if let Ok(Ok(())) = released {
            held_back.is_taken = true;
            counted.end = WaitEnd::Place;
            return Ok(self.of(destination));
        }
        counted.end = WaitEnd::Refused;
        Err(has_its_share(destination))
    }
}

fn has_its_share(destination: &Destination) -> ConnectFailure {
    ConnectFailure::new(
        ProxyError::ConnectionLimitReached,
        format!(
            "this client has as many requests under way to {} as connections are left for others",
            destination.hop
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
