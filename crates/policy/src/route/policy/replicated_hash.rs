//! `replicated-hash`: `bounded-hash`, with targets of high rate at several nodes.
//!
//! With `bounded-hash` alone, the node of a hot target is at its bound at all times, and its other
//! targets are sent to nodes that do not hold them. So a target's share of all requests is
//! measured, and one that takes more than a quarter of a node is shared by as many nodes as it
//! needs, the first of its rendezvous order. There is no set to keep, so no limit to it.

use super::bounded_hash::{Bounds, LoadBound, bounded_costs};
use super::choice::{Costs, NodeChoice, Policy, RoutedRequest};
use super::hot_targets::HotTargets;
use super::lard::parts;
use super::order::first_in_order;
use super::rendezvous::Distance;
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Place, TargetKey, Totals};
use crate::route::why::Why;
use alloc::vec::Vec;

/// Chooses by the target, within bounds; of several nodes of a hot target the least loaded, but the
/// first while none is overloaded.
#[derive(Clone, Debug)]
pub struct ReplicatedHash {
    bound: LoadBound,
    hot: HotTargets,
    /// The nodes of a view by distance, for one choice.
    order: Vec<(Distance, Place)>,
}

impl ReplicatedHash {
    /// With this bound of each node; `secret` is random and of this process alone.
    #[must_use]
    pub fn new(bound: LoadBound, secret: u64) -> Self {
        Self {
            bound,
            hot: HotTargets::new(secret),
            order: Vec::new(),
        }
    }

    /// The least loaded of the first `replicas` in rendezvous order that are below their bounds.
    fn replica(
        &mut self,
        view: &ClusterView<'_>,
        totals: &Totals,
        bounds: Bounds,
        target: TargetKey,
        replicas: usize,
    ) -> Option<Place> {
        let taking = view.all_taking();
        self.order
            .extend(taking.map(|(place, node)| (Distance::of(target, node), place)));
        let replicas = replicas.min(self.order.len());
        if replicas < self.order.len() {
            self.order.select_nth_unstable(replicas);
        }
        let first = &self.order[..replicas];
        let nodes = first.iter().filter_map(|(distance, place)| {
            let node = view.taking(*place)?;
            // below the floor all are idle, and front ends that know other loads agree
            let load = totals.relative_load(node).max(parts(self.bound.floor));
            bounds.is_below(node).then_some((load, *distance, *place))
        });
        nodes.min().map(|(_, _, place)| place)
    }
}

impl Policy for ReplicatedHash {
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let target = request.target;
        let totals = view.totals();
        let bounds = Bounds::of(&totals, self.bound);
        // its room depends on the number of nodes alone, not on when a target is hot first
        self.order.clear();
        self.order.reserve(view.nodes().len());
        self.hot.note(now, target);
        let replicas = self.hot.nodes_of(target, totals.nodes);
        let replicas = usize::try_from(replicas).unwrap_or(usize::MAX);
        let replica = if replicas > 1 {
            self.replica(view, &totals, bounds, target, replicas)
        } else {
            None
        };
        let (place, why) = match replica {
            Some(place) => (place, Why::Replica),
            None => first_in_order(view, target, |_, node| bounds.is_below(node))?,
        };
        Some(NodeChoice {
            place,
            why,
            costs: bounded_costs(view, request, place, bounds),
        })
    }

    fn is_copied(&self, target: TargetKey) -> bool {
        self.hot.is_copied(target)
    }

    fn preview(
        &self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        // 16 KiB, whatever the number of targets
        self.clone().choose(now, view, request)
    }

    /// As those of `bounded-hash`.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs {
        let bounds = Bounds::of(&view.totals(), self.bound);
        bounded_costs(view, request, place, bounds)
    }

    fn table_bytes(&self) -> usize {
        self.hot.heap_bytes()
    }
}
