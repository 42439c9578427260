//! Idle connections to next hops: each worker keeps its own, and takes from another what it does
//! not have.
//!
//! Which one is taken, kept or closed is decided by `weir_policy::connections`. An idle connection
//! stays with the reactor of the worker that used it last; taking it from there costs two system
//! calls more, which is still far below opening one. A byte received on an idle connection makes it
//! unusable: it answers nothing that was asked. One that somebody waits for does not come here: it
//! is handed over.

use crate::next_hops::destination::{Destination, HopKey};
use crate::next_hops::next_hop::Connection;
use crate::next_hops::open_connections::Permit;
use crate::next_hops::rules::ConnectionRules;
use crate::next_hops::uses::Uses;
use crate::worker::Worker;
use rustix::net::{RecvFlags, recv};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;
use weir_measure::{Metric, Reuse};
use weir_policy::connections::{
    AheadDemand, CheckIn, CloseReason, ConnectionId, HopId, IdleConnections, IdleLimits, Mean, Room,
};
use weir_policy::{Now, Tick};

/// Next hops a pool has numbers for; beyond it those without idle connections are forgotten.
const HOPS_MAX: usize = 4096;

/// The idle connections of one worker. Locked for list operations only.
#[derive(Debug)]
pub struct Pool {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    idle: IdleConnections,
    hops: HashMap<HopKey, Known>,
    next_hop: u32,
    sockets: Vec<Option<Socket>>,
    free: Vec<u32>,
    gone: Vec<ConnectionId>,
}

/// A next hop as one worker knows it.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: HopId,
    /// How long a connection to it is busy with one exchange.
    busy: Mean,
    /// When a request last went there, as far as somebody wants to know.
    used: Option<Tick>,
    /// When opening a connection ahead last failed.
    ahead_failed: Option<Tick>,
}

/// What became of a connection that fell idle.
struct Kept {
    /// Its number, if it was kept.
    id: Option<ConnectionId>,
    /// Why one was closed, it or another.
    closed: Option<CloseReason>,
}

/// A connection that nobody uses.
#[derive(Debug)]
pub struct Socket {
    pub stream: TcpStream,
    pub address: SocketAddr,
    pub hop: HopKey,
    pub permit: Permit,
    pub uses: Box<Uses>,
}

impl Pool {
    /// A pool with the share of `limits` that one of so many workers has.
    pub fn new(limits: IdleLimits, workers: usize) -> Self {
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
                hops: HashMap::new(),
                next_hop: 0,
                sockets: Vec::new(),
                free: Vec::new(),
                gone: Vec::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Idle connections held.
    pub fn len(&self) -> usize {
        self.lock().idle.len()
    }
}

impl Inner {
    /// The newest idle connection to `hop`; those found past their limit are closed.
    fn check_out(&mut self, now: Now, hop: &HopKey) -> (Option<Socket>, usize) {
        let Some(id) = self.hops.get(hop).map(|known| known.id) else {
            return (None, 0);
        };
        let mut gone = std::mem::take(&mut self.gone);
        let taken = self.idle.check_out(now, id, &mut gone);
        let expired = gone.len();
        self.close(&mut gone);
        (taken.and_then(|id| self.take(id)), expired)
    }

    fn take(&mut self, id: ConnectionId) -> Option<Socket> {
        let socket = self.sockets.get_mut(id.0 as usize)?.take();
        self.free.push(id.0);
        socket
    }

    /// Takes a connection that is still idle.
    fn take_back(&mut self, id: ConnectionId) -> Option<Socket> {
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

    /// Keeps a connection that fell idle, if the policy wants to.
    fn check_in(&mut self, now: Now, socket: Socket, busy_ms: Option<u64>) -> Kept {
        let hop = self.note(&socket.hop, |known| {
            if let Some(ms) = busy_ms {
                known.busy.note_ms(ms);
            }
        });
        let opened = socket.uses.opened;
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.sockets.push(None);
                u32::try_from(self.sockets.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let id = ConnectionId(at);
        if let Some(place) = self.sockets.get_mut(at as usize) {
            *place = Some(socket);
        }
        let (close, why) = match self.idle.check_in(now, hop, id, opened) {
            CheckIn::Kept => {
                return Kept {
                    id: Some(id),
                    closed: None,
                };
            }
            CheckIn::KeptFor { close, why } => (close, why),
            CheckIn::NotKept { why } => (id, why),
        };
        self.take(close);
        Kept {
            id: (close != id).then_some(id),
            closed: Some(why),
        }
    }

    /// Enters something about a next hop; its number.
    fn note(&mut self, hop: &HopKey, enter: impl FnOnce(&mut Known)) -> HopId {
        if let Some(known) = self.hops.get_mut(hop) {
            enter(known);
            return known.id;
        }
        if self.hops.len() >= HOPS_MAX {
            let used: Vec<HopKey> = self
                .sockets
                .iter()
                .flatten()
                .map(|socket| socket.hop.clone())
                .collect();
            self.hops.retain(|hop, _| used.contains(hop));
        }
        let mut known = Known {
            id: HopId(self.next_hop),
            busy: Mean::default(),
            used: None,
            ahead_failed: None,
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
        for (at, socket) in self.sockets.iter().enumerate() {
            let id = ConnectionId(u32::try_from(at).unwrap_or(u32::MAX));
            if let Some(socket) = socket
                && !is_quiet(&socket.stream)
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
pub fn check_out(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
) -> Option<Connection> {
    let now = worker.now();
    for at in own_first(worker) {
        loop {
            let (socket, expired) = worker.network().pools()[at]
                .lock()
                .check_out(now, &destination.hop);
            worker
                .counters()
                .add(Metric::ConnectionCacheExpiries, expired as u64);
            let Some(socket) = socket else {
                break;
            };
            match usable(socket, rules, destination, at != worker.index()) {
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

/// The connection if nothing arrived on it while it was idle and its address is still allowed;
/// `moves` if it is with another worker's reactor.
pub fn usable(
    socket: Socket,
    rules: &ConnectionRules,
    destination: &Destination,
    moves: bool,
) -> Option<Connection> {
    let allowed = destination.check_rules(rules, socket.address).is_ok();
    if !allowed || !is_quiet(&socket.stream) {
        return None;
    }
    let stream = if moves {
        TcpStream::from_std(socket.stream.into_std().ok()?).ok()?
    } else {
        socket.stream
    };
    Some(Connection {
        stream,
        address: socket.address,
        hop: socket.hop,
        reused: true,
        permit: socket.permit,
        uses: socket.uses,
    })
}

/// Whether a connection is open and has nothing to read: asked of the kernel, since the reactor may
/// not have looked.
pub fn is_quiet(stream: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    recv(stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)
        .is_err_and(|error| error == rustix::io::Errno::AGAIN)
}

/// An exchange is over and its connection can be used again: by who waits for it, else by the next
/// request.
pub fn check_in(worker: &Worker, connection: Connection) {
    let now = worker.now();
    let busy_ms = now.tick.ms_since(connection.uses.since);
    keep(worker, now, connection.rest(), Some(busy_ms));
}

/// Gives a connection that nobody uses to who waits for one, or keeps it.
///
/// Somebody may begin to wait just while it is put among the idle ones. Who begins looks there once
/// more; and if somebody did begin, it is looked for here whether there is anybody who missed it.
pub fn keep(worker: &Worker, now: Now, socket: Socket, busy_ms: Option<u64>) {
    let open = worker.network().open_connections();
    let (mut socket, mut busy_ms) = (socket, busy_ms);
    loop {
        let begun = open.waits_begun();
        if open.has_waiters() {
            match hand(worker, socket, &mut busy_ms) {
                Some(back) => socket = back,
                None => return,
            }
        }
        let kept = own(worker).check_in(now, socket, busy_ms.take());
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
            Some(back) => socket = back,
            None => break,
        }
    }
    open.announce();
}

/// Gives a connection to the first who waits for one to its next hop; returned if nobody does.
fn hand(worker: &Worker, socket: Socket, busy_ms: &mut Option<u64>) -> Option<Socket> {
    let is_old = {
        let mut pool = own(worker);
        pool.note(&socket.hop, |known| {
            if let Some(ms) = busy_ms.take() {
                known.busy.note_ms(ms);
            }
        });
        pool.idle.is_old(worker.now(), socket.uses.opened)
    };
    if is_old {
        // it is closed as one that falls idle
        return Some(socket);
    }
    worker.network().open_connections().hand(socket)
}

fn own(worker: &Worker) -> MutexGuard<'_, Inner> {
    worker.network().pools()[worker.index()].lock()
}

/// How long connections to a next hop are busy with one exchange, microseconds, as far as any
/// worker knows.
pub fn busy_us(worker: &Worker, hop: &HopKey) -> Option<u64> {
    own_first(worker).find_map(|at| {
        let pool = worker.network().pools()[at].lock();
        pool.hops.get(hop).and_then(|known| known.busy.us())
    })
}

/// A request went to a next hop that connections are opened to ahead.
pub fn note_used(worker: &Worker, hop: &HopKey) {
    let now = worker.now().tick;
    own(worker).note(hop, |known| known.used = Some(now));
}

/// Opening a connection ahead has failed.
pub fn ahead_failed(worker: &Worker, hop: &HopKey) {
    let now = worker.now().tick;
    own(worker).note(hop, |known| known.ahead_failed = Some(now));
}

/// What there is to decide on opening one more connection ahead, with so many under way.
pub fn ahead_demand(worker: &Worker, hop: &HopKey, under_way: usize) -> AheadDemand {
    let (mut idle, mut used, mut failed, mut has_room) = (0, None, None, false);
    for at in own_first(worker) {
        let pool = worker.network().pools()[at].lock();
        let Some(known) = pool.hops.get(hop) else {
            continue;
        };
        idle += pool.idle.idle(known.id);
        if at == worker.index() {
            (used, failed) = (known.used, known.ahead_failed);
            has_room = pool.idle.has_room(known.id);
        }
    }
    AheadDemand {
        ready: idle + under_way,
        used,
        failed,
        has_room,
    }
}

/// Closes an idle connection for the place it holds; `false` if there is none.
pub fn close_one(worker: &Worker, hop: &HopKey, room: Room) -> bool {
    match room {
        Room::AnyHop => close_oldest(worker),
        Room::SameHop => close_by(worker, |pool| {
            let known = pool.hops.get(hop)?;
            pool.idle.oldest_of(known.id)
        }),
    }
}

/// Closes the oldest idle connection of this worker, or of another; `false` if there is none.
pub fn close_oldest(worker: &Worker) -> bool {
    close_by(worker, |pool| pool.idle.oldest_connection())
}

fn close_by(worker: &Worker, choose: impl Fn(&Inner) -> Option<ConnectionId>) -> bool {
    for at in own_first(worker) {
        let mut pool = worker.network().pools()[at].lock();
        let chosen = choose(&pool);
        if let Some(socket) = chosen.and_then(|id| pool.take_back(id)) {
            drop(pool);
            drop(socket);
            worker.counters().inc(Metric::ConnectionCacheEvictions);
            return true;
        }
    }
    false
}

/// Closes what need not wait for its next use; called about once a second.
pub fn sweep(worker: &Worker) {
    let (expired, unusable) = worker.network().pools()[worker.index()]
        .lock()
        .sweep(worker.now());
    let counters = worker.counters();
    counters.add(Metric::ConnectionCacheExpiries, expired as u64);
    counters.add(Metric::ConnectionCacheUnusable, unusable as u64);
}
