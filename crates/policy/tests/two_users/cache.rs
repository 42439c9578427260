//! The driver: carries out what `Transaction` decides, on a plain store, without sockets.
//!
//! The live proxy does the same with sockets. What is its own and not decided in `policy` or
//! `semantics` is repeated here, and held by the isolation test of the proxy: which requests meet
//! at the gate, what a follower does with what its leader brought (`follow`), and what is left of a
//! stored head in a 304.

use crate::origin::{Origin, OriginExchange, Question, Secrets};
use crate::reference_store::{Lines, Merging, borrow, is_precondition};
use crate::ruled::Ruled;
use crate::sequence::{Exchange, Fault, Role, Sequence};
use crate::stored::{Store, StoredResponse};
use crate::turn::{Observation, Pending, Turn};
use weir_policy::{
    Command, Commands, Event, Failure, Forwarding, JoinKind, Now, Profile, RefuseReason, Rules,
    SetCookieRule, StoredFacts, Tick, Transaction,
};
use weir_semantics::{DeltaSeconds, Heuristic, ResponseFacts, Timestamp};

/// What happened when a sequence was played.
pub(crate) struct PlayResult {
    pub(crate) told: Vec<OriginExchange>,
    pub(crate) seen: Vec<Observation>,
}

/// Plays a sequence with an empty cache.
pub(crate) fn play(sequence: &Sequence, secrets: Secrets, ruled: Ruled) -> PlayResult {
    let storing = ruled.storing();
    let mut cache = Cache {
        rules: Rules {
            profile: Profile::Rfc9111,
            heuristic: Heuristic {
                assigned: storing.default,
                ..Heuristic::default()
            },
            disconnected_stale_max: DeltaSeconds(24 * 3600),
            set_cookie: SetCookieRule::Permitted,
            reuse: storing.reuse,
        },
        store: Store::default(),
        origin: Origin::new(secrets),
        seen: Vec::new(),
    };
    let mut at_s = 0;
    for (index, exchange) in sequence.0.iter().enumerate() {
        at_s += exchange.pause_s;
        cache.exchange(index, exchange, at_s);
    }
    PlayResult {
        told: cache.origin.told,
        seen: cache.seen,
    }
}

struct Cache {
    rules: Rules,
    store: Store,
    origin: Origin,
    seen: Vec<Observation>,
}

/// What a leader's question came to for its follower.
enum Outcome {
    /// It may have this too, if it is one for it.
    Shared(StoredResponse),
    /// What was stored is up to date: look again.
    LookAgain,
    /// It is forwarded by itself, also if the leader failed: in the proxy a follower takes over.
    Alone,
}

const ALONE: Forwarding = Forwarding {
    validate: false,
    complete: false,
};

impl Cache {
    fn exchange(&mut self, index: usize, exchange: &Exchange, at_s: u32) {
        let question = |role, request| Question {
            index,
            exchange,
            role,
            request,
            at_s,
        };
        let now = now(at_s);
        let mut client = self.open(question(Role::Client, &exchange.client), now);
        let follower = exchange.follower.as_ref();
        let mut follower =
            follower.map(|request| self.open(question(Role::Follower, request), now));
        let mut outcome = Outcome::Alone;
        if let Some(pending) = client.pending.take() {
            let leads = client.tx.follows() && client.tx.leads();
            outcome = self.forward(&mut client, &pending);
            if !leads {
                outcome = Outcome::Alone;
            }
        }
        self.seen.extend(client.seen);
        if let Some(turn) = &mut follower
            && let Some(pending) = turn.pending.take()
        {
            if turn.tx.follows() {
                self.follow(turn, &pending, outcome);
            } else {
                self.forward(turn, &pending);
            }
        }
        self.seen.extend(follower.and_then(|turn| turn.seen));
    }

    /// A request comes: it is answered, or has a question to the origin.
    fn open<'a>(&mut self, question: Question<'a>, now: Now) -> Turn<'a> {
        let mut turn = Turn::new(question, self.origin.secrets(), now);
        turn.told = self.origin.told.len();
        let unshared = Event::Request { unshared: false };
        let mut commands = turn.tx.handle(now, &self.rules, unshared);
        let mut stored = None;
        if commands.first() == Some(Command::LookUp) {
            commands = match self.store.find(&turn.lines) {
                Ok(found) => {
                    let found = stored.insert(self.used(found));
                    let event = turn.found(found);
                    turn.tx.handle(now, &self.rules, event)
                }
                Err(missing) => turn.tx.handle(now, &self.rules, Event::Missing(missing)),
            };
        }
        for command in commands.iter() {
            match (command, &stored) {
                (Command::Serve(_), Some(stored)) => turn.serve(stored),
                (Command::Forward(forwarding), _) => {
                    let stored = stored.clone();
                    turn.pending = Some(Pending { forwarding, stored });
                }
                (Command::RefreshInBackground, Some(stored)) => self.refresh(&turn, stored),
                (Command::Answer(_), _) => turn.refuse(504),
                _ => unreachable!("{command:?} before any response"),
            }
        }
        turn
    }

    /// A stored response as rules of the operator have it used.
    fn used(&self, stored: &StoredResponse) -> StoredResponse {
        let mut used = stored.clone();
        used.facts = self.rules.reuse.of(&stored.facts);
        used
    }

    fn forward(&mut self, turn: &mut Turn<'_>, pending: &Pending) -> Outcome {
        let (method, lines) = turn.outgoing(pending);
        let told = self.origin.answer(turn.question, method, lines).clone();
        match told.fault {
            Some(Fault::Closed) => self.fail(turn, Failure::Disconnected, pending.stored.as_ref()),
            Some(Fault::Broken) => self.fail(turn, Failure::Protocol, pending.stored.as_ref()),
            Some(Fault::Cut) | None => self.respond(turn, &told, pending.stored.as_ref()),
        }
    }

    fn fail(
        &mut self,
        turn: &mut Turn<'_>,
        failure: Failure,
        stored: Option<&StoredResponse>,
    ) -> Outcome {
        let event = Event::Failed(failure);
        let commands = turn.tx.handle(turn.now, &self.rules, event);
        match (commands.first(), stored) {
            (Some(Command::Serve(_)), Some(stored)) => turn.serve(stored),
            (Some(Command::Answer(RefuseReason::MustRevalidate)), _) => turn.refuse(504),
            _ => turn.refuse(502),
        }
        Outcome::Alone
    }

    fn respond(
        &mut self,
        turn: &mut Turn<'_>,
        told: &OriginExchange,
        stored: Option<&StoredResponse>,
    ) -> Outcome {
        let lines = borrow(&told.lines);
        let response = &ResponseFacts::gather(told.status, &lines, turn.now.wall);
        let merging = stored
            .filter(|_| turn.tx.may_update(told.status))
            .map(|stored| stored.merging(turn.asked, told, response, turn.now));
        let event = match &merging {
            Some(merging) => Event::Update(merging.update(response)),
            None => Event::Response(response),
        };
        let commands = turn.tx.handle(turn.now, &self.rules, event);
        let stored = stored.map(|stored| (stored, merging.as_ref()));
        self.carry_out(turn, &commands, told, stored)
    }

    fn carry_out(
        &mut self,
        turn: &mut Turn<'_>,
        commands: &Commands,
        told: &OriginExchange,
        stored: Option<(&StoredResponse, Option<&Merging>)>,
    ) -> Outcome {
        let mut outcome = Outcome::Alone;
        for command in commands.iter() {
            match (command, stored) {
                (Command::Relay, _) => turn.relay(told),
                (Command::Serve(_), Some((stored, _))) => turn.serve(stored),
                (Command::Store(facts), _) => outcome = self.store(turn, told, facts),
                (Command::Combine(facts), Some((stored, Some(merging)))) => {
                    let joined = stored.updated(merging, facts, told, &turn.lines, turn.now);
                    turn.serve(&joined.for_client(merging));
                    outcome = self.keep(turn, told, joined);
                }
                (Command::Freshen(facts), Some((stored, Some(merging)))) => {
                    let fresh = stored.updated(merging, facts, told, &turn.lines, turn.now);
                    self.store.replace(&fresh);
                    if self.rules.reuse.of(&facts).answers_others(turn.now) {
                        outcome = Outcome::LookAgain;
                    }
                }
                (Command::ServeMerged(_), Some((stored, Some(merging)))) => {
                    turn.serve(&stored.for_client(merging));
                }
                (Command::Invalidate, _) => self.store.invalidate(),
                (Command::Drop, Some((stored, _))) => self.store.forget(stored.number),
                // it went when the question was asked again
                (Command::Drop, None) => {}
                (Command::ForwardAgain, _) => {
                    let pending = Pending {
                        forwarding: ALONE,
                        stored: None,
                    };
                    outcome = self.forward(turn, &pending);
                }
                _ => unreachable!("{command:?} after a response"),
            }
        }
        outcome
    }

    fn store(&mut self, turn: &mut Turn<'_>, told: &OriginExchange, facts: StoredFacts) -> Outcome {
        let new = StoredResponse::of(told, facts, &turn.lines, turn.now);
        self.keep(turn, told, new)
    }

    /// What was being stored stays, if it is whole or of use in part.
    fn keep(&mut self, turn: &mut Turn<'_>, told: &OriginExchange, new: StoredResponse) -> Outcome {
        if told.fault == Some(Fault::Cut) {
            let commands = turn.tx.handle(turn.now, &self.rules, Event::Incomplete);
            if commands.first() != Some(Command::KeepPart) {
                return Outcome::Alone;
            }
        }
        let new = self.store.put(new, &turn.lines);
        if self.used(&new).facts.answers_others(turn.now) {
            Outcome::Shared(new)
        } else {
            Outcome::Alone
        }
    }

    /// The client has its answer; what the origin says now is for the store alone.
    fn refresh(&mut self, turn: &Turn<'_>, stored: &StoredResponse) {
        let (tx, forwarding) = Transaction::refresh(*turn.tx.request(), &stored.facts, turn.now);
        let question = Question {
            role: Role::Background,
            ..turn.question
        };
        let mut background = Turn::new(question, self.origin.secrets(), turn.now);
        background.tx = tx;
        background.lines.retain(|line| !is_precondition(&line.0));
        let pending = Pending {
            forwarding,
            stored: Some(stored.clone()),
        };
        self.forward(&mut background, &pending);
    }

    /// A request that waited for another's response has it, or asks for itself.
    fn follow(&mut self, turn: &mut Turn<'_>, pending: &Pending, outcome: Outcome) {
        match outcome {
            Outcome::Alone => {
                self.forward(turn, pending);
            }
            Outcome::Shared(stored) if stored.is_for(&turn.lines) => {
                let before = turn.tx;
                let facts = self.used(&stored).facts;
                let commands = turn.tx.joined(turn.now, &facts, JoinKind::Waited);
                match commands.first() {
                    Some(Command::Serve(_)) if turn.content_of(&stored).is_some() => {
                        turn.serve(&stored)
                    }
                    Some(Command::Forward(forwarding)) => {
                        let stored = None;
                        self.forward(turn, &Pending { forwarding, stored });
                    }
                    _ => {
                        turn.tx = before;
                        self.forward(turn, pending);
                    }
                }
            }
            Outcome::Shared(_) => {
                self.forward(turn, pending);
            }
            Outcome::LookAgain => self.look_again(turn, pending),
        }
    }

    fn look_again(&mut self, turn: &mut Turn<'_>, pending: &Pending) {
        let found = self.store.find(&turn.lines).ok();
        let found = found.map(|found| self.used(found));
        let Some(found) = found.filter(StoredResponse::is_whole) else {
            self.forward(turn, pending);
            return;
        };
        let before = turn.tx;
        let commands = turn.tx.joined(turn.now, &found.facts, JoinKind::Waited);
        if let Some(Command::Serve(_)) = commands.first() {
            turn.serve(&found);
            return;
        }
        turn.tx = before;
        let event = Event::Found(&found.facts);
        let commands = turn.tx.handle(turn.now, &self.rules, event);
        match commands.first() {
            Some(Command::Forward(forwarding)) => {
                let stored = Some(found);
                self.forward(turn, &Pending { forwarding, stored });
            }
            _ => {
                self.forward(turn, pending);
            }
        }
    }
}

/// Both clocks `at_s` seconds after the start, Sun, 06 Nov 1994 08:49:37 GMT.
fn now(at_s: u32) -> Now {
    Now {
        wall: Timestamp(784_111_777 + i64::from(at_s)),
        tick: Tick(u64::from(at_s) * 1000 + 1_000_000),
    }
}

/// So that a question without fields reads well in a failure.
pub(crate) fn text(lines: &Lines) -> String {
    let lines: Vec<_> = lines
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    lines.join("; ")
}
