//! A choice among nodes: what it is made for, its costs, and what each policy provides.

use crate::now::Tick;
use crate::route::cluster::{ClusterView, Place, TargetKey};
use crate::route::why::Why;
use core::fmt;

/// What a node is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutedRequest {
    /// The target.
    pub target: TargetKey,
    /// A random number for this choice alone.
    pub random: u64,
    /// The node that handles the client's connection, if one does: that of an earlier request.
    ///
    /// For front ends that hand connections over. It has no meaning where each request of a
    /// connection may be sent to another node for nothing (a relay), or where the node that the
    /// client is connected to handles it and asks the owner (`route::lateral`): then it is `None`.
    pub handling: Option<Place>,
}

impl RoutedRequest {
    /// The first request of a connection, or one where no node handles connections.
    #[must_use]
    pub const fn new(target: TargetKey, random: u64) -> Self {
        Self {
            target,
            random,
            handling: None,
        }
    }
}

/// A chosen node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeChoice {
    /// Where it is in the view.
    pub place: Place,
    /// Why this one.
    pub why: Why,
    /// What it costs there.
    pub costs: Costs,
}

/// A cost. Policies have units of their own; costs of one policy compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// No cost.
    pub const NONE: Self = Self(0);
    /// Only where all others cost the same.
    pub const INFINITE: Self = Self(u64::MAX);

    /// A finite cost; the largest is one below infinite.
    #[must_use]
    pub const fn of(units: u64) -> Self {
        Self(if units == u64::MAX { units - 1 } else { units })
    }

    /// In the policy's units; none if it is infinite.
    #[must_use]
    pub const fn units(self) -> Option<u64> {
        if self.0 == u64::MAX {
            None
        } else {
            Some(self.0)
        }
    }

    const fn plus(self, other: Self) -> Self {
        match (self.units(), other.units()) {
            (Some(own), Some(others)) => Self::of(own.saturating_add(others)),
            _ => Self::INFINITE,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.units() {
            Some(units) => units.fmt(f),
            None => f.pad("infinite"),
        }
    }
}

/// What a request costs at a node, in the three parts of USENIX'99 §4.1 (Aron, Druschel,
/// Zwaenepoel).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Costs {
    /// The delay by other requests.
    pub balancing: Cost,
    /// The delay if the node does not hold the response, or lies far in the rendezvous order.
    pub locality: Cost,
    /// The later delay of others, whose responses are evicted for this one.
    pub replacement: Cost,
}

impl Costs {
    /// The aggregate cost.
    #[must_use]
    pub const fn total(self) -> Cost {
        self.balancing.plus(self.locality).plus(self.replacement)
    }
}

/// A policy with its state: what it chose before.
///
/// After the first choice of a view with so many nodes, a choice allocates nothing.
pub trait Policy: fmt::Debug + Send + Sync {
    /// Chooses a node, and notes it; none if no node takes requests.
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice>;

    /// What [`Policy::choose`] would choose, without noting it. No table is copied for it that
    /// grows with the number of targets.
    fn preview(
        &self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice>;

    /// What the request would cost at the node at `place` of the view.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs;

    /// Whether `target` is requested so often of this node that it should keep a copy of what
    /// another node has. Only nodes that fetch from each other do.
    fn is_copied(&self, _target: TargetKey) -> bool {
        false
    }

    /// Whether the node at `place` held the target when it was asked: corrects what was concluded
    /// from choices.
    fn correct(&mut self, _target: TargetKey, _place: Place, _is_held: bool) {}

    /// Nothing is mapped to `place` any more: it is another node's from now on. Walks the whole
    /// table.
    fn forget(&mut self, _place: Place) {}

    /// The nodes have other places from now on: `places` has the new one of each by its old one,
    /// none for a node that is no member any more. Walks the whole table.
    fn move_nodes(&mut self, _places: &[Option<Place>]) {}

    /// Bytes of heap that it has for its tables; they are allocated when it is made.
    fn table_bytes(&self) -> usize {
        0
    }
}

/// The new place of a node, as [`Policy::move_nodes`] has it.
pub(super) fn moved(places: &[Option<Place>], place: Place) -> Option<Place> {
    places.get(place.index()).copied().flatten()
}
