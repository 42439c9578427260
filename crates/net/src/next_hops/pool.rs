//! Idle connections to next hops: each worker keeps its own, and takes from another what it does
//! not have.
//!
//! Which one is taken, kept or closed is decided by `weir_policy::connections`. An idle connection
//! stays with the reactor of the worker that used it last; taking it from there costs two system
//! calls more, which is still far below opening one. A byte received on an idle connection makes it
//! unusable: it belongs to no request. A connection that another request waits for does not become
//! idle: it is handed over.

use super::connection::{Connection, IdleConnection};
use super::destination::Destination;
use super::hop_key::{ByHop, HopKey};
use super::rules::ConnectionRules;
use crate::workers::Worker;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_measure::{Metric, Reuse};
use weir_policy::connections::{
    CheckIn, CloseReason, ConnectionId, HopId, IdleConnections, IdleLimits, Mean, PreconnectDemand,
    Room,
};
use weir_policy::{Now, Tick};

/// Next hops that a pool has records of; beyond it those without idle connections are dropped.
const HOPS_MAX: usize = 4096;

/// The idle connections of one worker. Locked for list operations only.
#[derive(Debug)]
pub(crate) struct IdlePool {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    idle: IdleConnections,
    hops: ByHop<HopRecord>,
    next_hop: u32,
    connections: Vec<Option<IdleConnection>>,
    free: Vec<u32>,
    gone: Vec<ConnectionId>,
}

/// A next hop as one worker knows it.
#[derive(Clone, Copy, Debug)]
struct HopRecord {
    id: HopId,
    /// How long a connection to it is busy with one exchange.
    busy: Mean,
    /// When a request was last sent to it; noted only where connections are opened in advance.
    used: Option<Tick>,
    /// When opening a connection in advance last failed.
    advance_failed: Option<Tick>,
}

/// What became of a connection that was to be kept.
struct CheckInResult {
    /// Its number, if it was kept.
    id: Option<ConnectionId>,
    /// Why one was closed, it or another.
    closed: Option<CloseReason>,
}

impl IdlePool {
    /// A pool with the share of `limits` that one of so many workers has.
    pub(crate) fn new(limits: IdleLimits, workers: usize) -> Self {
        let share = |max: usize| {
            if max == 0 { 0 } else { (max / workers).max(1) }
        };
        Self {
            inner: Mutex::new(Inner {
                idle: IdleConnections::new(IdleLimits {
                    per_hop_max: share(limits.per_hop_max),
                    total_max: share(limits.total_max),
                    ..limits
                }),
                hops: ByHop::default(),
                next_hop: 0,
                connections: Vec::new(),
                free: Vec::new(),
                gone: Vec::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Idle connections held.
    pub(crate) fn len(&self) -> usize {
        self.lock().idle.len()
    }
}

impl Inner {
    /// The newest idle connection to `hop`; those found past their limit are closed.
    fn check_out(&mut self, now: Now, hop: &HopKey) -> (Option<IdleConnection>, usize) {
        let Some(id) = self.hops.get(hop).map(|known| known.id) else {
            return (None, 0);
        };
        let mut gone = std::mem::take(&mut self.gone);
        let taken = self.idle.check_out(now, id, &mut gone);
        let expired = gone.len();
        self.close(&mut gone);
        (taken.and_then(|id| self.take(id)), expired)
    }

    fn take(&mut self, id: ConnectionId) -> Option<IdleConnection> {
        let idle = self.connections.get_mut(id.0 as usize)?.take();
        self.free.push(id.0);
        idle
    }

    /// Takes a connection that is still idle.
    fn take_back(&mut self, id: ConnectionId) -> Option<IdleConnection> {
        if self.idle.remove(id) {
            self.take(id)
        } else {
            None
        }
    }

    fn close(&mut self, gone: &mut Vec<ConnectionId>) {
        for id in gone.drain(..) {
            self.take(id);
        }
        self.gone = std::mem::take(gone);
    }

    /// Keeps a connection that became idle, if the policy permits. `busy_ms` is for how long it was
    /// busy with one exchange, if it was.
    fn check_in(&mut self, now: Now, idle: IdleConnection, busy_ms: Option<u64>) -> CheckInResult {
        let hop = self.note(&idle.hop, |known| {
            if let Some(ms) = busy_ms {
                known.busy.note_ms(ms);
            }
        });
        let opened = idle.uses.opened;
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.connections.push(None);
                u32::try_from(self.connections.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let id = ConnectionId(at);
        if let Some(place) = self.connections.get_mut(at as usize) {
            *place = Some(idle);
        }
        let (close, why) = match self.idle.check_in(now, hop, id, opened) {
            CheckIn::Kept => {
                return CheckInResult {
                    id: Some(id),
                    closed: None,
                };
            }
            CheckIn::KeptFor { close, why } => (close, why),
            CheckIn::NotKept { why } => (id, why),
        };
        self.take(close);
        CheckInResult {
            id: (close != id).then_some(id),
            closed: Some(why),
        }
    }

    /// Changes the record of a next hop; its number.
    fn note(&mut self, hop: &HopKey, enter: impl FnOnce(&mut HopRecord)) -> HopId {
        if let Some(known) = self.hops.get_mut(hop) {
            enter(known);
            return known.id;
        }
        if self.hops.len() >= HOPS_MAX {
            let used: Vec<HopKey> = self
                .connections
                .iter()
                .flatten()
                .map(|idle| idle.hop.clone())
                .collect();
            self.hops.retain(|hop, _| used.contains(hop));
        }
        let mut known = HopRecord {
            id: HopId(self.next_hop),
            busy: Mean::default(),
            used: None,
            advance_failed: None,
        };
        enter(&mut known);
        self.next_hop = self.next_hop.wrapping_add(1);
        self.hops.insert(hop.clone(), known);
        known.id
    }

    /// Closes what has expired, and what the next hop has closed or spoken on; how many of each.
    fn sweep(&mut self, now: Now) -> (usize, usize) {
        let mut gone = std::mem::take(&mut self.gone);
        self.idle.expire(now, &mut gone);
        let expired = gone.len();
        for (at, idle) in self.connections.iter().enumerate() {
            let id = ConnectionId(u32::try_from(at).unwrap_or(u32::MAX));
            if let Some(idle) = idle
                && !idle.stream.is_quiet()
                && self.idle.remove(id)
            {
                gone.push(id);
            }
        }
        let unusable = gone.len() - expired;
        self.close(&mut gone);
        (expired, unusable)
    }
}

/// Takes an idle connection for `destination`: this worker's newest, else another worker's.
pub(super) fn check_out(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
) -> Option<Connection> {
    let now = worker.now();
    for at in own_first(worker) {
        loop {
            let (idle, expired) = worker.network().pools()[at]
                .lock()
                .check_out(now, &destination.hop);
            worker
                .counters()
                .add(Metric::ConnectionCacheExpiries, expired as u64);
            let Some(idle) = idle else {
                break;
            };
            match usable(idle, rules, destination, at != worker.index()) {
                Some(mut connection) => {
                    worker.counters().inc(Metric::ConnectionCache(Reuse::Hit));
                    connection.begin(worker, now, false);
                    return Some(connection);
                }
                None => worker.counters().inc(Metric::ConnectionCacheUnusable),
            }
        }
    }
    None
}

/// The numbers of all pools, this worker's in front.
fn own_first(worker: &Worker) -> impl Iterator<Item = usize> + use<> {
    let (own, all) = (worker.index(), worker.network().workers());
    (0..all).map(move |step| (own + step) % all)
}

/// The connection if nothing arrived on it while it was idle, its address is still allowed, and
/// what it leads to has proved its name to those that are trusted now: a reload may have changed
/// both;
/// `moves` if it is registered with another worker's reactor.
pub(super) fn usable(
    idle: IdleConnection,
    rules: &ConnectionRules,
    destination: &Destination,
    moves: bool,
) -> Option<Connection> {
    let allowed = destination.check_rules(rules, idle.address).is_ok();
    if !allowed || !idle.stream.is_trusted(&idle.hop, rules) || !idle.stream.is_quiet() {
        return None;
    }
    let stream = if moves {
        idle.stream.moved_here().ok()?
    } else {
        idle.stream
    };
    Some(Connection {
        stream,
        address: idle.address,
        hop: idle.hop,
        reused: true,
        permit: idle.permit,
        uses: idle.uses,
        link: None,
    })
}

/// Gives back a connection whose exchange is over and which can be used again: to the request that
/// waits for it, else to the next one.
///
/// Nothing of the exchange may be left to read or to write: a byte that arrives later makes the
/// connection unusable. One that is for one request is closed.
pub fn check_in(worker: &Worker, connection: Connection) {
    if connection.hop.is_for_one_request() {
        return;
    }
    let now = worker.now();
    let busy_ms = now.tick.ms_since(connection.uses.busy_since);
    keep(worker, now, connection.into_idle(), Some(busy_ms));
}

/// Hands an idle connection to a request that waits for one, or keeps it.
///
/// A request may begin to wait while the connection is put among the idle ones. It looks there once
/// more when its wait begins; and if a wait did begin meanwhile, the connection is taken back and
/// offered again here, in case the request looked too early.
pub(super) fn keep(worker: &Worker, now: Now, idle: IdleConnection, busy_ms: Option<u64>) {
    let open = worker.network().open_connections();
    let (mut idle, mut busy_ms) = (idle, busy_ms);
    loop {
        let begun = open.waits_begun();
        if open.has_waiters() {
            match hand(worker, idle, &mut busy_ms) {
                Some(back) => idle = back,
                None => return,
            }
        }
        let kept = own(worker).check_in(now, idle, busy_ms.take());
        match kept.closed {
            Some(CloseReason::PerHopMax | CloseReason::TotalMax) => {
                worker.counters().inc(Metric::ConnectionCacheEvictions);
            }
            Some(CloseReason::IdleTimeout | CloseReason::Lifetime) => {
                worker.counters().inc(Metric::ConnectionCacheExpiries);
            }
            None => {}
        }
        let missed = kept.id.filter(|_| open.waits_begun() != begun);
        match missed.and_then(|id| own(worker).take_back(id)) {
            Some(back) => idle = back,
            None => break,
        }
    }
    open.announce();
}

/// Hands a connection to the first request that waits for one to its next hop; returned if none
/// does.
fn hand(
    worker: &Worker,
    idle: IdleConnection,
    busy_ms: &mut Option<u64>,
) -> Option<IdleConnection> {
    let is_old = {
        let mut pool = own(worker);
        pool.note(&idle.hop, |known| {
            if let Some(ms) = busy_ms.take() {
                known.busy.note_ms(ms);
            }
        });
        pool.idle.is_old(worker.now(), idle.uses.opened)
    };
    if is_old {
        // it is closed instead of kept
        return Some(idle);
    }
    worker.network().open_connections().hand(idle)
}

fn own(worker: &Worker) -> MutexGuard<'_, Inner> {
    worker.network().pools()[worker.index()].lock()
}

/// How long connections to a next hop are busy with one exchange, microseconds, as far as any
/// worker knows.
pub(super) fn busy_us(worker: &Worker, hop: &HopKey) -> Option<u64> {
    own_first(worker).find_map(|at| {
        let pool = worker.network().pools()[at].lock();
        pool.hops.get(hop).and_then(|known| known.busy.us())
    })
}

/// A request was sent to a next hop to which connections are opened in advance.
pub(super) fn note_used(worker: &Worker, hop: &HopKey) {
    let now = worker.now().tick;
    own(worker).note(hop, |known| known.used = Some(now));
}

/// Opening a connection in advance has failed.
pub(super) fn note_advance_failed(worker: &Worker, hop: &HopKey) {
    let now = worker.now().tick;
    own(worker).note(hop, |known| known.advance_failed = Some(now));
}

/// The facts by which it is decided whether one more connection is opened in advance, while so many
/// are being opened.
pub(super) fn advance_demand(
    worker: &Worker,
    hop: &HopKey,
    being_opened: usize,
) -> PreconnectDemand {
    let (mut idle, mut used, mut failed, mut has_room) = (0, None, None, false);
    for at in own_first(worker) {
        let pool = worker.network().pools()[at].lock();
        let Some(known) = pool.hops.get(hop) else {
            continue;
        };
        idle += pool.idle.idle(known.id);
        if at == worker.index() {
            (used, failed) = (known.used, known.advance_failed);
            has_room = pool.idle.has_room(known.id);
        }
    }
    PreconnectDemand {
        ready: idle + being_opened,
        used,
        failed,
        has_room,
    }
}

/// Closes an idle connection for the place it holds; `false` if there is none.
pub(super) fn close_one(worker: &Worker, hop: &HopKey, room: Room) -> bool {
    match room {
        Room::AnyHop => close_oldest(worker),
        Room::SameHop => close_by(worker, |pool| {
            let known = pool.hops.get(hop)?;
            pool.idle.oldest_of(known.id)
        }),
    }
}

/// Closes the oldest idle connection of this worker, or of another; `false` if there is none. Then
/// one that carries many requests and has none is to be closed by its own task: its place is
/// announced ([`OpenConnections::freed`](super::OpenConnections::freed)).
pub(super) fn close_oldest(worker: &Worker) -> bool {
    let is_closed = close_by(worker, |pool| pool.idle.oldest_connection());
    if !is_closed {
        worker.network().open_connections().close_multiplexed();
    }
    is_closed
}

fn close_by(worker: &Worker, choose: impl Fn(&Inner) -> Option<ConnectionId>) -> bool {
    for at in own_first(worker) {
        let mut pool = worker.network().pools()[at].lock();
        let chosen = choose(&pool);
        if let Some(idle) = chosen.and_then(|id| pool.take_back(id)) {
            drop(pool);
            drop(idle);
            worker.counters().inc(Metric::ConnectionCacheEvictions);
            return true;
        }
    }
    false
}

/// Closes the idle connections of this worker that are too old, were closed by the next hop, or
/// received something; to be called about once a second.
pub(crate) fn sweep(worker: &Worker) {
    let (expired, unusable) = worker.network().pools()[worker.index()]
        .lock()
        .sweep(worker.now());
    let counters = worker.counters();
    counters.add(Metric::ConnectionCacheExpiries, expired as u64);
    counters.add(Metric::ConnectionCacheUnusable, unusable as u64);
}
