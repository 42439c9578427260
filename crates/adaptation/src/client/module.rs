//! The module, and what it has of one exchange.

use super::adaptation::{Adaptation, Message, Verdict};
use super::failure::Failure;
use super::message::{adapt_request, adapt_response, request_bytes, response_bytes};
use super::service::Service;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use weir_extend::{
    Answer, Call, Exchange, Fields, Hook, Hooks, Host, LocalResponse, LogLevel, Module, Pending,
    Piece, Progress, RequestHead, ResponseHead, Transform,
};
use weir_icap::{EncapsulatedHeads, Method, ServiceOptions, TransferKind};
use weir_wire::LineBuffer;

/// How often OPTIONS and idle connections are looked at.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// What the operator wants of the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Requests are adapted; `None`: if the service has the method.
    pub(crate) request: Option<bool>,
    /// Responses are.
    pub(crate) response: Option<bool>,
    pub(crate) no_transform: NoTransform,
    /// The service learns the client's address.
    pub(crate) sends_client: bool,
    /// The service gets a preview first, if it takes one: it does nothing before it has the whole
    /// preview, and the first event of a stream is shorter than one.
    pub(crate) sends_previews: bool,
    /// Most content that is kept so that the service may have it used as it was: `hold`.
    pub(crate) hold_bytes: usize,
}

/// What becomes of content that must not be changed, as its sender says or as it is a part of a
/// representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTransform {
    /// The service sees it, and may refuse it, but not change it: no sender must be able to keep
    /// its content from being scanned.
    Inspect,
    /// It passes, and the service does not see it.
    Pass,
}

/// A module behind an ICAP service.
#[derive(Debug)]
pub(crate) struct IcapModule {
    service: Arc<Service>,
    settings: Settings,
}

impl Settings {
    /// Whether what the service makes of a response is for one client: it knows which one it is.
    fn decides_by_client(&self) -> bool {
        self.sends_client && self.response != Some(false)
    }
}

/// The tag of the variant for a client: its address as a token.
fn client_tag(client: IpAddr) -> String {
    client.to_string().replace(':', "-")
}

impl IcapModule {
    pub(crate) const fn new(service: Arc<Service>, settings: Settings) -> Self {
        Self { service, settings }
    }
}

impl Module for IcapModule {
    fn hooks(&self) -> Hooks {
        let mut hooks = Hooks::NONE;
        if self.settings.request != Some(false) || self.settings.decides_by_client() {
            hooks = hooks.with(Hook::RequestReceived);
        }
        if self.settings.response != Some(false) {
            // the service sees the request, too
            hooks = hooks.with(Hook::RequestSent).with(Hook::ResponseReceived);
        }
        hooks
    }

    fn may_transform(&self) -> bool {
        self.settings.response != Some(false)
    }

    fn changes_stored(&self) -> bool {
        self.settings.response != Some(false)
    }

    fn decides_by_content(&self) -> bool {
        true
    }

    fn state(&self) -> String {
        self.service.istag()
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }

    fn tick(&self, host: &Rc<dyn Host>) -> Option<Pending<()>> {
        let refreshing = self.service.tick(&**host)?;
        let (service, host) = (Arc::clone(&self.service), Rc::clone(host));
        Some(Box::pin(async move {
            if let Some((level, line)) = service.report(&refreshing.await) {
                host.log(level, &line);
            }
        }))
    }

    fn warnings(&self) -> Vec<String> {
        match Arc::clone(&self.service).refresh_blocking() {
            Ok(Ok(())) => Vec::new(),
            Ok(Err(failure)) => vec![self.service.complaint(&failure)],
            Err(error) => vec![format!("cannot try the service: {error}")],
        }
    }

    fn notes(&self) -> Vec<String> {
        let Some(options) = self.service.options() else {
            let address = self.service.connections().address();
            return vec![format!("{address} has not answered OPTIONS")];
        };
        let methods = [Method::Reqmod, Method::Respmod].into_iter();
        let methods = methods.filter(|method| options.has_method(*method));
        let methods: Vec<&str> = methods.map(Method::as_str).collect();
        let name = options.service();
        vec![format!("service `{name}`: {}", methods.join(", "))]
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(IcapExchange {
            service: Arc::clone(&self.service),
            settings: self.settings,
            host: Rc::clone(host),
            request: None,
            is_head_request: false,
            state: State::Idle,
        })
    }
}

/// The module's part of one exchange.
struct IcapExchange {
    service: Arc<Service>,
    settings: Settings,
    host: Rc<dyn Host>,
    /// The head of the request as it was sent to the next hop.
    request: Option<Vec<u8>>,
    is_head_request: bool,
    state: State,
}

/// What the exchange waits for.
enum State {
    Idle,
    Options(Pending<Result<(), Failure>>),
    /// The service has answered OPTIONS, or the request of them failed.
    OptionsResult(Result<(), Failure>),
    /// The message is at the service.
    Adapting(Shared, Sent),
    /// The service answers the request by this response.
    Responding(Shared, Box<EncapsulatedHeads>),
}

pub(super) type Shared = Rc<RefCell<Adaptation>>;

/// A message that was sent.
struct Sent {
    /// Its fields.
    fields: Fields,
    /// Its content must not be changed.
    is_inspected: bool,
}

/// The transform of the content of a message.
pub(super) struct IcapTransform(pub(super) Shared);

impl Transform for IcapTransform {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        self.0.borrow_mut().transform(piece)
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.borrow_mut().poll_content(cx)
    }

    fn poll_put(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.borrow_mut().poll_put(cx)
    }
}

/// How a message is sent, as OPTIONS say.
struct Sending {
    preview: Option<u32>,
    allow_204: bool,
}

impl IcapExchange {
    /// The options of the service, if it is to see a message by `method`. Otherwise what to answer.
    fn options(&mut self, method: Method) -> Result<Arc<ServiceOptions>, Answer> {
        let result = match std::mem::replace(&mut self.state, State::Idle) {
            State::OptionsResult(result) => Some(result),
            _ => None,
        };
        if let Some(Err(failure)) = result {
            return Err(self.fail(&failure));
        }
        let Some(options) = self.service.options() else {
            let refresh = Arc::clone(&self.service).refresh(false);
            self.state = State::Options(Box::pin(refresh));
            return Err(Answer::Defer);
        };
        let wanted = match method {
            Method::Reqmod => self.settings.request,
            _ => self.settings.response,
        };
        match (options.has_method(method), wanted) {
            (true, _) => Ok(options),
            (false, Some(true)) => Err(self.fail(&Failure::Refused(405))),
            (false, _) => Err(Answer::Continue),
        }
    }

    /// How a message with this target and content is sent; `None` if it is not.
    fn sending(
        &self,
        options: &ServiceOptions,
        target: &str,
        (has_content, length): (bool, Option<&[u8]>),
    ) -> Option<Sending> {
        let hold = u32::try_from(self.settings.hold_bytes).unwrap_or(u32::MAX);
        let preview = match options.transfer_of_target(target) {
            TransferKind::Ignore => return None,
            TransferKind::Preview if !self.settings.sends_previews => None,
            TransferKind::Complete => None,
            TransferKind::Preview => options.preview_bytes().map(|bytes| bytes.min(hold)),
        };
        let length = length.and_then(|length| std::str::from_utf8(length).ok());
        let length = length.and_then(|length| length.parse::<usize>().ok());
        let is_kept = length.is_some_and(|length| length <= self.settings.hold_bytes);
        Some(Sending {
            preview,
            allow_204: options.allows_204() && (!has_content || is_kept),
        })
    }

    /// Sends a message, and waits for the verdict.
    fn begin(&mut self, message: Message, sent: Sent) -> Shared {
        let adaptation = Adaptation::new(Arc::clone(&self.service), message);
        let shared = Rc::new(RefCell::new(adaptation));
        self.state = State::Adapting(Rc::clone(&shared), sent);
        shared
    }

    fn client(&self, call: &Call) -> Option<String> {
        self.settings.sends_client.then(|| call.client.to_string())
    }

    fn fail(&self, failure: &Failure) -> Answer {
        let level = match failure.is_of_service() {
            true => LogLevel::Warning,
            false => LogLevel::Info,
        };
        self.host.log(level, &failure.to_string());
        failure.answer()
    }

    fn begin_request(&mut self, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        let options = match self.options(Method::Reqmod) {
            Ok(options) => options,
            Err(answer) => return answer,
        };
        let content = (head.has_content(), head.fields.get("content-length"));
        let Some(sending) = self.sending(&options, head.path_and_query(), content) else {
            return Answer::Continue;
        };
        let is_inspected = head.has_content() && head.check_transform().is_err();
        if is_inspected && self.settings.no_transform == NoTransform::Pass {
            return Answer::Continue;
        }
        let message = Message {
            request: Some(request_bytes(head)),
            response: None,
            has_content: head.has_content(),
            preview: sending.preview,
            allow_204: sending.allow_204,
            keep_bytes: self.settings.hold_bytes,
            is_inspected,
            client: self.client(call),
            called: None,
        };
        let sent = Sent {
            fields: Fields::clone(&head.fields),
            is_inspected,
        };
        let transform = Box::new(IcapTransform(self.begin(message, sent)));
        if is_inspected {
            head.inspect(transform);
        } else if head.has_content() {
            // it was checked
            let _ = head.transform(transform);
        }
        Answer::Defer
    }

    fn begin_response(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        let options = match self.options(Method::Respmod) {
            Ok(options) => options,
            Err(answer) => return answer,
        };
        let is_empty = self.is_head_request || matches!(head.status(), 204 | 205 | 304);
        let length = head.fields.get("content-length");
        let has_content = !is_empty && length != Some(b"0");
        let target = self.target().unwrap_or_default();
        let Some(sending) = self.sending(&options, &target, (has_content, length)) else {
            return Answer::Continue;
        };
        let is_inspected = !is_empty && head.check_transform().is_err();
        if is_inspected && self.settings.no_transform == NoTransform::Pass {
            return Answer::Continue;
        }
        let message = Message {
            request: self.request.clone(),
            response: Some(response_bytes(head)),
            has_content,
            preview: sending.preview,
            allow_204: sending.allow_204,
            keep_bytes: self.settings.hold_bytes,
            is_inspected,
            client: self.client(call),
            called: None,
        };
        let sent = Sent {
            fields: Fields::clone(&head.fields),
            is_inspected,
        };
        let transform = Box::new(IcapTransform(self.begin(message, sent)));
        if is_inspected {
            head.inspect(transform);
        } else if !is_empty {
            // it was checked
            let _ = head.transform(transform);
        }
        Answer::Defer
    }

    /// The target of the request, as it was sent.
    fn target(&self) -> Option<String> {
        let line = self.request.as_deref()?;
        let line = line.split(|byte| *byte == b'\r').next()?;
        let target = line.split(|byte| *byte == b' ').nth(1)?;
        String::from_utf8(target.to_vec()).ok()
    }

    fn conclude_request(
        &mut self,
        head: &mut RequestHead<'_>,
        shared: &Shared,
        sent: &Sent,
    ) -> Answer {
        let mut adaptation = shared.borrow_mut();
        if let Some(failure) = adaptation.failure() {
            return self.fail(failure);
        }
        let adapted = match adaptation.verdict() {
            None | Some(Verdict::Unmodified) => return Answer::Continue,
            Some(Verdict::Modified(heads, has_content)) => {
                if heads.request_bytes().is_empty() {
                    let heads = heads.clone();
                    adaptation.collect();
                    drop(adaptation);
                    self.state = State::Responding(Rc::clone(shared), heads);
                    return Answer::Defer;
                }
                if *has_content && !head.has_content() {
                    Err(Failure::Adapted("content of a request that has none"))
                } else if sent.is_inspected && !adaptation.can_compare() {
                    Err(Failure::Unchangeable)
                } else {
                    adapt_request(head, &sent.fields, heads)
                }
            }
        };
        self.settle(&mut adaptation, adapted)
    }

    fn conclude_response(
        &mut self,
        head: &mut ResponseHead<'_>,
        shared: &Shared,
        sent: &Sent,
    ) -> Answer {
        let mut adaptation = shared.borrow_mut();
        if let Some(failure) = adaptation.failure() {
            return self.fail(failure);
        }
        let is_empty = self.is_head_request || matches!(head.status(), 204 | 205 | 304);
        let adapted = match adaptation.verdict() {
            None | Some(Verdict::Unmodified) => return Answer::Continue,
            Some(Verdict::Modified(_, true)) if is_empty && !self.is_head_request => {
                Err(Failure::Adapted("content of a response that has none"))
            }
            Some(Verdict::Modified(heads, _)) if sent.is_inspected => {
                let heads = heads.clone();
                let mut lines = LineBuffer::new();
                let status = heads.response(&mut lines).map(|head| head.status);
                if status != Some(head.status()) {
                    // the service refuses it
                    adaptation.collect();
                    drop(adaptation);
                    self.state = State::Responding(Rc::clone(shared), heads.clone());
                    return Answer::Defer;
                }
                match adaptation.can_compare() {
                    true => adapt_response(head, &sent.fields, &heads),
                    false => Err(Failure::Unchangeable),
                }
            }
            Some(Verdict::Modified(heads, _)) => adapt_response(head, &sent.fields, heads),
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

    /// The response that the service answers a request with, once all of it is there.
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

impl Exchange for IcapExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        if self.settings.decides_by_client() {
            let is_set = head.set_variant(&client_tag(call.client));
            debug_assert!(is_set.is_ok(), "an address is a short token");
        }
        if self.settings.request == Some(false) {
            return Answer::Continue;
        }
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Adapting(shared, sent) => self.conclude_request(head, &shared, &sent),
            State::Responding(shared, heads) => self.respond(&shared, &heads),
            state => {
                self.state = state;
                self.begin_request(head, call)
            }
        }
    }

    fn request_sent(&mut self, head: &mut RequestHead<'_>, _call: &Call) -> Answer {
        self.is_head_request = head.method() == "HEAD";
        self.request = Some(request_bytes(head));
        Answer::Continue
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Adapting(shared, sent) => self.conclude_response(head, &shared, &sent),
            State::Responding(shared, heads) => self.respond(&shared, &heads),
            state => {
                self.state = state;
                self.begin_response(head, call)
            }
        }
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Idle | State::OptionsResult(_) => Poll::Ready(()),
            State::Options(refresh) => match refresh.as_mut().poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(result) => {
                    self.state = State::OptionsResult(result);
                    Poll::Ready(())
                }
            },
            State::Adapting(shared, _) | State::Responding(shared, _) => {
                shared.borrow_mut().poll_head(cx)
            }
        }
    }
}

pub(super) fn local_response(
    heads: &EncapsulatedHeads,
    content: Vec<u8>,
) -> Result<LocalResponse, Failure> {
    let mut lines = LineBuffer::new();
    let head = heads.response(&mut lines);
    let head = head.ok_or(Failure::Adapted("a response without a head"))?;
    let mut response = LocalResponse::new(head.status, content)
        .map_err(|_| Failure::Adapted("a response whose status no module may answer with"))?;
    for line in head.fields {
        match response.fields.add(line.name, line.value) {
            Ok(()) | Err(weir_extend::FieldError::Reserved) => {}
            Err(_) => return Err(Failure::Adapted("a head with a field that cannot be")),
        }
    }
    Ok(response)
}
