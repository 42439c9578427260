//! Idle connections to next hops: each worker keeps its own, and takes from another what it does not have.
//!
//! Which one is taken, kept or closed is decided by `weir_policy::connections`. An idle connection stays with the
//! reactor of the worker that used it last; taking it from there costs two system calls more, which is still far below
//! opening one. A byte received on an idle connection makes it unusable: it answers nothing that was asked.

use crate::destination::{Destination, HopKey};
use crate::next_hop::Connection;
use crate::open_connections::Permit;
use crate::settings::Settings;
use crate::worker::Worker;
use rustix::net::{RecvFlags, recv};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;
use weir_measure::{Metric, Reuse};
use weir_policy::Now;
use weir_policy::connections::{CheckIn, ConnectionId, HopId, IdleConnections, IdleLimits};

/// Next hops a pool has numbers for; beyond it those without idle connections are forgotten.
const HOPS_MAX: usize = 4096;

/// The idle connections of one worker. Locked for list operations only.
#[derive(Debug)]
pub(crate) struct Pool {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    idle: IdleConnections,
    hops: HashMap<HopKey, HopId>,
    next_hop: u32,
    sockets: Vec<Option<Socket>>,
    free: Vec<u32>,
    gone: Vec<ConnectionId>,
}

#[derive(Debug)]
struct Socket {
    stream: TcpStream,
    address: SocketAddr,
    hop: HopKey,
    permit: Permit,
}

impl Pool {
    /// A pool with a worker's share of the limits.
    pub(crate) fn new(settings: &Settings, workers: usize) -> Self {
        let limits = &settings.config.limits;
        let share = |max: u32| {
            if max == 0 {
                0
            } else {
                (max as usize / workers).max(1)
            }
        };
        Self {
            inner: Mutex::new(Inner {
                idle: IdleConnections::new(IdleLimits {
                    per_hop_max: share(limits.idle_per_next_hop_max),
                    total_max: share(limits.idle_next_hop_connections_max),
                    idle_timeout_ms: limits.next_hop_idle.as_millis(),
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
    pub(crate) fn len(&self) -> usize {
        self.lock().idle.len()
    }
}

impl Inner {
    /// The newest idle connection to `hop`; those found past their limit are closed.
    fn check_out(&mut self, now: Now, hop: &HopKey) -> (Option<Socket>, usize) {
        let Some(id) = self.hops.get(hop).copied() else {
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

    fn close(&mut self, gone: &mut Vec<ConnectionId>) {
        for id in gone.drain(..) {
            self.take(id);
        }
        self.gone = std::mem::take(gone);
    }

    fn check_in(&mut self, now: Now, socket: Socket) -> usize {
        let hop = self.number(&socket.hop);
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
        match self.idle.check_in(now, hop, id) {
            CheckIn::Kept => 0,
            CheckIn::KeptFor { close, .. } => {
                self.take(close);
                1
            }
            CheckIn::NotKept { .. } => {
                self.take(id);
                1
            }
        }
    }

    fn number(&mut self, hop: &HopKey) -> HopId {
        if let Some(id) = self.hops.get(hop) {
            return *id;
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
        let id = HopId(self.next_hop);
        self.next_hop = self.next_hop.wrapping_add(1);
        self.hops.insert(hop.clone(), id);
        id
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
pub(crate) fn check_out(
    worker: &Worker,
    settings: &Settings,
    destination: &Destination,
) -> Option<Connection> {
    let now = worker.now();
    let pools = &worker.shared.pools;
    let own = worker.index;
    let order = (0..pools.len()).map(|step| (own + step) % pools.len());
    for at in order {
        loop {
            let (socket, expired) = pools[at].lock().check_out(now, &destination.hop);
            worker
                .counters()
                .add(Metric::ConnectionCacheExpiries, expired as u64);
            let Some(socket) = socket else {
                break;
            };
            match usable(socket, settings, destination, at != own) {
                Some(connection) => {
                    worker.counters().inc(Metric::ConnectionCache(Reuse::Hit));
                    return Some(connection);
                }
                None => worker.counters().inc(Metric::ConnectionCacheUnusable),
            }
        }
    }
    None
}

/// The connection if nothing arrived on it while it was idle and its address is still allowed.
fn usable(
    socket: Socket,
    settings: &Settings,
    destination: &Destination,
    moves: bool,
) -> Option<Connection> {
    let allowed = !destination.guarded || settings.destinations.check(socket.address.ip()).is_ok();
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
    })
}

/// Whether a connection is open and has nothing to read: asked of the kernel, since the reactor may not have looked.
pub(crate) fn is_quiet(stream: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    recv(stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)
        .is_err_and(|error| error == rustix::io::Errno::AGAIN)
}

/// Keeps a connection for the next request.
pub(crate) fn check_in(worker: &Worker, connection: Connection) {
    let socket = Socket {
        stream: connection.stream,
        address: connection.address,
        hop: connection.hop,
        permit: connection.permit,
    };
    let evicted = worker.shared.pools[worker.index]
        .lock()
        .check_in(worker.now(), socket);
    worker
        .counters()
        .add(Metric::ConnectionCacheEvictions, evicted as u64);
    worker.shared.open.announce();
}

/// Closes the oldest idle connection of this worker, or of another; `false` if there is none.
pub(crate) fn close_oldest(worker: &Worker) -> bool {
    let pools = &worker.shared.pools;
    for step in 0..pools.len() {
        let mut pool = pools[(worker.index + step) % pools.len()].lock();
        if let Some(id) = pool.idle.oldest_connection()
            && pool.idle.remove(id)
        {
            let socket = pool.take(id);
            drop(pool);
            drop(socket);
            worker.counters().inc(Metric::ConnectionCacheEvictions);
            return true;
        }
    }
    false
}

/// Closes what need not wait for its next use; called about once a second.
pub(crate) fn sweep(worker: &Worker) {
    let (expired, unusable) = worker.shared.pools[worker.index].lock().sweep(worker.now());
    let counters = worker.counters();
    counters.add(Metric::ConnectionCacheExpiries, expired as u64);
    counters.add(Metric::ConnectionCacheUnusable, unusable as u64);
}
