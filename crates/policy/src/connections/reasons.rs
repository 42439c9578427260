//! The reasons, as words: the same in counters, in reports and in the simulator's tables.

/// Why a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpenReason {
    /// There is none that could come back.
    NoneBusy,
    /// [`WhenBusy::Open`](super::WhenBusy::Open) says so.
    Rule,
    /// The time of a set-up or of an exchange is not measured yet.
    NotMeasured,
    /// A set-up is so quick that there is nothing to be gained.
    QuickSetUp,
    /// It is expected to be sooner than waiting.
    Sooner,
    /// A wait was in vain.
    WaitedInVain,
    /// The request is repeated, on a connection that cannot have been closed for being idle.
    Repetition,
    /// [`WhenBusy::Race`](super::WhenBusy::Race): whichever comes first.
    Race,
    /// Opened before a request needs it ([`super::judge_preconnect`]).
    Preconnect,
    /// For a tunnel, which is never shared.
    Tunnel,
}

impl OpenReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 10] = [
        Self::NoneBusy,
        Self::Rule,
        Self::NotMeasured,
        Self::QuickSetUp,
        Self::Sooner,
        Self::WaitedInVain,
        Self::Repetition,
        Self::Race,
        Self::Preconnect,
        Self::Tunnel,
    ];

    /// The reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoneBusy => "none-busy",
            Self::Rule => "rule",
            Self::NotMeasured => "not-measured",
            Self::QuickSetUp => "quick-set-up",
            Self::Sooner => "sooner",
            Self::WaitedInVain => "waited-in-vain",
            Self::Repetition => "repetition",
            Self::Race => "race",
            Self::Preconnect => "ahead",
            Self::Tunnel => "tunnel",
        }
    }
}

/// Why a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// A busy connection is expected to come back sooner than a new one is set up.
    Sooner,
    /// It opens one at the same time.
    Race,
    /// A connection is being opened that no other request waits for.
    UnderWay,
    /// There are as many connections to the next hop as there may be.
    PerHopMax,
    /// There are as many connections in all as there may be.
    TotalMax,
}

impl WaitReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 5] = [
        Self::Sooner,
        Self::Race,
        Self::UnderWay,
        Self::PerHopMax,
        Self::TotalMax,
    ];

    /// The reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sooner => "sooner",
            Self::Race => "race",
            Self::UnderWay => "under-way",
            Self::PerHopMax => "per-hop-max",
            Self::TotalMax => "total-max",
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitEnd {
    /// A connection was handed over.
    Returned,
    /// There was a place to open one.
    Place,
    /// It took too long, or no busy one was left: the request opens one instead.
    InVain,
    /// Opening the connection raced for failed.
    Failed,
    /// The limit of waiting passed.
    Refused,
    /// The request went away meanwhile.
    Left,
}

impl WaitEnd {
    /// Every end, in the order of declaration.
    pub const ALL: [Self; 6] = [
        Self::Returned,
        Self::Place,
        Self::InVain,
        Self::Failed,
        Self::Refused,
        Self::Left,
    ];

    /// The end as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Place => "place",
            Self::InVain => "in-vain",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Left => "left",
        }
    }
}
