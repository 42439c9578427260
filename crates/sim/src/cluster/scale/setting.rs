//! What is simulated.

use std::fmt;
use std::num::NonZero;
use weir_policy::eviction::EvictionKind;
use weir_policy::route::NODES_MAX;
use weir_policy::route::policy::PolicyKind;

/// The networks of one reading of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleSetting {
    /// Sizes of the networks, nodes; each from 1 to 1024.
    pub nodes: Vec<NonZero<u16>>,
    /// Content that a node may hold, bytes.
    pub cache_bytes: u64,
    /// What a node evicts.
    pub eviction: EvictionKind,
    /// How the node is chosen that keeps a target.
    pub policy: PolicyKind,
    /// Requests of the trace.
    pub requests: NonZero<u64>,
    /// One target in so many is simulated, of those that are not hot; 1: all of them.
    pub one_in: NonZero<u32>,
    /// Requests that a node gets from its clients a second.
    pub rate_per_s: NonZero<u32>,
    /// For the sample, the tables of the policy, and which node keeps a target.
    pub seed: u64,
}

/// The highest rate of a node, requests a second, with a sample and copies. A target that is
/// requested 8 times a second is copied if that is one in 256 of the requests that the node sends
/// on. Of up to 8 x 256 requests it always is, so that it does not matter that a sample has fewer.
pub const RATE_MAX_OF_SAMPLE: u32 = 2048;

/// Why a network cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleSettingError {
    /// More nodes than a view has, or none at all.
    Nodes(u16),
    /// The policy keeps a table of targets in each node.
    Policy(PolicyKind),
    /// The sample has too few requests to tell shares of them.
    Rate(u32),
    /// The order of eviction depends on sizes, which a sample changes.
    Eviction(EvictionKind),
    /// A node's part of the memory that stands for the sample is nothing.
    Cache(u64),
}

impl fmt::Display for ScaleSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(f, "{nodes} nodes, expected 1 to {NODES_MAX}"),
            Self::Policy(policy) => write!(
                f,
                "policy `{policy}`, expected `hash`, `bounded-hash` or `replicated-hash`: others \
                 have a table of targets in each node"
            ),
            Self::Rate(rate) => write!(
                f,
                "{rate} requests a second and node, expected at most {RATE_MAX_OF_SAMPLE} with a \
                 sample and `replicated-hash`"
            ),
            Self::Eviction(eviction) => write!(
                f,
                "eviction `{eviction}` with a sample, expected one that does not weigh sizes"
            ),
            Self::Cache(bytes) => write!(f, "caches of {bytes} bytes, expected more"),
        }
    }
}

impl std::error::Error for ScaleSettingError {}

impl ScaleSetting {
    /// Whether it can be simulated.
    ///
    /// # Errors
    /// It cannot, for this reason.
    pub fn check(&self) -> Result<(), ScaleSettingError> {
        let many = |nodes: &&NonZero<u16>| usize::from(nodes.get()) > NODES_MAX;
        if let Some(nodes) = self.nodes.iter().find(many) {
            return Err(ScaleSettingError::Nodes(nodes.get()));
        }
        if self.nodes.is_empty() {
            return Err(ScaleSettingError::Nodes(0));
        }
        if !matches!(
            self.policy,
            PolicyKind::Hash | PolicyKind::BoundedHash | PolicyKind::ReplicatedHash
        ) {
            return Err(ScaleSettingError::Policy(self.policy));
        }
        if self.is_sampled() {
            let copies = self.policy == PolicyKind::ReplicatedHash;
            if copies && self.rate_per_s.get() > RATE_MAX_OF_SAMPLE {
                return Err(ScaleSettingError::Rate(self.rate_per_s.get()));
            }
            if self.eviction == EvictionKind::Gds {
                return Err(ScaleSettingError::Eviction(self.eviction));
            }
        }
        if self.cache_bytes < u64::from(self.one_in.get()) {
            return Err(ScaleSettingError::Cache(self.cache_bytes));
        }
        Ok(())
    }

    /// Whether targets are left out.
    pub(super) fn is_sampled(&self) -> bool {
        self.one_in.get() > 1
    }

    /// How long the trace takes a network of so many nodes, seconds.
    pub(super) fn duration_s(&self, nodes: u16) -> f64 {
        let requests = self.requests.get() as f64;
        requests / (f64::from(self.rate_per_s.get()) * f64::from(nodes))
    }

    /// When the request at `index` comes to a network of so many nodes, milliseconds.
    pub(super) fn time_ms(&self, index: u64, nodes: u16) -> u64 {
        let a_second = u64::from(self.rate_per_s.get()) * u64::from(nodes);
        let whole = index / a_second;
        whole * 1000 + (index % a_second) * 1000 / a_second
    }
}
