//! A node: what it stores, whom it knows, what it has under way.

use super::log::LogReader;
use super::request::RequestId;
use std::collections::BTreeMap;
use weir_policy::Tick;
use weir_policy::route::{Balancing, Members, Node, NodeReport, NodeState, Place};

/// What a target is fetched for in vain or in part is not modelled: a copy has a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) version: u64,
    /// When the origin, or another node, sent it.
    pub(crate) received: Tick,
    /// It is not used before it was validated: as a miss.
    pub(crate) is_doubtful: bool,
}

/// A process that is a member of the cluster, or will be.
pub(crate) struct Process {
    pub(crate) place: Place,
    /// It keeps nothing.
    pub(crate) is_front_end: bool,
    /// It runs.
    pub(crate) is_up: bool,
    /// It runs, and answers nothing.
    pub(crate) is_silent: bool,
    /// The origin can be reached from it.
    pub(crate) has_origin: bool,
    pub(crate) members: Members,
    /// What this node's list of members says.
    pub(crate) listed: Vec<NodeState>,
    /// Requests of this node at others; at its own place, those that it serves.
    pub(crate) requests: Vec<u32>,
    /// Requests that it serves beside those of the model.
    pub(crate) others: u32,
    pub(crate) stored: Vec<Option<Copy>>,
    /// How often each target was purged here: a response to a request from before is not stored.
    pub(crate) tickets: Vec<u64>,
    /// Until when each target is fetched from the origin alone.
    pub(crate) held: Vec<Tick>,
    /// The request that others for the same target wait for.
    pub(crate) leaders: BTreeMap<usize, RequestId>,
    /// What it has read of the log of purges.
    pub(crate) log: LogReader,
    table_bytes: usize,
}

impl Process {
    pub(crate) fn new(
        place: Place,
        nodes: &[Node],
        balancing: &Balancing,
        seed: u64,
        targets: usize,
    ) -> Self {
        let members = Members::new(nodes.to_vec(), place, balancing, seed);
        Self {
            place,
            is_front_end: nodes[place.index()].state == NodeState::FrontEnd,
            is_up: true,
            is_silent: false,
            has_origin: true,
            listed: nodes.iter().map(|node| node.state).collect(),
            requests: vec![0; nodes.len()],
            others: 0,
            stored: vec![None; targets],
            tickets: vec![0; targets],
            held: vec![Tick(0); targets],
            leaders: BTreeMap::new(),
            log: LogReader::new(targets),
            table_bytes: members.table_bytes(),
            members,
        }
    }

    /// The process has ended; what it knew of the others is gone, what was stored may be on disk.
    pub(crate) fn end(&mut self) {
        self.is_up = false;
        self.is_silent = false;
        self.log.end();
        self.leaders.clear();
        self.requests.fill(0);
    }

    /// Another process begins; the disk has what was stored, or there is none.
    pub(crate) fn start(&mut self, members: Members, keeps_store: bool) {
        self.members = members;
        for (place, state) in (0..).map(Place).zip(&self.listed) {
            self.members.set_state(place, *state);
        }
        self.is_up = true;
        self.held.fill(Tick(0));
        if !keeps_store {
            self.stored.fill(None);
            self.log.forget_position();
        }
    }

    /// The list of members is that of `listed` from now on.
    pub(crate) fn learn(&mut self, listed: &[NodeState]) {
        self.listed = listed.to_vec();
        for (place, state) in (0..).map(Place).zip(listed) {
            self.members.set_state(place, *state);
        }
    }

    /// What can be served of a target without validation.
    pub(crate) fn copy(&self, target: usize) -> Option<u64> {
        let copy = self.stored[target].filter(|copy| !copy.is_doubtful)?;
        let is_valid = self.log.is_valid(copy.received);
        is_valid.then_some(copy.version)
    }

    /// Keeps a copy, unless the target was purged since `ticket`.
    pub(crate) fn keep(&mut self, target: usize, copy: Copy, ticket: u64) {
        if !self.is_front_end && self.tickets[target] == ticket {
            self.stored[target] = Some(copy);
        }
    }

    /// The state that it has as a member that takes requests.
    pub(crate) fn state_in(&self) -> NodeState {
        if self.is_front_end {
            NodeState::FrontEnd
        } else {
            NodeState::In
        }
    }

    /// Requests of this node at a place; at its own, those that it serves.
    pub(crate) fn outstanding(&self, place: Place) -> u32 {
        let others = if place == self.place { self.others } else { 0 };
        self.requests[place.index()] + others
    }

    /// Forgets a target, and what is under way of it; holds it until then.
    pub(crate) fn purge(&mut self, target: usize, held_until: Tick, forgets_fetches: bool) {
        self.stored[target] = None;
        self.held[target] = self.held[target].max(held_until);
        if forgets_fetches {
            self.tickets[target] += 1;
            self.leaders.remove(&target);
        }
    }

    pub(crate) fn report(&self) -> NodeReport {
        NodeReport {
            state: self.members.own_state(),
            outstanding: self.outstanding(self.place),
            miss_pressure: 0,
        }
    }

    pub(crate) fn has_bounded_tables(&self) -> bool {
        self.members.table_bytes() == self.table_bytes
    }
}
