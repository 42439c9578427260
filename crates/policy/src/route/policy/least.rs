//! `least`: the least outstanding requests for its weight.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Place, TargetKey};
use crate::route::policy::order::least_loaded;
use crate::route::why::Why;

/// Chooses the least loaded node. Of several, the first in an order that the random number gives,
/// or without load the first node would get all requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Least;

impl Policy for Least {
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
        let random_order = TargetKey(request.random);
        let (place, _) = least_loaded(view, &view.totals(), random_order)?;
        Some(NodeChoice {
            place,
            why: Why::LeastLoad,
            costs: self.costs(view, request, place),
        })
    }

    /// Balancing: outstanding requests relative to the weight, in parts of 1024.
    fn costs(&self, view: &ClusterView<'_>, _request: &RoutedRequest, place: Place) -> Costs {
        let load = view.taking(place).map(|node| {
            let totals = view.totals();
            Cost::of(totals.relative_load(node))
        });
        Costs {
            balancing: load.unwrap_or(Cost::INFINITE),
            ..Costs::default()
        }
    }
}
