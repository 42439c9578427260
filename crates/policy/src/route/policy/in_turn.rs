//! `in-turn`: smooth weighted round robin (as nginx has it since 1.3.1).
//!
//! In each round every node gains its weight, and the one with the most loses the sum of all
//! weights and has the turn. So a node of weight 2 among three of weight 1 has every second turn,
//! and never two in sequence. A node that takes no request passes its turn on.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Place};
use crate::route::why::Why;
use alloc::vec::Vec;

/// Whose turn it is.
#[derive(Clone, Debug, Default)]
pub struct InTurn {
    /// What each node has gained since its turn, by place.
    gains: Vec<i64>,
}

impl InTurn {
    /// Begins a round, in which the returned node has the turn.
    fn next_turn(&mut self, view: &ClusterView<'_>) -> Option<usize> {
        let mut sum = 0;
        let mut first: Option<usize> = None;
        for (index, node) in view.nodes().iter().enumerate() {
            let weight = i64::from(node.weight.get());
            self.gains[index] += weight;
            sum += weight;
            if first.is_none_or(|first| self.gains[index] > self.gains[first]) {
                first = Some(index);
            }
        }
        self.gains[first?] -= sum;
        first
    }

    /// The one with the most of those that take requests.
    fn nearest(&self, view: &ClusterView<'_>) -> Option<Place> {
        let gains = |place: Place| self.gains[place.index()];
        let taking = view.all_taking().map(|(place, _)| place);
        taking.min_by_key(|place| -gains(*place))
    }
}

impl Policy for InTurn {
    fn choose(
        &mut self,
        _now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        self.gains.resize(view.nodes().len(), 0);
        let costs = |policy: &Self, place| policy.costs(view, request, place);
        for passed in 0..view.nodes().len() {
            let turn = Place::at(self.next_turn(view)?);
            if view.taking(turn).is_none() {
                continue;
            }
            let why = if passed == 0 {
                Why::InTurn
            } else {
                Why::OthersEjected
            };
            return Some(NodeChoice {
                place: turn,
                why,
                costs: costs(self, turn),
            });
        }
        // nodes of large weights take nothing and pass on all their turns
        let place = self.nearest(view)?;
        Some(NodeChoice {
            place,
            why: Why::OthersEjected,
            costs: costs(self, place),
        })
    }

    fn preview(
        &self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        // a number for each node
        self.clone().choose(now, view, request)
    }

    /// Balancing: what it has yet to gain to be first.
    fn costs(&self, view: &ClusterView<'_>, _request: &RoutedRequest, place: Place) -> Costs {
        let gained = |place: Place| self.gains.get(place.index()).copied().unwrap_or(0);
        let most = view.all_taking().map(|(place, _)| gained(place)).max();
        let lacks = most.map_or(0, |most| most - gained(place));
        Costs {
            balancing: Cost::of(u64::try_from(lacks).unwrap_or(0)),
            ..Costs::default()
        }
    }

    fn forget(&mut self, place: Place) {
        if let Some(gained) = self.gains.get_mut(place.index()) {
            *gained = 0;
        }
    }

    /// A node that is new has gained nothing.
    fn move_nodes(&mut self, places: &[Option<Place>]) {
        let mut gains = Vec::new();
        for (gained, place) in self.gains.iter().zip(places) {
            if let Some(place) = place {
                let nodes = gains.len().max(place.index() + 1);
                gains.resize(nodes, 0);
                gains[place.index()] = *gained;
            }
        }
        self.gains = gains;
    }
}
