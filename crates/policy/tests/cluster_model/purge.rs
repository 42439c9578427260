//! Purges of the whole cluster: what one node tells the others.
//!
//! A node that purges does so at once and tells each other member; each that is told purges, too,
//! and *holds* the target: until the time of the purge is over it fetches it from the origin alone.
//! The purge is answered when all have answered, or its time is over; a member that has not is told
//! again. Invalidation by unsafe requests is the same. With a log of purges, a node that has
//! applied the purge from the log has answered, too ([`log`](super::log)).

use super::log::Position;
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
    pub(crate) awaited: Vec<usize>,
    /// The other nodes: they are no members, as far as this one knows.
    away: Vec<usize>,
    /// Its place in the log of purges, if it is there.
    pub(crate) entry: Option<Position>,
    /// The list of the node that purges has all members: else no promise is made.
    knows_all: bool,
}

impl World {
    /// The origin has a new version, and node `at` purges the old one.
    pub(crate) fn purge(&mut self, at: usize, target: usize) {
        self.versions[target] += 1;
        let until = self.now.plus_ms(WAIT_MS);
        self.purge_at(at, target, until);
        let entry = self.enter(at, target);
        let list = &self.nodes[at].listed;
        let awaited = (0..list.len()).filter(|other| *other != at);
        let (away, awaited): (Vec<usize>, Vec<usize>) =
            awaited.partition(|other| list[*other] == NodeState::Gone);
        self.purges.push(Purge {
            at,
            target,
            version: self.versions[target],
            until,
            awaited,
            away,
            entry,
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
    pub(crate) fn answer(&mut self, index: usize) {
        let purge = &self.purges[index];
        if !purge.awaited.is_empty() {
            return;
        }
        // with a log, a node that is away learns of what is in it, and of nothing else
        let is_told = match purge.entry {
            None => self.log.is_none(),
            // in touch and no member: it applies the entry at once, and is named until then
            Some(entry) => !purge.away.iter().any(|away| {
                let node = &self.nodes[*away];
                node.is_up && node.log.is_behind(entry)
            }),
        };
        if purge.until >= self.now && purge.knows_all && is_told {
            self.tally.count("purged-by-all");
            if self.log.is_some() && self.is_any_away() {
                self.tally.count("purged-while-a-node-is-away");
            }
            let purged = &mut self.purged[purge.target];
            *purged = purge.version.max(*purged);
        }
        self.purges.swap_remove(index);
    }

    /// A node that has a store is no member at the moment.
    fn is_any_away(&self) -> bool {
        let mut nodes = self.nodes.iter().zip(&self.listed);
        nodes.any(|(node, state)| {
            *state == NodeState::Gone && node.stored.iter().any(Option::is_some)
        })
    }

    pub(crate) fn purge_at(&mut self, at: usize, target: usize, until: Tick) {
        let held_until = if self.rules.holds { until } else { Tick(0) };
        self.nodes[at].purge(target, held_until, self.rules.forgets_fetches);
    }
}
