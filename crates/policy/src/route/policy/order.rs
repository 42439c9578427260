//! Searches in a view: the first in rendezvous order, the least loaded.

use super::rendezvous::Distance;
use crate::route::cluster::{ClusterView, Node, NodeState, Place, TargetKey, Totals};
use crate::route::why::Why;

/// The first in the target's rendezvous order of those that take requests and are `fit`, and why it
/// is not the first of all, if it is not.
pub(super) fn first_in_order(
    view: &ClusterView<'_>,
    target: TargetKey,
    mut is_fit: impl FnMut(Place, &Node) -> bool,
) -> Option<(Place, Why)> {
    let mut first: Option<(Distance, &Node)> = None;
    let mut first_fit: Option<(Distance, Place)> = None;
    for (index, node) in view.nodes().iter().enumerate() {
        if node.state == NodeState::FrontEnd {
            // it is in no target's order
            continue;
        }
        let distance = Distance::of(target, node);
        // the first of all is no farther than the first that is fit
        if first_fit.is_some_and(|(first_fit, _)| first_fit < distance) {
            continue;
        }
        if first.is_none_or(|(first, _)| distance < first) {
            first = Some((distance, node));
        }
        let place = Place::at(index);
        if node.takes_requests() && is_fit(place, node) {
            first_fit = Some((distance, place));
        }
    }
    let (distance, place) = first_fit?;
    let why = match first {
        Some((first, _)) if first == distance => Why::FirstInOrder,
        Some((_, node)) if node.takes_requests() => Why::NextInOrder,
        _ => Why::OthersEjected,
    };
    Some((place, why))
}

/// The node with the least load for its weight, with that load as [`Totals::relative_load`] has it.
/// Of several the first in the target's rendezvous order, so that front ends agree.
pub(super) fn least_loaded(
    view: &ClusterView<'_>,
    totals: &Totals,
    target: TargetKey,
) -> Option<(Place, u64)> {
    least_loaded_of(view.all_taking(), totals, target)
}

/// The same of some nodes.
pub(super) fn least_loaded_of<'a>(
    nodes: impl Iterator<Item = (Place, &'a Node)>,
    totals: &Totals,
    target: TargetKey,
) -> Option<(Place, u64)> {
    let mut least: Option<(u64, Place, &Node)> = None;
    for (place, node) in nodes {
        let load = totals.relative_load(node);
        let is_less = least.is_none_or(|(least_load, _, other)| {
            let is_nearer = || Distance::of(target, node) < Distance::of(target, other);
            load < least_load || (load == least_load && is_nearer())
        });
        if is_less {
            least = Some((load, place, node));
        }
    }
    least.map(|(load, place, _)| (place, load))
}
