//! How many connections to next hops are open, used or idle: to each and in all; and who waits for
//! one.
//!
//! What a request does that finds no idle connection is decided by `weir_policy::connections`; here
//! is the lock around that, taken when a connection opens or closes and when somebody waits, not
//! when one is reused. Whoever is done with a connection looks at one number first: whether anybody
//! waits.

mod waiter;

pub use waiter::{Waiter, Waiting};

use crate::failure::ConnectFailure;
use crate::next_hops::destination::HopKey;
use crate::next_hops::pool::Socket;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};
use weir_policy::connections::{
    Choice, Demand, Hop, OpenReason, OpenRules, Place, Room, WaitEnd, WaitReason,
};

/// The count, shared by all workers.
#[derive(Debug, Default)]
pub struct OpenConnections {
    book: Mutex<Book>,
    /// Open now; written under the lock only, the atomic is for readers.
    total: AtomicUsize,
    /// Most that were open at once.
    most: AtomicUsize,
    /// Who waits now.
    waiting: AtomicUsize,
    /// Who has begun to wait, ever.
    waits_begun: AtomicUsize,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Book {
    hops: HashMap<HopKey, Entry>,
    next_waiter: u64,
}

#[derive(Debug, Default)]
struct Entry {
    hop: Hop,
    /// Who waits for a connection, by the order of coming.
    queue: BTreeMap<u64, Queued>,
    /// Those of them who rely on a connection that is to come.
    relying: BTreeSet<u64>,
    /// Connections being opened ahead.
    ahead: usize,
}

impl Entry {
    /// Nothing is lost if it is forgotten.
    fn is_idle(&self) -> bool {
        self.hop.open() == 0 && self.hop.waiting() == 0 && self.queue.is_empty() && self.ahead == 0
    }

    fn remove(&mut self, id: u64) -> Option<Queued> {
        self.relying.remove(&id);
        self.queue.remove(&id)
    }

    /// The first who waits. If the connection was not for it, somebody else relied on one that will
    /// not come: the last to do so asks again, as it does when its sender is dropped.
    fn pop(&mut self) -> Option<Queued> {
        let id = *self.queue.first_key_value()?.0;
        let first = self.remove(id);
        self.settle();
        first
    }

    fn settle(&mut self) {
        while self.relying.len() > self.hop.to_come()
            && let Some(last) = self.relying.pop_last()
        {
            self.queue.remove(&last);
        }
    }

    /// No busy connection is left: those who wait for one ask again.
    fn wake_if_in_vain(&mut self) {
        if self.hop.returning() == 0 {
            self.queue
                .retain(|_, queued| queued.why != WaitReason::Sooner);
        }
    }
}

/// What somebody who waits gets: a connection, or why there is none.
pub type Handed = Result<Socket, ConnectFailure>;

#[derive(Debug)]
struct Queued {
    why: WaitReason,
    sender: oneshot::Sender<Handed>,
}

/// One place; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    hop: HopKey,
    open: Arc<OpenConnections>,
    place: Place,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// That of this next hop.
    NextHop,
    /// That of all together.
    All,
}

/// What to do, and what is needed for it.
pub enum Asked {
    /// Open a connection in this place.
    Open(Permit, OpenReason),
    /// Open one in this place for whoever waits first, and wait.
    Race(Permit, Waiter),
    /// Close an idle one, and ask again.
    Close(Room),
    /// Wait, no longer than so many microseconds if so many are given.
    Wait(Waiter, Option<u64>),
}

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides for a request that found no idle connection it could use.
    pub fn ask(self: &Arc<Self>, hop: &HopKey, rules: &OpenRules, demand: Demand) -> Asked {
        let mut book = self.lock();
        let id = book.next_waiter;
        book.next_waiter += 1;
        let entry = book.hops.entry(hop.clone()).or_default();
        let demand = Demand {
            open_in_all: self.total(),
            ..demand
        };
        match entry.hop.choose(rules, &demand) {
            Choice::Open(why) => Asked::Open(self.place(entry, hop, Place::Opening), why),
            Choice::Race => Asked::Race(
                self.place(entry, hop, Place::ToCome),
                self.queue(entry, hop, id, WaitReason::Race, demand.fresh),
            ),
            Choice::Wait { why, at_most_us } => {
                Asked::Wait(self.queue(entry, hop, id, why, demand.fresh), at_most_us)
            }
            Choice::Close(room) => Asked::Close(room),
            // there is none: that is why it asks
            Choice::Reuse => Asked::Close(Room::SameHop),
        }
    }

    /// Takes a place for what nobody may wait for.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub fn take(
        self: &Arc<Self>,
        hop: &HopKey,
        rules: &OpenRules,
        place: Place,
    ) -> Result<Permit, Full> {
        let mut book = self.lock();
        let open = book.hops.get(hop).map_or(0, |entry| entry.hop.open());
        if let Some(full) = self.full(open, rules) {
            return Err(full);
        }
        let entry = book.hops.entry(hop.clone()).or_default();
        Ok(self.place(entry, hop, place))
    }

    /// Whether a connection to `hop` could be opened now; else which limit is reached.
    pub fn is_full(&self, hop: &HopKey, rules: &OpenRules) -> Option<Full> {
        let book = self.lock();
        let open = book.hops.get(hop).map_or(0, |entry| entry.hop.open());
        self.full(open, rules)
    }

    fn full(&self, open: usize, rules: &OpenRules) -> Option<Full> {
        if open >= rules.per_hop_max {
            Some(Full::NextHop)
        } else if self.total() >= rules.total_max {
            Some(Full::All)
        } else {
            None
        }
    }

    fn place(self: &Arc<Self>, entry: &mut Entry, hop: &HopKey, place: Place) -> Permit {
        entry.hop.begin(place);
        let total = self.total() + 1;
        self.total.store(total, Ordering::Relaxed);
        self.most.fetch_max(total, Ordering::Relaxed);
        Permit {
            hop: hop.clone(),
            open: Arc::clone(self),
            place,
        }
    }

    /// One more who waits; who needs a new connection waits for a place alone.
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
            entry.queue.insert(id, Queued { why, sender });
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

    /// Gives a connection that is no longer needed to the first who waits for one to its next hop;
    /// returns it if nobody does.
    pub fn hand(&self, socket: Socket) -> Option<Socket> {
        let mut socket = socket;
        loop {
            let first = {
                let mut book = self.lock();
                let entry = book.hops.get_mut(&socket.hop);
                entry.and_then(Entry::pop)
            };
            let Some(queued) = first else {
                return Some(socket);
            };
            match queued.sender.send(Ok(socket)) {
                Ok(()) => return None,
                // it has gone meanwhile
                Err(Ok(back)) => socket = back,
                Err(Err(_)) => return None,
            }
        }
    }

    /// A connection that was to come for whoever waits first does not: `id` learns why, or if it
    /// has been served already, somebody who relied on it.
    pub fn did_not_come(&self, hop: &HopKey, id: Option<u64>, failure: ConnectFailure) {
        let mut book = self.lock();
        let Some(entry) = book.hops.get_mut(hop) else {
            return;
        };
        if let Some(asker) = id.and_then(|id| entry.remove(id)) {
            // if it has gone, nobody needs to know
            let _ = asker.sender.send(Err(failure));
        }
        entry.settle();
    }

    /// Ready when a place was given back, or a connection became idle, after this call.
    pub fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Tells those who wait for a place to look again.
    pub fn announce(&self) {
        if self.has_waiters() {
            self.freed.notify_waiters();
        }
    }

    /// Whether anybody waits.
    pub fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Who has begun to wait so far: if it is the same after a connection was put where those who
    /// begin to wait look first, nobody has missed it.
    pub fn waits_begun(&self) -> usize {
        self.waits_begun.load(Ordering::SeqCst)
    }

    /// Connections open now.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Most connections that were open at once.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// One more connection is to be opened ahead; how many there are with it.
    pub fn begin_ahead(self: &Arc<Self>, hop: &HopKey) -> (Ahead, usize) {
        let mut book = self.lock();
        let entry = book.hops.entry(hop.clone()).or_default();
        entry.ahead += 1;
        let ahead = Ahead {
            hop: hop.clone(),
            open: Arc::clone(self),
        };
        (ahead, entry.ahead)
    }
}

impl Book {
    /// Changes an entry, and forgets it if it has become of no use.
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
    pub fn opened(&mut self, set_up_ms: u64) {
        let place = std::mem::replace(&mut self.place, Place::Returning);
        self.open
            .lock()
            .change(&self.hop, |entry| entry.hop.opened(place, set_up_ms));
    }

    /// The connection becomes a tunnel: nobody need wait for it.
    pub fn lost(&mut self) {
        let place = std::mem::replace(&mut self.place, Place::Lost);
        self.open.lock().change(&self.hop, |entry| {
            entry.hop.lost(place);
            entry.wake_if_in_vain();
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut book = self.open.lock();
        book.change(&self.hop, |entry| {
            entry.hop.closed(self.place);
            entry.wake_if_in_vain();
        });
        let total = self.open.total();
        self.open
            .total
            .store(total.saturating_sub(1), Ordering::Relaxed);
        drop(book);
        self.open.announce();
    }
}

/// A connection that is being opened ahead, until it is idle.
pub struct Ahead {
    hop: HopKey,
    open: Arc<OpenConnections>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.open.lock().change(&self.hop, |entry| entry.ahead -= 1);
    }
}

#[cfg(test)]
mod tests;
