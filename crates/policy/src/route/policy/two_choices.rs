//! `two-choices`: of two nodes at random, the one with the less outstanding requests times response
//! time (Mitzenmacher 2001; the product with a peak-sensitive mean is Finagle's and Linkerd's).
//!
//! Two at random and not the best of all: front ends that see the same loads would send all their
//! requests to the same node until it is the slowest. A node is drawn as often as its weight says.

use super::choice::{Cost, Costs, NodeChoice, Policy, RoutedRequest};
use super::rendezvous::mix;
use crate::now::Tick;
use crate::route::cluster::{ClusterView, Node, Place};
use crate::route::why::Why;
use core::num::NonZeroU32;

/// Chooses the better of two nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct TwoChoices;

impl Policy for TwoChoices {
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
        let first = draw(view, request.random, None)?;
        let place = match draw(view, mix(request.random), Some(first)) {
            Some(second) => better(view, first, second)?,
            None => first,
        };
        Some(NodeChoice {
            place,
            why: Why::BetterOfTwo,
            costs: self.costs(view, request, place),
        })
    }

    /// Balancing: outstanding requests, this one among them, in parts of 1024, times microseconds,
    /// by weight.
    fn costs(&self, view: &ClusterView<'_>, _request: &RoutedRequest, place: Place) -> Costs {
        let balancing = view.taking(place).map(|node| {
            let us = node.response_time_us.map_or(1, NonZeroU32::get);
            let cost = waiting(node, us) / u128::from(node.weight.get());
            Cost::of(u64::try_from(cost).unwrap_or(u64::MAX))
        });
        Costs {
            balancing: balancing.unwrap_or(Cost::INFINITE),
            ..Costs::default()
        }
    }
}

/// A node that takes requests, by weight, and not `without`.
fn draw(view: &ClusterView<'_>, random: u64, without: Option<Place>) -> Option<Place> {
    let candidates = || {
        let taking = view.all_taking();
        taking.filter(move |(place, _)| Some(*place) != without)
    };
    let sum: u64 = candidates().map(|(_, node)| weight(node)).sum();
    // Lemire's multiplication instead of a remainder
    let drawn = (u128::from(random) * u128::from(sum)) >> 64;
    let mut rest = u64::try_from(drawn).unwrap_or(0);
    for (place, node) in candidates() {
        match rest.checked_sub(weight(node)) {
            Some(less) => rest = less,
            None => return Some(place),
        }
    }
    None
}

/// The one where requests wait less; the first of equal ones. A response time that is not known is
/// taken to be the other's: then the outstanding requests decide alone, and a new node is not
/// flooded before its first response.
fn better(view: &ClusterView<'_>, first: Place, second: Place) -> Option<Place> {
    let (one, other) = (view.taking(first)?, view.taking(second)?);
    let known = |node: &Node, other: &Node| {
        let us = node.response_time_us.or(other.response_time_us);
        us.map_or(1, NonZeroU32::get)
    };
    let of_first = waiting(one, known(one, other)) * u128::from(other.weight.get());
    let of_second = waiting(other, known(other, one)) * u128::from(one.weight.get());
    Some(if of_second < of_first { second } else { first })
}

fn waiting(node: &Node, us: u32) -> u128 {
    const THIS_REQUEST: u128 = 1024;
    (u128::from(node.load.parts()) + THIS_REQUEST) * u128::from(us)
}

fn weight(node: &Node) -> u64 {
    u64::from(node.weight.get())
}
