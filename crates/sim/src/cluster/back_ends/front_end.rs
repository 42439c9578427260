//! The front end: the policy, and what it sees of the nodes.
//!
//! It knows their loads and reads exactly: it has given all requests to them itself, and reports
//! cost nothing here.

use crate::hashing::mix;
use crate::world::{Nanos, tick};
use weir_policy::route::policy::{Policy, RoutedRequest};
use weir_policy::route::{ClusterView, Load, Node, NodeKey, PeakMean, Place, TargetKey, Why};

#[derive(Debug)]
pub(super) struct FrontEnd {
    policy: Box<dyn Policy>,
    view: Vec<Node>,
    /// By place, if the policy uses them.
    response_times: Vec<PeakMean>,
    /// Of the next choice at random.
    random: u64,
}

impl FrontEnd {
    pub(super) fn new(
        policy: Box<dyn Policy>,
        nodes: u16,
        uses_response_times: bool,
        seed: u64,
    ) -> Self {
        let view: Vec<Node> = (1..=u64::from(nodes))
            .map(|key| Node::new(NodeKey(mix(key))))
            .collect();
        let timed = if uses_response_times { view.len() } else { 0 };
        Self {
            policy,
            response_times: vec![PeakMean::default(); timed],
            view,
            random: mix(seed),
        }
    }

    /// The node for a request, and why.
    pub(super) fn choose(
        &mut self,
        at: Nanos,
        number: u32,
        handling: Option<Place>,
    ) -> (Place, Why) {
        let now = tick(at);
        for (node, mean) in self.view.iter_mut().zip(&self.response_times) {
            node.response_time_us = mean.us(now);
        }
        self.random = self.random.wrapping_add(GOLDEN);
        let request = RoutedRequest {
            target: TargetKey(mix(u64::from(number))),
            random: mix(self.random),
            handling,
        };
        let view = ClusterView::new(&self.view);
        let choice = self.policy.choose(now, &view, &request);
        // all nodes take requests
        choice.map_or((Place(0), Why::AllEjected), |choice| {
            (choice.place, choice.why)
        })
    }

    pub(super) fn begin(&mut self, place: Place, load: Load) {
        let node = &mut self.view[place.index()];
        node.load = node.load.plus(load);
    }

    pub(super) fn end(&mut self, place: Place, load: Load) {
        let node = &mut self.view[place.index()];
        debug_assert!(node.load >= load, "more ends at {place:?} than began");
        node.load = node.load.minus(load);
    }

    pub(super) fn set_miss_pressure(&mut self, place: Place, reads: u32) {
        self.view[place.index()].miss_pressure = reads;
    }

    /// A node has answered a request, this long after it had it.
    pub(super) fn responded(&mut self, at: Nanos, place: Place, after: Nanos) {
        if let Some(mean) = self.response_times.get_mut(place.index()) {
            mean.note_us(tick(at), after / crate::world::MICROSECOND);
        }
    }

    pub(super) fn view(&self) -> &[Node] {
        &self.view
    }
}

/// The step of splitmix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
