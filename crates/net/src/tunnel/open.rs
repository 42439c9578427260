//! Connections that become tunnels: opened for one client, and never shared or kept.

use crate::next_hops::{
    ClientUse, ConnectFailure, Connection, ConnectionRules, Destination, Permit, dial,
};
use crate::workers::{Network, Worker};
use weir_measure::{Metric, OpenReason};
use weir_policy::connections::ConnectionState;
use weir_semantics::ProxyError;

/// The place of a tunnel among the open connections.
#[derive(Debug)]
pub struct TunnelPlace {
    permit: Permit,
    client_use: ClientUse,
}

/// Takes a place among the open connections for a tunnel, without waiting for one.
///
/// # Errors
///
/// [`ProxyError::ConnectionLimitReached`] if as many are open as the rules allow, or the client has
/// its share of them.
pub fn reserve(
    network: &Network,
    rules: &ConnectionRules,
    destination: &Destination,
) -> Result<TunnelPlace, ConnectFailure> {
    let open = network.open_connections();
    let client_use = open.try_begin_use(network, rules, destination)?;
    let permit = open
        .take(&destination.hop, &rules.open, ConnectionState::Opening)
        .map_err(|_full| {
            ConnectFailure::new(
                ProxyError::ConnectionLimitReached,
                "all next-hop connections allowed are in use",
            )
        })?;
    Ok(TunnelPlace { permit, client_use })
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
    place: TunnelPlace,
) -> Result<(Connection, ClientUse), ConnectFailure> {
    let TunnelPlace {
        mut permit,
        client_use,
    } = place;
    let stream = dial(worker, rules, destination).await?;
    worker
        .counters()
        .inc(Metric::NextHopOpens(OpenReason::Tunnel));
    permit.becomes_tunnel();
    let hop = destination.hop.clone();
    let connection = Connection::new(worker, stream, hop, permit, false).over(&rules.links);
    Ok((connection, client_use))
}
