//! The connections to one ICAP server: how many may be open, and which are used again.
//!
//! Each message takes a place; a connection is open only if its message has one, or if it is idle
//! and one is free. So there are never more connections than places, on all workers together.
//! Which idle one is used, and for how long one is kept, are decisions of `policy::connections`.

use super::address::Address;
use super::failure::Failure;
use crate::socket::{IdleSocket, Socket};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use weir_net::clock::Clock;
use weir_policy::Tick;
use weir_policy::connections::{CheckIn, ConnectionId, HopId, IdleConnections, IdleLimits};

/// How long one address of the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Connections {
    address: Address,
    clock: Clock,
    places: Arc<Semaphore>,
    /// How long a message may wait for a place.
    place_wait: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How many places there are.
    places: usize,
    /// Places that are in use and gone once they are free.
    surplus: usize,
    /// By the runtimes that they are with, each of which is a hop: one of its own costs a worker
    /// less.
    idle: IdleConnections,
    /// The runtimes that have idle connections, or had some: at most one more than connections.
    runtimes: Vec<runtime::Id>,
    sockets: HashMap<ConnectionId, (IdleSocket, Tick)>,
    /// Connections that fell idle so far.
    next: u32,
}

/// A connection in use, and its place. When it is dropped, it is closed.
#[derive(Debug)]
pub(crate) struct Lease {
    socket: Socket,
    opened: Tick,
    was_idle: bool,
    place: Place,
}

/// A place for one connection.
#[derive(Debug)]
struct Place {
    permit: Option<OwnedSemaphorePermit>,
    of: Arc<Connections>,
}

impl Connections {
    /// None yet, to `address`, and at most `places`. They are of a module whose requests may wait
    /// for it for `wait`: half of it for a place, so that the module can tell want of places from a
    /// server that does not answer.
    pub(crate) fn new(address: Address, clock: Clock, places: usize, wait: Duration) -> Arc<Self> {
        let limits = IdleLimits {
            per_hop_max: places,
            total_max: places,
            ..IdleLimits::default()
        };
        Arc::new(Self {
            address,
            clock,
            places: Arc::new(Semaphore::new(places)),
            place_wait: wait / 2,
            state: Mutex::new(State {
                places,
                surplus: 0,
                idle: IdleConnections::new(limits),
                runtimes: Vec::new(),
                sockets: HashMap::new(),
                next: 0,
            }),
        })
    }

    /// Locked for a look-up or a list operation.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where they lead to.
    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// How long a message may wait for a place.
    pub(crate) const fn place_wait(&self) -> Duration {
        self.place_wait
    }

    /// Whether all places are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.places.available_permits() == 0
    }

    /// Changes how many there may be. Those in use stay until they are not used any more.
    pub(crate) fn set_places(&self, places: usize) {
        let mut state = self.state();
        if places > state.places {
            let more = places - state.places;
            let kept = more.min(state.surplus);
            state.surplus -= kept;
            self.places.add_permits(more - kept);
        } else {
            let fewer = state.places - places;
            state.surplus += fewer - self.places.forget_permits(fewer);
        }
        state.places = places;
    }

    /// Waits for a place, then takes an idle connection or opens one; opens one in any case if it
    /// `must_be_new`.
    pub(crate) async fn check_out(self: Arc<Self>, must_be_new: bool) -> Result<Lease, Failure> {
        let permit = Arc::clone(&self.places).acquire_owned();
        let permit = timeout(self.place_wait, permit).await;
        let permit = permit.map_err(|_| Failure::Busy)?;
        // it is never closed
        let place = Place {
            permit: permit.ok(),
            of: Arc::clone(&self),
        };
        if must_be_new {
            // the server has closed one that was idle, so the others are of little use, too
            self.close_idle();
        }
        let place = match self.reuse(place) {
            Ok(lease) => return Ok(lease),
            Err(place) => place,
        };
        let socket = self.connect().await;
        Ok(Lease {
            socket: socket.map_err(|error| Failure::Connect(error.kind()))?,
            opened: self.clock.tick(),
            was_idle: false,
            place,
        })
    }

    /// Takes an idle connection, if there are one and a place at once: most messages find both.
    pub(crate) fn try_check_out(self: &Arc<Self>) -> Option<Lease> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let place = Place {
            permit: Some(permit),
            of: Arc::clone(self),
        };
        self.reuse(place).ok()
    }

    /// Takes an idle connection for this place.
    ///
    /// # Errors
    ///
    /// There is none.
    fn reuse(&self, place: Place) -> Result<Lease, Place> {
        while let Some((socket, opened)) = self.take_idle() {
            if socket.is_quiet()
                && let Ok(socket) = socket.used()
            {
                return Ok(Lease {
                    socket,
                    opened,
                    was_idle: true,
                    place,
                });
            }
        }
        Err(place)
    }

    /// The newest one of this runtime, or else one of another.
    fn take_idle(&self) -> Option<(IdleSocket, Tick)> {
        let (now, runtime) = (self.clock.now(), runtime::Handle::current().id());
        let mut expired = Vec::new();
        let mut state = self.state();
        let own = state.runtimes.iter().position(|it| *it == runtime);
        let others = (0..state.runtimes.len()).filter(|it| Some(*it) != own);
        let mut found = None;
        for at in own.into_iter().chain(others) {
            found = state.idle.check_out(now, hop(at), &mut expired);
            if found.is_some() {
                break;
            }
        }
        for connection in expired {
            state.sockets.remove(&connection);
        }
        state.sockets.remove(&found?)
    }

    fn close_idle(&self) {
        let mut state = self.state();
        for connection in std::mem::take(&mut state.sockets).into_keys() {
            state.idle.remove(connection);
        }
    }

    /// Closes connections that were idle for too long, and those that the server has closed.
    pub(crate) fn prune(&self) {
        let (now, mut expired) = (self.clock.now(), Vec::new());
        let mut state = self.state();
        state.idle.expire(now, &mut expired);
        for connection in expired {
            state.sockets.remove(&connection);
        }
        let sockets = state.sockets.iter();
        let ended = sockets.filter(|(_, (socket, _))| !socket.is_quiet());
        let ended: Vec<ConnectionId> = ended.map(|(connection, _)| *connection).collect();
        for connection in ended {
            state.idle.remove(connection);
            state.sockets.remove(&connection);
        }
    }

    async fn connect(&self) -> io::Result<Socket> {
        match &self.address {
            Address::Unix(path) => {
                let connected = timeout(CONNECT_TIMEOUT, UnixStream::connect(path)).await;
                connected?.map(Socket::Unix)
            }
            Address::Tcp(host, port) => {
                let mut failed = io::ErrorKind::NotFound.into();
                for address in resolve(host, *port).await? {
                    match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                        Ok(Ok(socket)) => return Socket::tcp(socket),
                        Ok(Err(error)) => failed = error,
                        Err(_) => failed = io::ErrorKind::TimedOut.into(),
                    }
                }
                Err(failed)
            }
        }
    }
}

/// The hop that the runtime at this place of the list is.
fn hop(at: usize) -> HopId {
    HopId(u32::try_from(at).unwrap_or(u32::MAX))
}

impl State {
    /// The hop that a runtime is. A new one takes the place of one without idle connections.
    fn hop_of(&mut self, runtime: runtime::Id) -> HopId {
        let known = self.runtimes.iter().position(|it| *it == runtime);
        let at = known.unwrap_or_else(|| {
            let mut places = 0..self.runtimes.len();
            let free = places.find(|at| self.idle.idle(hop(*at)) == 0);
            let at = free.unwrap_or(self.runtimes.len());
            match self.runtimes.get_mut(at) {
                Some(place) => *place = runtime,
                None => self.runtimes.push(runtime),
            }
            at
        });
        hop(at)
    }
}

/// The first addresses of a host.
async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((host, port))).await?;
    Ok(found?.take(ADDRESSES_MAX).collect())
}

impl Lease {
    /// The connection.
    pub(crate) const fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Whether it was idle before.
    pub(crate) const fn was_idle(&self) -> bool {
        self.was_idle
    }

    /// The connection can be used again: it is kept for a while.
    pub(crate) fn check_in(self) {
        let Self {
            socket,
            opened,
            place,
            ..
        } = self;
        let socket = socket.idle();
        let now = place.of.clock.now();
        let mut state = place.of.state();
        let hop = state.hop_of(socket.runtime());
        let connection = ConnectionId(state.next);
        state.next = state.next.wrapping_add(1);
        let checked = state.idle.check_in(now, hop, connection, opened);
        match checked {
            CheckIn::Kept => drop(state.sockets.insert(connection, (socket, opened))),
            CheckIn::KeptFor { close, .. } => {
                state.sockets.remove(&close);
                state.sockets.insert(connection, (socket, opened));
            }
            CheckIn::NotKept { .. } => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.of.state();
        if state.surplus > 0
            && let Some(permit) = self.permit.take()
        {
            state.surplus -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than a test takes on a busy machine.
    const WAIT: Duration = Duration::from_secs(60);

    fn connections(listener: &std::net::TcpListener, places: usize) -> Arc<Connections> {
        let address = listener.local_addr().expect("an address");
        let address = Address::Tcp(address.ip().to_string(), address.port());
        Connections::new(address, Clock::system(), places, WAIT)
    }

    fn listener() -> std::net::TcpListener {
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port")
    }

    #[tokio::test]
    async fn idle_connection_is_used_again_unless_its_server_closed_it() {
        let listener = listener();
        let connections = connections(&listener, 2);
        let lease = Arc::clone(&connections).check_out(false).await.unwrap();
        assert!(!lease.was_idle());
        let (accepted, _) = listener.accept().unwrap();
        lease.check_in();
        let lease = Arc::clone(&connections).check_out(false).await.unwrap();
        assert!(lease.was_idle());
        lease.check_in();
        drop(accepted);
        let lease = Arc::clone(&connections).check_out(false).await.unwrap();
        assert!(!lease.was_idle());
    }

    #[tokio::test]
    async fn connection_with_bytes_that_answer_nothing_is_closed() {
        use std::io::{Read, Write};
        let listener = listener();
        let connections = connections(&listener, 1);
        let lease = Arc::clone(&connections).check_out(false).await.unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        lease.check_in();
        accepted.write_all(b"ICAP/1.0 204 No\r\n\r\n").unwrap();
        connections.prune();
        assert_eq!(accepted.read(&mut [0; 1]).unwrap_or(0), 0);
        let lease = Arc::clone(&connections).check_out(false).await.unwrap();
        assert!(!lease.was_idle());
    }

    #[tokio::test]
    async fn message_without_a_place_fails_alone_and_before_its_time_is_over() {
        let listener = listener();
        let address = connections(&listener, 1).address.clone();
        let brief = Duration::from_millis(10);
        let connections = Connections::new(address, Clock::system(), 1, brief);
        let lease = Arc::clone(&connections).check_out(false).await.unwrap();
        assert!(connections.is_full());
        let refused = timeout(WAIT, Arc::clone(&connections).check_out(false)).await;
        let failure = refused.expect("before the end").expect_err("no place");
        assert_eq!(failure, Failure::Busy);
        assert!(!failure.is_of_service());
        drop(lease);
        assert!(!connections.is_full());
    }

    #[test]
    fn worker_takes_its_own_idle_connection_and_that_of_another_before_it_opens_one() {
        let listener = listener();
        let connections = connections(&listener, 10);
        let runtime = || {
            let mut builder = runtime::Builder::new_current_thread();
            builder.enable_all().build().expect("a runtime")
        };
        let port = |lease: &Lease| match &lease.socket {
            Socket::Tcp(socket) => socket.local_addr().expect("it is open").port(),
            Socket::Unix(_) => 0,
        };
        let (first, second) = (runtime(), runtime());
        let open = || Arc::clone(&connections).check_out(false);
        let own = first.block_on(async { open().await.expect("it is opened") });
        let (port_own, port_other) = second.block_on(async {
            let other = open().await.expect("it is opened");
            let ports = (port(&own), port(&other));
            other.check_in();
            ports
        });
        first.block_on(async {
            own.check_in();
            let leases = [open().await.unwrap(), open().await.unwrap()];
            assert_eq!(leases.each_ref().map(port), [port_own, port_other]);
            assert!(connections.try_check_out().is_none());
            leases.into_iter().for_each(Lease::check_in);
        });
        // the runtimes of idle connections are known, and no others
        drop((first, second));
        for _ in 0..10 {
            runtime().block_on(async {
                let lease = connections.try_check_out().expect("it is idle");
                assert!(lease.was_idle());
                lease.check_in();
            });
        }
        assert!(connections.state().runtimes.len() <= 3);
    }

    #[tokio::test]
    async fn no_more_connections_are_open_than_there_are_places() {
        let listener = listener();
        let connections = connections(&listener, 2);
        let first = Arc::clone(&connections).check_out(false).await.unwrap();
        let _second = Arc::clone(&connections).check_out(false).await.unwrap();
        let moment = Duration::from_millis(1);
        let third = timeout(moment, Arc::clone(&connections).check_out(false)).await;
        assert!(third.is_err());
        connections.set_places(1);
        drop(first);
        let third = timeout(moment, Arc::clone(&connections).check_out(false)).await;
        assert!(third.is_err(), "its place is gone");
        connections.set_places(2);
        let third = Arc::clone(&connections).check_out(false).await;
        assert!(third.is_ok());
    }
}
