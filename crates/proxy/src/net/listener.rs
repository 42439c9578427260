//! Accepting clients: one listening socket a worker and address, shared by the kernel
//! (`SO_REUSEPORT`).

use crate::client::connection;
use crate::config;
use crate::log::client::ListenerFacts;
use crate::worker::core::Worker;
use crate::worker::shared::Stage;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use weir_measure::Metric;
use weir_semantics::Authority;

/// Connections the kernel holds for us until they are accepted.
const BACKLOG: i32 = 4096;

/// Out of descriptors, accepting goes on when a connection closes, or after this long: something
/// outside this process may have freed one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Whether somebody else listens on `address`: with `SO_REUSEPORT` a second process of the same
/// user would silently take half of the connections.
///
/// # Errors
///
/// The address cannot be had.
pub(crate) fn probe(address: SocketAddr) -> io::Result<()> {
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
/// The address cannot be had.
pub(crate) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
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
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts on `listener` until told to stop; what the kernel holds by then is still taken.
pub(crate) async fn run(
    worker: Rc<Worker>,
    listener: std::net::TcpListener,
    of: config::Listener,
    mut stop: tokio::sync::watch::Receiver<bool>,
) -> io::Result<()> {
    let default = Authority::parse(&of.address.to_string())
        .map_err(|error| io::Error::other(error.to_string()))?;
    let facts = Rc::new(ListenerFacts {
        mode: of.mode,
        default,
    });
    let listener = TcpListener::from_std(listener)?;
    let mut stage = worker.shared.stage.subscribe();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stage.wait_for(|stage| *stage > Stage::Serving) => break,
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = next_client(&worker, &listener) => accepted,
        };
        match accepted {
            Ok((stream, peer)) => admit(&worker, &facts, stream, peer),
            Err(error) if is_exhausted(&error) => pause(&worker).await,
            // the client left before we looked: nothing of ours
            Err(_) => {}
        }
    }
    take_backlog(&worker, &facts, listener);
    Ok(())
}

/// Closing the socket would reset the connections the kernel has completed for it.
fn take_backlog(worker: &Rc<Worker>, facts: &Rc<ListenerFacts>, listener: TcpListener) {
    let Ok(listener) = listener.into_std() else {
        return;
    };
    while let Ok((stream, peer)) = listener.accept() {
        let taken = stream
            .set_nonblocking(true)
            .and_then(|()| TcpStream::from_std(stream));
        if let Ok(stream) = taken {
            admit(worker, facts, stream, peer);
        }
    }
}

fn admit(worker: &Rc<Worker>, facts: &Rc<ListenerFacts>, stream: TcpStream, peer: SocketAddr) {
    let counters = worker.counters();
    counters.inc(Metric::ClientsAccepted);
    counters.inc(Metric::ClientsOpen);
    worker.shared.client_came();
    worker.clients.set(worker.clients.get() + 1);
    // answers are whole when they are written: waiting for more would only delay them
    let _ = stream.set_nodelay(true);
    // a panic ends this task alone: the runtime catches it, and the connection's drop counts it
    tokio::task::spawn_local(connection::serve(
        stream,
        peer,
        Rc::clone(facts),
        Rc::clone(worker),
    ));
}

/// The next client, once there is room for one.
async fn next_client(
    worker: &Worker,
    listener: &TcpListener,
) -> io::Result<(TcpStream, SocketAddr)> {
    wait_for_room(worker).await;
    listener.accept().await
}

/// Waits while as many clients are connected as may be.
async fn wait_for_room(worker: &Worker) {
    loop {
        let closed = worker.shared.client_closed.notified();
        if worker.shared.clients.load(Ordering::Relaxed) < worker.shared.clients_max() {
            return;
        }
        closed.await;
    }
}

/// Waits until a descriptor may be free again, without spinning on the full backlog.
async fn pause(worker: &Worker) {
    worker.counters().inc(Metric::AcceptPauses);
    let closed = worker.shared.client_closed.notified();
    let _ = tokio::time::timeout(ACCEPT_PAUSE, closed).await;
}

fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
