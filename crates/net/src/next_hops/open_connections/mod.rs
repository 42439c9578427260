//! How many connections to next hops are open, used or idle, to each and in all; and the requests
//! that wait for one.
//!
//! `weir_policy::connections` decides what a request does that finds no idle connection. This
//! module holds the lock around that decision. It is taken when a connection opens or closes and
//! when a wait begins or ends, not when a connection is reused: one atomic number shows whether any
//! request waits.

mod client_uses;
mod idle_places;
mod waiter;

pub use client_uses::ClientUse;
use client_uses::ClientUses;
pub(crate) use idle_places::IdlePlace;
use idle_places::IdlePlaces;
pub(super) use waiter::{Waiter, Waiting};

use super::connection::IdleConnection;
use super::failure::ConnectFailure;
use super::hop_key::{ByHop, HopKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};
use weir_policy::connections::{
    Choice, ConnectionState, Demand, Hop, OpenReason, OpenRules, Room, WaitEnd, WaitReason,
};

/// The open connections of all workers.
#[derive(Debug, Default)]
pub struct OpenConnections {
    table: Mutex<HopTable>,
    /// Open now; written under the lock only, and atomic for those that read it without.
    total: AtomicUsize,
    /// Maximum of `total` so far.
    total_max: AtomicUsize,
    /// Requests that wait now.
    waiting: AtomicUsize,
    /// Waits that have begun so far.
    waits_begun: AtomicUsize,
    freed: Notify,
    uses: ClientUses,
    idle_places: IdlePlaces,
}

#[derive(Debug, Default)]
struct HopTable {
    hops: ByHop<Entry>,
    next_waiter: u64,
}

#[derive(Debug, Default)]
struct Entry {
    hop: Hop,
    /// Requests that wait for a connection, in the order in which they began.
    queue: BTreeMap<u64, QueueEntry>,
    /// Those of them that rely on a pending connection.
    relying: BTreeSet<u64>,
    /// Connections being opened in advance.
    in_advance: usize,
}

impl Entry {
    /// Whether it says nothing that the default does not.
    fn is_idle(&self) -> bool {
        self.hop.open() == 0
            && self.hop.waiting() == 0
            && self.queue.is_empty()
            && self.in_advance == 0
    }

    fn remove(&mut self, id: u64) -> Option<QueueEntry> {
        self.relying.remove(&id);
        self.queue.remove(&id)
    }

    /// The first request that waits. If it did not rely on the connection that it gets, more may
    /// rely on pending connections than there are: the last of them then decides again, which it
    /// does when its sender is dropped.
    fn pop(&mut self) -> Option<QueueEntry> {
        let id = *self.queue.first_key_value()?.0;
        let first = self.remove(id);
        self.settle();
        first
    }

    /// As many requests rely on pending connections as there are.
    fn settle(&mut self) {
        while self.relying.len() > self.hop.opening_unassigned()
            && let Some(last) = self.relying.pop_last()
        {
            self.queue.remove(&last);
        }
    }

    /// If no busy connection is left, the requests that wait for one decide again.
    fn wake_if_in_vain(&mut self) {
        if self.hop.pooled() == 0 {
            self.queue
                .retain(|_, queued| queued.why != WaitReason::Sooner);
        }
    }
}

/// What a request that waits is handed: a connection, or why there is none.
pub(crate) type HandOver = Result<IdleConnection, ConnectFailure>;

#[derive(Debug)]
struct QueueEntry {
    why: WaitReason,
    sender: oneshot::Sender<HandOver>,
}

/// The place of one connection among those that may be open; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    hop: HopKey,
    open: Arc<OpenConnections>,
    place: ConnectionState,
}

/// A limit on open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// That of one next hop.
    PerHop,
    /// That of all next hops together.
    Total,
}

/// What a request does that found no idle connection, and what it needs for that.
pub(crate) enum OpenDecision {
    /// Open a connection in this place.
    Open(Permit, OpenReason),
    /// Open one in this place for the request that waits first, and wait.
    Race(Permit, Waiter),
    /// Close an idle one, and decide again.
    Close(Room),
    /// Wait, for at most so many microseconds if any are given.
    Wait(Waiter, Option<u64>),
}

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, HopTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides for a request that found no idle connection it could use.
    pub(super) fn ask(
        self: &Arc<Self>,
        hop: &HopKey,
        rules: &OpenRules,
        demand: Demand,
    ) -> OpenDecision {
        let mut table = self.lock();
        let id = table.next_waiter;
        table.next_waiter += 1;
        let entry = table.hops.entry(hop.clone()).or_default();
        let demand = Demand {
            open_in_all: self.total(),
            ..demand
        };
        match entry.hop.choose(rules, &demand) {
            Choice::Open(why) => {
                OpenDecision::Open(self.place(entry, hop, ConnectionState::Opening), why)
            }
            Choice::Race => OpenDecision::Race(
                self.place(entry, hop, ConnectionState::OpeningUnassigned),
                self.queue(entry, hop, id, WaitReason::Race, demand.fresh),
            ),
            Choice::Wait { why, at_most_us } => {
                OpenDecision::Wait(self.queue(entry, hop, id, why, demand.fresh), at_most_us)
            }
            Choice::Close(room) => OpenDecision::Close(room),
            // none is idle: that is why it is decided here
            Choice::Reuse => OpenDecision::Close(Room::SameHop),
        }
    }

    /// Takes a place without waiting for one.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub(crate) fn take(
        self: &Arc<Self>,
        hop: &HopKey,
        rules: &OpenRules,
        place: ConnectionState,
    ) -> Result<Permit, Limit> {
        let mut table = self.lock();
        let open = table.hops.get(hop).map_or(0, |entry| entry.hop.open());
        if let Some(full) = self.full(open, rules) {
            return Err(full);
        }
        let entry = table.hops.entry(hop.clone()).or_default();
        Ok(self.place(entry, hop, place))
    }

    /// The limit for which no connection to `hop` can be opened now, if there is one.
    pub(super) fn limit_reached(&self, hop: &HopKey, rules: &OpenRules) -> Option<Limit> {
        let table = self.lock();
        let open = table.hops.get(hop).map_or(0, |entry| entry.hop.open());
        self.full(open, rules)
    }

    fn full(&self, open: usize, rules: &OpenRules) -> Option<Limit> {
        if open >= rules.per_hop_max {
            Some(Limit::PerHop)
        } else if self.total() >= rules.total_max {
            Some(Limit::Total)
        } else {
            None
        }
    }

    fn place(self: &Arc<Self>, entry: &mut Entry, hop: &HopKey, place: ConnectionState) -> Permit {
        entry.hop.begin(place);
        let total = self.total() + 1;
        self.total.store(total, Ordering::Relaxed);
        self.total_max.fetch_max(total, Ordering::Relaxed);
        Permit {
            hop: hop.clone(),
            open: Arc::clone(self),
            place,
        }
    }

    /// One more request that waits; one that needs a new connection waits for a place alone.
    fn queue(
        self: &Arc<Self>,
        entry: &mut Entry,
        hop: &HopKey,
        id: u64,
        why: WaitReason,
        fresh: bool,
    ) -> Waiter {
        let mut receiver = None;
        if !fresh {
            let (sender, handed) = oneshot::channel();
            entry.queue.insert(id, QueueEntry { why, sender });
            if matches!(why, WaitReason::Race | WaitReason::UnderWay) {
                entry.relying.insert(id);
            }
            entry.hop.wait_begins();
            receiver = Some(handed);
        }
        Waiter {
            id,
            why,
            end: WaitEnd::Left,
            hop: hop.clone(),
            receiver,
            _waiting: Waiting::begin(self),
            open: Arc::clone(self),
        }
    }

    /// Hands a connection that became free to the first request that waits for one to its next hop;
    /// returns it if none does.
    pub(super) fn hand(&self, idle: IdleConnection) -> Option<IdleConnection> {
        let mut idle = idle;
        loop {
            let first = {
                let mut table = self.lock();
                let entry = table.hops.get_mut(&idle.hop);
                entry.and_then(Entry::pop)
            };
            let Some(queued) = first else {
                return Some(idle);
            };
            match queued.sender.send(Ok(idle)) {
                Ok(()) => return None,
                // its wait ended meanwhile
                Err(Ok(back)) => idle = back,
                Err(Err(_)) => return None,
            }
        }
    }

    /// A pending connection could not be opened: the waiter `id` learns why; if it has been served
    /// already, a request that relied on the connection decides again.
    pub(super) fn pending_failed(&self, hop: &HopKey, id: Option<u64>, failure: ConnectFailure) {
        let mut table = self.lock();
        let Some(entry) = table.hops.get_mut(hop) else {
            return;
        };
        if let Some(waiter) = id.and_then(|id| entry.remove(id)) {
            // if its wait has ended, it need not know
            let _ = waiter.sender.send(Err(failure));
        }
        entry.settle();
    }

    /// Ready when a place was given back, or a connection became idle, after this call.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Has the requests that wait for a place look again.
    pub(super) fn announce(&self) {
        if self.has_waiters() {
            self.freed.notify_waiters();
        }
    }

    /// Whether any request waits.
    pub(super) fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Waits that have begun so far. If the number is the same after a connection was put into a
    /// pool, where a request looks when it begins to wait, no request has missed it.
    pub(super) fn waits_begun(&self) -> usize {
        self.waits_begun.load(Ordering::SeqCst)
    }

    /// Has a connection be closed that carries many requests and has none; its place is announced
    /// once it is given back.
    pub(super) fn close_multiplexed(&self) {
        self.idle_places.close_oldest();
    }

    /// Connections open now.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Maximum number of connections that were open at once.
    pub fn total_max(&self) -> usize {
        self.total_max.load(Ordering::Relaxed)
    }

    /// Begins one more connection in advance; returns how many there are with it.
    pub(super) fn begin_advance(self: &Arc<Self>, hop: &HopKey) -> (AdvanceCount, usize) {
        let mut table = self.lock();
        let entry = table.hops.entry(hop.clone()).or_default();
        entry.in_advance += 1;
        let count = AdvanceCount {
            hop: hop.clone(),
            open: Arc::clone(self),
        };
        (count, entry.in_advance)
    }
}

impl HopTable {
    /// Changes an entry, and removes it if it is of no use any more.
    fn change(&mut self, hop: &HopKey, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.hops.get_mut(hop) {
            change(entry);
            if entry.is_idle() {
                self.hops.remove(hop);
            }
        }
    }
}

impl Permit {
    /// The connection is open, after so many milliseconds.
    pub(super) fn opened(&mut self, set_up_ms: u64) {
        let place = std::mem::replace(&mut self.place, ConnectionState::Pooled);
        self.open
            .lock()
            .change(&self.hop, |entry| entry.hop.opened(place, set_up_ms));
    }

    /// The connection carries many requests at once: none of them waits until it becomes free.
    pub(crate) fn becomes_multiplexed(&mut self) {
        let place = std::mem::replace(&mut self.place, ConnectionState::Multiplexed);
        self.open.lock().change(&self.hop, |entry| {
            entry.hop.became_multiplexed(place);
            entry.wake_if_in_vain();
        });
    }

    /// The connection becomes a tunnel: it will not become free for another request.
    ///
    /// It may be said twice.
    pub fn becomes_tunnel(&mut self) {
        if self.place == ConnectionState::Tunnel {
            return;
        }
        let place = std::mem::replace(&mut self.place, ConnectionState::Tunnel);
        self.open.lock().change(&self.hop, |entry| {
            entry.hop.became_tunnel(place);
            entry.wake_if_in_vain();
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut table = self.open.lock();
        table.change(&self.hop, |entry| {
            entry.hop.closed(self.place);
            entry.wake_if_in_vain();
        });
        let total = self.open.total();
        self.open
            .total
            .store(total.saturating_sub(1), Ordering::Relaxed);
        drop(table);
        self.open.announce();
    }
}

/// Counts a connection that is being opened in advance, until it is idle.
pub(super) struct AdvanceCount {
    hop: HopKey,
    open: Arc<OpenConnections>,
}

impl Drop for AdvanceCount {
    fn drop(&mut self) {
        self.open
            .lock()
            .change(&self.hop, |entry| entry.in_advance -= 1);
    }
}

#[cfg(test)]
mod tests;
