//! Purges and invalidation for all nodes of a cluster (RFC 9111 §4.4): what this node tells the
//! others, and what they tell it.
//!
//! A node that purges a target does so at once, and tells each other member by a message to its
//! peer listener ([`outboxes`], `host::purge_sender`); `cache::peer_purges` carries it out there.
//! It answers its client or operator when they have answered, or the time for that is over.
//! Messages to one member follow each other, so that one says all that has gathered meanwhile.
//!
//! **No response from before a purge comes back.** Say an unsafe request was answered at node A.
//! What an origin sends from then on is new. Each node drops what it has stored and has in flight
//! when it learns of that; but a node X that has may then fetch the target from a node Y that has
//! not. Therefore a node that learns of a purge also *holds* the target ([`holds`]): until A has
//! stopped waiting for the others, it fetches the target from the origin alone. So, by induction
//! over time, from the moment on at which X has learnt of it, all that X stores is new: while it
//! holds the target, X has it from the origin; afterwards every node that has told A so has learnt
//! of it, and what X fetches from one of them is new, too. One round suffices, whatever copies of
//! copies the nodes made. The length of the hold is what remains of A's time when the message is
//! sent, so that no clocks are compared. The hold is looked at again behind the ticket that the
//! response will be stored with: a purge between the two finds the ticket, and the response is not
//! stored.
//!
//! A member that has not answered in time is told again until it has ([`outboxes`]); meanwhile
//! nothing waits for it.

pub(crate) mod holds;
pub(crate) mod inbox;
pub(crate) mod outboxes;
pub(crate) mod valid_since;

use crate::config::Mode;
use holds::Holds;
use inbox::Inbox;
use outboxes::Outboxes;
use weir_policy::Digest;

/// The target of a message, on a peer listener.
pub(crate) const TARGET: &str = "/purges";

/// What is purged or invalidated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PurgedTarget {
    /// A target of the listeners of one mode, by an unsafe request.
    Invalidated { mode: Mode, url: String },
    /// A URL at listeners of both modes, by the operator.
    Url(String),
    /// Everything, by the operator.
    All,
}

/// What the workers share of purges for the whole cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterPurges {
    /// What members are told.
    pub(crate) outboxes: Outboxes,
    /// What members have told this node.
    pub(crate) inbox: Inbox,
    /// What is fetched from the origin alone.
    pub(crate) holds: Holds,
}

impl ClusterPurges {
    /// Whether `key` must not be fetched from another node now.
    pub(crate) fn is_held(&self, key: Digest) -> bool {
        self.holds.is_held(key)
    }
}
