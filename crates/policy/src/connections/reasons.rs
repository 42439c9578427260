//! The reasons, as words: the same in counters, in reports and in the simulator's tables.

use weir_semantics::words;

words! {
    /// Why a connection is opened.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum OpenReason {
        /// There is none that could come back.
        NoneBusy = "none-busy",
        /// [`WhenBusy::Open`](super::WhenBusy::Open) says so.
        Rule = "rule",
        /// The time of a set-up or of an exchange is not measured yet.
        NotMeasured = "not-measured",
        /// A set-up is so quick that there is nothing to be gained.
        QuickSetUp = "quick-set-up",
        /// It is expected to be sooner than waiting.
        Sooner = "sooner",
        /// A wait was in vain.
        WaitedInVain = "waited-in-vain",
        /// The request is repeated, on a connection that cannot have been closed for being idle.
        Repetition = "repetition",
        /// [`WhenBusy::Race`](super::WhenBusy::Race): whichever comes first.
        Race = "race",
        /// Opened before a request needs it ([`super::judge_preconnect`]).
        Preconnect = "ahead",
        /// For a tunnel, which is never shared.
        Tunnel = "tunnel",
    }
}

words! {
    /// Why a request waits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum WaitReason {
        /// A busy connection is expected to come back sooner than a new one is set up.
        Sooner = "sooner",
        /// It opens one at the same time.
        Race = "race",
        /// A connection is being opened that no other request waits for.
        UnderWay = "under-way",
        /// There are as many connections to the next hop as there may be.
        PerHopMax = "per-hop-max",
        /// There are as many connections in all as there may be.
        TotalMax = "total-max",
    }
}

words! {
    /// How a wait ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum WaitEnd {
        /// A connection was handed over.
        Returned = "returned",
        /// There was a place to open one.
        Place = "place",
        /// It took too long, or no busy one was left: the request opens one instead.
        InVain = "in-vain",
        /// Opening the connection raced for failed.
        Failed = "failed",
        /// The limit of waiting passed.
        Refused = "refused",
        /// The request went away meanwhile.
        Left = "left",
    }
}
