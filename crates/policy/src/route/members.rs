//! The nodes of a cluster as one of them knows them: what they say of themselves, whether they
//! answer, and what the policy chose before.
//!
//! A node knows of another one what that said in its last response, how fast it answers, and how
//! many requests of its own it awaits there. Nothing is known of nodes that it never asks: then
//! policies see an idle node.

use crate::now::Tick;
use crate::route::cluster::{ClusterView, HoldsIt, Load, Node, NodeState, Place, TargetKey};
use crate::route::health::{Condition, Ejection, EjectionRules};
use crate::route::hop_choice::Balancing;
use crate::route::policy::{Costs, Policy, PolicyKind, RoutedRequest};
use crate::route::response_time::PeakMean;
use crate::route::splitmix::SplitMix;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// How long the load that a node told counts, milliseconds. A response of it says it anew.
const LOAD_REPORT_MS: u64 = 1000;

/// How long the state that a node told counts, milliseconds: three times as long as nodes need to
/// tell it again. A node that drains is asked for nothing, and messages about its state could fail.
pub const STATE_REPORT_MS: u64 = 30_000;

/// How long an operator is shown the response time of a node that has not answered since,
/// milliseconds.
const RESPONSE_TIME_SHOWN_MS: u64 = 10_000;

/// What a node says of itself with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// Whether it takes requests.
    pub state: NodeState,
    /// Requests that it serves.
    pub outstanding: u32,
    /// Reads that are queued at its disk and fetches that wait for the origin.
    pub miss_pressure: u32,
}

/// The nodes of a cluster as one of them, *this node*, knows them.
#[derive(Debug)]
pub struct Members {
    own: Place,
    rules: EjectionRules,
    /// As the policies see them, by place; brought up to date for each choice.
    nodes: Vec<Node>,
    /// Whether nodes have a target, by place, while one is chosen.
    holds: Vec<HoldsIt>,
    known: Vec<Known>,
    balancing: Balancing,
    policy: Box<dyn Policy>,
    /// Reads that are queued at the disk of this node and its fetches that wait for the origin.
    own_pressure: u32,
    /// The own pressure from which the disk is busy, where that decides.
    disk_busy: Option<u32>,
    random: SplitMix,
}

/// What is known of one node beside what policies see.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// What the list of members has, and this node of itself.
    listed: NodeState,
    ejection: Ejection,
    /// What it said of itself last, and when.
    report: Option<(NodeReport, Tick)>,
    /// The state that it said last, with an answer, and when; `None` once it has failed.
    told: Option<(NodeState, Tick)>,
    response_time: PeakMean,
}

/// What is known of one node, for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// Whether it takes requests; `Gone` if it failed, too.
    pub state: NodeState,
    /// It failed, and is not asked for so long, milliseconds.
    pub ejected_for_ms: Option<u64>,
    /// It failed, and the time for that is over: the next request or message tells whether it
    /// answers.
    pub is_to_be_probed: bool,
    /// How fast it answers this node, microseconds; not what is older than 10 s.
    pub response_time_us: Option<u32>,
    /// What it said of itself last, and how long ago that was, milliseconds.
    pub report: Option<(NodeReport, u64)>,
}

impl Members {
    /// The cluster of `nodes`, at most [`NODES_MAX`](super::NODES_MAX), in a process that is the
    /// one at `own`. `secret` is for the tables of the policy, see
    /// [`PolicyKind::build`](super::policy::PolicyKind::build), and for choices at random.
    #[must_use]
    pub fn new(nodes: Vec<Node>, own: Place, balancing: &Balancing, secret: u64) -> Self {
        let known = |node: &Node| Known {
            listed: node.state,
            ejection: Ejection::default(),
            report: None,
            told: None,
            response_time: PeakMean::NONE,
        };
        Self {
            own,
            rules: EjectionRules::default(),
            known: nodes.iter().map(known).collect(),
            holds: vec![HoldsIt::Unknown; nodes.len()],
            nodes,
            balancing: *balancing,
            policy: balancing.policy.build(&balancing.rules, secret),
            own_pressure: 0,
            disk_busy: match balancing.policy {
                PolicyKind::ExtendedLard => Some(balancing.rules.costs.disk_busy),
                _ => None,
            },
            random: SplitMix(secret),
        }
    }

    /// Takes over what `before` knows of the nodes that are in both: `places` has their places here
    /// by those there. If both have the same policy with the same constants, the tables of it go
    /// over too, and `before` has empty ones from then on.
    pub fn take_over(&mut self, before: &mut Self, places: &[Option<Place>]) {
        for (known, place) in before.known.iter().zip(places) {
            if let Some(place) = place {
                let listed = self.known[place.index()].listed;
                self.known[place.index()] = Known { listed, ..*known };
            }
        }
        if self.balancing == before.balancing {
            core::mem::swap(&mut self.policy, &mut before.policy);
            self.policy.move_nodes(places);
        }
    }

    /// This node.
    #[must_use]
    pub const fn own(&self) -> Place {
        self.own
    }

    /// The policy that chooses.
    #[must_use]
    pub const fn kind(&self) -> PolicyKind {
        self.balancing.policy
    }

    /// The list of members, or this node of itself, has the node at `place` in this state. Unless
    /// it is gone, what it said within the last 30 s counts more.
    pub fn set_state(&mut self, place: Place, state: NodeState) {
        self.known[place.index()].listed = state;
    }

    /// The state of this node.
    #[must_use]
    pub fn own_state(&self) -> NodeState {
        self.known[self.own.index()].listed
    }

    /// The miss pressure of this node.
    pub const fn set_own_pressure(&mut self, miss_pressure: u32) {
        self.own_pressure = miss_pressure;
    }

    /// Whether the disk of this node is busy; `None` if the policy does not look at it, as all but
    /// `extended-lard`.
    pub(super) fn is_disk_busy(&self) -> Option<bool> {
        let keeps = self.own_state() != NodeState::FrontEnd;
        let busy = self.disk_busy.filter(|_| keeps)?;
        Some(self.own_pressure >= busy)
    }

    /// The node at `place` answered a request, `us` microseconds after it was asked. Whether it is
    /// back: it had failed before.
    pub fn answered(&mut self, now: Tick, place: Place, us: u64, report: NodeReport) -> bool {
        self.known[place.index()].response_time.note_us(now, us);
        self.heard_of(now, place, report)
    }

    /// The node at `place` has shown that it answers as a member does, and says `report`. Whether
    /// it is back.
    pub fn heard_of(&mut self, now: Tick, place: Place, report: NodeReport) -> bool {
        let known = &mut self.known[place.index()];
        known.report = Some((report, now));
        known.told = Some((report.state, now));
        known.ejection.end()
    }

    /// Whether the node at `place` is to be asked how it is, since a message in its name says that
    /// it is in `state`: its last answer said otherwise, or counts for little longer. The message
    /// itself changes nothing: it may be a copy of an old one.
    #[must_use]
    pub fn is_news(&self, now: Tick, place: Place, state: NodeState) -> bool {
        let told = self.known[place.index()].told;
        told.is_none_or(|(known, at)| known != state || now.ms_since(at) >= STATE_REPORT_MS / 3)
    }

    /// The node at `place` held `target`, or did not, when it was asked: corrects the policy.
    pub fn correct(&mut self, target: TargetKey, place: Place, is_held: bool) {
        self.policy.correct(target, place, is_held);
    }

    /// The node at `place` did not answer as a member does: it is not asked for a while. One that
    /// was silent since it was asked, `silent_since`, and has answered other requests meanwhile is
    /// asked on: it waits for an origin, and clients choose what they request. Whether it is gone
    /// since now.
    pub fn failed(&mut self, now: Tick, place: Place, silent_since: Option<Tick>) -> bool {
        let known = &mut self.known[place.index()];
        let answered = known.report.map(|(_, at)| at);
        let is_alive = silent_since
            .zip(answered)
            .is_some_and(|(since, at)| at >= since);
        if is_alive {
            return false;
        }
        known.told = None;
        known.ejection.fail(self.rules, now)
    }

    /// What is known of the node at `place`.
    #[must_use]
    pub fn known(&self, now: Tick, place: Place) -> KnownNode {
        let known = &self.known[place.index()];
        let condition = match place == self.own {
            true => Condition::Healthy,
            false => known.ejection.condition(now),
        };
        let ejected_until = match condition {
            Condition::Ejected { until } => Some(until),
            _ => None,
        };
        let response_time = known.response_time.last(now, RESPONSE_TIME_SHOWN_MS);
        KnownNode {
            state: self.state_of(now, place),
            ejected_for_ms: ejected_until.map(|until| until.ms_since(now)),
            is_to_be_probed: condition == Condition::Probing,
            response_time_us: response_time.map(NonZeroU32::get),
            report: known.report.map(|(report, at)| (report, now.ms_since(at))),
        }
    }

    /// Bytes of heap that it has for its tables; they never grow.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.policy.table_bytes()
            + self.nodes.capacity() * size_of::<Node>()
            + self.known.capacity() * size_of::<Known>()
            + self.holds.capacity() * size_of::<HoldsIt>()
    }

    /// Whether the node at `place` takes requests of this node.
    fn state_of(&self, now: Tick, place: Place) -> NodeState {
        let known = &self.known[place.index()];
        if place == self.own || known.listed == NodeState::Gone {
            return known.listed;
        }
        if matches!(known.ejection.condition(now), Condition::Ejected { .. }) {
            return NodeState::Gone;
        }
        let told = known
            .told
            .filter(|(_, at)| now.ms_since(*at) < STATE_REPORT_MS);
        told.map_or(known.listed, |(state, _)| state)
    }

    /// Brings the policies' view up to date: `requests` says how many requests of this node are
    /// outstanding at a place; of its own place, how many it serves. Nodes that are out are not
    /// asked.
    pub(super) fn see(
        &mut self,
        now: Tick,
        requests: impl Fn(Place) -> u32,
        is_out: impl Fn(Place) -> bool,
    ) {
        for index in 0..self.nodes.len() {
            let place = Place::at(index);
            let state = if is_out(place) {
                NodeState::Gone
            } else {
                self.state_of(now, place)
            };
            let known = &self.known[index];
            let of_load = known
                .report
                .filter(|(_, at)| now.ms_since(*at) < LOAD_REPORT_MS);
            let told = of_load.map_or(0, |(report, _)| report.outstanding);
            let load = if place == self.own {
                requests(place)
            } else {
                requests(place).max(told)
            };
            let node = &mut self.nodes[index];
            node.state = state;
            node.load = Load::requests(load);
            node.miss_pressure = match known.report {
                _ if place == self.own => self.own_pressure,
                report => report.map_or(0, |(report, _)| report.miss_pressure),
            };
            node.response_time_us = known.response_time.us(now);
        }
    }

    /// The view with the policy that chooses in it, and a random number for one choice.
    pub(super) fn chooser(&mut self) -> (ClusterView<'_>, &mut dyn Policy, u64) {
        let random = self.random.next();
        (ClusterView::new(&self.nodes), &mut *self.policy, random)
    }

    /// The view, and the policy.
    pub(super) fn view(&self) -> (ClusterView<'_>, &dyn Policy) {
        (ClusterView::new(&self.nodes), &*self.policy)
    }

    /// The node that the policy sends a request for `target` to, where this node handles its
    /// connection; `None` if this one is to serve it. `holds` says whether a node has it, with the
    /// miss pressure from which a disk is busy.
    pub(super) fn other_with(
        &mut self,
        now: Tick,
        target: TargetKey,
        holds: impl Fn(Place, &Node, u32) -> HoldsIt,
    ) -> Option<Place> {
        let busy = self.disk_busy?;
        // one that is draining serves its own clients by itself
        let own = self.nodes[self.own.index()];
        if !own.takes_requests() {
            return None;
        }
        for (index, (held, node)) in self.holds.iter_mut().zip(&self.nodes).enumerate() {
            *held = holds(Place::at(index), node, busy);
        }
        let request = RoutedRequest {
            handling: Some(self.own),
            ..RoutedRequest::new(target, 0)
        };
        let view = ClusterView::new(&self.nodes).with_holds(&self.holds);
        let choice = self.policy.preview(now, &view, &request)?;
        Some(choice.place).filter(|place| *place != self.own)
    }

    /// The nodes of the view with other states than they have, until the next [`Members::see`].
    pub(super) fn with_states(&mut self, state: impl Fn(Place, NodeState) -> NodeState) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.state = state(Place::at(index), node.state);
        }
    }

    /// A request is sent to the node at `place`; whether it is the one that probes it after an
    /// ejection.
    pub(super) fn begin(&mut self, now: Tick, place: Place) -> bool {
        let ejection = &mut self.known[place.index()].ejection;
        let is_probe = ejection.condition(now) == Condition::Probing;
        if is_probe {
            ejection.begin_probe(self.rules, now);
        }
        is_probe
    }

    /// Whether a request would probe the node at `place`.
    pub(super) fn is_probed(&self, now: Tick, place: Place) -> bool {
        self.known[place.index()].ejection.condition(now) == Condition::Probing
    }

    /// All nodes as the policy saw them last, with the costs that `costs` says.
    pub(super) fn nodes_with(&self, costs: impl Fn(Place) -> Costs) -> Vec<(Node, Costs)> {
        let nodes = self.nodes.iter().enumerate();
        let all = nodes.map(|(index, node)| (*node, costs(Place::at(index))));
        let mut with = vec![];
        with.extend(all);
        with
    }
}
