//! Why a next hop was chosen.

use weir_semantics::words;

words! {
    /// Why a next hop was chosen among those of its route.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Why {
        /// It was its turn.
        InTurn = "in-turn",
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
        /// The target was mapped to no node: the first in rendezvous order that is not overloaded.
        NotMapped = "not-mapped",
        /// The target was moved to it from an overloaded node.
        Moved = "moved",
        /// It was added to the nodes of the target, which are overloaded.
        Replicated = "replicated",
        /// The node of the connection serves it, since few reads wait at its disk; in a cluster of
        /// nodes that fetch from each other, it keeps a copy of what the node that owns the target
        /// gives it.
        DiskIdle = "disk-idle",
        /// The node of the connection serves it and keeps no copy: reads wait at its disk, and it
        /// costs no less elsewhere. For a front end that hands connections over: none of nodes or
        /// routes does.
        DiskBusy = "disk-busy",
        /// Fetched laterally from a node that the target is mapped to, without a copy: reads wait
        /// at the disk of the node of the connection.
        Lateral = "lateral",
        /// It owned the target before a node that joins, and is asked for what it has stored.
        PreviousOwner = "previous-owner",
        /// Its digest has the target, and the first in order is gone.
        Holder = "holder",
    }
}
