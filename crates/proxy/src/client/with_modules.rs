//! A request that modules see, on the fast path: they are called there as long as they answer at
//! once that it continues. They may change fields.
//!
//! It leaves the fast path where one answers, fails, defers, or changes the target or content, and
//! takes along how far its hook has come ([`UnfinishedHook`]): no module is called twice.

use super::fast::{self, Input, InputResult, MadeResponse, Receiver};
use crate::cache::variants::Choice;
use crate::exchange::module_calls::{self, changed_lines, forget_range, write_fields};
use crate::exchange::state::{Plan, RequestState};
use crate::log::request_log::RequestLog;
use crate::log::served::ServedRequest;
use crate::modules::request_modules::reached::{Reached, UnfinishedHook};
use crate::modules::request_modules::{Head, HookCall, RequestModules};
use crate::request::facts::Request;
use crate::request::judge::ReceivedRequest;
use crate::send::heads::{self, ServedForm};
use crate::settings::Settings;
use std::time::Instant;
use weir_extend::{HeadFields, Hook, RequestHead, ResponseHead};
use weir_policy::extension::{ModuleSet, Variant};
use weir_policy::{Digest, Phase, Serving, Transaction};
use weir_semantics::{FieldLine, HostName, Known, Method, identify, line_named};
use weir_wire::RequestHead as ReceivedHead;

/// Whether a request that `called` modules see may be answered on the fast path.
pub(super) fn may_take(
    settings: &Settings,
    called: ModuleSet,
    request: &ReceivedRequest<'_>,
) -> bool {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    is_read && request.is_shareable() && called.intersection(settings.modules.slow()).is_empty()
}

/// A request that modules see.
struct ModuleRequest<'a> {
    receiver: &'a Receiver<'a>,
    input: Input<'a>,
    modules: Box<RequestModules>,
    /// What they are called with.
    called: HookCall<'a>,
    log: &'a mut RequestLog,
}

/// What responses are written to, and noted in.
type Output<'a> = (&'a mut Vec<u8>, &'a mut Vec<ServedRequest>);

/// What a request takes along that leaves the fast path, beside its modules.
struct UnservedRequest {
    request: Request,
    /// As its client sent it, if modules have changed it.
    received: Option<Request>,
    decided: (Transaction, Plan, Digest),
    variant: Option<Variant>,
}

/// Takes a request that modules see: some are enabled, and some of these are called.
pub(super) fn take(
    receiver: &Receiver<'_>,
    input: Input<'_>,
    (head, received, log): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>, &mut RequestLog),
    callable: (ModuleSet, ModuleSet),
    output: Output<'_>,
) -> InputResult {
    let mut this = ModuleRequest::begin(receiver, input, callable, log);
    match this.receive((head, received), output) {
        Ok(()) => {
            this.end();
            InputResult::Answered {
                consumed: input.bytes.len(),
            }
        }
        Err(unserved) => InputResult::Exchange {
            consumed: input.bytes.len(),
            exchange: this.leave(unserved),
        },
    }
}

/// The lines of a head to which modules have added some that no rule reads: it would be judged as
/// before. `None` if they did more.
fn with_unread_lines<'s>(
    head: &ReceivedHead<'s, 's>,
    changed: &'s RequestHead<'_>,
) -> Option<Vec<FieldLine<'s>>> {
    let added = changed.fields.only_added()?;
    let is_unread = |(name, _): (&str, &[u8])| identify(name).is_none();
    let has_host = || line_named(head.fields, Known::Host.as_str()).is_some();
    if !added.iter().all(is_unread) || !has_host() {
        return None;
    }
    let added = added
        .iter()
        .map(|(name, value)| FieldLine::new(name, value));
    Some(head.fields.iter().copied().chain(added).collect())
}

impl<'a> ModuleRequest<'a> {
    fn begin(
        receiver: &'a Receiver<'a>,
        input: Input<'a>,
        callable: (ModuleSet, ModuleSet),
        log: &'a mut RequestLog,
    ) -> Self {
        let (worker, settings) = (receiver.worker, receiver.settings);
        let now = worker.now();
        let mut called = module_calls::call_for(worker, settings, receiver.client, now);
        called.is_timed = settings.modules.times_calls(now.tick);
        let spare = worker.spare_modules.take();
        Self {
            receiver,
            input,
            modules: RequestModules::begin(spare, &settings.modules, callable),
            called,
            log,
        }
    }

    /// Calls the modules for the head of the request, and answers it.
    ///
    /// # Errors
    ///
    /// It leaves the fast path with this.
    fn receive(
        &mut self,
        (head, received): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>),
        output: Output<'_>,
    ) -> Result<(), Box<UnservedRequest>> {
        let is_hooked = self.modules.is_hooked(Hook::RequestReceived);
        let transforms_sent = self.modules.may_transform(Hook::ResponseSent);
        if !is_hooked && !transforms_sent {
            return self.choose((head, received), None, output);
        }
        let mut changed = head_of(head, received);
        if is_hooked {
            let mut modules_head = Head::Request(&mut changed);
            let reached = self.modules.begin_hook(&self.called, &mut modules_head);
            if !reached.continues() || changed.target_is_changed() || self.modules.is_transforming()
            {
                let left = UnfinishedHook::Request(reached.into_owned(), changed.into_owned());
                return Err(self.leave_for_judgement((head, received), left));
            }
        }
        if transforms_sent {
            forget_range(&mut changed);
        }
        if !changed.is_changed() {
            return self.choose((head, received), None, output);
        }
        let sent = Some((head, received));
        if let Some(lines) = with_unread_lines(head, &changed) {
            let head = ReceivedHead {
                fields: &lines,
                ..*head
            };
            return self.choose((&head, received), sent, output);
        }
        self.judge_changed((head, received), changed, output)
    }

    /// Judges a head that modules have changed, for the same target.
    fn judge_changed(
        &mut self,
        (head, received): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>),
        changed: RequestHead<'_>,
        output: Output<'_>,
    ) -> Result<(), Box<UnservedRequest>> {
        let has_host = line_named(head.fields, "host").is_some();
        let lines = changed_lines(&changed, has_host);
        let is_logged_as_received = !self.receiver.worker.shared.access_log.is_on()
            || ["user-agent", "referer"]
                .iter()
                .all(|name| line_named(&lines, name) == line_named(head.fields, name));
        let changed_head = ReceivedHead {
            fields: &lines,
            ..*head
        };
        let mut host = HostName::EMPTY;
        match self.receiver.judge(&changed_head, &mut host) {
            Ok(mut judged) if is_logged_as_received && judged.is_shareable() => {
                let modules = Some(&*self.modules);
                module_calls::keep_strict(&received.facts, modules, &mut judged.facts);
                self.choose((&changed_head, &judged), Some((head, received)), output)
            }
            _ => {
                let left = UnfinishedHook::Request(Reached::continuing(), changed.into_owned());
                Err(self.leave_for_judgement((head, received), left))
            }
        }
    }

    /// Chooses the response, and sends it if that can be done at once. Modules have made the
    /// request of the one that was `sent`, if they have changed it.
    fn choose(
        &mut self,
        (head, request): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>),
        sent: Option<(&ReceivedHead<'_, '_>, &ReceivedRequest<'_>)>,
        (out, served): Output<'_>,
    ) -> Result<(), Box<UnservedRequest>> {
        self.log.reach(Phase::Authorise);
        let now = self.called.now;
        let store = &self.receiver.worker.shared.store;
        let keeps_content = request.facts.directives.no_transform;
        let choice = Choice {
            variant: self.modules.variant(store.secret(), keeps_content),
            fetches_whole: self.modules.may_transform(Hook::ResponseReceived),
            ..Choice::PLAIN
        };
        let (tx, plan, key) = fast::choose(self.receiver, head, request, now, choice);
        if plan.is_final() {
            self.log.reach(Phase::Choose);
        }
        if let Plan::Serve {
            response,
            serving,
            refresh: None,
        } = &plan
            && fast::is_served_at_once(self.receiver, request, response)
        {
            let form = ServedForm::of(&request.facts, head.fields, response, now.wall);
            let made = MadeResponse {
                response,
                form,
                before: out.len(),
            };
            match self.make_head(&made, &tx, *serving, out) {
                Ok(()) => {
                    let received = self.input.at..self.input.at + self.input.bytes.len();
                    let (receiver, log) = (self.receiver, &mut *self.log);
                    fast::finish(receiver, received, request, &tx, made, log, (out, served));
                    let found = (key, &request.target);
                    let settings = receiver.settings;
                    receiver
                        .worker
                        .note_hit(settings, receiver.client, found, served);
                    return Ok(());
                }
                Err(left) => {
                    out.truncate(made.before);
                    self.modules.leave(left);
                }
            }
        }
        Err(Box::new(UnservedRequest {
            request: Request::new(request, head),
            received: sent.map(|(head, sent)| Request::new(sent, head)),
            decided: (tx, plan, key),
            variant: choice.variant,
        }))
    }

    /// Appends the head of a response, as modules have it sent.
    ///
    /// # Errors
    ///
    /// The request leaves the fast path here.
    fn make_head(
        &mut self,
        made: &MadeResponse<'_>,
        tx: &Transaction,
        serving: Serving,
        out: &mut Vec<u8>,
    ) -> Result<(), Box<UnfinishedHook>> {
        let &MadeResponse {
            response,
            form,
            before,
        } = made;
        let settings = self.receiver.settings;
        heads::write_head(settings, response, form, serving, tx.verdict(), out);
        if !self.modules.is_hooked(Hook::ResponseSent) {
            return Ok(());
        }
        let line_end = before + heads::line_bytes(&out[before..]);
        let fields = HeadFields::of_section(&out[line_end..]);
        let mut head = ResponseHead::new(form.status(response), fields)
            .keeping_content(tx.request().directives.no_transform);
        self.called.hook = Hook::ResponseSent;
        let mut modules_head = Head::Response(&mut head);
        let reached = self.modules.begin_hook(&self.called, &mut modules_head);
        if !reached.continues() || self.modules.is_transforming() || head.status_is_changed() {
            let reached = reached.into_owned();
            return Err(Box::new(UnfinishedHook::Response(
                reached,
                head.into_owned(),
            )));
        }
        if head.fields.is_changed() {
            match head.fields.only_added().cloned() {
                Some(added) => write_fields(added.iter(), out),
                None => {
                    let fields = head.fields.into_owned();
                    out.truncate(line_end);
                    write_fields(fields.iter(), out);
                }
            }
        }
        Ok(())
    }

    /// It leaves the fast path in the middle of its first hook.
    #[cold]
    fn leave_for_judgement(
        &mut self,
        (head, received): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>),
        left: UnfinishedHook,
    ) -> Box<UnservedRequest> {
        self.modules.leave(Box::new(left));
        let tx = Transaction::new(received.facts, self.called.now);
        Box::new(UnservedRequest {
            request: Request::new(received, head),
            received: None,
            decided: (tx, Plan::Judge, Digest::default()),
            variant: None,
        })
    }

    /// It leaves the fast path.
    #[inline(never)]
    fn leave(self, unserved: Box<UnservedRequest>) -> Box<RequestState> {
        self.note_time();
        self.log.keep_details(self.input.bytes);
        let UnservedRequest {
            request,
            received,
            decided,
            variant,
        } = *unserved;
        let mut exchange = self.receiver.exchange(request, decided, self.log.take());
        exchange.modules = Some(self.modules);
        exchange.received = received.map(Box::new);
        exchange.variant = variant.map(Box::new);
        exchange
    }

    /// The calls are timed together. If they took so long that one may have been late, calls are
    /// timed one by one for a while. For a request that is answered here the log knows the time.
    fn note_time(&self) {
        if !self.called.is_timed && self.receiver.head_time.is_at_once() {
            let total = Instant::now() - self.log.started();
            let total_us = u64::try_from(total.as_micros()).unwrap_or(u64::MAX);
            self.called.modules.note_time(total_us);
        }
    }

    /// The request was answered.
    #[inline]
    fn end(mut self) {
        if self.modules.is_hooked(Hook::Done) {
            self.called.hook = Hook::Done;
            self.modules.begin_hook(&self.called, &mut Head::None);
        }
        self.modules.succeeded();
        let spare = self.modules.emptied();
        self.receiver.worker.spare_modules.set(Some(spare));
    }
}

/// The head of a request as modules see it.
fn head_of<'h>(head: &ReceivedHead<'h, 'h>, received: &'h ReceivedRequest<'_>) -> RequestHead<'h> {
    let target = &received.target;
    let fields: &'h [FieldLine<'h>] = head.fields;
    let fields = HeadFields::of_lines(fields);
    let mut seen = RequestHead::of_host(head.method, target.host, target.path_and_query, fields);
    if target.port != 80 {
        seen.set_port(target.port);
    }
    seen
}
