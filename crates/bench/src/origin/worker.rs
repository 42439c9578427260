//! What the connections of one thread share, and what all threads do.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Semaphore;
use tokio::time::Instant;
use weir_semantics::write_http_date;
use weir_workload::{Scenario, Site, UnixSeconds};

use super::OriginPlan;
use super::by_target::FetchLog;
use super::counts::OriginCounts;
use super::id_set::{IdSet, IdStatus};
use crate::mark::Id;

/// Bytes of a thread's read buffer, and of its write buffer.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

/// The state that all threads share.
#[derive(Debug)]
pub(super) struct OriginState {
    pub(super) scenario: Arc<Scenario>,
    pub(super) site: Site,
    pub(super) seed: u64,
    /// Of an origin whose targets describe their responses.
    pub(super) fetch_log: Option<FetchLog>,
    /// One for each connection that may be open.
    pub(super) places: Arc<Semaphore>,
    ids: Mutex<IdSet>,
    /// The newest phase that an id has named.
    phase: AtomicU8,
    /// Connections so far: the number of the next one.
    connections: AtomicU64,
    /// When the run begins; before that is known, when the origin started.
    begins: Mutex<Instant>,
}

/// One thread.
pub(super) struct Worker {
    pub(super) shared: Arc<OriginState>,
    /// Memory to read into.
    pub(super) input: RefCell<Box<[u8]>>,
    /// Memory to make content in.
    pub(super) output: RefCell<Box<[u8]>>,
    /// Memory to make heads in.
    pub(super) head: Cell<Vec<u8>>,
    counts: Arc<Mutex<OriginCounts>>,
    date: Cell<(UnixSeconds, [u8; 29])>,
}

impl OriginState {
    pub(super) fn new(plan: &OriginPlan, fetch_log: Option<FetchLog>) -> Self {
        let places = usize::try_from(plan.connections_max).unwrap_or(usize::MAX);
        Self {
            site: Site::new(&plan.scenario, plan.seed),
            scenario: Arc::clone(&plan.scenario),
            seed: plan.seed,
            fetch_log,
            places: Arc::new(Semaphore::new(places)),
            ids: Mutex::new(IdSet::new(plan.shares)),
            phase: AtomicU8::new(0),
            connections: AtomicU64::new(0),
            begins: Mutex::new(Instant::now()),
        }
    }

    /// Notes a request's id: how it was known, and the phase that the request belongs to.
    pub(super) fn see(&self, id: Option<Id>) -> (IdStatus, u8) {
        let sight = id.map_or(IdStatus::Outside, |id| lock(&self.ids).see(id));
        match (sight, id) {
            (IdStatus::First | IdStatus::Repeated, Some(id)) => {
                self.phase.fetch_max(id.phase, Ordering::Relaxed);
                (sight, id.phase)
            }
            _ => (IdStatus::Outside, self.phase.load(Ordering::Relaxed)),
        }
    }

    /// The number of a new connection, from 0.
    pub(super) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// The run begins then.
    pub(super) fn begin(&self, at: Instant) {
        *lock(&self.begins) = at;
    }

    /// Seconds since the run began, or since the origin started if the run's start is not known.
    /// Negative before.
    pub(super) fn elapsed_s(&self, now: Instant) -> f64 {
        let begins = *lock(&self.begins);
        if now >= begins {
            (now - begins).as_secs_f64()
        } else {
            -(begins - now).as_secs_f64()
        }
    }
}

impl Worker {
    pub(super) fn new(shared: Arc<OriginState>, counts: Arc<Mutex<OriginCounts>>) -> Self {
        let buffer = || RefCell::new(vec![0; BUFFER_BYTES].into_boxed_slice());
        Self {
            shared,
            input: buffer(),
            output: buffer(),
            head: Cell::default(),
            counts,
            date: Cell::new((UnixSeconds(i64::MIN), [b' '; 29])),
        }
    }

    /// This thread's counts. Held over a write, so that no peer that has received what was written
    /// reads counts without it.
    pub(super) fn counts(&self) -> MutexGuard<'_, OriginCounts> {
        lock(&self.counts)
    }

    /// `at` as an HTTP-date; formatted again for each second.
    pub(super) fn date(&self, at: UnixSeconds) -> [u8; 29] {
        let (made_for, mut text) = self.date.get();
        if made_for != at {
            write_http_date(at, &mut text);
            self.date.set((at, text));
        }
        text
    }
}

/// The wall clock, `after` from now.
pub(super) fn wall(after: Duration) -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // before 1970 it is 1970
    let seconds = since.unwrap_or_default().saturating_add(after).as_secs();
    UnixSeconds(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// The same in microseconds: all processes of a machine have this clock in common.
pub(super) fn wall_us(after: Duration) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.unwrap_or_default().saturating_add(after).as_micros();
    u64::try_from(micros).unwrap_or(u64::MAX)
}

/// Counts and bits are right after every step: what panicked elsewhere has not spoilt them.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
