//! `bounded-hash`: the first node in rendezvous order below a factor of the mean load (consistent
//! hashing with bounded loads: Mirrokni, Thorup, Zadimoghaddam 2018).
//!
//! A node's bound is `c` times its share, by weight, of the outstanding requests with this one
//! among them, rounded up to whole requests. The bounds together are more than the requests, so one
//! node is always below its bound.
//!
//! A node with few requests is not overloaded, whatever the others have: of a small number, chance
//! alone has some node above the mean, another one at each front end. So no bound is less than the
//! `T_high` of `lard`, and front ends at half that load agree.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
use super::lard::parts;
use super::order::first_in_order;
use super::rendezvous::Distance;
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Node, Place, Totals};

/// How much more than the mean a node may have, `c` of the paper, in per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadFactor(u16);

impl LoadFactor {
    /// 1.25: the documentation of HAProxy's `hash-balance-factor` recommends 125 to 200. The less,
    /// the more requests leave the first node of their target.
    pub const DEFAULT: Self = Self(125);

    /// A factor of `pct` per cent; none at 100 or below, where no node may be below its bound.
    #[must_use]
    pub const fn from_pct(pct: u16) -> Option<Self> {
        if pct > 100 { Some(Self(pct)) } else { None }
    }

    /// In per cent.
    #[must_use]
    pub const fn pct(self) -> u16 {
        self.0
    }
}

impl Default for LoadFactor {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Which loads are too much for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoadBound {
    /// Of the mean.
    pub factor: LoadFactor,
    /// Outstanding requests that a node may have in any case; one of another weight than the mean
    /// in proportion.
    pub floor: u32,
}

/// The bounds of the nodes of a view, for one more request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// A node of weight w may have fewer than w x `numerator` / `denominator` parts of a request.
    numerator: u128,
    denominator: u128,
}

impl Bounds {
    pub(super) fn of(totals: &Totals, bound: LoadBound) -> Self {
        const THIS_REQUEST: u64 = 1024;
        let of_mean = u128::from(totals.load + THIS_REQUEST) * u128::from(bound.factor.0);
        let floors = u128::from(parts(bound.floor)) * u128::from(totals.nodes) * 100;
        Self {
            numerator: of_mean.max(floors),
            denominator: u128::from(totals.weight) * 100,
        }
    }

    /// Whether `node` can have one more.
    pub(super) fn is_below(&self, node: &Node) -> bool {
        u128::from(node.load.parts()) * self.denominator
            < self.numerator * u128::from(node.weight.get())
    }
}

/// Chooses by the target, within bounds.
#[derive(Clone, Copy, Debug)]
pub struct BoundedHash {
    bound: LoadBound,
}

impl BoundedHash {
    /// With this bound of each node.
    #[must_use]
    pub const fn new(bound: LoadBound) -> Self {
        Self { bound }
    }
}

impl Policy for BoundedHash {
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        self.preview(now, view, request)
    }

    fn preview(
        &self,
        _now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let bounds = Bounds::of(&view.totals(), self.bound);
        let (place, why) = first_in_order(view, request.target, |_, node| bounds.is_below(node))?;
        Some(NodeChoice {
            place,
            why,
            costs: bounded_costs(view, request, place, bounds),
        })
    }

    /// Locality: the distance, in parts of 2^32. Balancing: infinite at the bound.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs {
        let bounds = Bounds::of(&view.totals(), self.bound);
        bounded_costs(view, request, place, bounds)
    }
}

/// The distance, infinite for a node at its bound.
pub(super) fn bounded_costs(
    view: &ClusterView<'_>,
    request: &RoutedRequest,
    place: Place,
    bounds: Bounds,
) -> Costs {
    let Some(node) = view.taking(place) else {
        return Costs {
            balancing: Cost::INFINITE,
            ..Costs::default()
        };
    };
    let balancing = if bounds.is_below(node) {
        Cost::NONE
    } else {
        Cost::INFINITE
    };
    Costs {
        balancing,
        locality: Cost::of(Distance::of(request.target, node).parts()),
        replacement: Cost::NONE,
    }
}
