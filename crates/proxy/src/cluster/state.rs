//! What is known of the nodes, shared by all workers: counters of requests, and the policy's view.

use crate::cluster::placement::OtherPlacement;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_policy::Now;
use weir_policy::now::Tick;
use weir_policy::route::{
    Balancing, KnownNode, LateralRequest, Members, Node, NodeReport, NodeState, OwnerPreview,
    Place, Source, TargetKey,
};
use weir_semantics::PeerReport;

/// The nodes of a cluster as one of them knows them. Shared by all workers.
#[derive(Debug)]
pub(crate) struct ClusterState {
    own: Place,
    /// By place: the requests that this node has outstanding there. What is counted ends in the
    /// counter that it began in: a state of other members takes the counters over.
    outstanding: Vec<Arc<AtomicU32>>,
    /// By place: what the others say of which node keeps a target.
    placements: Vec<Arc<OtherPlacement>>,
    /// The requests that this node is serving.
    serving: Arc<AtomicU32>,
    /// Fetches of this node that wait for the head of an origin's response.
    waiting: Arc<AtomicU32>,
    /// Locked for a choice, never across an await.
    members: Mutex<Members>,
}

impl ClusterState {
    /// Of `nodes` by place, in the process that is the one at `own`.
    pub(super) fn new(
        nodes: impl Iterator<Item = Node>,
        own: Place,
        balancing: &Balancing,
    ) -> Self {
        let nodes: Vec<Node> = nodes.collect();
        // tables of the policies are of targets' hashes, which clients cannot compute if the
        // cluster has a secret
        let secret = nodes.iter().fold(0, |all, node| all ^ node.key.0);
        Self {
            own,
            outstanding: nodes.iter().map(|_| Arc::default()).collect(),
            placements: nodes.iter().map(|_| Arc::default()).collect(),
            serving: Arc::default(),
            waiting: Arc::default(),
            members: Mutex::new(Members::new(nodes, own, balancing, secret)),
        }
    }

    /// Takes over what `before` knows of the nodes that are in both: `places` has their places here
    /// by those there.
    pub(super) fn take_over(&mut self, before: &Self, places: &[Option<Place>]) {
        self.serving = Arc::clone(&before.serving);
        self.waiting = Arc::clone(&before.waiting);
        let known = before.outstanding.iter().zip(&before.placements);
        for ((counter, placement), place) in known.zip(places) {
            if let Some(place) = place {
                self.outstanding[place.index()] = Arc::clone(counter);
                self.placements[place.index()] = Arc::clone(placement);
            }
        }
        let members = self.members.get_mut();
        let members = members.unwrap_or_else(PoisonError::into_inner);
        members.take_over(&mut before.members(), places);
    }

    /// The list of members, or this node of itself, has the node at `place` in this state.
    pub(super) fn set_state(&self, place: Place, state: NodeState) {
        self.members().set_state(place, state);
    }

    /// The state of this node.
    pub(super) fn own_state(&self) -> NodeState {
        self.members().own_state()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests of this node at a place; at its own, those that it serves.
    fn requests(&self, place: Place) -> u32 {
        let counter = if place == self.own {
            &self.serving
        } else {
            &self.outstanding[place.index()]
        };
        counter.load(Ordering::Relaxed)
    }

    /// Where a request for `target` is sent. `reads_waiting` are reads that wait for this node's
    /// disk.
    pub(crate) fn source(
        &self,
        now: Now,
        target: TargetKey,
        request: LateralRequest<'_>,
        reads_waiting: u32,
    ) -> Source {
        let mut members = self.members();
        let waiting = self.waiting.load(Ordering::Relaxed);
        members.set_own_pressure(waiting.saturating_add(reads_waiting));
        members.source(now.tick, target, request, |place| self.requests(place))
    }

    /// Where the response to a client's request is had that is on the disk of this node and not in
    /// its memory; `None`: nothing decides that.
    pub(crate) fn source_of_stored(
        &self,
        now: Now,
        target: TargetKey,
        request: LateralRequest<'_>,
        reads_waiting: u32,
    ) -> Option<Source> {
        let mut members = self.members();
        let waiting = self.waiting.load(Ordering::Relaxed);
        members.set_own_pressure(waiting.saturating_add(reads_waiting));
        members.source_of_stored(now.tick, target, request, |place| self.requests(place))
    }

    /// Where a client's request for `target` would be sent, and what the policy sees of each node,
    /// by place; those that are `behind` are left out. The policy notes nothing of it.
    pub(super) fn preview(
        &self,
        now: Now,
        target: TargetKey,
        reads_waiting: u32,
        behind: &[Place],
    ) -> OwnerPreview {
        let mut members = self.members();
        let waiting = self.waiting.load(Ordering::Relaxed);
        members.set_own_pressure(waiting.saturating_add(reads_waiting));
        members.preview(now.tick, target, |place| self.requests(place), behind)
    }

    /// What is known of each node, by place, with the requests of this node there.
    pub(super) fn known(&self, now: Now) -> Vec<(KnownNode, u32)> {
        let (serving, waiting) = self.own_load();
        let members = self.members();
        let places = (0..).map(Place).take(self.outstanding.len());
        let known = places.map(|place| {
            let mut known = members.known(now.tick, place);
            if place == self.own {
                let report = NodeReport {
                    state: known.state,
                    outstanding: serving,
                    miss_pressure: waiting,
                };
                known.report = Some((report, 0));
            }
            (known, self.requests(place))
        });
        known.collect()
    }

    /// Whether the node at `place` takes requests of this node.
    pub(crate) fn state_of(&self, now: Now, place: Place) -> NodeState {
        self.members().known(now.tick, place).state
    }

    /// Whether the node at `place` failed and has not answered since, or is listed as gone.
    pub(crate) fn is_not_back(&self, now: Now, place: Place) -> bool {
        let known = self.members().known(now.tick, place);
        known.state == NodeState::Gone || known.is_to_be_probed
    }

    /// The node at `place` did not answer as a member does; `silent_since`: it was silent, and
    /// nothing else. Whether it is gone since now.
    pub(crate) fn failed(&self, now: Now, place: Place, silent_since: Option<Tick>) -> bool {
        self.members().failed(now.tick, place, silent_since)
    }

    /// Whether the node at `place` is to be asked how it is, since a message in its name says that
    /// it is in this state: a copy of an old one may say so, too.
    pub(crate) fn is_news(&self, now: Now, place: Place, state: &str) -> bool {
        let state = NodeState::named(state);
        state.is_some_and(|state| self.members().is_news(now.tick, place, state))
    }

    /// The node at `place` answered, `us` microseconds after it was asked. Whether it is back.
    pub(crate) fn answered(
        &self,
        now: Now,
        place: Place,
        us: u64,
        report: &PeerReport<'_>,
        (target, is_hit): (TargetKey, Option<bool>),
    ) -> bool {
        let mut members = self.members();
        let is_back = members.answered(now.tick, place, us, report_of(report));
        if let Some(is_hit) = is_hit {
            members.correct(target, place, is_hit);
        }
        is_back
    }

    /// The node at `place` answered a message, and says `report`: how soon it did says nothing of
    /// how fast it answers requests. Whether it is back.
    pub(super) fn heard_of(&self, now: Now, place: Place, report: &PeerReport<'_>) -> bool {
        self.members().heard_of(now.tick, place, report_of(report))
    }

    /// The placement that the node at `place` said last.
    pub(super) fn placement_of(&self, place: Place) -> &OtherPlacement {
        &self.placements[place.index()]
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
    pub(crate) fn serve(&self) -> Counted {
        Counted::new(&self.serving)
    }

    /// A fetch waits for the head of an origin's response, until the result is dropped.
    pub(crate) fn wait(&self) -> Counted {
        Counted::new(&self.waiting)
    }

    /// A request is outstanding at the node at `place`, until the result is dropped.
    pub(crate) fn ask(&self, place: Place) -> Counted {
        Counted::new(&self.outstanding[place.index()])
    }
}

fn report_of(report: &PeerReport<'_>) -> NodeReport {
    NodeReport {
        state: NodeState::named(report.state).unwrap_or(NodeState::In),
        outstanding: report.outstanding,
        miss_pressure: report.miss_pressure,
    }
}

/// One in a counter of the state, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicU32>);

impl Counted {
    fn new(counter: &Arc<AtomicU32>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
