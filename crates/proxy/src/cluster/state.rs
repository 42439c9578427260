//! What is known of the nodes: their load, whether they can be reached, and the policy's tables.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_policy::Now;
use weir_policy::now::Tick;
use weir_policy::route::policy::{
    Costs, Hash, NodeChoice, Policy, PolicyKind, PolicyRules, RoutedRequest,
};
use weir_policy::route::{ClusterView, Load, Node, NodeState, PeakMean, Place, TargetKey, Why};
use weir_semantics::PeerReport;

/// How long what a node said of itself counts, milliseconds. A response of it says it anew.
const REPORT_MS: u64 = 1000;

/// A node that serves no more requests than this has no share of the load to give away: what is
/// bound by the mean would move targets between idle nodes. `L_idle` of USENIX 1999.
const IDLE_REQUESTS: u32 = 30;

/// How long a node that failed is not asked, milliseconds: as long as a next hop is ejected.
const EJECTION_MS: u64 = 10_000;

/// The nodes of a cluster as one of them knows them. Shared by all workers.
#[derive(Debug)]
pub(crate) struct ClusterState {
    /// By place: the requests that this node has outstanding there.
    outstanding: Vec<AtomicU32>,
    /// The requests that this node is serving.
    serving: AtomicU32,
    /// Fetches of this node that wait for the head of an origin's response.
    waiting: AtomicU32,
    /// For the policies that choose at random.
    choices: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// As the policies see them, by place.
    nodes: Vec<Node>,
    known: Vec<Known>,
    /// How many requests of a node the policy is not told of.
    idle_requests: u32,
    policy: Box<dyn Policy>,
    /// The rendezvous order alone.
    order: Hash,
}

/// What is known of one node beside what policies see.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// It failed, and is not asked until then.
    ejected_until: Option<Tick>,
    /// Requests that it said it serves, and when.
    reported: Option<(u32, Tick)>,
    response_time: PeakMean,
}

/// Which node keeps a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The node.
    pub(crate) place: Place,
    /// Each node that is asked for the target keeps it, too: it is requested often, or the node
    /// that keeps it has more than its share of the requests.
    pub(crate) is_copied: bool,
}

/// What is known of one node, for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownNode {
    pub(super) state: NodeState,
    /// It failed, and is not asked for so long, milliseconds.
    pub(super) ejected_for_ms: Option<u64>,
    /// Requests that this node has outstanding there; of this node, that it is serving.
    pub(super) outstanding: u32,
    /// Of requests of this node, microseconds.
    pub(super) response_time_us: Option<u32>,
    /// What it said of itself last: requests that it serves, miss pressure; and how long ago that
    /// was, milliseconds.
    pub(super) report: Option<(u32, u32, u64)>,
}

/// What would be chosen for a target.
#[derive(Debug)]
pub(super) struct Preview {
    /// The node that keeps it, and why; `None` if no node takes requests.
    pub(super) owner: Option<(Owner, Why)>,
    /// The nodes as the policy sees them, with their costs.
    pub(super) nodes: Vec<(Node, Costs)>,
}

impl Owner {
    /// One node asks the origin, and others that are to keep it ask that one: a node that has more
    /// than its share is relieved by copies, not by misses.
    fn of(
        choice: NodeChoice,
        now: Tick,
        view: &ClusterView<'_>,
        request: &RoutedRequest,
    ) -> Option<Self> {
        let is_copied = matches!(choice.why, Why::Replica | Why::NextInOrder);
        let place = if is_copied {
            Hash.choose(now, view, request)?.place
        } else {
            choice.place
        };
        Some(Self { place, is_copied })
    }
}

impl ClusterState {
    pub(super) fn new(nodes: impl Iterator<Item = Node>, policy: PolicyKind) -> Self {
        let nodes: Vec<Node> = nodes.collect();
        // tables of the policies are of targets' hashes, which clients cannot compute
        let secret = nodes.iter().fold(0, |all, node| all ^ node.key.0);
        Self {
            outstanding: nodes.iter().map(|_| AtomicU32::new(0)).collect(),
            serving: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            choices: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                known: vec![Known::default(); nodes.len()],
                idle_requests: match policy {
                    PolicyKind::BoundedHash | PolicyKind::ReplicatedHash => IDLE_REQUESTS,
                    _ => 0,
                },
                nodes,
                policy: policy.build(&PolicyRules::default(), secret),
                order: Hash,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node that keeps `target`, of those that are not in `failed`.
    pub(super) fn owner(
        &self,
        now: Now,
        own: Place,
        target: TargetKey,
        failed: &[Place],
    ) -> Option<Owner> {
        let mut inner = self.inner();
        self.look(&mut inner, now.tick, own, failed);
        let Inner {
            nodes,
            policy,
            order,
            ..
        } = &mut *inner;
        let view = ClusterView::new(nodes);
        let random = mixed(self.choices.fetch_add(1, Ordering::Relaxed));
        let request = RoutedRequest::new(target, random);
        let choice: NodeChoice = if failed.is_empty() {
            policy.choose(now.tick, &view, &request)?
        } else {
            order.choose(now.tick, &view, &request)?
        };
        Owner::of(choice, now.tick, &view, &request)
    }

    /// What [`Self::owner`] would say of `target`, why, and what the policy sees of each node, by
    /// place. The policy notes nothing of it.
    pub(super) fn preview(&self, now: Now, own: Place, target: TargetKey) -> Preview {
        let mut inner = self.inner();
        self.look(&mut inner, now.tick, own, &[]);
        let view = ClusterView::new(&inner.nodes);
        let request = RoutedRequest::new(target, mixed(self.choices.load(Ordering::Relaxed)));
        let choice = inner.policy.preview(now.tick, &view, &request);
        let owner = choice
            .and_then(|choice| Some((Owner::of(choice, now.tick, &view, &request)?, choice.why)));
        let places = (0..).map(Place);
        let nodes = inner.nodes.iter().zip(places);
        let nodes = nodes.map(|(node, place)| (*node, inner.policy.costs(&view, &request, place)));
        let nodes = nodes.collect();
        Preview { owner, nodes }
    }

    /// What is known of each node, by place.
    pub(super) fn known(&self, now: Now, own: Place) -> Vec<KnownNode> {
        let (serving, waiting) = self.own_load();
        let mut inner = self.inner();
        self.look(&mut inner, now.tick, own, &[]);
        let nodes = inner.nodes.iter().zip(&inner.known).enumerate();
        let known = nodes.map(|(index, (node, known))| {
            let is_own = index == own.index();
            let sent = self.outstanding[index].load(Ordering::Relaxed);
            let until = known.ejected_until.filter(|_| !is_own);
            KnownNode {
                state: node.state,
                ejected_for_ms: until
                    .map(|until| until.ms_since(now.tick))
                    .filter(|ms| *ms > 0),
                outstanding: if is_own { serving } else { sent },
                response_time_us: node.response_time_us.map(NonZeroU32::get),
                report: if is_own {
                    Some((serving, waiting, 0))
                } else {
                    known.reported.map(|(outstanding, at)| {
                        (outstanding, node.miss_pressure, now.tick.ms_since(at))
                    })
                },
            }
        });
        known.collect()
    }

    /// Brings the policies' view up to date.
    fn look(&self, inner: &mut Inner, now: Tick, own: Place, failed: &[Place]) {
        let Inner {
            nodes,
            known,
            idle_requests,
            ..
        } = inner;
        for (index, (node, known)) in nodes.iter_mut().zip(known).enumerate() {
            let is_own = index == own.index();
            let sent = self.outstanding[index].load(Ordering::Relaxed);
            let reported = known
                .reported
                .filter(|(_, at)| now.ms_since(*at) < REPORT_MS)
                .map_or(0, |(requests, _)| requests);
            let load = if is_own {
                self.serving.load(Ordering::Relaxed)
            } else {
                sent.max(reported)
            };
            node.load = Load::requests(load.saturating_sub(*idle_requests));
            node.response_time_us = known.response_time.us(now);
            let is_failed = failed.iter().any(|place| place.index() == index);
            let is_ejected = !is_own && known.ejected_until.is_some_and(|until| until > now);
            node.state = if is_failed || is_ejected {
                NodeState::Gone
            } else {
                NodeState::In
            };
        }
    }

    /// The node at `place` did not answer as a member does: it is not asked for a while. One that
    /// was silent since it was asked, `silent_since`, and has answered other requests meanwhile is
    /// asked on: it waits for an origin, and clients choose what they request.
    pub(crate) fn failed(&self, now: Now, place: Place, silent_since: Option<Tick>) {
        let known = &mut self.inner().known[place.index()];
        let answered = known.reported.map(|(_, at)| at);
        let is_alive = silent_since
            .zip(answered)
            .is_some_and(|(since, at)| at >= since);
        if !is_alive {
            known.ejected_until = Some(now.tick.plus_ms(EJECTION_MS));
        }
    }

    /// The node at `place` answered, `us` microseconds after it was asked.
    pub(crate) fn answered(
        &self,
        now: Now,
        place: Place,
        us: u64,
        report: &PeerReport<'_>,
        (target, is_hit): (TargetKey, Option<bool>),
    ) {
        let mut inner = self.inner();
        let known = &mut inner.known[place.index()];
        known.ejected_until = None;
        known.reported = Some((report.outstanding, now.tick));
        known.response_time.note_us(now.tick, us);
        inner.nodes[place.index()].miss_pressure = report.miss_pressure;
        if let Some(is_hit) = is_hit {
            inner.policy.correct(target, place, is_hit);
        }
    }

    /// The requests that this node serves, and its miss pressure.
    pub(super) fn own_load(&self) -> (u32, u32) {
        let (serving, waiting) = (&self.serving, &self.waiting);
        (
            serving.load(Ordering::Relaxed),
            waiting.load(Ordering::Relaxed),
        )
    }

    /// This node serves one more request, until the result is dropped.
    pub(crate) fn serve(self: &Arc<Self>) -> Counted {
        Counted::new(self, Counter::Serving)
    }

    /// A fetch waits for the head of an origin's response, until the result is dropped.
    pub(crate) fn wait(self: &Arc<Self>) -> Counted {
        Counted::new(self, Counter::Waiting)
    }

    /// A request is outstanding at the node at `place`, until the result is dropped.
    pub(crate) fn ask(self: &Arc<Self>, place: Place) -> Counted {
        Counted::new(self, Counter::Outstanding(place))
    }

    fn counter(&self, counter: Counter) -> &AtomicU32 {
        match counter {
            Counter::Serving => &self.serving,
            Counter::Waiting => &self.waiting,
            Counter::Outstanding(place) => &self.outstanding[place.index()],
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
enum Counter {
    Serving,
    Waiting,
    Outstanding(Place),
}

/// One in a counter of the state, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    state: Arc<ClusterState>,
    counter: Counter,
}

impl Counted {
    fn new(state: &Arc<ClusterState>, counter: Counter) -> Self {
        state.counter(counter).fetch_add(1, Ordering::Relaxed);
        Self {
            state: Arc::clone(state),
            counter,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counter = self.state.counter(self.counter);
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A number that looks random, made from the one before it (Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators. OOPSLA 2014).
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
