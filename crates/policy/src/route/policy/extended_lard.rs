//! `extended-lard`: LARD by costs, for each request of a persistent connection (Aron, Druschel,
//! Zwaenepoel, USENIX'99 §4).
//!
//! The first request of a connection chooses its *handling node* by the costs of all nodes. A later
//! request is served by the handling node if the target is mapped to it or few reads wait at its
//! disk; it then holds the target, too. If reads wait there, its memory is full of what it needs,
//! and the request is fetched laterally from a node that the target is mapped to, if that costs
//! less; the handling node then keeps no copy.
//!
//! What is mapped to no node is kept by the handling node, busy or not. The paper says of a busy
//! one that it keeps nothing; if that held for a first copy, a cluster at its limit would never
//! fill its memories, and the paper's figures could not be had (docs/lard.md).
//!
//! The paper counts events that are queued at the disk; here it is the node's miss pressure, in
//! which fetches that wait for the origin count, too.
//!
//! The unit of cost and of load is the delay of a request for a cached target at an idle server.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
use super::lard::{node_of_new_target, parts};
use super::rendezvous::Distance;
use super::server_set::ServerSet;
use super::table::{MappedMax, MappingTable};
use crate::now::Tick;
use crate::route::cluster::{ClusterView, HoldsIt, Node, Place, TargetKey, Totals};
use crate::route::why::Why;

/// The constants of the costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CostRules {
    /// `L_idle`, requests: below, load costs nothing.
    pub idle: u32,
    /// `L_overload`, requests: above, load costs infinitely.
    pub overload: u32,
    /// `MissCost`: the delay of a request for a target that is not cached.
    pub miss_cost: u32,
    /// The miss pressure from which a disk is busy.
    pub disk_busy: u32,
}

impl CostRules {
    /// USENIX'99 §4.1, measured for Apache 1.3.3 on FreeBSD 2.2.6: `L_idle` = 30, `L_overload` =
    /// 130, `MissCost` = 50. §4.2: the disk is little used with fewer than 5 queued events.
    pub const USENIX_1999: Self = Self {
        idle: 30,
        overload: 130,
        miss_cost: 50,
        disk_busy: 5,
    };

    /// The costs at a node, where the target is `mapped` or not, with this load.
    fn costs(self, load: u64, is_mapped: bool) -> Costs {
        let idle = parts(self.idle);
        let miss = Cost::of(parts(self.miss_cost));
        let balancing = if load < idle {
            Cost::NONE
        } else if load > parts(self.overload) {
            Cost::INFINITE
        } else {
            Cost::of(load - idle)
        };
        Costs {
            balancing,
            locality: if is_mapped { Cost::of(parts(1)) } else { miss },
            replacement: if is_mapped || load < idle {
                Cost::NONE
            } else {
                miss
            },
        }
    }
}

impl Default for CostRules {
    fn default() -> Self {
        Self::USENIX_1999
    }
}

/// Extended LARD.
#[derive(Clone, Debug)]
pub struct ExtendedLard {
    rules: CostRules,
    /// 44 to 48 bytes a target.
    mapped: MappingTable<ServerSet>,
}

/// What a decision looks at.
struct Candidates<'a> {
    rules: CostRules,
    view: &'a ClusterView<'a>,
    totals: Totals,
    target: TargetKey,
    mapped: ServerSet,
}

/// Cost, whether the target is not mapped there, load.
type Rank = (Cost, bool, u64);

impl Candidates<'_> {
    /// Whether the target is taken to be cached at the node: as it says itself, or as the table has
    /// it.
    fn is_mapped(&self, place: Place) -> bool {
        match self.view.holds(place) {
            HoldsIt::Yes => true,
            HoldsIt::No => false,
            HoldsIt::Unknown => self.mapped.contains(place),
        }
    }

    fn is_mapped_anywhere(&self) -> bool {
        let mut taking = self.view.all_taking();
        taking.any(|(place, _)| self.is_mapped(place))
    }

    fn costs(&self, place: Place, node: &Node) -> Costs {
        let load = self.totals.relative_load(node);
        self.rules.costs(load, self.is_mapped(place))
    }

    /// The one that costs the least of those that are `fit`; of several one that the target is
    /// mapped to, then the least loaded, then the first in rendezvous order.
    fn cheapest(&self, mut is_fit: impl FnMut(Place) -> bool) -> Option<(Place, Costs)> {
        let mut cheapest: Option<(Rank, Place, &Node, Costs)> = None;
        for (place, node) in self.view.all_taking() {
            if !is_fit(place) {
                continue;
            }
            let costs = self.costs(place, node);
            let cost = costs.total();
            // if all are overloaded, nothing but the load counts
            let is_elsewhere = cost != Cost::INFINITE && !self.is_mapped(place);
            let rank = (cost, is_elsewhere, self.totals.relative_load(node));
            let is_cheaper = cheapest.is_none_or(|(least, _, other, _)| {
                let is_nearer =
                    || Distance::of(self.target, node) < Distance::of(self.target, other);
                rank < least || (rank == least && is_nearer())
            });
            if is_cheaper {
                cheapest = Some((rank, place, node, costs));
            }
        }
        cheapest.map(|(_, place, _, costs)| (place, costs))
    }

    /// For the first request of a connection.
    fn first(&self) -> Option<(Place, Why)> {
        if !self.is_mapped_anywhere() {
            let high = self.rules.idle.saturating_add(self.rules.miss_cost);
            let place = node_of_new_target(self.view, &self.totals, self.target, high)?;
            return Some((place, Why::NotMapped));
        }
        let (place, _) = self.cheapest(|_| true)?;
        let why = if self.is_mapped(place) {
            Why::Mapped
        } else {
            Why::Moved
        };
        Some((place, why))
    }

    /// For a later request of a connection that the node at `place` handles.
    fn later(&self, place: Place, handling: &Node) -> Option<(Place, Why)> {
        if self.is_mapped(place) {
            return Some((place, Why::Mapped));
        }
        if handling.miss_pressure < self.rules.disk_busy {
            return Some((place, Why::DiskIdle));
        }
        if !self.is_mapped_anywhere() {
            return Some((place, Why::NotMapped));
        }
        let own = self.costs(place, handling).total();
        match self.cheapest(|other| other != place && self.is_mapped(other)) {
            Some((other, costs)) if costs.total() < own => Some((other, Why::Lateral)),
            _ => Some((place, Why::DiskBusy)),
        }
    }
}

impl ExtendedLard {
    /// With a table of at most `max` targets; `secret` is random and of this process alone.
    #[must_use]
    pub fn new(rules: CostRules, max: MappedMax, secret: u64) -> Self {
        Self {
            rules,
            mapped: MappingTable::new(max, secret),
        }
    }

    fn candidates<'a>(
        &self,
        view: &'a ClusterView<'a>,
        target: TargetKey,
        mapped: ServerSet,
    ) -> Candidates<'a> {
        Candidates {
            rules: self.rules,
            view,
            totals: view.totals(),
            target,
            mapped,
        }
    }

    /// What the choice says about where the target is cached.
    fn note(&mut self, target: TargetKey, mapped: ServerSet, place: Place, why: Why) {
        match why {
            // a copy more: the handling node has read it from its disk, and keeps it
            Why::DiskIdle => {
                let mut mapped = mapped;
                mapped.add(place);
                self.mapped.insert(target, mapped);
            }
            Why::NotMapped | Why::Moved => self.mapped.insert(target, ServerSet::of(place)),
            _ => {}
        }
    }
}

impl Policy for ExtendedLard {
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let choice = self.preview(now, view, request)?;
        let mapped = self.mapped.get(request.target).copied();
        let mapped = mapped.unwrap_or_default();
        self.note(request.target, mapped, choice.place, choice.why);
        Some(choice)
    }

    fn preview(
        &self,
        _now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let target = request.target;
        let mapped = self.mapped.peek(target).copied().unwrap_or_default();
        let candidates = self.candidates(view, target, mapped);
        let handling = request.handling;
        let handling = handling.and_then(|place| Some((place, view.taking(place)?)));
        let (place, why) = match handling {
            None => candidates.first()?,
            Some((place, node)) => candidates.later(place, node)?,
        };
        let costs = candidates.costs(place, view.taking(place)?);
        Some(NodeChoice { place, why, costs })
    }

    /// In parts of 1024 of the unit.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs {
        let mapped = self.mapped.peek(request.target);
        let candidates = self.candidates(view, request.target, mapped.copied().unwrap_or_default());
        match view.taking(place) {
            Some(node) => candidates.costs(place, node),
            None => Costs {
                balancing: Cost::INFINITE,
                ..Costs::default()
            },
        }
    }

    fn correct(&mut self, target: TargetKey, place: Place, is_held: bool) {
        match self.mapped.get(target) {
            Some(mapped) if is_held => mapped.add(place),
            Some(mapped) => mapped.remove(place),
            None if is_held => self.mapped.insert(target, ServerSet::of(place)),
            None => {}
        }
    }

    fn forget(&mut self, place: Place) {
        for mapped in self.mapped.values() {
            mapped.remove(place);
        }
    }

    fn move_nodes(&mut self, places: &[Option<Place>]) {
        for mapped in self.mapped.values() {
            mapped.move_nodes(places);
        }
    }

    fn table_bytes(&self) -> usize {
        self.mapped.heap_bytes()
    }
}
