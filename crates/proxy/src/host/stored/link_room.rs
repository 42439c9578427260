//! Whether the links to next hops have room for requests that no client waits for.

use crate::exchange::next_hop::NextHop;
use crate::exchange::state::RequestState;
use weir_extend::StoredError;
use weir_net::next_hops::HopKey;
use weir_policy::budget::WindowWork;

/// Whether a request may be sent, by what is done now over the link that the next hop is behind;
/// `None` for a next hop behind no link.
pub(super) type HasRoom = fn(Option<WindowWork>) -> bool;

/// Whether there may be a next hop for a request. Nothing is chosen, and no module runs: it is to
/// be asked before. Other nodes of a cluster may be asked over no link.
pub(super) fn may_be(exchange: &RequestState, has_room: HasRoom) -> bool {
    exchange.settings.cluster().is_some()
        || NextHop::possible(exchange)
            .iter()
            .any(|hop| is_at(exchange, hop, has_room))
}

/// The next hop of a request whose link has room for it, if there is one.
///
/// # Errors
///
/// There is no next hop.
pub(super) fn next_hop(
    exchange: &RequestState,
    has_room: HasRoom,
) -> Result<Option<NextHop>, StoredError> {
    if !may_be(exchange, has_room) {
        return Ok(None);
    }
    let is_at = |hop: &HopKey| is_at(exchange, hop, has_room);
    let next_hop = NextHop::where_allowed(exchange, is_at);
    let next_hop = next_hop.map_err(|_| StoredError::Unreachable)?;
    Ok(next_hop.filter(|chosen| is_at(&chosen.destination.hop)))
}

fn is_at(exchange: &RequestState, hop: &HopKey, has_room: HasRoom) -> bool {
    let link = exchange.settings.connections.links.of(hop);
    has_room(link.map(|link| link.window_work()))
}
