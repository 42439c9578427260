//! A request that modules see, on the fast path: they are called there as long as they answer at
//! once that it continues. They may change fields.
//!
//! It leaves the fast path where one answers, fails, defers, or changes the target or content, and
//! takes along how far its hook has come ([`LeftHook`]): no module is called twice.

use super::fast::{self, Input, MadeResponse, Receiver};
use crate::cache::variants::Choice;
use crate::exchange::module_calls::{self, changed_lines, forget_range, write_fields};
use crate::exchange::state::Plan;
use crate::log::request_log::RequestLog;
use crate::log::served::ServedRequest;
use crate::modules::request_modules::reached::{LeftHook, Reached};
use crate::modules::request_modules::{Head, HookCall, RequestModules};
use crate::request::facts::Request;
use crate::request::judge::ReceivedRequest;
use crate::send::heads::{self, ServedForm};
use crate::settings::Settings;
use std::time::Instant;
use weir_extend::{HeadFields, Hook, RequestHead, ResponseHead};
use weir_policy::extension::ModuleSet;
use weir_policy::{Digest, Phase, Serving, Transaction};
use weir_semantics::{FieldLine, Method, line_named};
use weir_wire::RequestHead as ReceivedHead;

/// What has become of a request.
pub(super) enum Taken {
    /// It was answered.
    Served(ServedRequest),
    /// It leaves the fast path: with its request, its first decisions, its modules.
    Left(Request, (Transaction, Plan, Digest), Box<RequestModules>),
}

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
struct SeenRequest<'a> {
    receiver: &'a Receiver<'a>,
    modules: Box<RequestModules>,
    /// What they are called with.
    called: HookCall<'a>,
    begun: Instant,
}

/// Takes a request that modules see: some are enabled, and some of these are called.
pub(super) fn take(
    receiver: &Receiver<'_>,
    input: Input<'_>,
    (head, received): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>),
    callable: (ModuleSet, ModuleSet),
    log: &mut RequestLog,
    out: &mut Vec<u8>,
) -> Taken {
    let mut seen = SeenRequest::begin(receiver, callable, log);
    let mut changed = head_of(head, received);
    if seen.modules.is_hooked(Hook::RequestReceived) {
        let mut modules_head = Head::Request(&mut changed);
        let reached = seen.modules.begin_hook(&seen.called, &mut modules_head);
        if !reached.continues() || changed.target_is_changed() || seen.modules.is_transforming() {
            let left = LeftHook::Request(reached.into_owned(), changed.into_owned());
            return seen.leave_to_be_judged((head, received), left);
        }
    }
    if seen.modules.may_transform(Hook::ResponseSent) {
        forget_range(&mut changed);
    }
    if !changed.is_changed() {
        return seen.choose((head, received), input, log, out);
    }
    let has_host = line_named(head.fields, "host").is_some();
    let lines = changed_lines(&changed, has_host);
    let is_logged_as_received = !receiver.worker.shared.access_log.is_on()
        || ["user-agent", "referer"]
            .iter()
            .all(|name| line_named(&lines, name) == line_named(head.fields, name));
    let changed_head = ReceivedHead {
        fields: &lines,
        ..*head
    };
    match receiver.judge(&changed_head) {
        Ok(mut judged) if is_logged_as_received && judged.is_shareable() => {
            let modules = Some(&*seen.modules);
            module_calls::keep_strict(&received.facts, modules, &mut judged.facts);
            seen.choose((&changed_head, &judged), input, log, out)
        }
        _ => {
            let left = LeftHook::Request(Reached::continuing(), changed.into_owned());
            seen.leave_to_be_judged((head, received), left)
        }
    }
}

impl<'a> SeenRequest<'a> {
    fn begin(
        receiver: &'a Receiver<'a>,
        callable: (ModuleSet, ModuleSet),
        log: &RequestLog,
    ) -> Self {
        let (worker, settings) = (receiver.worker, receiver.settings);
        let now = worker.now();
        let called = module_calls::call_for(worker, settings, receiver.client, now);
        Self {
            receiver,
            modules: RequestModules::begin(
                worker.spare_modules.take(),
                &settings.modules,
                callable,
            ),
            called: HookCall {
                is_timed: settings.modules.times_calls(now.tick),
                ..called
            },
            begun: match receiver.head_began {
                None => log.started(),
                Some(_) => Instant::now(),
            },
        }
    }

    /// Chooses the response, and sends it if that can be done at once.
    fn choose(
        mut self,
        (head, request): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>),
        input: Input<'_>,
        log: &mut RequestLog,
        out: &mut Vec<u8>,
    ) -> Taken {
        log.reach(Phase::Authorise);
        let now = self.called.now;
        let choice = Choice {
            variant: None,
            fetches_whole: self.modules.may_transform(Hook::ResponseReceived),
        };
        let (tx, plan, key) = fast::choose(self.receiver, head, request, now, choice);
        if plan.is_final() {
            log.reach(Phase::Choose);
        }
        if let Plan::Serve {
            response,
            serving,
            refresh: None,
        } = &plan
            && fast::is_served_at_once(request, response)
        {
            let form = ServedForm::of(&request.facts, head.fields, response, now.wall);
            let made = MadeResponse {
                response,
                form,
                before: out.len(),
            };
            match self.make_head(&made, &tx, *serving, out) {
                Ok(()) => {
                    let received = input.at..input.at + input.bytes.len();
                    let log = log.clone();
                    let served =
                        fast::finish(self.receiver, received, request, &tx, made, log, out);
                    self.end();
                    return Taken::Served(served);
                }
                Err(left) => {
                    out.truncate(made.before);
                    self.modules.leave(left);
                }
            }
        }
        self.note_time();
        Taken::Left(Request::new(request, head), (tx, plan, key), self.modules)
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
    ) -> Result<(), Box<LeftHook>> {
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
        let line = out[before..].iter().position(|byte| *byte == b'\n');
        let line_end = line.map_or(out.len(), |at| before + at + 1);
        let fields = HeadFields::of_section(&out[line_end..]);
        let mut head = ResponseHead::new(form.status(response), fields)
            .keeping_content(tx.request().directives.no_transform);
        self.called.hook = Hook::ResponseSent;
        let mut modules_head = Head::Response(&mut head);
        let reached = self.modules.begin_hook(&self.called, &mut modules_head);
        if !reached.continues() || self.modules.is_transforming() || head.status_is_changed() {
            let reached = reached.into_owned();
            return Err(Box::new(LeftHook::Response(reached, head.into_owned())));
        }
        if head.fields.is_changed() {
            let fields = head.fields.into_owned();
            out.truncate(line_end);
            write_fields(&fields, out);
        }
        Ok(())
    }

    /// The request was answered.
    fn end(mut self) {
        if self.modules.is_hooked(Hook::Done) {
            self.called.hook = Hook::Done;
            self.modules.begin_hook(&self.called, &mut Head::None);
        }
        self.modules.succeeded();
        self.note_time();
        let spare = self.modules.emptied();
        self.receiver.worker.spare_modules.set(Some(spare));
    }

    /// It leaves the fast path in the middle of its first hook.
    fn leave_to_be_judged(
        mut self,
        (head, received): (&ReceivedHead<'_, '_>, &ReceivedRequest<'_>),
        left: LeftHook,
    ) -> Taken {
        self.note_time();
        self.modules.leave(Box::new(left));
        let tx = Transaction::new(received.facts, self.called.now);
        let decided = (tx, Plan::Judge, Digest::default());
        Taken::Left(Request::new(received, head), decided, self.modules)
    }

    /// The calls are timed together, by one look at the clock for a request. If that took so long
    /// that one may have been late, calls are timed one by one for a while.
    fn note_time(&self) {
        let modules = self.called.modules;
        if !self.called.is_timed && self.begun.elapsed() > modules.shortest_deadline() {
            modules.time_calls(self.called.now.tick);
        }
    }
}

/// The head of a request as modules see it.
fn head_of<'h>(head: &ReceivedHead<'h, 'h>, received: &'h ReceivedRequest<'_>) -> RequestHead<'h> {
    let target = &received.target;
    let fields: &'h [FieldLine<'h>] = head.fields;
    let fields = HeadFields::of_lines(fields);
    let seen = RequestHead::new(
        head.method,
        target.host.as_str(),
        target.path_and_query,
        fields,
    );
    match target.port {
        80 => seen,
        port => seen.with_port(port),
    }
}
