//! Which next hop a request for no client would be sent to, before one is chosen for it.

use super::calls::StoredCalls;
use super::target;
use crate::exchange::next_hop::NextHop;
use weir_extend::StoredTarget;
use weir_net::next_hops::HopKey;

impl StoredCalls {
    /// The next hop that a request for `target` would be sent to first, if one is known; not the
    /// other nodes of a cluster. Nothing is chosen, and no module runs.
    pub(super) fn first_hop(&self, target: &StoredTarget) -> Option<HopKey> {
        let context = self.context().ok()?;
        let exchange = target::exchange(&context, target).ok()?;
        NextHop::possible(&exchange).into_iter().next()
    }
}
