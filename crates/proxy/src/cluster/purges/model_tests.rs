//! Random clusters whose nodes tell each other of purges by the real outboxes, while messages and
//! answers are late or lost, connections fail one way, nodes stand still, and are restarted. Each
//! node fetches the target from the origin, or from any node that it may ask, at any time.
//!
//! A node is restarted only while it holds nothing, one of the others is in step with it, and all
//! can reach it; they notice it and tell it what they have to at once: before they have, it is not
//! in step.
//!
//! What must hold: a node that was said to have applied a purge, when that was answered, has no
//! older version from then on.

use super::members_behind::Behind;
use super::outboxes::{AWAY_MAX, Awaited, MemberOutcome, Outboxes};
use super::{Batch, ClusterPurges, PurgedTarget};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::sync::oneshot::error::TryRecvError;
use weir_semantics::{MembersBehind, PurgeOutcome};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Seeds, each a cluster.
const SEEDS: u64 = 3_000;

const STEPS: usize = 400;

/// How long answers are awaited, and how long targets are held beyond that, milliseconds.
const WAIT_MS: u64 = 100;

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap_or(0)
    }
}

struct Node {
    purges: ClusterPurges,
    /// How often it was restarted.
    process: usize,
    /// Of the target.
    stored: Option<u64>,
    held_until: Instant,
    /// How often the target was purged: what was asked for before is not stored.
    ticket: u64,
    /// From where it is fetching, with which ticket.
    fetch: Option<(Option<usize>, u64)>,
    /// Its message to each node.
    messages: [Option<Message>; NAMES.len()],
    /// Versions older than that it may not have.
    promised: u64,
}

struct Message {
    batch: Batch,
    /// How long the target is held by what it says.
    hold: Duration,
    is_applied: bool,
}

/// A purge that is not answered yet.
struct Purge {
    at: usize,
    version: u64,
    until: Instant,
    awaited: Vec<(Awaited, Option<MemberOutcome>)>,
}

struct World {
    random: Random,
    now: Instant,
    version: u64,
    nodes: Vec<Node>,
    reach: [[bool; NAMES.len()]; NAMES.len()],
    purges: Vec<Purge>,
    rules: Rules,
    answered: usize,
    fetched: usize,
    restarted: usize,
}

/// What nodes do.
#[derive(Clone, Copy)]
struct Rules {
    /// They ask members that are behind, too.
    asks_all: bool,
    /// They notice that another one is restarted.
    notices_restarts: bool,
}

const ALL_RULES: Rules = Rules {
    asks_all: false,
    notices_restarts: true,
};

/// What a new process of the node at that place knows.
fn new_process(at: usize, now: Instant) -> ClusterPurges {
    let purges = ClusterPurges::default();
    let others = NAMES.iter().copied().filter(|other| *other != NAMES[at]);
    purges.outboxes.meet(others, 1, now);
    purges
}

impl World {
    fn new(seed: u64, rules: Rules) -> Self {
        let now = Instant::now();
        let nodes = (0..NAMES.len()).map(|at| Node {
            purges: new_process(at, now),
            process: 0,
            stored: None,
            held_until: now,
            ticket: 0,
            fetch: None,
            messages: Default::default(),
            promised: 0,
        });
        Self {
            random: Random(seed),
            now,
            version: 1,
            nodes: nodes.collect(),
            reach: [[true; NAMES.len()]; NAMES.len()],
            purges: Vec::new(),
            rules,
            answered: 0,
            fetched: 0,
            restarted: 0,
        }
    }

    fn run(mut self) -> Result<[usize; 3], String> {
        for _ in 0..STEPS {
            let (at, other) = (
                self.random.below(NAMES.len()),
                self.random.below(NAMES.len()),
            );
            match self.random.below(26) {
                0 => self.purge(at),
                1 => self.reach[at][other] = self.random.below(2) == 0,
                2 => self.now += Duration::from_millis([1, 10, 60, 150, 400][self.random.below(5)]),
                3 | 4 => drop(self.nodes[at].purges.outboxes.expire(self.now)),
                5..=7 => self.answer(),
                8..=12 if at != other => self.send(at, other),
                13..=17 if at != other => self.arrive(at, other),
                18..=20 => self.begin_fetch(at, other),
                21 => self.restart(at),
                _ => self.end_fetch(at),
            }
            for (node, name) in self.nodes.iter().zip(NAMES) {
                if node.stored.is_some_and(|version| version < node.promised) {
                    let promised = node.promised;
                    return Err(format!("{name} has {:?}, and not {promised}", node.stored));
                }
            }
        }
        Ok([self.answered, self.fetched, self.restarted])
    }

    fn purge(&mut self, at: usize) {
        self.version += 1;
        let patience = Duration::from_millis(WAIT_MS);
        let until = self.now + patience;
        self.apply(at, until + patience);
        let others = NAMES.iter().copied().filter(|name| *name != NAMES[at]);
        let what = vec![PurgedTarget::Url("http://a/".into())];
        let outboxes = &self.nodes[at].purges.outboxes;
        let awaited = outboxes.tell(others, what, (self.now, until, patience));
        self.purges.push(Purge {
            at,
            version: self.version,
            until,
            awaited: awaited.into_iter().map(|awaited| (awaited, None)).collect(),
        });
    }

    fn apply(&mut self, at: usize, held_until: Instant) {
        let node = &mut self.nodes[at];
        node.held_until = node.held_until.max(held_until);
        node.ticket += 1;
        node.stored = None;
    }

    /// Node `at` sends node `other` its next message, if it has answered the one before.
    fn send(&mut self, at: usize, other: usize) {
        if self.nodes[at].messages[other].is_none() {
            self.nodes[at].messages[other] = self.next(at, other);
        }
    }

    fn next(&self, at: usize, other: usize) -> Option<Message> {
        let outboxes = &self.nodes[at].purges.outboxes;
        let batch = outboxes.next(NAMES[other])?;
        let holds = batch.orders.iter().map(|order| order.until);
        let hold = holds.max().map_or(Duration::ZERO, |until| {
            (until + outboxes.patience()).saturating_duration_since(self.now)
        });
        Some(Message {
            batch,
            hold,
            is_applied: false,
        })
    }

    /// The message arrives, or the answer to it; or one of them is lost.
    fn arrive(&mut self, at: usize, other: usize) {
        let Some(mut message) = self.nodes[at].messages[other].take() else {
            return;
        };
        let now = self.now;
        let is_lost = !self.reach[at][other] || self.random.below(16) == 0;
        let outboxes = &self.nodes[at].purges.outboxes;
        if is_lost {
            outboxes.failed(NAMES[other], message.batch, "it is away", now);
        } else if message.is_applied {
            self.answered_by(other, at, message);
        } else {
            self.take(at, other, &message);
            message.is_applied = true;
            self.nodes[at].messages[other] = Some(message);
        }
    }

    /// Node `other` does what node `at` has told it.
    fn take(&mut self, at: usize, other: usize, message: &Message) {
        let names = match &message.batch.behind {
            Behind::These(names) => Some(names.iter().map(|name| &**name).collect()),
            Behind::All => None,
        };
        let process = self.nodes[at].process.to_string();
        let said = MembersBehind {
            process: &process,
            names,
        };
        let purges = &self.nodes[other].purges;
        match self.rules.notices_restarts {
            true => purges.take_behind(NAMES[at], &said),
            false => purges.told_behind.take(NAMES[at], &said),
        }
        if !message.batch.orders.is_empty() {
            self.apply(other, self.now + message.hold);
        }
    }

    /// Node `at` is killed and started again, with what it has stored.
    fn restart(&mut self, at: usize) {
        let node = &self.nodes[at];
        let mut others = (0..NAMES.len()).filter(|other| *other != at);
        let is_reached = others.clone().all(|other| self.reach[other][at]);
        let is_known = others.any(|other| !node.purges.outboxes.is_behind(NAMES[other], self.now));
        if !is_reached || !is_known || node.held_until > self.now {
            return;
        }
        self.restarted += 1;
        // nothing answers its clients
        self.purges.retain(|purge| purge.at != at);
        let node = &mut self.nodes[at];
        node.purges = new_process(at, self.now);
        node.process += 1;
        node.ticket += 1;
        node.fetch = None;
        node.messages = Default::default();
        let process = node.process.to_string();
        for other in (0..NAMES.len()).filter(|other| *other != at) {
            let node = &mut self.nodes[other];
            if let Some(message) = node.messages[at].take() {
                let why = "it is restarted";
                let outboxes = &node.purges.outboxes;
                outboxes.failed(NAMES[at], message.batch, why, self.now);
            }
            if self.rules.notices_restarts {
                node.purges.hear_of_process(NAMES[at], &process);
            }
        }
        for other in (0..NAMES.len()).filter(|other| *other != at) {
            while let Some(message) = self.next(other, at) {
                self.take(other, at, &message);
                self.answered_by(at, other, message);
            }
        }
    }

    /// The message of node `at` to node `other` is answered.
    fn answered_by(&self, other: usize, at: usize, message: Message) {
        let outcome = PurgeOutcome {
            removed: 0,
            is_durable: true,
        };
        let outcomes = vec![outcome; message.batch.orders.len()];
        let outboxes = &self.nodes[at].purges.outboxes;
        outboxes.delivered(NAMES[other], message.batch, outcomes);
    }

    /// A purge is answered, if it may be now.
    fn answer(&mut self) {
        if self.purges.is_empty() {
            return;
        }
        let index = self.random.below(self.purges.len());
        let mut purge = self.purges.swap_remove(index);
        let outboxes = &self.nodes[purge.at].purges.outboxes;
        for (awaited, outcome) in &mut purge.awaited {
            if outcome.is_none() {
                *outcome = match awaited.reply.try_recv() {
                    Ok(outcome) => Some(outcome),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Closed) => Some(Err("it is no member".into())),
                };
            }
        }
        let outcomes = || purge.awaited.iter().map(|(_, outcome)| outcome);
        let is_over = self.now >= purge.until;
        let are_all = outcomes().all(Option::is_some);
        if are_all || is_over {
            outboxes.expire(self.now);
        }
        let has_failed = outcomes().any(|outcome| !matches!(outcome, Some(Ok(_))));
        let patience = Duration::from_millis(WAIT_MS);
        let is_told = !outboxes.awaits_news() || self.now >= purge.until + patience;
        if !(are_all || is_over) || has_failed && !is_told {
            return self.purges.push(purge);
        }
        if has_failed {
            outboxes.expire_news(self.now);
        }
        let mut sound = vec![purge.at];
        for (awaited, outcome) in &purge.awaited {
            let member = &*awaited.member;
            let is_behind = has_failed && outboxes.is_behind(member, self.now);
            if matches!(outcome, Some(Ok(_))) && !is_behind {
                sound.extend(NAMES.iter().position(|name| *name == member));
            }
        }
        self.answered += usize::from(has_failed);
        for at in sound {
            let node = &mut self.nodes[at];
            node.promised = node.promised.max(purge.version);
        }
    }

    /// A node begins to fetch the target from `other`, if it may, or from the origin.
    fn begin_fetch(&mut self, at: usize, other: usize) {
        let node = &self.nodes[at];
        let is_behind = node.purges.told_behind.contains(NAMES[other])
            || node.purges.outboxes.is_behind(NAMES[other], self.now);
        let may_ask = node.held_until <= self.now && (!is_behind || self.rules.asks_all);
        let source = (at != other && may_ask).then_some(other);
        self.nodes[at].fetch = Some((source, self.nodes[at].ticket));
    }

    fn end_fetch(&mut self, at: usize) {
        let Some((source, ticket)) = self.nodes[at].fetch.take() else {
            return;
        };
        let version = match source {
            None => Some(self.version),
            Some(other) => self.nodes[other].stored,
        };
        let node = &mut self.nodes[at];
        if node.ticket == ticket && version.is_some() {
            self.fetched += usize::from(source.is_some());
            node.stored = version;
        }
    }
}

#[test]
fn node_that_is_said_to_have_applied_a_purge_never_gets_back_what_was_purged() {
    let mut sums = [0; 3];
    for seed in 0..SEEDS {
        match World::new(seed, ALL_RULES).run() {
            Ok(counts) => {
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum += count;
                }
            }
            Err(broken) => panic!("seed {seed}: {broken}"),
        }
    }
    let [answered, fetched, restarted] = sums;
    assert!(
        answered > 1000,
        "{answered} purges were answered with one behind"
    );
    assert!(fetched > 1000, "{fetched} copies were made");
    assert!(restarted > 1000, "{restarted} nodes were restarted");
}

fn is_broken_with(rules: Rules) -> bool {
    (0..SEEDS).any(|seed| World::new(seed, rules).run().is_err())
}

#[test]
fn that_members_which_are_behind_are_not_asked_is_needed_for_it() {
    assert!(is_broken_with(Rules {
        asks_all: true,
        ..ALL_RULES
    }));
}

#[test]
fn that_nodes_notice_a_restart_is_needed_for_it() {
    assert!(is_broken_with(Rules {
        notices_restarts: false,
        ..ALL_RULES
    }));
}

/// Messages of node `a` to the others, each answered a few milliseconds later, until it has been
/// quiet for two seconds.
fn messages_until_quiet(outboxes: &Outboxes, now: &mut Instant) -> usize {
    const MESSAGES_MAX: usize = 1_000;
    let (mut messages, mut quiet) = (0, 0);
    let mut under_way: [Option<(Batch, Instant)>; NAMES.len()] = Default::default();
    while quiet < 2_000 && messages < MESSAGES_MAX {
        outboxes.expire(*now);
        quiet += 1;
        for (at, member) in NAMES.iter().enumerate().skip(1) {
            match under_way[at].take() {
                Some((batch, answered)) if answered <= *now => {
                    let outcome = PurgeOutcome {
                        removed: 0,
                        is_durable: true,
                    };
                    let outcomes = vec![outcome; batch.orders.len()];
                    outboxes.delivered(member, batch, outcomes);
                }
                Some(waits) => under_way[at] = Some(waits),
                None => {
                    if let Some(batch) = outboxes.next(member) {
                        let takes = Duration::from_millis(at as u64);
                        under_way[at] = Some((batch, *now + takes));
                        (messages, quiet) = (messages + 1, 0);
                    }
                }
            }
        }
        *now += Duration::from_millis(1);
    }
    messages
}

#[test]
fn node_that_never_tells_sends_few_messages_when_a_member_is_back_after_long() {
    let mut now = Instant::now();
    let outboxes = Outboxes::default();
    let all = || NAMES[1..].iter().copied();
    outboxes.meet(all(), 1, now);
    messages_until_quiet(&outboxes, &mut now);
    outboxes.meet(all().take(2), 2, now);
    now += AWAY_MAX;
    assert_eq!(outboxes.expire(now), ["d".into()]);
    outboxes.meet(all(), 3, now);
    // one to it, and one to each of the others that it is in step
    assert_eq!(messages_until_quiet(&outboxes, &mut now), NAMES.len() - 1);
    assert!(!outboxes.is_any_behind(3, now));
}

#[test]
fn node_that_never_tells_sends_few_messages_when_a_member_fails() {
    let mut now = Instant::now();
    let outboxes = Outboxes::default();
    outboxes.meet(NAMES[1..].iter().copied(), 1, now);
    messages_until_quiet(&outboxes, &mut now);
    outboxes.demand_validation(&Behind::These(vec!["d".into()]));
    let batch = outboxes.next("d").expect("a message");
    outboxes.failed("d", batch, "it is away", now);
    assert!(messages_until_quiet(&outboxes, &mut now) < 10);
    assert!(!outboxes.is_any_behind(1, now));
}

#[test]
fn what_a_node_was_to_tell_is_told_by_others_when_it_has_not_answered_for_a_minute() {
    let mut now = Instant::now();
    let purges = ClusterPurges::default();
    let outboxes = &purges.outboxes;
    outboxes.meet(NAMES[1..].iter().copied(), 1, now);
    messages_until_quiet(outboxes, &mut now);
    let said = MembersBehind {
        process: "1",
        names: Some(vec!["d"]),
    };
    purges.take_behind("b", &said);
    messages_until_quiet(outboxes, &mut now);
    let gone = BTreeSet::from(["b"]);
    let began = now;
    purges.note_gone(now, &gone);
    now = began + AWAY_MAX - Duration::from_millis(1);
    purges.note_gone(now, &gone);
    assert!(purges.is_behind("d") && !outboxes.is_behind("d", now));
    now = began + AWAY_MAX;
    purges.note_gone(now, &gone);
    assert!(outboxes.is_behind("d", now), "this node is to tell it");
    assert!(messages_until_quiet(outboxes, &mut now) > 0);
    assert!(!purges.is_behind("d"));
}
