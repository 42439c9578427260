//! Purges of the whole cluster: what one node tells the others.
//!
//! A node that purges does so at once and tells each other member; each that is told purges, too,
//! and *holds* the target: until the time of the purge is over it fetches it from the origin alone.
//! The purge is answered when all have answered, or its time is over; a member that has not is told
//! again. Invalidation by unsafe requests is the same.

use super::world::World;
use weir_policy::Tick;
use weir_policy::route::NodeState;

/// How long a purge waits for the members, milliseconds.
pub(crate) const WAIT_MS: u64 = 2000;

/// A purge under way.
pub(crate) struct Purge {
    /// The node that tells the others.
    pub(crate) at: usize,
    target: usize,
    /// The version at the origin: older ones are purged.
    version: u64,
    until: Tick,
    /// Members that have not answered.
    awaited: Vec<usize>,
    /// The list of the node that purges has all members: else no promise is made.
    knows_all: bool,
}

impl World {
    /// The origin has a new version, and node `at` purges the old one.
    pub(crate) fn purge(&mut self, at: usize, target: usize) {
        self.versions[target] += 1;
        let until = self.now.plus_ms(WAIT_MS);
        self.purge_at(at, target, until);
        let list = &self.nodes[at].listed;
        let awaited = (0..list.len()).filter(|other| *other != at);
        let awaited = awaited.filter(|other| list[*other] != NodeState::Gone);
        self.purges.push(Purge {
            at,
            target,
            version: self.versions[target],
            until,
            awaited: awaited.collect(),
            knows_all: list
                .iter()
                .zip(&self.listed)
                .all(|(known, state)| *known != NodeState::Gone || *state == NodeState::Gone),
        });
        let last = self.purges.len() - 1;
        self.answer(last);
    }

    /// One message of a purge under way arrives, or is lost.
    pub(crate) fn tell(&mut self) {
        if self.purges.is_empty() {
            return;
        }
        let index = self.random.below(self.purges.len());
        let purge = &self.purges[index];
        let (at, target, until) = (purge.at, purge.target, purge.until);
        let place = self.random.below(purge.awaited.len());
        let other = purge.awaited[place];
        if !self.can_connect(at, other) || self.nodes[other].is_silent {
            return;
        }
        self.purge_at(other, target, until);
        // the answer may be lost, then it is told again
        if self.random.below(8) > 0 {
            self.purges[index].awaited.swap_remove(place);
            self.answer(index);
        }
    }

    /// Who is no member any more is told nothing.
    pub(crate) fn forget_members_that_left(&mut self) {
        for index in (0..self.purges.len()).rev() {
            let listed = &self.listed;
            let awaited = &mut self.purges[index].awaited;
            awaited.retain(|other| listed[*other] != NodeState::Gone);
            self.answer(index);
        }
    }

    /// The purge is over if all have answered.
    fn answer(&mut self, index: usize) {
        let purge = &self.purges[index];
        if !purge.awaited.is_empty() {
            return;
        }
        if purge.until >= self.now && purge.knows_all {
            self.tally.count("purged-by-all");
            let purged = &mut self.purged[purge.target];
            *purged = purge.version.max(*purged);
        }
        self.purges.swap_remove(index);
    }

    fn purge_at(&mut self, at: usize, target: usize, until: Tick) {
        let held_until = if self.rules.holds { until } else { Tick(0) };
        self.nodes[at].purge(target, held_until, self.rules.forgets_fetches);
    }
}
