//! `hash`: the first node in the rendezvous order of the target.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
use super::order::first_in_order;
use super::rendezvous::Distance;
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Place};

/// Chooses by the target alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hash;

impl Policy for Hash {
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
        let (place, why) = first_in_order(view, request.target, |_, _| true)?;
        Some(NodeChoice {
            place,
            why,
            costs: self.costs(view, request, place),
        })
    }

    /// Locality: the distance, in parts of 2^32.
    fn costs(&self, view: &ClusterView<'_>, request: &RoutedRequest, place: Place) -> Costs {
        let distance = view
            .taking(place)
            .map(|node| Distance::of(request.target, node));
        Costs {
            locality: distance.map_or(Cost::INFINITE, |distance| Cost::of(distance.parts())),
            ..Costs::default()
        }
    }
}
