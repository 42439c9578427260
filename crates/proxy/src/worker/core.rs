//! One worker: a thread with its own runtime, listeners, counters, scratch memory and idle
//! connections.

use crate::log::report::LogSinks;
use crate::log::served::ServedRequest;
use crate::settings::Settings;
use crate::worker::shared::Shared;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use weir_measure::Counters;
use weir_policy::{Now, Tick};
use weir_semantics::{Timestamp, write_http_date};

/// Bytes lent to whoever reads; one buffer a worker, so that a connection that waits owns none.
pub(crate) const SCRATCH_BYTES: usize = 64 * 1024;

/// The wall clock may be this late, milliseconds.
const WALL_MS: u64 = 10;

/// What the tasks of one thread share. Nothing here is locked: a task borrows between two awaits
/// only.
pub(crate) struct Worker {
    me: Weak<Self>,
    /// Position among the workers, from 0.
    pub(crate) index: usize,
    /// What all workers share.
    pub(crate) shared: Arc<Shared>,
    /// Memory to read into.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    /// Memory to make responses in.
    pub(crate) output: RefCell<Vec<u8>>,
    /// Memory for what is reported when it is sent.
    pub(crate) served: RefCell<Vec<ServedRequest>>,
    settings: RefCell<arc_swap::Cache<Arc<arc_swap::ArcSwap<Settings>>, Arc<Settings>>>,
    sleepers: RefCell<Sleepers>,
    date: RefCell<(Timestamp, [u8; 29])>,
    wall: Cell<Now>,
    /// Connections of clients open on this worker.
    pub(crate) clients: Cell<usize>,
    /// Connections that were given a number.
    numbered: Cell<u64>,
}

/// Wakers of the connections that wait for a request, so that a drain can close them.
#[derive(Default)]
struct Sleepers {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<Shared>) -> Rc<Self> {
        let settings = arc_swap::Cache::new(Arc::clone(&shared.settings));
        Rc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            index,
            shared,
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            output: RefCell::new(Vec::with_capacity(SCRATCH_BYTES)),
            served: RefCell::default(),
            settings: RefCell::new(settings),
            sleepers: RefCell::default(),
            date: RefCell::new((Timestamp(i64::MIN), [b' '; 29])),
            wall: Cell::new(Now {
                wall: Timestamp(i64::MIN),
                tick: Tick(0),
            }),
            clients: Cell::new(0),
            numbered: Cell::new(0),
        })
    }

    /// A number for a connection, which no other has, of this worker or another.
    pub(crate) fn number(&self) -> u64 {
        let before = self.numbered.get();
        self.numbered.set(before + 1);
        before * self.shared.pools.len() as u64 + self.index as u64
    }

    /// For a task that may outlive whoever starts it.
    pub(crate) fn me(&self) -> Option<Rc<Self>> {
        self.me.upgrade()
    }

    /// The settings in force; a request keeps what it started with.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(self.settings.borrow_mut().load())
    }

    /// The time. The wall clock counts whole seconds, so the machine's is asked only when a few
    /// milliseconds have passed.
    pub(crate) fn now(&self) -> Now {
        let clock = &self.shared.clock;
        let tick = clock.tick();
        let known = self.wall.get();
        if !clock.is_manual() && known.wall.0 != i64::MIN && tick.ms_since(known.tick) < WALL_MS {
            return Now {
                wall: known.wall,
                tick,
            };
        }
        let now = self.shared.clock.now();
        self.wall.set(now);
        now
    }

    /// The time as an HTTP-date; made once a second.
    pub(crate) fn date(&self) -> [u8; 29] {
        let wall = self.now().wall;
        let mut date = self.date.borrow_mut();
        if date.0 != wall {
            date.0 = wall;
            write_http_date(wall, &mut date.1);
        }
        date.1
    }

    /// This worker's numbers; nobody else writes them.
    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    /// Where this worker's requests are written down.
    pub(crate) fn log_sinks(&self) -> LogSinks<'_> {
        LogSinks {
            counters: self.counters(),
            access_log: &self.shared.access_log,
            recorder: self.shared.record.as_ref(),
        }
    }

    /// Remembers how to wake a connection that waits; the place is the connection's until
    /// `forget_sleeper`.
    pub(crate) fn remember_sleeper(&self, place: &mut Option<usize>, waker: &Waker) {
        let mut sleepers = self.sleepers.borrow_mut();
        if let Some(at) = *place {
            if !sleepers.wakers[at]
                .as_ref()
                .is_some_and(|known| known.will_wake(waker))
            {
                sleepers.wakers[at] = Some(waker.clone());
            }
            return;
        }
        let at = sleepers.free.pop().unwrap_or(sleepers.wakers.len());
        if at == sleepers.wakers.len() {
            sleepers.wakers.push(None);
        }
        sleepers.wakers[at] = Some(waker.clone());
        *place = Some(at);
    }

    /// The connection ends.
    pub(crate) fn forget_sleeper(&self, place: Option<usize>) {
        if let Some(at) = place {
            let mut sleepers = self.sleepers.borrow_mut();
            sleepers.wakers[at] = None;
            sleepers.free.push(at);
        }
    }

    /// Wakes every connection that waits for a request.
    pub(crate) fn wake_sleepers(&self) {
        for waker in self.sleepers.borrow().wakers.iter().flatten() {
            waker.wake_by_ref();
        }
    }
}
