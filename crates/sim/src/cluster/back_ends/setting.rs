//! What is simulated.

use super::disk_costs::DiskCosts;
use super::mechanism_costs::{Mechanism, MechanismCosts};
use super::server_costs::ServerCosts;
use crate::hit_ratio::hits;
use std::fmt;
use std::num::NonZero;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_policy::route::NODES_MAX;
use weir_policy::route::policy::{LoadLimits, PolicyKind, PolicyRules};

weir_policy::choice! {
    /// How many requests a connection has.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Http {
        /// One: HTTP/1.0.
        V1_0 = "1.0",
        /// Those that it has in the trace: P-HTTP, HTTP/1.1.
        #[default]
        Persistent = "persistent",
    }
}

/// A cluster of back ends behind a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackEndsSetting {
    /// Back ends.
    pub nodes: NonZero<u16>,
    /// How one is chosen.
    pub policy: PolicyKind,
    /// The constants of the policy.
    pub rules: PolicyRules,
    /// How a request reaches it.
    pub mechanism: Mechanism,
    /// How many requests a connection has.
    pub http: Http,
    /// CPU time of a back end.
    pub server: ServerCosts,
    /// CPU time of the mechanism.
    pub costs: MechanismCosts,
    /// Time of a disk.
    pub disk: DiskCosts,
    /// Each back end's memory.
    pub cache: hits::Setting,
    /// Connections in the cluster at once.
    pub admitted_max: NonZero<u32>,
    /// For the tables of the policy, and for choices at random.
    pub seed: u64,
}

/// Bytes of a back end's cache (USENIX'99 §6): 85 MB.
pub const CACHE_BYTES: u64 = 85_000_000;

/// Connections at once, at most.
pub const ADMITTED_MAX: u32 = 1 << 20;

/// The loads between which LARD moves targets (USENIX'99: `L_idle` = 30 and `MissCost` = 50, which
/// is `T_low` = 30 and `T_high` = 80).
pub const LIMITS_USENIX_1999: LoadLimits = LoadLimits { low: 30, high: 80 };

impl BackEndsSetting {
    /// The paper's cluster, with these costs.
    #[must_use]
    pub fn of(nodes: NonZero<u16>, server: ServerCosts, costs: MechanismCosts) -> Self {
        let rules = PolicyRules {
            limits: LIMITS_USENIX_1999,
            ..PolicyRules::PRESET_1999
        };
        Self {
            nodes,
            policy: PolicyKind::ExtendedLard,
            rules,
            mechanism: Mechanism::default(),
            http: Http::default(),
            server,
            costs,
            disk: DiskCosts::ASPLOS_1998,
            cache: hits::Setting {
                capacity_bytes: CACHE_BYTES,
                eviction: EvictionKind::Gds,
                admission: Rule::Always,
            },
            admitted_max: admitted(nodes, rules.limits),
            seed: 1,
        }
    }

    /// Whether it can be simulated.
    ///
    /// # Errors
    /// Too many nodes or connections.
    pub const fn check(&self) -> Result<(), SettingError> {
        if self.nodes.get() as usize > NODES_MAX {
            return Err(SettingError::TooManyNodes);
        }
        if self.admitted_max.get() > ADMITTED_MAX {
            return Err(SettingError::TooManyConnections);
        }
        Ok(())
    }
}

/// A cluster that cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// More than [`NODES_MAX`] nodes.
    TooManyNodes,
    /// More than [`ADMITTED_MAX`] connections at once.
    TooManyConnections,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyNodes => write!(f, "more than {NODES_MAX} nodes"),
            Self::TooManyConnections => {
                write!(f, "more than {ADMITTED_MAX} connections at once")
            }
        }
    }
}

impl std::error::Error for SettingError {}

/// Connections that a front end lets in (ASPLOS'98 §2.4): (n - 1) `T_high` + `T_low` - 1, so that
/// no node is idle while all others are overloaded.
#[must_use]
pub fn admitted(nodes: NonZero<u16>, limits: LoadLimits) -> NonZero<u32> {
    let others = u32::from(nodes.get() - 1).saturating_mul(limits.high);
    let all = others.saturating_add(limits.low).saturating_sub(1);
    NonZero::new(all.min(ADMITTED_MAX)).unwrap_or(NonZero::<u32>::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_end_admits_29_connections_for_one_node_and_429_for_six() {
        let check = |nodes, expected| {
            let nodes = NonZero::new(nodes).unwrap();
            assert_eq!(admitted(nodes, LIMITS_USENIX_1999).get(), expected);
        };
        check(1, 29);
        check(6, 429);
        check(10, 749);
    }

    #[test]
    fn too_many_nodes_or_connections_are_refused() {
        let server = ServerCosts::APACHE;
        let costs = MechanismCosts::at_crossover(&server, 0.5).unwrap();
        let of = |nodes| BackEndsSetting::of(NonZero::new(nodes).unwrap(), server, costs);
        assert_eq!(of(1024).check(), Ok(()));
        assert_eq!(of(1025).check(), Err(SettingError::TooManyNodes));
        let many = BackEndsSetting {
            admitted_max: NonZero::new(ADMITTED_MAX + 1).unwrap(),
            ..of(1)
        };
        assert_eq!(many.check(), Err(SettingError::TooManyConnections));
    }
}
