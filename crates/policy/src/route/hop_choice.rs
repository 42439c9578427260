//! The next hops of one route, and the choice among them by its policy.

use crate::connections::HopId;
use crate::now::{Now, Tick};
use crate::route::RouteSpec;
use crate::route::cluster::{ClusterView, Node, NodeKey, NodeState, Place, TargetKey, Weight};
use crate::route::connection_hops::ChoiceFor;
use crate::route::health::{Condition, Health};
use crate::route::policy::{Costs, NodeChoice, Policy, PolicyKind, PolicyRules, RoutedRequest};
use crate::route::ramp::{self, RampMs};
use crate::route::why::Why;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A next hop of a route as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteHop {
    /// Its number.
    pub hop: HopId,
    /// A hash of its name, by which targets are shared among next hops: equal in all processes that
    /// are to agree.
    pub key: NodeKey,
    /// Its share.
    pub weight: Weight,
}

/// How the next hops of a route are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balancing {
    /// The policy.
    pub policy: PolicyKind,
    /// Its constants.
    pub rules: PolicyRules,
    /// How long a next hop that is new, or was ejected, gets less than its share.
    pub ramp: RampMs,
}

/// A next hop of a route, and what a request for some target would cost there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub hop: HopId,
    /// How it is now.
    pub node: Node,
    /// The costs, in the units of the route's policy.
    pub costs: Costs,
    /// Why a request for the target would be sent there now, if it would be. No next hop has it
    /// where the policy chooses at random.
    pub chosen: Option<Why>,
}

/// The next hops of a route with what was chosen among them before.
#[derive(Debug)]
pub(super) struct HopChoice {
    /// Their places among all hops.
    indexes: Vec<usize>,
    /// The same as nodes; what changes is written for each choice.
    nodes: Vec<Node>,
    /// Their shares as configured, by place.
    weights: Vec<Weight>,
    ramp: RampMs,
    /// Shares are others than as configured.
    is_ramping: bool,
    kind: PolicyKind,
    policy: Box<dyn Policy>,
    choice_for: ChoiceFor,
    /// Where requests of the same connection went before counts.
    remembers: bool,
    /// The next hop of the last request of a connection handles it.
    has_handling: bool,
}

impl HopChoice {
    pub(super) fn new(spec: &RouteSpec, health: &Health, secret: u64) -> Self {
        let how = spec.balancing;
        let known = spec
            .hops
            .iter()
            .filter_map(|hop| Some((health.index_of(hop.hop)?, *hop)));
        let (indexes, nodes): (Vec<usize>, Vec<Node>) = known
            .map(|(index, hop)| {
                let node = Node {
                    weight: hop.weight,
                    ..Node::new(hop.key)
                };
                (index, node)
            })
            .unzip();
        Self {
            indexes,
            weights: nodes.iter().map(|node| node.weight).collect(),
            nodes,
            ramp: how.ramp,
            // the first choice writes the weights
            is_ramping: true,
            kind: how.policy,
            policy: how.policy.build(&how.rules, secret),
            choice_for: spec.choice_for,
            remembers: spec.remembers(),
            has_handling: spec.has_handling_hop(),
        }
    }

    /// The place of the chosen hop among all hops, of those that are not in `tried`. `last` is
    /// where the last request of the same connection went. `target` is called if the policy needs
    /// it.
    pub(super) fn choose(
        &mut self,
        now: Now,
        health: &Health,
        (tried, last): (&[HopId], Option<NodeKey>),
        random: u64,
        target: impl FnOnce() -> TargetKey,
    ) -> (usize, Why) {
        self.see(now, health, tried);
        let last = last.and_then(|key| self.place_of(key));
        if let Some(index) = self.kept(now, health, last) {
            return (index, Why::Connection);
        }
        let target = if self.kind.uses_target() {
            target()
        } else {
            TargetKey(random)
        };
        let request = RoutedRequest {
            handling: last.filter(|_| self.has_handling),
            ..RoutedRequest::new(target, random)
        };
        let view = ClusterView::new(&self.nodes);
        let choice = self.policy.choose(now.tick, &view, &request);
        self.hop_of(now, health, tried, choice)
    }

    /// The place of the next hop with this key.
    fn place_of(&self, key: NodeKey) -> Option<Place> {
        let index = self.nodes.iter().position(|node| node.key == key);
        index.map(Place::at)
    }

    /// The next hop that a connection keeps, by its place among all hops: the `last` one, if
    /// nothing is known against it. One that is to be probed after an ejection is chosen anew.
    fn kept(&self, now: Now, health: &Health, last: Option<Place>) -> Option<usize> {
        let place = last.filter(|_| self.choice_for == ChoiceFor::Connection)?;
        let is_taking = self.nodes[place.index()].takes_requests();
        let index = self.indexes[place.index()];
        let is_healthy = health.at(index).condition(now) == Condition::Healthy;
        (is_taking && is_healthy).then_some(index)
    }

    /// What is noted of a connection whose request goes to `hop`; `None` if nothing is.
    pub(super) fn remembered(&self, hop: HopId, health: &Health) -> Option<NodeKey> {
        let index = health.index_of(hop).filter(|_| self.remembers)?;
        let place = self.indexes.iter().position(|known| *known == index)?;
        Some(self.nodes[place].key)
    }

    /// The hop of a choice, by its place among all hops.
    fn hop_of(
        &self,
        now: Now,
        health: &Health,
        tried: &[HopId],
        choice: Option<NodeChoice>,
    ) -> (usize, Why) {
        let Some(choice) = choice else {
            return (self.first_back(now, health, tried), Why::AllEjected);
        };
        let index = self.indexes[choice.place.index()];
        match health.at(index).condition(now) {
            Condition::Probing => (index, Why::Probe),
            _ => (index, choice.why),
        }
    }

    /// Whether response times are used.
    pub(super) const fn is_timed(&self) -> bool {
        self.kind.uses_response_time()
    }

    /// Brings the nodes up to date.
    fn see(&mut self, now: Now, health: &Health, tried: &[HopId]) {
        self.ramp(now, health);
        for (node, index) in self.nodes.iter_mut().zip(&self.indexes) {
            let hop = health.at(*index);
            node.state = match hop.condition(now) {
                _ if tried.contains(&hop.hop()) => NodeState::Gone,
                Condition::Healthy | Condition::Probing => NodeState::In,
                Condition::Ejected { .. } => NodeState::Gone,
            };
            node.load = hop.load;
            node.miss_pressure = hop.awaited;
            if self.kind.uses_response_time() {
                node.response_time_us = hop.response_time.us(now.tick);
            }
        }
    }

    /// Brings the shares up to date, if a next hop is new or was ejected.
    fn ramp(&mut self, now: Now, health: &Health) {
        if self.ramp == RampMs(0) {
            return;
        }
        let (indexes, ramp) = (&self.indexes, self.ramp);
        let parts = |place: usize| ramp.parts(health.at(indexes[place]).back_for_ms(now));
        let is_ramping = (0..indexes.len()).any(|place| parts(place) < RampMs::WHOLE);
        if is_ramping || self.is_ramping {
            ramp::write_weights(&mut self.nodes, &self.weights, parts);
        }
        self.is_ramping = is_ramping;
    }

    /// The hop whose ejection ends first, of those that are not in `tried` if there is one.
    fn first_back(&self, now: Now, health: &Health, tried: &[HopId]) -> usize {
        let until = |index: usize| {
            let hop = health.at(index);
            let until = match hop.condition(now) {
                Condition::Ejected { until } => until,
                _ => Tick(0),
            };
            (tried.contains(&hop.hop()), until)
        };
        let first = self.indexes.iter().copied().min_by_key(|it| until(*it));
        first.unwrap_or_default()
    }

    /// Every next hop with what a choice for the target would see of it.
    pub(super) fn candidates(
        &mut self,
        now: Now,
        health: &Health,
        target: TargetKey,
    ) -> Vec<Candidate> {
        self.see(now, health, &[]);
        let view = ClusterView::new(&self.nodes);
        let request = RoutedRequest::new(target, 0);
        let preview = self.policy.preview(now.tick, &view, &request);
        let (chosen, why) = self.hop_of(now, health, &[], preview);
        let is_known = preview.is_none() || !self.kind.is_random();
        let nodes = self.nodes.iter().zip(&self.indexes).enumerate();
        let candidates = nodes.map(|(place, (node, index))| Candidate {
            hop: health.at(*index).hop(),
            node: *node,
            costs: self.policy.costs(&view, &request, Place::at(place)),
            chosen: (is_known && *index == chosen).then_some(why),
        });
        candidates.collect()
    }
}
