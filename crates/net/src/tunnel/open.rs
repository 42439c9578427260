//! Connections that become tunnels: opened for one client, and never shared or kept.

use crate::next_hops::{ConnectFailure, Connection, ConnectionRules, Destination, Permit, dial};
use crate::workers::{Network, Worker};
use weir_measure::{Metric, OpenReason};
use weir_policy::connections::ConnectionState;
use weir_semantics::ProxyError;

/// Takes a place among the open connections for a tunnel, without waiting for one.
///
/// # Errors
///
/// [`ProxyError::ConnectionLimitReached`] if as many are open as the rules allow.
pub fn reserve(
    network: &Network,
    rules: &ConnectionRules,
    destination: &Destination,
) -> Result<Permit, ConnectFailure> {
    network
        .open_connections()
        .take(&destination.hop, &rules.open, ConnectionState::Opening)
        .map_err(|_full| {
            ConnectFailure::new(
                ProxyError::ConnectionLimitReached,
                "all next-hop connections allowed are in use",
            )
        })
}

/// Opens a connection in that place. The caller drops it when the tunnel ends.
///
/// # Errors
///
/// The name cannot be resolved, the address is not allowed, or no address accepts a connection in
/// time.
pub async fn open(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
    mut permit: Permit,
) -> Result<Connection, ConnectFailure> {
    let stream = dial(worker, rules, destination).await?;
    worker
        .counters()
        .inc(Metric::NextHopOpens(OpenReason::Tunnel));
    permit.becomes_tunnel();
    let hop = destination.hop.clone();
    Ok(Connection::new(worker, stream, hop, permit, false).over(&rules.links))
}
