//! Which node of a cluster a request goes to.
//!
//! A policy sees a [`ClusterView`](super::ClusterView), a [`RoutedRequest`] and the time, and makes
//! a [`NodeChoice`]. It knows no clock, no socket and no names; the live proxy and the simulator
//! step the same values. A node that is draining or gone gets no request.

mod choice;
mod order;
mod rendezvous;
mod server_set;
mod table;

mod bounded_hash;
mod extended_lard;
mod hash;
mod hot_targets;
mod in_turn;
mod lard;
mod lard_r;
mod least;
mod replicated_hash;
mod two_choices;

use alloc::boxed::Box;

pub use bounded_hash::{BoundedHash, LoadBound, LoadFactor};
pub use choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
pub use extended_lard::{CostRules, ExtendedLard};
pub use hash::Hash;
pub use in_turn::InTurn;
pub use lard::{Lard, LoadLimits};
pub use lard_r::{LardR, ReplicaMs};
pub use least::Least;
pub(super) use rendezvous::mix;
pub use replicated_hash::ReplicatedHash;
pub use table::MappedMax;
pub use two_choices::TwoChoices;

crate::choice! {
    /// The policies there are.
    #[derive(Default, PartialOrd, Ord)]
    pub enum PolicyKind {
        /// [`InTurn`]: one after the other, by weight.
        #[default]
        InTurn = "in-turn",
        /// [`Least`]: the least outstanding requests for its weight.
        Least = "least",
        /// [`TwoChoices`]: of two at random the one with less outstanding requests times response
        /// time.
        TwoChoices = "two-choices",
        /// [`struct@Hash`]: by the target alone, without a table.
        Hash = "hash",
        /// [`BoundedHash`]: by the target, and no node has much more than the mean.
        BoundedHash = "bounded-hash",
        /// [`ReplicatedHash`]: the same, with hot targets at several nodes.
        ReplicatedHash = "replicated-hash",
        /// [`Lard`]: a target stays with its node until that is overloaded.
        Lard = "lard",
        /// [`LardR`]: the same, with a set of nodes a target.
        LardR = "lard-r",
        /// [`ExtendedLard`]: by costs, and laterally for connections that a node handles.
        ExtendedLard = "extended-lard",
    }
}

/// The constants of all policies. The default is the preset `1999`: each paper's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyRules {
    /// For `bounded-hash` and `replicated-hash`.
    pub load_factor: LoadFactor,
    /// For `lard` and `lard-r`; `high` for `bounded-hash` and `replicated-hash`, too.
    pub limits: LoadLimits,
    /// For `lard-r`.
    pub replica_ms: ReplicaMs,
    /// For `extended-lard`.
    pub costs: CostRules,
    /// For `lard`, `lard-r` and `extended-lard`.
    pub mapped_max: MappedMax,
}

impl PolicyRules {
    /// The preset `1999`: the constants of ASPLOS'98 for `lard` and `lard-r`, of USENIX'99 for
    /// `extended-lard`.
    pub const PRESET_1999: Self = Self {
        load_factor: LoadFactor::DEFAULT,
        limits: LoadLimits::ASPLOS_1998,
        replica_ms: ReplicaMs::ASPLOS_1998,
        costs: CostRules::USENIX_1999,
        mapped_max: MappedMax::DEFAULT,
    };
}

impl PolicyKind {
    /// Whether a choice depends on the target.
    #[must_use]
    pub const fn uses_target(self) -> bool {
        !matches!(self, Self::InTurn | Self::Least | Self::TwoChoices)
    }

    /// Whether a choice depends on outstanding requests.
    #[must_use]
    pub const fn uses_load(self) -> bool {
        !matches!(self, Self::InTurn | Self::Hash)
    }

    /// Whether a choice depends on response times.
    #[must_use]
    pub const fn uses_response_time(self) -> bool {
        matches!(self, Self::TwoChoices)
    }

    /// Whether a choice depends on a random number: then it is not known before.
    #[must_use]
    pub const fn is_random(self) -> bool {
        matches!(self, Self::Least | Self::TwoChoices)
    }

    /// The constants of it that decide which node keeps a target; zeros behind them. Not those that
    /// decide what one node does by itself.
    #[must_use]
    pub fn owner_constants(self, rules: &PolicyRules) -> [u64; 3] {
        let (low, high) = (u64::from(rules.limits.low), u64::from(rules.limits.high));
        match self {
            Self::InTurn | Self::Least | Self::TwoChoices | Self::Hash => [0; 3],
            Self::BoundedHash | Self::ReplicatedHash => {
                [u64::from(rules.load_factor.pct()), high, 0]
            }
            Self::Lard => [low, high, 0],
            Self::LardR => [low, high, rules.replica_ms.0],
            Self::ExtendedLard => {
                let CostRules {
                    idle,
                    overload,
                    miss_cost,
                    disk_busy: _,
                } = rules.costs;
                [idle, overload, miss_cost].map(u64::from)
            }
        }
    }

    /// A policy of this kind. `secret` is random and of this process alone: it keeps clients from
    /// choosing targets that share a place in a table.
    #[must_use]
    pub fn build(self, rules: &PolicyRules, secret: u64) -> Box<dyn Policy> {
        let max = rules.mapped_max;
        let bound = LoadBound {
            factor: rules.load_factor,
            floor: rules.limits.high,
        };
        match self {
            Self::InTurn => Box::new(InTurn::default()),
            Self::Least => Box::new(Least),
            Self::TwoChoices => Box::new(TwoChoices),
            Self::Hash => Box::new(Hash),
            Self::BoundedHash => Box::new(BoundedHash::new(bound)),
            Self::ReplicatedHash => Box::new(ReplicatedHash::new(bound, secret)),
            Self::Lard => Box::new(Lard::new(rules.limits, max, secret)),
            Self::LardR => Box::new(LardR::new(rules.limits, rules.replica_ms, max, secret)),
            Self::ExtendedLard => Box::new(ExtendedLard::new(rules.costs, max, secret)),
        }
    }
}
