//! Why a next hop was chosen, and why one was not.

use crate::route::cluster::{Node, NodeState};
use crate::route::policy::Costs;
use weir_semantics::words;

words! {
    /// Why a next hop was chosen among those of its route.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Why {
        /// It was its turn.
        InTurn = "in-turn",
        /// An earlier request of the same client connection was sent there, and the route chooses
        /// for connections.
        Connection = "connection",
        /// Those that come before it are ejected, draining or gone.
        OthersEjected = "others-ejected",
        /// Its ejection is over and this request probes it; others avoid it until the outcome is
        /// known.
        Probe = "probe",
        /// All are ejected, and its ejection ends first.
        AllEjected = "all-ejected",
        /// It has the least outstanding requests for its weight.
        LeastLoad = "least-load",
        /// Of two at random, it has the less outstanding requests times response time.
        BetterOfTwo = "better-of-two",
        /// It is the first in the rendezvous order of the target.
        FirstInOrder = "first-in-order",
        /// Those before it in the rendezvous order have their share of requests.
        NextInOrder = "next-in-order",
        /// It is the least loaded of those that share a target of high rate.
        Replica = "replica",
        /// The target is mapped to it.
        Mapped = "mapped",
        /// The target was mapped to no node: the first in rendezvous order that is not overloaded,
        /// or the node that handles the connection.
        NotMapped = "not-mapped",
        /// The target was moved to it from an overloaded node.
        Moved = "moved",
        /// It was added to the nodes of the target, which are overloaded.
        Replicated = "replicated",
        /// The node that handles the connection serves it, since few reads wait there: of a route,
        /// the next hop of the request before; of a cluster, the node whose client asks, which
        /// keeps a copy of what the owner gives it.
        DiskIdle = "disk-idle",
        /// The node that handles the connection serves it, although reads wait there: it costs no
        /// less elsewhere.
        DiskBusy = "disk-busy",
        /// Sent to a node that the target is mapped to, since reads wait at the one that handles
        /// the connection. Of a cluster, that one keeps no copy.
        Lateral = "lateral",
        /// It owned the target before a node that joins, and is asked for what it has stored.
        PreviousOwner = "previous-owner",
        /// Its digest has the target, and the first in order is gone.
        Holder = "holder",
    }
}

words! {
    /// Why a node or a next hop is passed over for a target, wherever it stands in the order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum PassedOver {
        /// It failed, and is left alone for a while.
        Ejected = "ejected",
        /// It is no member any more.
        Gone = "gone",
        /// It drains: it takes no new targets.
        Draining = "draining",
        /// It is a front end, which keeps nothing.
        FrontEnd = "front-end",
        /// It has not been told all that was purged or changed.
        Behind = "behind",
        /// It has as many requests as the policy's bound lets it have.
        AtBound = "at-bound",
    }
}

impl PassedOver {
    /// Why a choice that sees `node` so, with these costs, does not take it; `None` if it could.
    #[must_use]
    pub const fn of(node: &Node, costs: Costs) -> Option<Self> {
        match node.state {
            NodeState::Gone => Some(Self::Ejected),
            NodeState::Draining => Some(Self::Draining),
            NodeState::FrontEnd => Some(Self::FrontEnd),
            NodeState::Joining | NodeState::In => match costs.balancing.units() {
                None => Some(Self::AtBound),
                Some(_) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::cluster::NodeKey;
    use crate::route::policy::Cost;

    #[test]
    fn node_that_takes_no_requests_or_has_as_many_as_it_may_is_passed_over() {
        let check = |state, balancing, expected| {
            let node = Node {
                state,
                ..Node::new(NodeKey(1))
            };
            let costs = Costs {
                balancing,
                ..Costs::default()
            };
            assert_eq!(PassedOver::of(&node, costs), expected, "{state:?}");
        };
        let finite = Cost::of(7);
        check(NodeState::In, finite, None);
        check(NodeState::Joining, finite, None);
        check(NodeState::In, Cost::INFINITE, Some(PassedOver::AtBound));
        check(NodeState::Gone, Cost::INFINITE, Some(PassedOver::Ejected));
        check(NodeState::Draining, finite, Some(PassedOver::Draining));
        check(NodeState::FrontEnd, finite, Some(PassedOver::FrontEnd));
    }
}
