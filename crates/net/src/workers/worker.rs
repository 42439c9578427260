//! One worker: a thread with its own runtime, counters, scratch memory and idle connections.

use super::network::Network;
use super::reset_budget::ResetBudget;
use super::sleepers::{SleeperPlace, Sleepers};
use super::stream_places::{ClientStreams, StreamPlaces};
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
            date: RefCell::new((Timestamp(i64::MIN), [b' '; 29])),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            sleepers: RefCell::new(Sleepers::new()),
            numbered: Cell::new(0),
            kept: RefCell::default(),
            stream_places: Rc::default(),
            resets: Rc::default(),
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
    /// passed.
    #[inline]
    pub fn now(&self) -> Now {
        self.now_with(self.clock.tick())
    }

    /// The time at a `moment` that the caller has read from the machine's clock just now: not a
    /// second time for one request.
    #[inline]
    pub fn now_at(&self, moment: Instant) -> Now {
        self.now_with(self.clock.tick_at(moment))
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
