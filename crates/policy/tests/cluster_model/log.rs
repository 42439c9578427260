//! The log of purges that nodes keep in etcd, and what each of them has read of it.
//!
//! A purge has a place in the order of the log. Each node applies the entries in that order, and
//! says up to which it has. A node that has lost touch with the log validates what it had stored
//! before, until it has applied what it has missed; if that was dropped, or the log is another one,
//! it validates each response that it had. A node without touch leaves the list of members when its
//! lease ends, and is not waited for by purges from then on.
//!
//! What a node stores while it has no touch may have been purged meanwhile. Its clients get it
//! until there is touch again (`docs/cluster.md`).

use super::purge::WAIT_MS;
use super::world::{Rules, World};
use weir_policy::Tick;
use weir_policy::route::NodeState;

/// How long a node reaches no etcd before it has lost touch, milliseconds: before its lease ends.
const TOUCH_MS: u64 = 2500;

/// How long its lease lasts without etcd.
const LEASE_MS: u64 = 3500;

/// How long after the lease a node notices that it has lost touch, where that rule is left out.
const LATE_MS: u64 = 20_000;

/// A log that was emptied has another name.
type LogName = u64;

/// A place in the order of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    log: LogName,
    revision: u64,
}

impl Position {
    /// Who has read up to `read` has read this.
    fn is_in(self, read: Self) -> bool {
        self.log == read.log && self.revision <= read.revision
    }
}

/// What etcd has.
pub(crate) struct Log {
    name: LogName,
    is_up: bool,
    /// The place of the last entry.
    head: u64,
    /// The last place of an entry that was dropped.
    dropped: u64,
    /// The target of each entry behind those.
    entries: Vec<usize>,
}

impl Log {
    pub(crate) const fn new() -> Self {
        Self {
            name: 1,
            is_up: true,
            head: 0,
            dropped: 0,
            entries: Vec::new(),
        }
    }
}

/// What a node has read.
pub(crate) struct LogReader {
    reaches: bool,
    is_following: bool,
    /// On its disk: what it has applied.
    position: Option<Position>,
    /// When it was in touch last.
    touched: Tick,
    /// The oldest versions that could be served then.
    purged: Vec<u64>,
    /// There is no touch; what was received by then is validated.
    lost: Option<Tick>,
    /// On its disk: what was received by then is validated, whatever the log says.
    missed: Tick,
}

impl LogReader {
    pub(crate) fn new(targets: usize) -> Self {
        Self {
            reaches: true,
            is_following: false,
            position: None,
            touched: Tick(0),
            purged: vec![0; targets],
            lost: None,
            missed: Tick(0),
        }
    }

    /// Whether what was received then can be served without validation.
    pub(crate) fn is_valid(&self, received: Tick) -> bool {
        received > self.missed && self.lost.is_none_or(|lost| received > lost)
    }

    /// It is in touch, and has not applied this entry.
    pub(crate) fn is_behind(&self, entry: Position) -> bool {
        let is_applied = self.position.is_some_and(|position| entry.is_in(position));
        self.reaches && self.lost.is_none() && !is_applied
    }

    pub(crate) const fn end(&mut self) {
        self.is_following = false;
    }

    /// The disk is another one.
    pub(crate) const fn forget_position(&mut self) {
        self.position = None;
        self.missed = Tick(0);
    }

    fn lose(&mut self, since: Tick, rules: Rules) {
        self.is_following = false;
        self.lost = rules.validates_without_touch.then_some(since);
    }
}

impl World {
    /// Enters a purge by a node; `None`: it is not known to be in the log.
    pub(crate) fn enter(&mut self, at: usize, target: usize) -> Option<Position> {
        let log = self.log.as_mut()?;
        if !log.is_up || !self.nodes[at].log.reaches || self.random.below(16) == 0 {
            self.tally.count("purge-not-in-log");
            return None;
        }
        log.head += 1;
        log.entries.push(target);
        Some(Position {
            log: log.name,
            revision: log.head,
        })
    }

    /// A process has begun: what it has on disk may be purged.
    pub(crate) fn begin_log(&mut self, node: usize) {
        if self.log.is_none() {
            return;
        }
        let reader = &mut self.nodes[node].log;
        reader.lose(self.now, self.rules);
        reader.touched = self.now;
        reader.purged.clone_from(&self.purged);
        if !self.rules.remembers_what_was_missed {
            reader.missed = Tick(0);
        }
    }

    /// A node applies what it has not read; whether it is in touch.
    pub(crate) fn follow_log(&mut self, node: usize) -> bool {
        let (now, rules) = (self.now, self.rules);
        let Some(log) = self.log.as_ref() else {
            return false;
        };
        let process = &mut self.nodes[node];
        let reader = &mut process.log;
        if !process.is_up || !log.is_up || !reader.reaches {
            return false;
        }
        let known = reader.position.filter(|known| {
            let is_same = known.log == log.name || !rules.knows_another_log;
            let is_there = log.dropped <= known.revision || !rules.knows_what_was_dropped;
            is_same && is_there && known.revision <= log.head
        });
        let from = if let Some(known) = known {
            known.revision.max(log.dropped)
        } else {
            self.tally.count("log-missed");
            reader.missed = now;
            if rules.applies_what_is_there {
                log.dropped
            } else {
                log.head
            }
        };
        let first = usize::try_from(from - log.dropped).unwrap();
        let missed = log.entries[first..].to_vec();
        let position = Position {
            log: log.name,
            revision: log.head,
        };
        reader.position = Some(position);
        reader.is_following = true;
        reader.touched = now;
        reader.purged.clone_from(&self.purged);
        if reader.lost.take().is_some() {
            self.tally.count("log-read-after-absence");
        }
        let hold_until = now.plus_ms(WAIT_MS);
        for target in missed {
            self.tally.count("purged-by-log");
            self.purge_at(node, target, hold_until);
        }
        self.is_applied(node, position);
        // one that is in touch is a member
        self.announce_again(node);
        true
    }

    /// A node has said that it has applied the log up to there: no purge waits for it.
    fn is_applied(&mut self, node: usize, position: Position) {
        for index in (0..self.purges.len()).rev() {
            let purge = &mut self.purges[index];
            let is_applied = purge.entry.is_some_and(|entry| entry.is_in(position));
            if is_applied && purge.awaited.contains(&node) {
                self.tally.count("answered-by-log");
                purge.awaited.retain(|awaited| *awaited != node);
                self.answer(index);
            }
        }
    }

    /// Time has passed: nodes notice that they have lost touch, leases end.
    pub(crate) fn pass_log_time(&mut self) {
        let Some(log) = self.log.as_ref() else {
            return;
        };
        let is_up = log.is_up;
        for node in 0..self.nodes.len() {
            let process = &mut self.nodes[node];
            let reader = &mut process.log;
            let is_running = process.is_up;
            if is_running && is_up && reader.reaches {
                if reader.is_following || self.random.below(2) == 0 {
                    self.follow_log(node);
                }
                if self.random.below(2) == 0 {
                    let listed = self.listed.clone();
                    self.nodes[node].learn(&listed);
                }
                continue;
            }
            let since = reader.touched;
            let without_ms = self.now.ms_since(since);
            let limit_ms = if self.rules.loses_touch_before_its_lease {
                TOUCH_MS
            } else {
                LATE_MS
            };
            if is_running && without_ms > limit_ms && reader.lost.is_none() {
                self.tally.count("touch-lost");
                reader.lose(since, self.rules);
                // what is under way may be from before
                process.leaders.clear();
            }
            let is_kept = is_running && reader.reaches;
            if is_up && !is_kept && without_ms > LEASE_MS && self.listed[node] != NodeState::Gone {
                self.tally.count("lease-ended");
                self.listed[node] = NodeState::Gone;
            }
        }
    }

    /// Something happens to etcd, or to the way of a node to it.
    pub(crate) fn happen_to_log(&mut self, node: usize) {
        let drawn = self.random.below(8);
        let Some(log) = self.log.as_mut() else {
            return;
        };
        let reader = &mut self.nodes[node].log;
        match drawn {
            0 | 1 => {
                reader.reaches = false;
                reader.is_following = false;
            }
            2 => reader.reaches = true,
            3 => {
                log.is_up = !log.is_up;
                for node in &mut self.nodes {
                    node.log.is_following = false;
                }
            }
            4 => self.drop_oldest(),
            5 if self.random.below(4) == 0 => {
                self.tally.count("log-emptied");
                *log = Log {
                    name: log.name + 1,
                    ..Log::new()
                };
                for node in &mut self.nodes {
                    node.log.is_following = false;
                }
            }
            6 => {
                self.follow_log(node);
            }
            _ => self.announce_again(node),
        }
    }

    /// The log drops its oldest entries: of hundreds, so that no purge under way is among them.
    fn drop_oldest(&mut self) {
        let Some(log) = self.log.as_mut() else {
            return;
        };
        let under_way = self.purges.iter().filter_map(|purge| purge.entry);
        let under_way = under_way.filter(|entry| entry.log == log.name);
        let first = under_way.map(|entry| entry.revision).min();
        let count_max = first.map_or(log.head, |first| first - 1) - log.dropped;
        if count_max > 0 {
            self.tally.count("log-dropped");
            let count = 1 + self.random.below(usize::try_from(count_max).unwrap());
            log.entries.drain(..count);
            log.dropped += count as u64;
        }
    }

    /// A node whose lease has ended has another one, whether it has read the log or not.
    fn announce_again(&mut self, node: usize) {
        let process = &self.nodes[node];
        let is_up = self.log.as_ref().is_some_and(|log| log.is_up);
        if process.is_up && is_up && process.log.reaches && self.listed[node] == NodeState::Gone {
            self.tally.count("announced-again");
            self.list(node, process.state_in());
        }
    }

    /// Clients of a node without touch get nothing that was purged before touch was lost. One
    /// without touch may ask another.
    pub(crate) fn version_min(&self, at: usize, target: usize) -> u64 {
        let purged = self.purged[target];
        if self.nodes[at].log.lost.is_none() {
            return purged;
        }
        let lost = self.nodes.iter().filter(|node| node.log.lost.is_some());
        let known = lost.map(|node| node.log.purged[target]);
        known.fold(purged, u64::min)
    }

    /// Etcd is there, for all nodes.
    pub(crate) fn reach_log_everywhere(&mut self) {
        if let Some(log) = self.log.as_mut() {
            log.is_up = true;
        }
        for node in &mut self.nodes {
            node.log.reaches = true;
        }
        self.follow_log_everywhere();
    }

    pub(crate) fn follow_log_everywhere(&mut self) {
        for node in 0..self.nodes.len() {
            self.follow_log(node);
        }
    }
}
