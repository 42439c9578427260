//! A policy that gives every later request of a connection to another node: what the cost of a
//! mechanism is measured with (USENIX'99, figures 5 and 6).

use weir_policy::Tick;
use weir_policy::route::policy::{Costs, NodeChoice, Policy, RoutedRequest};
use weir_policy::route::{ClusterView, Place, Why};

/// The first request of a connection in turn, each later one to the node after the one that handles
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Elsewhere {
    turns: u16,
}

impl Policy for Elsewhere {
    fn choose(
        &mut self,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let choice = self.preview(now, view, request);
        self.turns = self
            .turns
            .wrapping_add(u16::from(request.handling.is_none()));
        choice
    }

    fn preview(
        &self,
        _now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<NodeChoice> {
        let nodes = u16::try_from(view.nodes().len()).ok()?;
        let place = match request.handling {
            Some(Place(handling)) => (handling + 1).checked_rem(nodes)?,
            None => self.turns.checked_rem(nodes)?,
        };
        Some(NodeChoice {
            place: Place(place),
            why: Why::InTurn,
            costs: Costs::default(),
        })
    }

    fn costs(&self, _view: &ClusterView<'_>, _request: &RoutedRequest, _place: Place) -> Costs {
        Costs::default()
    }
}
