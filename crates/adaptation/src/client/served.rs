//! A module of this program that runs in a process of its own, as its proxy sees it.
//!
//! Heads are sent alone at first, with a preview of no byte. Content follows only if the module
//! wants it, or changes it: what the module leaves alone stays in the proxy as it was.

use super::adaptation::{Adaptation, CalledHook, Message, Verdict};
use super::failure::Failure;
use super::message::{adapt_request, adapt_response, request_bytes, response_bytes};
use super::module::{IcapTransform, PERIOD, Shared, local_response};
use super::service::Service;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use weir_extend::{
    Answer, Call, Exchange, Fields, Hook, Hooks, Host, LogLevel, Module, Pending, RequestHead,
    ResponseHead,
};
use weir_icap::EncapsulatedHeads;

/// What the module says of itself in its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) hooks: Hooks,
    pub(crate) may_transform: bool,
    pub(crate) may_transform_sent: bool,
    pub(crate) changes_stored: bool,
}

/// A module that runs in another process.
pub(crate) struct ServedModule {
    service: Arc<Service>,
    abilities: Abilities,
    /// Ends the process when it is dropped.
    process: Box<dyn Process>,
}

/// The process of a module.
pub(crate) trait Process: Send + Sync {
    /// What an operator should know of it.
    fn note(&self) -> String;
}

impl ServedModule {
    pub(crate) const fn new(
        service: Arc<Service>,
        abilities: Abilities,
        process: Box<dyn Process>,
    ) -> Self {
        Self {
            service,
            abilities,
            process,
        }
    }
}

impl Module for ServedModule {
    fn hooks(&self) -> Hooks {
        let hooks = self.abilities.hooks;
        let has_response_hook =
            hooks.contains(Hook::ResponseReceived) || hooks.contains(Hook::ResponseSent);
        let called = Hook::ALL
            .into_iter()
            .filter(|hook| *hook != Hook::Done && hooks.contains(*hook));
        let called: Hooks = called.collect();
        match has_response_hook {
            // the module sees the request of a response, too
            true => called.with(Hook::RequestReceived),
            false => called,
        }
    }

    fn may_transform(&self) -> bool {
        self.abilities.may_transform
    }

    fn may_transform_sent(&self) -> bool {
        self.abilities.may_transform_sent
    }

    fn changes_stored(&self) -> bool {
        self.abilities.changes_stored
    }

    fn state(&self) -> String {
        self.service.istag()
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }

    fn tick(&self, host: &Rc<dyn Host>) -> Option<Pending<()>> {
        let refreshing = self.service.tick(&**host)?;
        // the supervisor of the process says why it is not there
        Some(Box::pin(async move { drop(refreshing.await) }))
    }

    fn notes(&self) -> Vec<String> {
        vec![self.process.note()]
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(ServedExchange {
            service: Arc::clone(&self.service),
            abilities: self.abilities,
            host: Rc::clone(host),
            request: None,
            is_head_request: false,
            state: State::Idle,
        })
    }
}

/// The module's part of one exchange.
struct ServedExchange {
    service: Arc<Service>,
    abilities: Abilities,
    host: Rc<dyn Host>,
    /// The head of the request as the module saw it first.
    request: Option<Vec<u8>>,
    is_head_request: bool,
    state: State,
}

/// What the exchange waits for.
enum State {
    Idle,
    /// The message is at the process.
    Adapting(Shared, Sent),
    /// The module answers by this response.
    Responding(Shared, Box<EncapsulatedHeads>),
}

/// A message that was sent.
struct Sent {
    /// Its fields.
    fields: Fields,
    /// Its content passes the process already.
    is_transformed: bool,
}

impl ServedExchange {
    fn send(&mut self, message: Message, fields: &Fields) -> Answer {
        let may_send_content = message
            .called
            .is_some_and(|it| it.hook != Hook::ResponseSent);
        let mut adaptation = Adaptation::new(Arc::clone(&self.service), message);
        if may_send_content {
            adaptation.report_want();
        }
        let sent = Sent {
            fields: fields.clone(),
            is_transformed: false,
        };
        self.state = State::Adapting(Rc::new(RefCell::new(adaptation)), sent);
        Answer::Defer
    }

    fn fail(&self, failure: &Failure) -> Answer {
        let level = match failure.is_of_service() {
            true => LogLevel::Warning,
            false => LogLevel::Info,
        };
        self.host.log(level, &failure.to_string());
        failure.answer()
    }

    fn at_request(&mut self, hook: Hook, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Adapting(shared, sent) => self.continue_request(head, shared, sent),
            State::Responding(shared, heads) => self.respond(&shared, &heads),
            State::Idle if self.abilities.hooks.contains(hook) => {
                let has_content = hook == Hook::RequestReceived && head.has_content();
                let message = Message {
                    request: Some(request_bytes(head)),
                    ..message_at(hook, call, has_content)
                };
                let fields = Fields::clone(&head.fields);
                self.send(message, &fields)
            }
            State::Idle => Answer::Continue,
        }
    }

    fn continue_request(
        &mut self,
        head: &mut RequestHead<'_>,
        shared: Shared,
        mut sent: Sent,
    ) -> Answer {
        let mut adaptation = shared.borrow_mut();
        if let Some(failure) = adaptation.failure() {
            return self.fail(failure);
        }
        let notes = adaptation.notes().clone();
        if let Some(variant) = &notes.variant {
            // it was a token there
            let _ = head.set_variant(variant);
        }
        let wants_content = adaptation.take_want();
        let adapted = match adaptation.verdict() {
            None if wants_content => {
                drop(adaptation);
                transform_request(head, &shared);
                sent.is_transformed = true;
                self.state = State::Adapting(shared, sent);
                return Answer::Defer;
            }
            None | Some(Verdict::Unmodified) => return Answer::Continue,
            Some(Verdict::Modified(heads, _)) if heads.request_bytes().is_empty() => {
                let heads = heads.clone();
                adaptation.collect();
                drop(adaptation);
                self.state = State::Responding(shared, heads);
                return Answer::Defer;
            }
            Some(Verdict::Modified(heads, has_content)) => {
                let passes_process = *has_content && !sent.is_transformed;
                if passes_process {
                    transform_request(head, &shared);
                }
                adapt_request(head, &sent.fields, heads)
            }
        };
        self.settle(&mut adaptation, adapted)
    }

    fn at_response(&mut self, hook: Hook, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Adapting(shared, sent) => self.continue_response(head, shared, sent),
            State::Responding(shared, heads) => self.respond(&shared, &heads),
            State::Idle if self.abilities.hooks.contains(hook) => {
                let is_empty = self.is_head_request || matches!(head.status(), 204 | 205 | 304);
                let has_content = self.may_transform_at(hook) && !is_empty;
                let message = Message {
                    request: self.request.clone(),
                    response: Some(response_bytes(head)),
                    ..message_at(hook, call, has_content)
                };
                let fields = Fields::clone(&head.fields);
                self.send(message, &fields)
            }
            State::Idle => Answer::Continue,
        }
    }

    const fn may_transform_at(&self, hook: Hook) -> bool {
        match hook {
            Hook::ResponseSent => self.abilities.may_transform_sent,
            _ => self.abilities.may_transform,
        }
    }

    fn continue_response(
        &mut self,
        head: &mut ResponseHead<'_>,
        shared: Shared,
        mut sent: Sent,
    ) -> Answer {
        let mut adaptation = shared.borrow_mut();
        if let Some(failure) = adaptation.failure() {
            return self.fail(failure);
        }
        let notes = adaptation.notes().clone();
        let wants_content = adaptation.take_want();
        let adapted = match adaptation.verdict() {
            None if wants_content => {
                drop(adaptation);
                transform_response(head, &shared);
                sent.is_transformed = true;
                self.state = State::Adapting(shared, sent);
                return Answer::Defer;
            }
            None | Some(Verdict::Unmodified) => return Answer::Continue,
            Some(Verdict::Modified(heads, _)) if notes.is_response => {
                let heads = heads.clone();
                adaptation.collect();
                drop(adaptation);
                self.state = State::Responding(shared, heads);
                return Answer::Defer;
            }
            Some(Verdict::Modified(heads, _)) => {
                // a response to HEAD has the fields of changed content, too
                if !notes.is_head && !sent.is_transformed {
                    transform_response(head, &shared);
                }
                adapt_response(head, &sent.fields, heads)
            }
        };
        self.settle(&mut adaptation, adapted)
    }

    fn settle(&self, adaptation: &mut Adaptation, adapted: Result<(), Failure>) -> Answer {
        match adapted {
            Ok(()) => {
                adaptation.decide();
                Answer::Continue
            }
            Err(failure) => {
                let answer = self.fail(&failure);
                adaptation.fail(failure);
                answer
            }
        }
    }

    /// The response of the module, once all of it is there.
    fn respond(&self, shared: &Shared, heads: &EncapsulatedHeads) -> Answer {
        let mut adaptation = shared.borrow_mut();
        let failure = adaptation.failure().cloned();
        let collected = match (failure, adaptation.collected()) {
            (Some(failure), _) => Err(failure),
            (None, None) => Err(Failure::Closed),
            (None, Some(collected)) => collected,
        };
        match collected.and_then(|content| local_response(heads, content)) {
            Ok(response) => Answer::Respond(response),
            Err(failure) => self.fail(&failure),
        }
    }
}

/// Has the content pass the process. Where it must not change, the contract that the module has
/// there keeps it as it is.
/// A message at a hook of a service that is weir, without its heads. Content is offered by an empty
/// preview: the service says whether it wants it.
fn message_at(hook: Hook, call: &Call, has_content: bool) -> Message {
    Message {
        request: None,
        response: None,
        has_content,
        preview: has_content.then_some(0),
        allow_204: !has_content,
        keep_bytes: 0,
        is_inspected: false,
        client: Some(call.client.to_string()),
        called: Some(CalledHook {
            hook,
            mode: call.mode,
        }),
    }
}

fn transform_request(head: &mut RequestHead<'_>, shared: &Shared) {
    let transform = Box::new(IcapTransform(Rc::clone(shared)));
    if head.check_transform().is_err() {
        head.inspect(transform);
    } else {
        // it was checked
        let _ = head.transform(transform);
    }
}

/// The same of a response.
fn transform_response(head: &mut ResponseHead<'_>, shared: &Shared) {
    let transform = Box::new(IcapTransform(Rc::clone(shared)));
    if head.check_transform().is_err() {
        head.inspect(transform);
    } else {
        // it was checked
        let _ = head.transform(transform);
    }
}

impl Exchange for ServedExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        self.is_head_request = head.method() == "HEAD";
        if self.request.is_none() {
            self.request = Some(request_bytes(head));
        }
        self.at_request(Hook::RequestReceived, head, call)
    }

    fn request_sent(&mut self, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        self.at_request(Hook::RequestSent, head, call)
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        self.at_response(Hook::ResponseReceived, head, call)
    }

    fn response_sent(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        self.at_response(Hook::ResponseSent, head, call)
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Idle => Poll::Ready(()),
            State::Adapting(shared, _) | State::Responding(shared, _) => {
                shared.borrow_mut().poll_head(cx)
            }
        }
    }
}
