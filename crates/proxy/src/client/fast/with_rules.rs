//! A request that rules of the operator are for, on the fast path.
//!
//! A changed head is judged as if it had been received so: everything that is decided by fields is
//! decided by those that the next hop gets.

use super::{Input, InputResult, MadeResponse, Receiver};
use crate::cache::variants::Choice;
use crate::exchange::heads::fields::change_response;
use crate::exchange::state::{Plan, RequestState};
use crate::log::client::ClientFacts;
use crate::log::request_log::RequestLog;
use crate::log::served::ServedRequest;
use crate::request::answer::Answer;
use crate::request::facts::Request;
use crate::request::judge::ReceivedRequest;
use crate::send::heads::{self, ServedForm};
use crate::settings::Settings;
use std::borrow::Cow;
use weir_extend::Fields;
use weir_measure::Metric;
use weir_policy::extension::ModuleSet;
use weir_policy::rule::{Bits, ChangeError, FieldRules, Outcome, Place, Values};
use weir_policy::{Now, Phase, Serving, Transaction};
use weir_semantics::{
    ConnectionOptions, FieldLine, HostName, Known, Method, RequestDirectives, Target, identify,
    list_elements,
};
use weir_store::StoredResponse;
use weir_wire::{BodyLength, RequestHead};

/// What responses are written to, and noted in.
type Output<'a> = (&'a mut Vec<u8>, &'a mut Vec<ServedRequest>);

/// A request that rules are for.
struct RuledRequest<'a> {
    receiver: &'a Receiver<'a>,
    input: Input<'a>,
    matched: Bits,
    outcome: Outcome<'a>,
    /// The modules that it is for.
    called: ModuleSet,
    /// The request as it was received, if rules have changed it.
    logged: Option<Box<Request>>,
    /// Whether its target is changed for the cache key.
    is_rekeyed: bool,
}

/// The rules that are for a request. Part of the way of every hit beside rules.
#[inline]
pub(super) fn rules_for(receiver: &Receiver<'_>, request: &mut ReceivedRequest<'_>) -> Bits {
    let rules = &receiver.settings.operator_rules;
    if rules.is_empty() {
        return Bits::NONE;
    }
    let method = request.method;
    let place = || {
        let ClientFacts { listener, peer, .. } = receiver.client;
        Place {
            listener: receiver.settings.listener_names.of(listener),
            mode: listener.mode.into(),
            method,
            client: Some(peer.ip()),
        }
    };
    if !matches!(method, Method::Get | Method::Head) {
        return matched(receiver.settings, &place(), &request.target);
    }
    let worker = receiver.worker;
    let key = request.keep_key(worker.shared.store.secret());
    let target = &request.target;
    let find = || rules.for_target(target.host.as_bytes(), target.path_and_query);
    let mut recent = worker.recent_rules.borrow_mut();
    let of_target = recent.of(receiver.settings).rules(key, find);
    // none of them: where it comes from says nothing more
    match of_target.is_empty() {
        true => Bits::NONE,
        false => of_target & rules.applicable(&place()),
    }
}

/// The rules that are for a request for the store alone, which has no client.
pub(super) fn rules_for_store(receiver: &Receiver<'_>, target: &Target<'_>) -> Bits {
    let place = Place {
        listener: None,
        mode: receiver.client.listener.mode.into(),
        method: Method::Get,
        client: None,
    };
    matched(receiver.settings, &place, target)
}

fn matched(settings: &Settings, place: &Place<'_>, target: &Target<'_>) -> Bits {
    let rules = &settings.operator_rules;
    let path = match place.method {
        Method::Connect => "",
        _ => target.path_and_query,
    };
    rules.matched(rules.applicable(place), target.host.as_bytes(), path)
}

/// A head as rules change it.
pub(super) struct ChangedHead {
    /// The target; `None` if it stays as it is.
    target: Option<String>,
    fields: Fields,
}

impl ChangedHead {
    /// `None` if the head of `request` stays as it is.
    ///
    /// # Errors
    ///
    /// It cannot be changed so.
    pub(super) fn of(
        outcome: &Outcome<'_>,
        head: &RequestHead<'_, '_>,
        request: &ReceivedRequest<'_>,
        values: &Values<'_>,
    ) -> Result<Option<Self>, ChangeError> {
        let key = outcome.key(request.method);
        let path = request.target.path_and_query;
        let target = key.and_then(|key| {
            let before = head.target.strip_suffix(path)?;
            Some([before, &key.target(path)?].concat())
        });
        let key = key.filter(|key| key.changes_fields());
        if target.is_none() && key.is_none() && outcome.request.is_none() {
            return Ok(None);
        }
        let mut fields = match outcome.request {
            Some(changes) => changed_fields(changes, head, values)?,
            None => Fields::received(head.fields.iter().map(|line| (line.name, line.value))),
        };
        // behind what other rules put there
        key.map_or(Ok(()), |key| key.change(&mut fields))?;
        Ok(Some(Self { target, fields }))
    }

    /// Whether its target is another one.
    pub(super) const fn is_rekeyed(&self) -> bool {
        self.target.is_some()
    }

    pub(super) fn lines(&self) -> Vec<FieldLine<'_>> {
        let lines = self.fields.iter();
        lines
            .map(|(name, value)| FieldLine::new(name, value))
            .collect()
    }

    /// The head, with these `lines`.
    pub(super) fn head<'s, 'a>(
        &'a self,
        head: &RequestHead<'_, 'a>,
        lines: &'s [FieldLine<'a>],
    ) -> RequestHead<'s, 'a> {
        RequestHead {
            target: self.target.as_deref().unwrap_or(head.target),
            method: head.method,
            version: head.version,
            fields: lines,
        }
    }
}

/// The fields of a head as rules change them.
///
/// # Errors
///
/// They cannot be changed so.
fn changed_fields(
    changes: &FieldRules,
    head: &RequestHead<'_, '_>,
    values: &Values<'_>,
) -> Result<Fields, ChangeError> {
    let options = ConnectionOptions::gather(head.fields);
    let kept = head.fields.iter().map(|line| {
        let value = match identify(line.name) {
            Some(Known::Connection) => without_names_of_put(changes, line.value),
            _ => Cow::Borrowed(line.value),
        };
        (line.name, value)
    });
    let kept: Vec<_> = kept
        .filter(|(name, _)| !(options.names(name) && changes.put(name.as_bytes())))
        .collect();
    let mut fields = Fields::received(kept.iter().map(|(name, value)| (*name, &**value)));
    changes.apply(&mut fields, values)?;
    Ok(fields)
}

/// The options of a `Connection` line, but for the names of fields that `changes` put into the
/// head: what the operator sets is for the next hop, and no client can have it dropped.
fn without_names_of_put<'v>(changes: &FieldRules, value: &'v [u8]) -> Cow<'v, [u8]> {
    if !list_elements(value).any(|option| changes.put(option)) {
        return Cow::Borrowed(value);
    }
    let others = list_elements(value).filter(|option| !changes.put(option));
    Cow::Owned(others.collect::<Vec<_>>().join(&b", "[..]))
}

/// Takes a request that the `matched` rules are for, and the modules `called`.
#[inline(never)]
pub(super) fn take(
    receiver: &Receiver<'_>,
    input: Input<'_>,
    begun: (
        &RequestHead<'_, '_>,
        &mut ReceivedRequest<'_>,
        &mut RequestLog,
    ),
    (matched, called): (Bits, ModuleSet),
    output: Output<'_>,
) -> InputResult {
    let (head, request, log) = begun;
    receiver.settings.rule_counts.count(matched);
    let mut this = RuledRequest {
        receiver,
        input,
        matched,
        outcome: receiver.settings.operator_rules.outcome(matched),
        called,
        logged: None,
        is_rekeyed: false,
    };
    if let Some(text) = this.outcome.deny {
        receiver.worker.counters().inc(Metric::RuleDenied);
        let has_content = !matches!(request.body, BodyLength::None | BodyLength::Exact(0));
        let closes = has_content || !request.is_persistent;
        let answer = Answer::denied_by_rule(text, closes);
        return this.refuse(head, answer, log, output);
    }
    let values = this.values(request);
    let changed = match ChangedHead::of(&this.outcome, head, request, &values) {
        Ok(Some(changed)) => changed,
        Ok(None) => return this.choose((head, request, log), output),
        Err(error) => return this.refuse(head, Answer::unchanged_by_rule(error), log, output),
    };
    let lines = changed.lines();
    let changed_head = changed.head(head, &lines);
    let mut host = HostName::EMPTY;
    match receiver.judge(&changed_head, &mut host) {
        Ok(mut judged) => {
            this.is_rekeyed = changed.is_rekeyed();
            this.logged = Some(Box::new(Request::new(request, head)));
            this.choose((&changed_head, &mut judged, log), output)
        }
        Err(answer) => this.refuse(head, answer, log, output),
    }
}

impl<'a> RuledRequest<'a> {
    fn values<'r>(&self, request: &'r ReceivedRequest<'_>) -> Values<'r> {
        let target = &request.target;
        let client = self.receiver.client.peer.ip();
        Values::new(Some(client), target.host.as_str(), target.path_and_query)
    }

    /// Whether modules or hooks have to do with it.
    fn is_extended(&self) -> bool {
        !self.called.is_empty() || !self.receiver.settings.hooks.phases().is_empty()
    }

    fn refuse(
        self,
        head: &RequestHead<'_, '_>,
        answer: Answer,
        log: &mut RequestLog,
        (out, served): Output<'_>,
    ) -> InputResult {
        let Input { bytes, at } = self.input;
        let consumed = bytes.len();
        if self.is_extended() {
            log.keep_details(bytes);
            let exchange = super::leave_refused(self.receiver, head, answer, log.take());
            return InputResult::Exchange { consumed, exchange };
        }
        let asked = Some((head, at..at + consumed));
        served.push(super::refuse(
            self.receiver,
            asked,
            &answer,
            log.take(),
            out,
        ));
        InputResult::Answered { consumed }
    }

    /// Chooses the response, and sends it if that can be done at once.
    fn choose(
        self,
        (head, request, log): (
            &RequestHead<'_, '_>,
            &mut ReceivedRequest<'_>,
            &mut RequestLog,
        ),
        (out, served): Output<'_>,
    ) -> InputResult {
        let Input { bytes, at } = self.input;
        let consumed = bytes.len();
        if self.is_extended() {
            log.keep_details(bytes);
            let rules = (self.matched, self.is_rekeyed);
            let exchange = super::leave(self.receiver, head, rules, log.take());
            return self.left(exchange);
        }
        log.reach(Phase::Authorise);
        let now = self.receiver.worker.now();
        let choice = Choice {
            bypass: self.outcome.bypass,
            is_ruled: self.receiver.settings.operator_rules.may_decide_storing(),
            is_rekeyed: self.is_rekeyed,
            ..Choice::PLAIN
        };
        let ignored = self.outcome.ignored;
        let directives_sent = ignored.take_from(&mut request.facts.directives);
        let (mut tx, plan, key) = super::choose(self.receiver, head, request, now, choice);
        if plan.is_final() {
            log.reach(Phase::Choose);
        }
        if let Plan::Serve {
            response,
            serving,
            refresh: None,
        } = &plan
            && super::is_served_at_once(self.receiver, request, response)
            && !self
                .receiver
                .settings
                .operator_rules
                .may_limit_rate(self.matched)
        {
            let form = ServedForm::of(&request.facts, head.fields, response, now.wall);
            let made = MadeResponse {
                response,
                form,
                before: out.len(),
            };
            self.note_rules((request, directives_sent), response, &mut tx, now);
            self.write_head(request, (response, form), *serving, &tx, out);
            let received = at..at + consumed;
            super::finish(
                self.receiver,
                received,
                request,
                &tx,
                made,
                log,
                (out, served),
            );
            let Receiver {
                worker, settings, ..
            } = self.receiver;
            let found = (key, &request.target);
            worker.note_hit(settings, self.receiver.client, found, served);
            return InputResult::Answered { consumed };
        }
        log.keep_details(bytes);
        let request = Request::new(request, head);
        let decided = (tx, plan, key);
        let mut exchange = self.receiver.exchange(request, decided, log.take());
        exchange.directives_sent = directives_sent.map(Box::new);
        self.left(exchange)
    }

    /// Notes whether `stored` answers it only because a rule has it so.
    fn note_rules(
        &self,
        (request, directives_sent): (&ReceivedRequest<'_>, Option<RequestDirectives>),
        stored: &StoredResponse,
        tx: &mut Transaction,
        now: Now,
    ) {
        let reuse = super::reuse_for(self.receiver, request, stored);
        if directives_sent.is_none() && reuse.is_none() {
            return;
        }
        let sent = directives_sent.unwrap_or(request.facts.directives);
        let (own, used) = (&stored.facts, reuse.of(&stored.facts));
        let by = (&self.receiver.settings.rules, &sent);
        tx.answered_by_rule(now, by, (own, &used));
    }

    fn write_head(
        &self,
        request: &ReceivedRequest<'_>,
        (response, form): (&StoredResponse, ServedForm),
        serving: Serving,
        tx: &Transaction,
        out: &mut Vec<u8>,
    ) {
        let (settings, before) = (self.receiver.settings, out.len());
        heads::write_head(settings, response, form, serving, tx.verdict(), out);
        let rules = &settings.operator_rules;
        if rules.may_change_response(self.matched) {
            let (status, values) = (form.status(response), self.values(request));
            change_response(rules, self.matched, status, &values, (out, before));
        }
    }

    /// It leaves the fast path.
    fn left(self, mut exchange: Box<RequestState>) -> InputResult {
        exchange.operator_rules = self.matched;
        exchange.is_rekeyed = self.is_rekeyed;
        exchange.logged = self.logged;
        InputResult::Exchange {
            consumed: self.input.bytes.len(),
            exchange,
        }
    }
}
