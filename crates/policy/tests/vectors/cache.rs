//! The smallest driver of `Transaction` there can be: it carries commands out on a store.

use crate::content::Content;
use crate::reference_store::{Lines, borrow, is_precondition};
use crate::store::{Store, StoredEntry};
use crate::turn::{Turn, render};
use weir_policy::{
    Command, Event, Failure, Forwarding, Now, Profile, RefuseReason, Rules, SetCookieRule,
    StoredFacts, Tick, Transaction,
};
use weir_semantics::{DeltaSeconds, Heuristic, Method, RequestFacts, ResponseFacts, Timestamp};
use weir_vectors::{Answer, Fault, FieldContext, Observation, Origin, START_S, Step};

/// A cache without sockets.
pub(crate) struct Cache {
    rules: Rules,
    store: Store,
}

impl Cache {
    pub(crate) fn new(profile: weir_vectors::Profile) -> Self {
        Self {
            rules: Rules {
                profile: match profile {
                    weir_vectors::Profile::Rfc9111 => Profile::Rfc9111,
                    weir_vectors::Profile::Http1998 => Profile::Http1998,
                },
                heuristic: Heuristic::default(),
                // as the live proxy has it
                disconnected_stale_max: DeltaSeconds(24 * 3600),
                set_cookie: SetCookieRule::default(),
                reuse: weir_policy::rule::Reuse::NONE,
            },
            store: Store::default(),
        }
    }

    /// Takes the request of a step and tells what happened.
    pub(crate) fn take(&mut self, step: &Step, context: FieldContext<'_>) -> Observation {
        let request = render(&step.request.fields, context);
        let method = Method::parse(&step.request.method);
        let facts = RequestFacts::gather(method, &step.request.target, &borrow(&request));
        let now = now(step.at_s);
        let turn = Turn {
            step,
            context,
            key: (context.host.to_owned(), step.request.target.clone()),
            request,
            now,
            tx: Transaction::new(facts, now),
            asked: None,
            observation: Observation::default(),
        };
        self.choose(turn)
    }

    fn choose(&mut self, mut turn: Turn<'_>) -> Observation {
        let (now, rules) = (turn.now, self.rules);
        let unshared = turn.step.request.content.is_some();
        let mut commands = turn.tx.handle(now, &rules, Event::Request { unshared });
        let mut stored = None;
        if commands.first() == Some(Command::LookUp) {
            commands = match self.store.find(&turn.key, &turn.request) {
                Ok(kept) => {
                    let kept = stored.insert(kept.clone());
                    let event = turn.found(kept);
                    turn.tx.handle(now, &rules, event)
                }
                Err(missing) => turn.tx.handle(now, &rules, Event::Missing(missing)),
            };
        }
        for command in commands.iter() {
            match command {
                Command::Serve(serving) => turn.serve(stored.as_ref(), serving),
                Command::Forward(forwarding) => {
                    self.forward(&mut turn, forwarding, stored.clone());
                }
                Command::RefreshInBackground => self.refresh(&mut turn, stored.as_ref()),
                Command::Answer(_) => turn.refuse(504),
                _ => unreachable!("{command:?} before any response"),
            }
        }
        turn.observation
    }

    fn forward(
        &mut self,
        turn: &mut Turn<'_>,
        forwarding: Forwarding,
        stored: Option<StoredEntry>,
    ) {
        turn.ask(&turn.step.request.method, forwarding, stored.as_ref());
        let Origin::Asked(answer) = &turn.step.origin else {
            // there is no answer to go on with: being asked is the difference that is told
            return;
        };
        turn.tx.sent(now(turn.step.sent_s()));
        turn.now = now(turn.step.end_s());
        self.take_answer(turn, answer, stored.as_ref());
    }

    fn take_answer(&mut self, turn: &mut Turn<'_>, answer: &Answer, stored: Option<&StoredEntry>) {
        match answer.fault {
            Some(Fault::Closed) => self.fail(turn, Failure::Disconnected, stored),
            Some(Fault::Broken) => self.fail(turn, Failure::Protocol, stored),
            Some(Fault::Cut) | None => self.respond(turn, answer, stored),
        }
    }

    fn fail(&mut self, turn: &mut Turn<'_>, failure: Failure, stored: Option<&StoredEntry>) {
        let commands = turn
            .tx
            .handle(turn.now, &self.rules, Event::Failed(failure));
        match commands.first() {
            Some(Command::Serve(serving)) => turn.serve(stored, serving),
            Some(Command::Answer(RefuseReason::MustRevalidate)) => turn.refuse(504),
            _ => turn.refuse(502),
        }
    }

    fn respond(&mut self, turn: &mut Turn<'_>, answer: &Answer, stored: Option<&StoredEntry>) {
        let mut lines = turn.response_lines(answer);
        if turn.step.request.method == "HEAD" {
            let length = answer.response.body.len().to_string();
            lines.push(("Content-Length".to_owned(), length));
        }
        let status = answer.response.status;
        let fields = borrow(&lines);
        let response = &ResponseFacts::gather(status, &fields, turn.now.wall)
            .targeted(&fields, &crate::targeted());
        let stored_kept = stored.filter(|_| turn.tx.may_update(status));
        let merging = stored_kept.map(|kept| kept.merging(turn.asked, response, &lines, turn.now));
        let event = match &merging {
            Some(merging) => Event::Update(merging.update(response)),
            None => Event::Response(response),
        };
        let commands = turn.tx.handle(turn.now, &self.rules, event);
        let received = Content::received(answer, response);
        for command in commands.iter() {
            match (command, stored) {
                (Command::Relay, _) => turn.relay(answer, &lines),
                (Command::Serve(serving), _) => turn.serve(stored, serving),
                (Command::Store(facts), _) => self.store(turn, answer, facts, &lines, &received),
                (Command::Combine(facts), Some(kept)) => {
                    let merging = merging.as_ref().expect("an update is combined");
                    let joined = kept.joined(merging, facts, &received, turn.now);
                    self.combine(turn, answer, &joined);
                }
                (Command::Invalidate, _) => self.store.invalidate(&turn.key, &lines),
                (Command::Drop, Some(kept)) => self.store.forget_one(&turn.key, kept.number),
                (Command::Freshen(facts), Some(kept)) => {
                    let merging = merging.as_ref().expect("an update freshens");
                    let fresh = kept.updated(merging, facts, turn.now);
                    self.store.replace(&turn.key, &fresh);
                }
                (Command::ServeMerged(serving), Some(kept)) => {
                    let merging = merging.as_ref().expect("an update is served");
                    let own = kept.for_client(merging, turn.tx.request_time(), turn.now);
                    turn.serve(Some(&own), serving);
                }
                (Command::ForwardAgain, _) => {
                    turn.ask_as_sent();
                    // without a second answer: that two were asked for is the difference that is
                    // told
                    if let Some(again) = &answer.again {
                        self.take_answer(turn, again, None);
                    }
                }
                _ => unreachable!("{command:?} after a response"),
            }
        }
    }

    fn store(
        &mut self,
        turn: &mut Turn<'_>,
        answer: &Answer,
        facts: StoredFacts,
        lines: &Lines,
        received: &Content,
    ) {
        if self.is_kept(turn, answer) {
            self.store
                .put(&turn.key, &turn.request, facts, lines, received, turn.now);
        }
    }

    /// The client gets what is joined, in the form it asked for.
    fn combine(&mut self, turn: &mut Turn<'_>, answer: &Answer, joined: &StoredEntry) {
        turn.relay_joined(answer, joined);
        if self.is_kept(turn, answer) {
            self.store.replace(&turn.key, joined);
        }
    }

    /// Whether what was being stored stays; if its end is missing, the part that came.
    fn is_kept(&self, turn: &mut Turn<'_>, answer: &Answer) -> bool {
        if answer.fault != Some(Fault::Cut) {
            return true;
        }
        let commands = turn.tx.handle(turn.now, &self.rules, Event::Incomplete);
        commands.first() == Some(Command::KeepPart)
    }

    /// The client has its answer; what the origin says now is for the store alone.
    fn refresh(&mut self, turn: &mut Turn<'_>, stored: Option<&StoredEntry>) {
        let Some(kept) = stored else { return };
        let (tx, forwarding) = Transaction::refresh(*turn.tx.request(), &kept.facts, turn.now);
        turn.tx = tx;
        // what is for the store repeats neither the client's range nor its conditions
        turn.request.retain(|line| !is_precondition(&line.0));
        turn.ask("GET", forwarding, stored);
        let served = turn.observation.response.clone();
        if let Origin::Asked(answer) = &turn.step.origin {
            match answer.fault {
                Some(Fault::Closed | Fault::Broken) => {}
                Some(Fault::Cut) | None => self.respond(turn, answer, stored),
            }
        }
        turn.observation.response = served;
    }
}

/// Both clocks at `at_s` seconds since the vector's start.
fn now(at_s: u32) -> Now {
    Now {
        wall: Timestamp(START_S + i64::from(at_s)),
        tick: Tick(u64::from(at_s) * 1000),
    }
}
