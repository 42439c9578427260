//! One worker: a thread with its own runtime, counters, scratch memory and idle connections.

use super::network::Network;
use super::reset_budget::ResetBudget;
use super::sleepers::{SleeperPlace, Sleepers};
use super::stream_places::{ClientStreams, StreamPlaces};
use super::window_pool::{WindowGrant, WindowPool};
use crate::clock::Clock;
use std::any::Any;
use std::cell::{Cell, RefCell, RefMut};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;
use weir_measure::Counters;
use weir_policy::connections::ClientResets;
use weir_policy::destination::ClientNetwork;
use weir_policy::{Now, Tick};
use weir_semantics::{Timestamp, write_http_date};

/// Bytes that a task can read at once; see [`Worker::scratch`].
pub const SCRATCH_BYTES: usize = 64 * 1024;

/// The wall clock may be this late, milliseconds.
const WALL_MS: u64 = 10;

/// The time in a pass of a task.
#[derive(Clone, Copy)]
enum PassTime {
    /// No task has begun one.
    Outside,
    /// Nothing has asked for it yet.
    Unread,
    Read(Now),
}

/// A pass of a task ([`Worker::begin_pass`]).
#[must_use]
pub struct Pass<'a>(&'a Worker);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.pass.set(PassTime::Outside);
    }
}

/// What the tasks of one thread share. Nothing here is locked: a task borrows between two awaits
/// only.
pub struct Worker {
    me: Weak<Self>,
    index: usize,
    network: Arc<Network>,
    // these two belong to the network too, and are read several times a request
    counters: Arc<Counters>,
    clock: Clock,
    wall: Cell<Now>,
    pass: Cell<PassTime>,
    date: RefCell<(Timestamp, [u8; 29])>,
    scratch: RefCell<Box<[u8]>>,
    sleepers: RefCell<Sleepers>,
    /// Connections that were given a number.
    numbered: Cell<u64>,
    /// What [`Self::kept`] has made.
    kept: RefCell<Option<Rc<dyn Any>>>,
    /// Requests of HTTP/2 under way, beside one of each connection.
    stream_places: Rc<StreamPlaces>,
    /// What clients of HTTP/2 have left of the streams that may be reset.
    resets: Rc<RefCell<ClientResets>>,
    /// Of wider windows of connections of HTTP/2.
    window_pool: WindowPool,
}

impl Worker {
    /// Worker number `index`, from 0.
    pub(super) fn new(index: usize, network: Arc<Network>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            index,
            counters: Arc::clone(&network.counters()[index]),
            clock: network.clock().clone(),
            network,
            wall: Cell::new(Now {
                wall: Timestamp(i64::MIN),
                tick: Tick(0),
            }),
            pass: Cell::new(PassTime::Outside),
            date: RefCell::new((Timestamp(i64::MIN), [b' '; 29])),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            sleepers: RefCell::new(Sleepers::new()),
            numbered: Cell::new(0),
            kept: RefCell::default(),
            stream_places: Rc::default(),
            resets: Rc::default(),
            window_pool: WindowPool::default(),
        })
    }

    /// The requests of HTTP/2 of a client on this worker; with `None` those of a connection that
    /// has requests of many clients, which cannot be told apart.
    pub fn client_streams(&self, client: Option<ClientNetwork>) -> Rc<ClientStreams> {
        self.stream_places.of(client)
    }

    /// What a client has left of the streams that may be reset, on all of its connections to this
    /// worker.
    pub fn reset_budget(&self, client: ClientNetwork) -> ResetBudget {
        ResetBudget::new(client, &self.resets)
    }

    /// For a connection of HTTP/2, whose window is as wide as at first.
    pub fn window_grant(&self) -> WindowGrant {
        self.window_pool.window()
    }

    /// How many requests of HTTP/2 this worker has at most, beside one of each connection: its
    /// share of the connections that may be open.
    pub fn streams_max(&self) -> usize {
        self.network.clients_max().div_ceil(self.network.workers())
    }

    /// Position among the workers, from 0.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// What all workers share.
    #[inline]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// A handle for a task that may outlive its caller; `None` while the worker is dropped.
    pub fn handle(&self) -> Option<Rc<Self>> {
        self.me.upgrade()
    }

    /// This worker's counters, which no other thread writes.
    #[inline]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The time. The wall clock counts whole seconds, so the system's is read only when 10 ms have
    /// passed; and in a pass of a task ([`Self::begin_pass`]) the clock is read once.
    #[inline]
    pub fn now(&self) -> Now {
        match self.pass.get() {
            PassTime::Read(now) => now,
            PassTime::Outside | PassTime::Unread => self.read_now(self.clock.tick()),
        }
    }

    /// The time at a `moment` that the caller has read from the machine's clock just now: not a
    /// second time for one request.
    #[inline]
    pub fn now_at(&self, moment: Instant) -> Now {
        self.read_now(self.clock.tick_at(moment))
    }

    /// A task is polled: until the guard is dropped, time stands still at what [`Self::now`] says
    /// first, or [`Self::now_at`] says last. Ticks are milliseconds, and a pass takes some
    /// microseconds: it waits for nothing. Time limits have a clock of their own.
    pub fn begin_pass(&self) -> Pass<'_> {
        if !self.clock.is_manual() {
            self.pass.set(PassTime::Unread);
        }
        Pass(self)
    }

    #[inline]
    fn read_now(&self, tick: Tick) -> Now {
        let now = self.now_with(tick);
        if !matches!(self.pass.get(), PassTime::Outside) {
            self.pass.set(PassTime::Read(now));
        }
        now
    }

    #[inline]
    fn now_with(&self, tick: Tick) -> Now {
        let known = self.wall.get();
        if !self.clock.is_manual()
            && known.wall.0 != i64::MIN
            && tick.ms_since(known.tick) < WALL_MS
        {
            return Now {
                wall: known.wall,
                tick,
            };
        }
        let now = self.clock.now();
        self.wall.set(now);
        now
    }

    /// The time as an HTTP-date (RFC 9110 §5.6.7); made once a second.
    #[inline]
    pub fn date(&self) -> [u8; 29] {
        let wall = self.now().wall;
        let mut date = self.date.borrow_mut();
        if date.0 != wall {
            date.0 = wall;
            write_http_date(wall, &mut date.1);
        }
        date.1
    }

    /// [`SCRATCH_BYTES`] bytes of memory to read into, shared by the tasks of this worker, so that
    /// a connection that waits owns none.
    ///
    /// # Panics
    ///
    /// It is lent already: it must be given back before the next await.
    #[inline]
    pub fn scratch(&self) -> RefMut<'_, Box<[u8]>> {
        self.scratch.borrow_mut()
    }

    /// A number for a connection, which no other connection of any worker has.
    pub fn number(&self) -> u64 {
        let before = self.numbered.get();
        self.numbered.set(before + 1);
        before * self.network.workers() as u64 + self.index as u64
    }

    /// What a module keeps for this worker, made when it is first asked for. There is one.
    pub(crate) fn kept<T: Default + 'static>(&self) -> Rc<T> {
        let mut kept = self.kept.borrow_mut();
        let known = kept.as_ref().and_then(|it| Rc::clone(it).downcast().ok());
        known.unwrap_or_else(|| {
            let made = Rc::new(T::default());
            *kept = Some(Rc::clone(&made) as Rc<dyn Any>);
            made
        })
    }

    /// Has `waker` woken when a drain begins and when a listener is closed, so that a connection
    /// that waits for a request can be closed, and once `until` has passed, for which there is no
    /// timer. Says whether that has passed: up to a second late, never before. The place is the
    /// connection's until [`Self::forget_sleeper`].
    #[inline]
    pub fn remember_sleeper(
        &self,
        place: &mut SleeperPlace,
        waker: &Waker,
        until: Option<tokio::time::Instant>,
    ) -> bool {
        self.sleepers.borrow_mut().remember(place, waker, until)
    }

    /// Gives back the place of a connection that ends, if it has one.
    pub fn forget_sleeper(&self, place: &mut SleeperPlace) {
        self.sleepers.borrow_mut().forget(place);
    }

    /// Wakes every connection that waits for a request.
    pub(super) fn wake_sleepers(&self) {
        self.sleepers.borrow().wake();
    }

    /// Wakes those that have waited for as long as they may. Called each second.
    pub(super) fn tick_sleepers(&self) {
        self.sleepers.borrow_mut().tick(tokio::time::Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::NetworkSettings;

    /// Waits until the clock of the machine has moved on.
    fn pass_a_tick(worker: &Worker) {
        let before = worker.clock.tick();
        while worker.clock.tick() == before {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn time_stands_still_in_a_pass_of_a_task_and_nowhere_else() {
        let network = Network::new(NetworkSettings::default()).expect("a network");
        let worker = Worker::new(0, Arc::new(network));
        let before = worker.now().tick;
        pass_a_tick(&worker);
        assert!(worker.now().tick > before);
        let pass = worker.begin_pass();
        let first = worker.now().tick;
        pass_a_tick(&worker);
        assert_eq!(worker.now().tick, first);
        // what the caller has read counts from then on
        let read = worker.now_at(Instant::now()).tick;
        assert!(read > first);
        assert_eq!(worker.now().tick, read);
        drop(pass);
        pass_a_tick(&worker);
        let behind = worker.now().tick;
        assert!(behind > read);
        let _pass = worker.begin_pass();
        pass_a_tick(&worker);
        assert!(worker.now().tick > behind, "each pass reads the clock");
    }
}
