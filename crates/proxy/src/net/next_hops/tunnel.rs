//! Connections that become tunnels: opened for one client, and never shared or kept.

use crate::net::failure::ConnectFailure;
use crate::net::network::Network;
use crate::net::next_hops::destination::Destination;
use crate::net::next_hops::dial;
use crate::net::next_hops::next_hop::Connection;
use crate::net::next_hops::open_connections::Permit;
use crate::net::next_hops::rules::ConnectionRules;
use crate::net::worker::Worker;
use weir_measure::{Metric, OpenReason};
use weir_policy::connections::Place;
use weir_semantics::ProxyError;

/// Takes a place among the open connections for a tunnel, without waiting for one.
///
/// # Errors
///
/// [`ProxyError::ConnectionLimitReached`] if as many are open as the rules allow.
pub(crate) fn reserve(
    network: &Network,
    rules: &ConnectionRules,
    destination: &Destination,
) -> Result<Permit, ConnectFailure> {
    network
        .open_connections()
        .take(&destination.hop, &rules.open, Place::Opening)
        .map_err(|_full| {
            ConnectFailure::new(
                ProxyError::ConnectionLimitReached,
                "all next-hop connections allowed are in use",
            )
        })
}

/// Opens a connection in that place.
///
/// # Errors
///
/// The name cannot be resolved, the address is not allowed, or no address accepts a connection in
/// time.
pub(crate) async fn open(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
    permit: Permit,
) -> Result<Connection, ConnectFailure> {
    let connected = dial::run(worker, rules, destination).await?;
    worker
        .counters()
        .inc(Metric::NextHopOpens(OpenReason::Tunnel));
    let hop = destination.hop.clone();
    Ok(Connection::new(worker, connected, hop, permit, false))
}
