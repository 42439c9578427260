//! The lines of figures 7 and 8, and ours on the same axes.

use crate::cluster::{Http, Mechanism};
use weir_policy::route::policy::PolicyKind;

weir_policy::choice! {
    /// A line: a policy, a mechanism, and how many requests a connection has. The first seven are
    /// the paper's, with its names.
    #[derive(PartialOrd, Ord)]
    pub enum Line {
        /// In turn, a connection for each request.
        Wrr = "WRR",
        /// In turn, by connection.
        WrrPersistent = "WRR-PHTTP",
        /// LARD, a connection for each request.
        Lard = "simple-LARD",
        /// LARD by the first request of a connection.
        LardPersistent = "simple-LARD-PHTTP",
        /// Extended LARD, connections handed over for each request.
        MultipleHandOff = "multiHandoff-extLARD-PHTTP",
        /// Extended LARD, requests forwarded by the node of the connection.
        Forwarding = "BEforward-extLARD-PHTTP",
        /// Extended LARD with a mechanism that costs nothing.
        ZeroCost = "zeroCost-extLARD-PHTTP",
        /// Ours: consistent hashing with bounded loads, forwarded.
        BoundedHash = "bounded-hash",
        /// Ours: the better of two nodes, forwarded.
        TwoChoices = "two-choices",
        /// Ours, the default of a cluster: bounded hashing with copies of hot targets, forwarded.
        ReplicatedHash = "replicated-hash",
    }
}

impl Line {
    /// Whether it is in the paper.
    #[must_use]
    pub const fn is_paper(self) -> bool {
        !matches!(
            self,
            Self::BoundedHash | Self::TwoChoices | Self::ReplicatedHash
        )
    }

    /// The policy.
    #[must_use]
    pub const fn policy(self) -> PolicyKind {
        match self {
            Self::Wrr | Self::WrrPersistent => PolicyKind::InTurn,
            Self::Lard | Self::LardPersistent => PolicyKind::Lard,
            Self::MultipleHandOff | Self::Forwarding | Self::ZeroCost => PolicyKind::ExtendedLard,
            Self::BoundedHash => PolicyKind::BoundedHash,
            Self::TwoChoices => PolicyKind::TwoChoices,
            Self::ReplicatedHash => PolicyKind::ReplicatedHash,
        }
    }

    /// The mechanism.
    #[must_use]
    pub const fn mechanism(self) -> Mechanism {
        match self {
            Self::Wrr | Self::WrrPersistent | Self::Lard | Self::LardPersistent => {
                Mechanism::HandOff
            }
            Self::MultipleHandOff => Mechanism::MultipleHandOff,
            Self::ZeroCost => Mechanism::ZeroCost,
            Self::Forwarding | Self::BoundedHash | Self::TwoChoices | Self::ReplicatedHash => {
                Mechanism::Forwarding
            }
        }
    }

    /// Requests of a connection.
    #[must_use]
    pub const fn http(self) -> Http {
        match self {
            Self::Wrr | Self::Lard => Http::V1_0,
            _ => Http::Persistent,
        }
    }
}
