//! The smallest driver of `Transaction` there can be: it carries commands out on a shelf.

use crate::lines::{Lines, borrow, render, value};
use crate::shelf::{Kept, Key, Shelf};
use weir_policy::{
    Command, Event, Failure, Forwarding, Handling, Now, Profile, Rules, Serving, Storing, Tick,
    Transaction,
};
use weir_semantics::{
    DeltaSeconds, Fwd, Heuristic, Method, Precondition, RangeOutcome, RequestFacts, ResponseFacts,
    Timestamp, evaluate, if_range_holds, select,
};
use weir_vectors::{
    Answer, Asked, Fault, Moment, Observed, Origin, Parameters, START_S, Seen, Step,
};

/// A cache without sockets.
pub(crate) struct Cache {
    rules: Rules,
    shelf: Shelf,
}

/// One request under way.
struct Turn<'a> {
    step: &'a Step,
    moment: Moment<'a>,
    key: Key,
    request: Lines,
    now: Now,
    tx: Transaction,
    observed: Observed,
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
            },
            shelf: Shelf::default(),
        }
    }

    /// Takes the request of a step and tells what happened.
    pub(crate) fn take(&mut self, step: &Step, moment: Moment<'_>) -> Observed {
        let request = render(&step.request.fields, moment);
        let method = Method::parse(&step.request.method);
        let facts = RequestFacts::gather(method, &step.request.target, &borrow(&request));
        let now = now(step.at_s);
        let turn = Turn {
            step,
            moment,
            key: (moment.host.to_owned(), step.request.target.clone()),
            request,
            now,
            tx: Transaction::new(facts, now),
            observed: Observed::default(),
        };
        self.choose(turn)
    }

    fn choose(&mut self, mut turn: Turn<'_>) -> Observed {
        let (now, rules) = (turn.now, self.rules);
        let unshared = turn.step.request.content.is_some();
        let mut commands = turn.tx.handle(now, &rules, Event::Request { unshared });
        let mut stored = None;
        if commands.first() == Some(Command::LookUp) {
            commands = match self.shelf.find(&turn.key, &turn.request) {
                Ok(kept) => {
                    let kept = stored.insert(kept.clone());
                    turn.tx.handle(now, &rules, Event::Found(&kept.facts))
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
        turn.observed
    }

    fn forward(&mut self, turn: &mut Turn<'_>, forwarding: Forwarding, stored: Option<Kept>) {
        turn.ask(
            &turn.step.request.method,
            forwarding.validate,
            stored.as_ref(),
        );
        let Origin::Asked(answer) = &turn.step.origin else {
            // there is no answer to go on with: being asked is the difference that is told
            return;
        };
        turn.now = now(turn.step.end_s());
        match answer.fault {
            Some(Fault::Closed) => self.fail(turn, Failure::Disconnected, stored.as_ref()),
            Some(Fault::Broken) => self.fail(turn, Failure::Protocol, stored.as_ref()),
            Some(Fault::Cut) | None => self.respond(turn, answer, stored.as_ref()),
        }
    }

    fn fail(&mut self, turn: &mut Turn<'_>, failure: Failure, stored: Option<&Kept>) {
        let commands = turn
            .tx
            .handle(turn.now, &self.rules, Event::Failed(failure));
        match commands.first() {
            Some(Command::Serve(serving)) => turn.serve(stored, serving),
            _ => turn.refuse(502),
        }
    }

    fn respond(&mut self, turn: &mut Turn<'_>, answer: &Answer, stored: Option<&Kept>) {
        let lines = turn.response_lines(answer);
        let status = answer.response.status;
        let facts = ResponseFacts::gather(status, &borrow(&lines), turn.now.wall);
        let event = Event::Response(&facts);
        let commands = turn.tx.handle(turn.now, &self.rules, event);
        for command in commands.iter() {
            match (command, stored) {
                (Command::Relay, _) => turn.relay(answer, &lines),
                (Command::Serve(serving), _) => turn.serve(stored, serving),
                (Command::Store(_), _) if answer.fault == Some(Fault::Cut) => {
                    let _ = turn.tx.handle(turn.now, &self.rules, Event::Incomplete);
                }
                (Command::Store(facts), _) => {
                    let (body, now) = (&answer.response.body, turn.now);
                    self.shelf
                        .put(&turn.key, &turn.request, facts, lines.clone(), body, now);
                }
                (Command::Invalidate, _) => self.shelf.invalidate(&turn.key, &lines),
                (Command::Drop, Some(kept)) => self.shelf.forget_one(&turn.key, kept.number),
                (Command::Freshen, Some(kept)) => {
                    let request_time = turn.tx.request_time();
                    let fresh = self
                        .shelf
                        .freshen(&turn.key, kept, &lines, request_time, turn.now);
                    let commands = match &fresh {
                        Some(fresh) => turn.tx.freshened(turn.now, &fresh.facts),
                        None => turn.tx.not_freshened(turn.now, &kept.facts),
                    };
                    match commands.first() {
                        Some(Command::Serve(serving)) => {
                            turn.serve(fresh.as_ref().or(stored), serving);
                        }
                        _ => turn.refuse(502),
                    }
                }
                _ => unreachable!("{command:?} after a response"),
            }
        }
    }

    /// The client has its answer; what the origin says now is for the shelf alone.
    fn refresh(&mut self, turn: &mut Turn<'_>, stored: Option<&Kept>) {
        let Some(kept) = stored else { return };
        let (tx, forwarding) = Transaction::refresh(*turn.tx.request(), &kept.facts, turn.now);
        turn.tx = tx;
        // what is for the store repeats neither the client's range nor its conditions
        turn.request.retain(|line| !is_precondition(&line.0));
        turn.ask("GET", forwarding.validate, stored);
        let served = turn.observed.seen.clone();
        if let Origin::Asked(answer) = &turn.step.origin {
            match answer.fault {
                Some(Fault::Closed | Fault::Broken) => {}
                Some(Fault::Cut) | None => self.respond(turn, answer, stored),
            }
        }
        turn.observed.seen = served;
    }
}

impl Turn<'_> {
    /// The origin gets the request.
    fn ask(&mut self, method: &str, validate: bool, stored: Option<&Kept>) {
        let validators = stored.filter(|_| validate);
        let mut fields = self.request.clone();
        fields.push(("Host".to_owned(), self.moment.host.to_owned()));
        if let Some(kept) = validators {
            fields.retain(|line| !is_precondition(&line.0));
            for (name, from) in [
                ("If-None-Match", "etag"),
                ("If-Modified-Since", "last-modified"),
            ] {
                if let Some(value) = value(&kept.lines, from) {
                    fields.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        self.observed.asked.push(Asked {
            method: method.to_owned(),
            target: self.step.request.target.clone(),
            fields,
        });
    }

    fn response_lines(&self, answer: &Answer) -> Lines {
        let moment = Moment {
            at_s: self.step.end_s(),
            ..self.moment
        };
        render(&answer.response.fields, moment)
    }

    fn relay(&mut self, answer: &Answer, lines: &Lines) {
        let response = &answer.response;
        let is_empty = self.step.request.method == "HEAD" || matches!(response.status, 204 | 304);
        let age = value(lines, "age").and_then(|age| age.parse().ok());
        self.observed.seen = Seen {
            status: response.status,
            body: Some(if is_empty {
                String::new()
            } else {
                response.body.clone()
            }),
            age_s: Some(age),
            fields: None,
            cache_status: self.words(),
            cut: answer.fault == Some(Fault::Cut),
        };
    }

    fn serve(&mut self, stored: Option<&Kept>, serving: Serving) {
        let Some(kept) = stored else { return };
        let (status, body) = self.form(kept);
        self.observed.seen = Seen {
            status,
            body: Some(body),
            age_s: Some(Some(serving.age.0)),
            fields: None,
            cache_status: self.words(),
            cut: false,
        };
    }

    fn refuse(&mut self, status: u16) {
        self.observed.seen = Seen {
            status,
            cache_status: self.words(),
            ..Seen::default()
        };
    }

    /// RFC 9110 §13.2.2: preconditions first, then Range.
    fn form(&self, kept: &Kept) -> (u16, String) {
        let request = borrow(&self.request);
        let (validators, now) = (kept.validators(), self.now.wall);
        let method = self.tx.request().method;
        let is_whole = kept.facts.status == 200;
        if is_whole && evaluate(method, &request, &validators, now) == Precondition::NotModified {
            return (304, String::new());
        }
        if method == Method::Head {
            return (kept.facts.status, String::new());
        }
        if is_whole
            && let Some(range) = value(&self.request, "range")
            && if_range_holds(&request, &validators, now)
        {
            return match select(range.as_bytes(), kept.body.len() as u64, 1) {
                RangeOutcome::Single(range) => {
                    let at = |place: u64| usize::try_from(place).expect("a body fits memory");
                    (206, kept.body[at(range.first)..=at(range.last)].to_owned())
                }
                RangeOutcome::Unsatisfiable => (416, String::new()),
                RangeOutcome::Whole | RangeOutcome::Multiple(_) => (200, kept.body.clone()),
            };
        }
        (kept.facts.status, kept.body.clone())
    }

    /// The verdict as parameters of Cache-Status (RFC 9211).
    fn words(&self) -> Parameters {
        let verdict = self.tx.verdict();
        let fwd = match verdict.handling {
            Handling::Hit(_) => None,
            Handling::Forward(fwd) => Some(fwd),
            Handling::StaleInstead(_) => Some(Fwd::Stale),
            Handling::Refused(_) | Handling::Tunnel => Some(Fwd::Bypass),
        };
        let mut words = Parameters::default();
        match fwd {
            None => words.add("hit", ""),
            Some(fwd) => {
                words.add("fwd", fwd.as_str());
                if let Some(status) = verdict.fwd_status {
                    words.add("fwd-status", status);
                }
                if verdict.storing == Some(Storing::Stored) {
                    words.add("stored", "");
                }
            }
        }
        if let Some(ttl) = verdict.ttl {
            words.add("ttl", ttl);
        }
        let not_stored = match verdict.storing {
            Some(Storing::NotStored(why)) => Some(why.as_str()),
            _ => None,
        };
        if let Some(detail) = verdict.handling.detail().or(not_stored) {
            words.add("detail", detail);
        }
        words
    }
}

fn is_precondition(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("if-") || name == "range"
}

/// Both clocks at `at_s` seconds since the vector's start.
fn now(at_s: u32) -> Now {
    Now {
        wall: Timestamp(START_S + i64::from(at_s)),
        tick: Tick(u64::from(at_s) * 1000),
    }
}
