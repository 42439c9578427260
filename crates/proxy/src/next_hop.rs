//! A connection to a next hop: an idle one if there is one, else a new one, within the limits.

use crate::answer::Trouble;
use crate::destination::{Destination, HopKey};
use crate::dial;
use crate::open_connections::{Full, Permit};
use crate::pool;
use crate::settings::Settings;
use crate::worker::Worker;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use weir_measure::{Metric, Reuse};
use weir_semantics::ProxyError;

/// An open connection to a next hop, in use by one exchange.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    /// The address it is connected to, which was checked.
    pub(crate) address: SocketAddr,
    pub(crate) hop: HopKey,
    /// It carried another request before.
    pub(crate) reused: bool,
    /// Its place among the open connections.
    pub(crate) permit: Permit,
}

/// Gets a connection; `fresh` asks for a new one.
///
/// # Errors
///
/// The trouble to report: no address, not allowed, refused, timed out, limit reached.
pub(crate) async fn obtain(
    worker: &Worker,
    settings: &Settings,
    destination: &Destination,
    fresh: bool,
) -> Result<Connection, Trouble> {
    let limits = &settings.config.limits;
    let mut until = None;
    loop {
        if !fresh && let Some(connection) = pool::check_out(worker, settings, destination) {
            return Ok(connection);
        }
        let until =
            *until.get_or_insert_with(|| Instant::now() + limits.next_hop_wait.as_duration());
        let freed = worker.shared.open.freed();
        match worker.shared.open.take(&destination.hop, limits) {
            Ok(permit) => {
                if !fresh {
                    worker.counters().inc(Metric::ConnectionCache(Reuse::Miss));
                }
                return open(worker, settings, destination, permit, until).await;
            }
            Err(full) => {
                // an idle connection to somebody else holds a place for nothing, if it is a place we need
                if full == Full::All && pool::close_oldest(worker) {
                    continue;
                }
                if timeout_at(until, freed).await.is_err() {
                    return Err(Trouble::new(
                        ProxyError::ConnectionLimitReached,
                        format!("all connections allowed to {} are in use", destination.hop),
                    ));
                }
            }
        }
    }
}

/// Opens a connection. Out of file descriptors it waits for one: an idle connection gives way, or somebody leaves.
/// It keeps its place meanwhile, so that those who wait do not wake each other.
async fn open(
    worker: &Worker,
    settings: &Settings,
    destination: &Destination,
    permit: Permit,
    until: Instant,
) -> Result<Connection, Trouble> {
    loop {
        let freed = worker.shared.open.freed();
        let client_left = worker.shared.client_closed.notified();
        match dial::run(worker, settings, destination).await {
            Ok((stream, address)) => {
                return Ok(Connection {
                    stream,
                    address,
                    hop: destination.hop.clone(),
                    reused: false,
                    permit,
                });
            }
            Err(trouble) if trouble.error == ProxyError::ConnectionLimitReached => {
                if pool::close_oldest(worker) {
                    continue;
                }
                let descriptor = async {
                    tokio::select! {
                        () = freed => {}
                        () = client_left => {}
                    }
                };
                if timeout_at(until, descriptor).await.is_err() {
                    return Err(trouble);
                }
            }
            Err(trouble) => return Err(trouble),
        }
    }
}
