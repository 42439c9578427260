//! The smallest driver of `Transaction` there can be: it carries commands out on a store.

use crate::content::Content;
use crate::reference_store::{Lines, borrow, is_precondition, value};
use crate::rules;
use crate::store::{Store, StoredEntry};
use crate::turn::{Turn, render};
use weir_extend::{Fields, ListenerMode};
use weir_policy::rule::{Bits, Place, RuleSet, StoringRules, Values};
use weir_policy::{
    Command, Event, Failure, Forwarding, Now, Profile, RefuseReason, Rules, Serving, SetCookieRule,
    StoredFacts, Tick, Transaction,
};
use weir_semantics::{DeltaSeconds, Heuristic, Method, RequestFacts, ResponseFacts, Timestamp};
use weir_vectors::{Answer, Fault, FieldContext, Observation, Origin, START_S, Step, Vector};

/// As a gateway receives them.
const MODE: ListenerMode = ListenerMode::Gateway;

/// A cache without sockets.
pub(crate) struct Cache {
    rules: Rules,
    operator_rules: RuleSet,
    store: Store,
}

impl Cache {
    pub(crate) fn new(vector: &Vector) -> Self {
        Self {
            rules: Rules {
                profile: match vector.profile {
                    weir_vectors::Profile::Rfc9111 => Profile::Rfc9111,
                    weir_vectors::Profile::Http1998 => Profile::Http1998,
                },
                heuristic: Heuristic::default(),
                // as the live proxy has it
                disconnected_stale_max: DeltaSeconds(24 * 3600),
                set_cookie: SetCookieRule::default(),
                reuse: weir_policy::rule::Reuse::NONE,
            },
            operator_rules: rules::set(&vector.rules),
            store: Store::default(),
        }
    }

    /// Takes the request of a step and tells what happened.
    pub(crate) fn take(&mut self, step: &Step, context: FieldContext<'_>) -> Observation {
        let (host, method) = (context.host, Method::parse(&step.request.method));
        let mut target = step.request.target.clone();
        let matched = self.matched(host, &target, method);
        let outcome = self.operator_rules.outcome(matched);
        let mut request = render(&step.request.fields, context);
        let key = outcome.key(method);
        if outcome.request.is_some() || key.is_some() {
            let lines = request.iter();
            let lines = lines.map(|(name, value)| (name.as_str(), value.as_bytes()));
            let mut fields = Fields::received(lines);
            let values = Values::new(None, host, &target);
            let changed = outcome.request.map(|it| it.apply(&mut fields, &values));
            assert!(matches!(changed, None | Some(Ok(()))), "{changed:?}");
            if let Some(key) = key {
                key.change(&mut fields).expect("there is room");
            }
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
            let lines = fields.iter();
            request = lines
                .map(|(name, value)| (name.to_owned(), text(value)))
                .collect();
        }
        let changed = key.and_then(|key| key.target(&target));
        let is_rekeyed = changed.is_some();
        target = changed.unwrap_or(target);
        let mut facts = RequestFacts::gather(method, &target, &borrow(&request));
        let directives_sent = outcome.ignored.take_from(&mut facts.directives);
        let now = now(step.at_s);
        let mut turn = Turn {
            step,
            context,
            key: (host.to_owned(), target.clone()),
            request,
            target,
            directives_sent,
            own: None,
            now,
            tx: Transaction::new(facts, now),
            asked: None,
            observation: Observation::default(),
        };
        if outcome.deny.is_some() {
            let _ = turn.tx.refuse(RefuseReason::Rule);
            turn.refuse(403);
            return turn.observation;
        }
        if is_rekeyed {
            turn.tx.rekey_by_rule();
        }
        if outcome.bypass {
            turn.tx.bypass_by_rule();
        }
        self.choose(turn, outcome.bypass)
    }

    /// The rules of the operator for a request.
    fn matched(&self, host: &str, target: &str, method: Method) -> Bits {
        let place = Place {
            listener: None,
            mode: MODE,
            method,
            client: None,
        };
        let applicable = self.operator_rules.applicable(&place);
        self.operator_rules
            .matched(applicable, host.as_bytes(), target)
    }

    /// What they say of storing a response with these lines, and of using it.
    fn storing(&self, turn: &Turn<'_>, status: u16, lines: &Lines) -> StoringRules {
        let target = (turn.context.host.as_bytes(), turn.target.as_str());
        let content_type = value(lines, "content-type").unwrap_or_default();
        let content_type = content_type.as_bytes();
        self.operator_rules
            .storing(MODE, target, status, content_type)
    }

    /// The client gets the stored response.
    fn serve(&self, turn: &mut Turn<'_>, stored: Option<&StoredEntry>, serving: Serving) {
        if let (Some(used), Some(own)) = (stored, turn.own) {
            let sent = turn.directives_sent.unwrap_or(turn.tx.request().directives);
            let by = (&self.rules, &sent);
            turn.tx.answered_by_rule(turn.now, by, (&own, &used.facts));
        }
        turn.serve(stored, serving);
    }

    fn choose(&mut self, mut turn: Turn<'_>, bypasses: bool) -> Observation {
        let (now, rules) = (turn.now, self.rules);
        let unshared = turn.step.request.content.is_some() || bypasses;
        let mut commands = turn.tx.handle(now, &rules, Event::Request { unshared });
        let mut stored = None;
        if commands.first() == Some(Command::LookUp) {
            commands = match self.store.find(&turn.key, &turn.request) {
                Ok(kept) => {
                    turn.own = Some(kept.facts);
                    let storing = self.storing(&turn, kept.facts.status, &kept.lines);
                    let kept = stored.insert(kept.clone());
                    kept.facts = storing.reuse.of(&kept.facts);
                    let event = turn.found(kept);
                    turn.tx.handle(now, &rules, event)
                }
                Err(missing) => turn.tx.handle(now, &rules, Event::Missing(missing)),
            };
        }
        for command in commands.iter() {
            match command {
                Command::Serve(serving) => self.serve(&mut turn, stored.as_ref(), serving),
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
            Some(Command::Serve(serving)) => self.serve(turn, stored, serving),
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
        let storing = match &merging {
            Some(merging) => self.storing(turn, merging.facts.status, &merging.stored),
            None => self.storing(turn, status, &lines),
        };
        let mut rules = self.rules;
        rules.heuristic.assigned = storing.default;
        rules.reuse = storing.reuse;
        let commands = turn.tx.handle(turn.now, &rules, event);
        let received = Content::received(answer, response);
        for command in commands.iter() {
            match (command, stored) {
                (Command::Relay, _) => turn.relay(answer, &lines),
                (Command::Serve(serving), _) => self.serve(turn, stored, serving),
                (Command::Store(facts), _) => self.store(turn, answer, facts, &lines, &received),
                (Command::Combine(facts), Some(kept)) => {
                    let merging = merging.as_ref().expect("an update is combined");
                    let joined = kept.joined(merging, facts, &received, turn.now);
                    self.combine(turn, answer, &joined);
                }
                (Command::Invalidate, _) => self.invalidate(turn, &lines),
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

    /// Forgets the target, under the key that rules of the operator give it, too.
    fn invalidate(&mut self, turn: &Turn<'_>, lines: &Lines) {
        let (host, target) = &turn.key;
        let key = self.operator_rules.key(MODE, host.as_bytes(), target);
        if let Some(changed) = key.and_then(|key| key.target(target)) {
            self.store
                .invalidate(&(host.clone(), changed), &Lines::new());
        }
        self.store.invalidate(&turn.key, lines);
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
