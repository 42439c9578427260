//! `bounded-hash`: the first node in rendezvous order below a factor of the mean load (consistent
//! hashing with bounded loads: Mirrokni, Thorup, Zadimoghaddam 2018).
//!
//! A node's bound is `c` times its share, by weight, of the outstanding requests with this one
//! among them, rounded up to whole requests. The bounds together are more than the requests, so one
//! node is always below its bound.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
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

/// The bounds of the nodes of a view, for one more request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// A node of weight w may have fewer than w x `numerator` / `denominator` parts of a request.
    numerator: u128,
    denominator: u128,
}

impl Bounds {
    pub(super) fn of(totals: &Totals, factor: LoadFactor) -> Self {
        const THIS_REQUEST: u64 = 1024;
        Self {
            numerator: u128::from(totals.load + THIS_REQUEST) * u128::from(factor.0),
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
#[derive(Clone, Copy, Debug, Default)]
pub struct BoundedHash {
    factor: LoadFactor,
}

impl BoundedHash {
    /// With bounds of `factor` times the mean.
    #[must_use]
    pub const fn new(factor: LoadFactor) -> Self {
        Self { factor }
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
        let bounds = Bounds::of(&view.totals(), self.factor);
        let (place, why) = first_in_order(view, request.target, |_, node| bounds.is_below(node))?;
        Some(NodeChoice {
            place,
            why,
            costs: bounded_costs(view, request, place, bounds),
        })
    }

    /// Locality: the distance, in parts of 2^32. Balancing: infinite at the bound.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs {
        let bounds = Bounds::of(&view.totals(), self.factor);
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
