//! `lard-r`: LARD with replication (Pai et al., ASPLOS'98, figure 3).
//!
//! A target has a set of nodes, and a request goes to the least loaded of them. The set grows by
//! the least loaded of all nodes where LARD would move the target, and loses its most loaded node
//! when it did not change for `K`.

use super::choice::{Costs, NodeChoice, Policy, RoutedRequest};
use super::lard::{LoadLimits, load_costs, node_of_new_target};
use super::order::{least_loaded, least_loaded_of};
use super::server_set::ServerSet;
use super::table::{MappedMax, MappingTable};
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Place, TargetKey, Totals};
use crate::route::why::Why;

/// How long a set of nodes stays as it is before it loses a node, `K` of the paper, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaMs(pub u64);

impl ReplicaMs {
    /// ASPLOS'98 §2.5: 20 s.
    pub const ASPLOS_1998: Self = Self(20_000);
}

impl Default for ReplicaMs {
    fn default() -> Self {
        Self::ASPLOS_1998
    }
}

/// The nodes of a target, and since when.
#[derive(Clone, Copy, Debug)]
struct Replicas {
    set: ServerSet,
    changed: Tick,
}

/// LARD with a set of nodes a target.
#[derive(Clone, Debug)]
pub struct LardR {
    limits: LoadLimits,
    replica_ms: ReplicaMs,
    /// 60 to 64 bytes a target.
    mapped: MappingTable<Replicas>,
}

impl LardR {
    /// With a table of at most `max` targets; `secret` is random and of this process alone.
    #[must_use]
    pub fn new(limits: LoadLimits, replica_ms: ReplicaMs, max: MappedMax, secret: u64) -> Self {
        Self {
            limits,
            replica_ms,
            mapped: MappingTable::new(max, secret),
        }
    }

    /// A node, why, and the set of the target from then on.
    fn decide(
        &self,
        now: Tick,
        view: &ClusterView<'_>,
        target: TargetKey,
    ) -> Option<(Place, Why, Replicas)> {
        let totals = view.totals();
        let limits = self.limits;
        if let Some(mut replicas) = self.mapped.peek(target).copied() {
            replicas.set.retain(|place| view.taking(place).is_some());
            let chosen = replicas.choose(now, view, &totals, target, limits, self.replica_ms);
            if let Some((place, why)) = chosen {
                return Some((place, why, replicas));
            }
        }
        let place = node_of_new_target(view, &totals, target, limits.high)?;
        let set = ServerSet::of(place);
        Some((place, Why::NotMapped, Replicas { set, changed: now }))
    }
}

impl Replicas {
    /// None if the set is empty.
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        totals: &Totals,
        target: TargetKey,
        limits: LoadLimits,
        replica_ms: ReplicaMs,
    ) -> Option<(Place, Why)> {
        let members = self.set;
        let nodes = || {
            let members = members.iter();
            members.filter_map(|place| Some((place, view.taking(place)?)))
        };
        let (mut chosen, load) = least_loaded_of(nodes(), totals, target)?;
        let most = nodes().max_by_key(|(_, node)| totals.relative_load(node));
        let most = most.map(|(place, _)| place);
        let mut why = Why::Mapped;
        if limits.is_overloaded(load) {
            let (idlest, least) = least_loaded(view, totals, target)?;
            if limits.is_left(load, least) && !self.set.contains(idlest) {
                if self.set.len() == ServerSet::MAX {
                    self.remove(most);
                }
                self.set.add(idlest);
                (chosen, why) = (idlest, Why::Replicated);
            }
        }
        if self.set.len() > 1 && now.ms_since(self.changed) > replica_ms.0 {
            self.remove(most.filter(|most| *most != chosen));
        }
        if self.set != members {
            self.changed = now;
        }
        Some((chosen, why))
    }

    fn remove(&mut self, place: Option<Place>) {
        if let Some(place) = place {
            self.set.remove(place);
        }
    }
}

impl Policy for LardR {
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let (place, why, replicas) = self.decide(now, view, request.target)?;
        let costs = self.costs(view, request, place);
        self.mapped.insert(request.target, replicas);
        Some(NodeChoice { place, why, costs })
    }

    fn preview(
        &self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let (place, why, _) = self.decide(now, view, request.target)?;
        Some(NodeChoice {
            place,
            why,
            costs: self.costs(view, request, place),
        })
    }

    /// As those of `lard`.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs {
        let replicas = self.mapped.peek(request.target);
        let is_mapped = replicas.is_some_and(|replicas| replicas.set.contains(place));
        load_costs(view, place, is_mapped, self.limits)
    }

    /// A node that lost a target leaves its set, unless it is the last.
    fn correct(&mut self, target: TargetKey, place: Place, is_held: bool) {
        if let Some(replicas) = self.mapped.get(target)
            && !is_held
            && replicas.set.len() > 1
        {
            replicas.set.remove(place);
        }
    }

    fn forget(&mut self, place: Place) {
        for replicas in self.mapped.values() {
            replicas.set.remove(place);
        }
    }

    fn move_nodes(&mut self, places: &[Option<Place>]) {
        for replicas in self.mapped.values() {
            replicas.set.move_nodes(places);
        }
    }

    fn table_bytes(&self) -> usize {
        self.mapped.heap_bytes()
    }
}
