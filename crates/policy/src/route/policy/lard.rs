//! `lard`: locality-aware request distribution (Pai et al., ASPLOS'98, figure 2).
//!
//! A target stays with its node until that node is overloaded while another is idle, or is
//! overloaded twice as much; then it moves to the least loaded node. The load is that of
//! outstanding requests (the paper: active connections), relative to the weights.
//!
//! The paper gives a new target to the least loaded node. Here it goes to the first in rendezvous
//! order that is not overloaded, so that front ends that do not talk to each other agree.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest, moved};
use super::order::{first_in_order, least_loaded};
use super::table::{MappedMax, MappingTable};
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Place, TargetKey, Totals};
use crate::route::why::Why;

/// When a node is idle and when overloaded, in outstanding requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoadLimits {
    /// `T_low`: below, a node is idle.
    pub low: u32,
    /// `T_high`: above, a node is overloaded. More than `low`.
    pub high: u32,
}

impl LoadLimits {
    /// ASPLOS'98 §2.4: `T_low` = 25 and `T_high` = 65 active connections.
    pub const ASPLOS_1998: Self = Self { low: 25, high: 65 };

    pub(super) fn is_idle(self, load: u64) -> bool {
        load < parts(self.low)
    }

    pub(super) fn is_overloaded(self, load: u64) -> bool {
        load > parts(self.high)
    }

    /// Whether a target leaves its node, with this load, if the least loaded has `least`.
    pub(super) fn is_left(self, load: u64, least: u64) -> bool {
        (self.is_overloaded(load) && self.is_idle(least)) || load >= 2 * parts(self.high)
    }
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self::ASPLOS_1998
    }
}

/// Requests as parts of a load.
pub(super) fn parts(requests: u32) -> u64 {
    u64::from(requests) * 1024
}

/// The first in rendezvous order with at most `high` requests; if all have more, the least loaded.
pub(super) fn node_of_new_target(
    view: &ClusterView<'_>,
    totals: &Totals,
    target: TargetKey,
    high: u32,
) -> Option<Place> {
    let is_fit = |_, node: &_| totals.relative_load(node) <= parts(high);
    let first = first_in_order(view, target, is_fit).map(|(place, _)| place);
    first.or_else(|| least_loaded(view, totals, target).map(|(place, _)| place))
}

/// LARD with one node a target.
#[derive(Clone, Debug)]
pub struct Lard {
    limits: LoadLimits,
    /// 28 to 32 bytes a target.
    mapped: MappingTable<Place>,
}

impl Lard {
    /// With a table of at most `max` targets; `secret` is random and of this process alone.
    #[must_use]
    pub fn new(limits: LoadLimits, max: MappedMax, secret: u64) -> Self {
        Self {
            limits,
            mapped: MappingTable::new(max, secret),
        }
    }

    fn decide(
        &self,
        view: &ClusterView<'_>,
        totals: &Totals,
        target: TargetKey,
    ) -> Option<(Place, Why)> {
        let mapped = self.mapped.peek(target).copied();
        let known = mapped.and_then(|place| Some((place, view.taking(place)?)));
        let Some((place, node)) = known else {
            let place = node_of_new_target(view, totals, target, self.limits.high)?;
            return Some((place, Why::NotMapped));
        };
        let load = totals.relative_load(node);
        if !self.limits.is_overloaded(load) {
            return Some((place, Why::Mapped));
        }
        let (idlest, least) = least_loaded(view, totals, target)?;
        if self.limits.is_left(load, least) && idlest != place {
            return Some((idlest, Why::Moved));
        }
        Some((place, Why::Mapped))
    }
}

impl Policy for Lard {
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let choice = self.preview(now, view, request)?;
        self.mapped.insert(request.target, choice.place);
        Some(choice)
    }

    fn preview(
        &self,
        _now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let (place, why) = self.decide(view, &view.totals(), request.target)?;
        Some(NodeChoice {
            place,
            why,
            costs: self.costs(view, request, place),
        })
    }

    /// Balancing: the load, in parts of 1024 of a request. Locality: `T_high` - `T_low` requests
    /// where the target is not mapped to. The policy compares neither: it has limits.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs {
        let mapped = self.mapped.peek(request.target);
        load_costs(view, place, mapped == Some(&place), self.limits)
    }

    /// A node that holds a target which is not mapped has it from now on. One that lost a target
    /// keeps it: it stores it again by this request.
    fn correct(&mut self, target: TargetKey, place: Place, is_held: bool) {
        let mapped = self.mapped.peek(target).copied();
        if is_held && mapped.is_none() {
            self.mapped.insert(target, place);
        }
    }

    fn forget(&mut self, place: Place) {
        for mapped in self.mapped.values() {
            if *mapped == place {
                *mapped = NOWHERE;
            }
        }
    }

    fn move_nodes(&mut self, places: &[Option<Place>]) {
        for mapped in self.mapped.values() {
            *mapped = moved(places, *mapped).unwrap_or(NOWHERE);
        }
    }

    fn table_bytes(&self) -> usize {
        self.mapped.heap_bytes()
    }
}

/// The place of no node.
const NOWHERE: Place = Place(u16::MAX);

pub(super) fn load_costs(
    view: &ClusterView<'_>,
    place: Place,
    is_mapped: bool,
    limits: LoadLimits,
) -> Costs {
    let load = view
        .taking(place)
        .map(|node| view.totals().relative_load(node));
    let locality = if is_mapped {
        Cost::NONE
    } else {
        Cost::of(parts(limits.high.saturating_sub(limits.low)))
    };
    Costs {
        balancing: load.map_or(Cost::INFINITE, Cost::of),
        locality,
        replacement: Cost::NONE,
    }
}
