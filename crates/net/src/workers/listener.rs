//! Accepting connections: one listening socket for each worker and address, among which the kernel
//! spreads connections (`SO_REUSEPORT`).

use super::shutdown::Stage;
use super::worker::Worker;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use weir_measure::Metric;

/// Connections the kernel holds for us until they are accepted.
const BACKLOG: i32 = 4096;

/// Without file descriptors, accepting resumes when a connection closes, or after this long: a
/// descriptor may have been freed outside of this process.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Whether no other process listens on `address`: with `SO_REUSEPORT` a second process of the same
/// user would silently take half of the connections.
///
/// # Errors
///
/// The address cannot be bound.
fn probe(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(1)
}

/// Opens one socket for a listener.
///
/// # Errors
///
/// The address cannot be bound.
fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // answers are whole when they are written: waiting for more would only delay them. What is
    // accepted has the option from its listener, without a call for each connection
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// One listening socket for each worker, bound to the same address.
#[derive(Debug)]
pub struct Sockets {
    pub(super) address: SocketAddr,
    pub(super) each: Vec<std::net::TcpListener>,
}

impl Sockets {
    /// Binds `address` once for each of `workers`; port 0 becomes one that is free. With `shares`,
    /// this process listens there already, and adds sockets.
    ///
    /// # Errors
    ///
    /// The address cannot be bound: it is not of this machine, not allowed, or another process
    /// listens there.
    pub fn bind(address: SocketAddr, workers: usize, shares: bool) -> io::Result<Self> {
        if !shares {
            probe(address)?;
        }
        let first = bind(address)?;
        let address = first.local_addr()?;
        let mut each = vec![first];
        while each.len() < workers {
            each.push(bind(address)?);
        }
        Ok(Self { address, each })
    }

    /// Where they are bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts on `listener` until `stop` or the shutdown; connections that the kernel has accepted by
/// then are still taken.
pub(super) async fn run(
    worker: &Worker,
    listener: std::net::TcpListener,
    mut stop: watch::Receiver<bool>,
    admit: impl Fn((TcpStream, SocketAddr)),
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut stage = worker.network().stage();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stage.wait_for(|stage| *stage > Stage::Serving) => break,
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = next_client(worker, &listener) => accepted,
        };
        match accepted {
            Ok(client) => admit(client),
            Err(error) if is_exhausted(&error) => pause(worker).await,
            // the client disconnected before it was accepted
            Err(_) => {}
        }
    }
    take_backlog(listener, admit);
    Ok(())
}

/// Takes the connections that the kernel has accepted: closing the socket would reset them.
fn take_backlog(listener: TcpListener, admit: impl Fn((TcpStream, SocketAddr))) {
    let Ok(listener) = listener.into_std() else {
        return;
    };
    while let Ok((stream, peer)) = listener.accept() {
        let taken = stream
            .set_nonblocking(true)
            .and_then(|()| TcpStream::from_std(stream));
        if let Ok(stream) = taken {
            admit((stream, peer));
        }
    }
}

/// The next client, once there is room for one.
async fn next_client(
    worker: &Worker,
    listener: &TcpListener,
) -> io::Result<(TcpStream, SocketAddr)> {
    wait_for_room(worker).await;
    listener.accept().await
}

/// Waits while as many clients are connected as are allowed.
async fn wait_for_room(worker: &Worker) {
    loop {
        let clients = worker.network().clients();
        let closed = clients.closed();
        if clients.has_room() {
            return;
        }
        closed.await;
    }
}

/// Waits until a descriptor may be free again, without spinning on the full backlog.
async fn pause(worker: &Worker) {
    worker.counters().inc(Metric::AcceptPauses);
    let closed = worker.network().client_closed();
    let _ = tokio::time::timeout(ACCEPT_PAUSE, closed).await;
}

fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn accepted_connection_sends_what_is_written_at_once() {
        let sockets = Sockets::bind((Ipv4Addr::LOCALHOST, 0).into(), 1, false).expect("a port");
        let _client = std::net::TcpStream::connect(sockets.address()).expect("a connection");
        // the listener's socket does not block, and the kernel has the connection already
        let (accepted, _) = sockets.each[0].accept().expect("a connection");
        assert!(accepted.nodelay().expect("an option"));
    }
}
