//! The hooks at which modules are called, each with the head that it is about.

use crate::cache::variants;
use crate::exchange::state::{Plan, RequestState};
use crate::exchange::upload::source::RequestSource;
use crate::log::client::ClientFacts;
use crate::modules::content_source::ContentSource;
use crate::modules::module_answer::{ModuleAnswer, ModuleRefusal};
use crate::modules::module_content::ModuleContent;
use crate::modules::request_modules::reached::{Reached, UnfinishedHook};
use crate::modules::request_modules::{Head, HookCall, HookResult, RequestModules};
use crate::request::answer::{Answer, reason_phrase};
use crate::request::facts::Request;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{Call, HeadFields, Hook, RequestHead, ResponseHead};
use weir_net::http::ClientStream;
use weir_policy::Now;
use weir_semantics::{
    FieldLine, Form, Known, RequestFacts, ResponseDirectives, TargetedFields, identify, lines_named,
};
use weir_wire::{Version, write};

/// A request head that modules have changed.
pub(crate) struct ChangedRequest {
    pub(crate) target: String,
    head: RequestHead<'static>,
    has_host: bool,
    /// Its content passes modules: how long it is then is not known.
    pub(crate) is_transformed: bool,
}

impl ChangedRequest {
    /// Whether it has the target of `request`.
    pub(crate) fn is_for(&self, request: &Request) -> bool {
        let path = request.path_and_query();
        let other = head_of(request, path, HeadFields::of_lines(&[]));
        self.head.authority() == other.authority() && self.head.path_and_query() == path
    }

    /// The field lines, with Host of the target.
    pub(crate) fn lines(&self) -> Vec<FieldLine<'_>> {
        changed_lines(&self.head, self.has_host)
    }
}

/// The field lines of a head that modules have changed, with Host of its target. As it was received
/// it had one, if `has_host`.
pub(crate) fn changed_lines<'s>(head: &'s RequestHead<'_>, has_host: bool) -> Vec<FieldLine<'s>> {
    let authority = head.authority().as_bytes();
    let is_host = |name: &str| identify(name) == Some(Known::Host);
    let lines = head
        .fields
        .iter()
        .map(|(name, value)| FieldLine::new(name, if is_host(name) { authority } else { value }));
    let own = (!has_host).then(|| FieldLine::new("Host", authority));
    own.into_iter().chain(lines).collect()
}

/// What modules made of a request that was received.
pub(crate) enum Received {
    /// Nothing.
    Unchanged,
    /// Another one, to be judged anew.
    Changed(Box<ChangedRequest>),
    /// An answer.
    Answered(Plan),
}

/// Calls the modules for a request head that has come from the client of `stream`, if it has one.
pub(crate) async fn request_received(
    stream: Option<&mut ClientStream<'_>>,
    exchange: &mut RequestState,
) -> Received {
    let is_called = |modules: &mut Box<RequestModules>| {
        modules.is_hooked(Hook::RequestReceived) || modules.may_transform(Hook::ResponseSent)
    };
    let Some(mut modules) = exchange.modules.take_if(is_called) else {
        return Received::Unchanged;
    };
    let request = exchange.request.clone();
    let lines = request.fields();
    let (mut head, begun) = match modules.take_left() {
        Some(UnfinishedHook::Request(begun, head)) => (head, Some(begun)),
        _ => {
            let fields = HeadFields::of_lines(&lines);
            let path = match request.form {
                Form::Authority => "",
                _ => request.path_and_query(),
            };
            let head = head_of(&request, path, fields);
            (head.with_content(request.has_content()), None)
        }
    };
    let mut source = stream.map(|stream| RequestSource::new(stream, exchange));
    let result = run(
        exchange,
        modules,
        Hook::RequestReceived,
        Head::Request(&mut head),
        (begun, source.as_mut().map(|source| source as _)),
    )
    .await;
    if may_transform_sent(exchange) {
        forget_range(&mut head);
    }
    if let Some(answer) = source.and_then(RequestSource::into_end) {
        return Received::Answered(Plan::Answer(Box::new(answer)));
    }
    let content = take_content(exchange);
    let is_transformed = content.is_some();
    if let Some(modules) = &mut exchange.modules {
        modules.keep_request_content(content);
    }
    match result {
        HookResult::Respond(response) => Received::Answered(Plan::Module(Box::new(response))),
        HookResult::Refuse(refusal) => {
            Received::Answered(Plan::Answer(Box::new(Answer::module_failed(&refusal))))
        }
        HookResult::Continue | HookResult::SourceEnded if !head.is_changed() => Received::Unchanged,
        HookResult::Continue | HookResult::SourceEnded => {
            let target = match request.form {
                Form::Authority => head.authority().to_owned(),
                Form::Absolute => format!(
                    "{}://{}{}",
                    request.scheme.as_str(),
                    head.authority(),
                    head.path_and_query()
                ),
                Form::Origin | Form::Asterisk => head.path_and_query().to_owned(),
            };
            let has_host = lines_named(&lines, "host").next().is_some();
            Received::Changed(Box::new(ChangedRequest {
                target,
                head: head.into_owned(),
                has_host,
                is_transformed,
            }))
        }
    }
}

/// A part of what a module changes for a client can only be had from the whole, which a client that
/// requests a range takes, too (RFC 9110 §14.2).
pub(crate) fn forget_range(head: &mut RequestHead<'_>) {
    for name in ["Range", "If-Range"] {
        let removed = head.fields.remove(name);
        debug_assert!(removed.is_ok(), "{name}: {removed:?}");
    }
}

/// What a module took away of a request must not have its response stored, and never has content
/// changed: the facts of the request as it was received, where they are stricter.
pub(crate) fn keep_strict(
    before: &RequestFacts,
    modules: Option<&RequestModules>,
    facts: &mut RequestFacts,
) {
    facts.directives.no_transform |= before.directives.no_transform;
    let may_store = |modules: &RequestModules| modules.may_store(Hook::RequestReceived);
    if !modules.is_some_and(may_store) {
        facts.has_authorization |= before.has_authorization;
        facts.directives.no_store |= before.directives.no_store;
    }
}

/// A request head that was made for the next hop, as modules have it sent.
///
/// # Errors
///
/// The request is answered by a module, or refused.
pub(crate) async fn request_sent(
    exchange: &mut RequestState,
    made: Vec<u8>,
) -> Result<Vec<u8>, ModuleAnswer> {
    let Some(modules) = take(exchange, Hook::RequestSent) else {
        return Ok(made);
    };
    let Some((line, fields)) = read_made(&made) else {
        exchange.modules = Some(modules);
        return Ok(made);
    };
    let request = exchange.request.clone();
    let mut head =
        head_of(&request, request.path_and_query(), fields).with_content(request.has_content());
    let had = head.fields.get("authorization").map(<[u8]>::to_vec);
    let result = run(
        exchange,
        modules,
        Hook::RequestSent,
        Head::Request(&mut head),
        (None, None),
    )
    .await;
    check(result)?;
    if !head.is_changed() {
        return Ok(made);
    }
    let may_store = may_store(exchange, Hook::RequestSent);
    if !may_store && head.fields.get("authorization") != had.as_deref() {
        // what credentials bring says nothing of what is stored for all
        exchange.tx.keep_stored();
    }
    let mut out = line.to_vec();
    write_fields(&head.fields, &mut out);
    Ok(out)
}

/// What modules made of the head of a final response.
#[derive(Default)]
pub(crate) struct ChangedResponse {
    /// The head; `None` if they left it as it was.
    pub(crate) head: Option<Vec<u8>>,
    /// What the content has to pass.
    pub(crate) content: Option<Box<ModuleContent>>,
}

/// The head of a final response that has come from the next hop, as it is to be judged. Modules may
/// decide by its content; if `source` has ended, the result is of no use.
///
/// # Errors
///
/// The request is answered by a module, or refused.
pub(crate) async fn response_received(
    exchange: &mut RequestState,
    (version, status, reason): (Version, u16, &str),
    lines: &[FieldLine<'_>],
    source: &mut dyn ContentSource,
) -> Result<ChangedResponse, ModuleAnswer> {
    let Some(modules) = take(exchange, Hook::ResponseReceived) else {
        return Ok(ChangedResponse::default());
    };
    let fields = HeadFields::of_lines(lines);
    let mut head = response_head(exchange, status, fields);
    let result = run(
        exchange,
        modules,
        Hook::ResponseReceived,
        Head::Response(&mut head),
        (None, Some(source)),
    )
    .await;
    check(result)?;
    let content = take_content(exchange);
    exchange.tx.transformed(content.is_some());
    let modules = exchange.modules.as_ref();
    let is_unstored = modules.is_some_and(|modules| modules.is_unstored());
    // what a module changed without saying so, or let pass as it failed, must not be taken for what
    // the modules of the variant make of it
    if is_unstored {
        exchange.tx.forbid_storing();
    }
    if !variants::holds(exchange) {
        exchange.tx.keep_stored();
    }
    if !head.is_changed() {
        // content without a length may be inspected behind a head that stays as it is
        return Ok(ChangedResponse {
            head: None,
            content,
        });
    }
    let may_store = may_store(exchange, Hook::ResponseReceived);
    let targeted = exchange.settings.targeted(exchange.request.mode);
    if !may_store
        && (head.status_is_changed() || decides_storing_differently(lines, &head.fields, targeted))
    {
        exchange.tx.forbid_storing();
    }
    let mut out = Vec::with_capacity(1024);
    let reason = match head.status() {
        same if same == status => reason,
        other => reason_phrase(other),
    };
    write::status_line(&mut out, version, head.status(), reason);
    write_fields(&head.fields, &mut out);
    let now = head.fields.all("cache-control");
    if has_no_transform(lines_named(lines, "cache-control")) && !has_no_transform(now) {
        // it holds at later hooks, and for caches behind this one, too
        write::field(&mut out, "Cache-Control", b"no-transform");
    }
    write::end_of_head(&mut out);
    Ok(ChangedResponse {
        head: Some(out),
        content,
    })
}

/// The head of a final response that was made for the client, as modules have it sent: a status
/// line and fields.
///
/// # Errors
///
/// The request is refused.
pub(crate) async fn response_sent(
    exchange: &mut RequestState,
    status: u16,
    made: Vec<u8>,
) -> Result<(Vec<u8>, Option<Box<ModuleContent>>), ModuleRefusal> {
    let Some(mut modules) = take(exchange, Hook::ResponseSent) else {
        return Ok((made, None));
    };
    let Some((line, fields)) = read_made(&made) else {
        exchange.modules = Some(modules);
        return Ok((made, None));
    };
    let (mut head, begun) = match modules.take_left() {
        Some(UnfinishedHook::Response(begun, head)) => (head, Some(begun)),
        _ => (response_head(exchange, status, fields), None),
    };
    let result = run(
        exchange,
        modules,
        Hook::ResponseSent,
        Head::Response(&mut head),
        (begun, None),
    )
    .await;
    if let HookResult::Refuse(refusal) = result {
        return Err(refusal);
    }
    let content = take_content(exchange);
    if !head.fields.is_changed() {
        return Ok((made, content));
    }
    if changes_content(exchange) {
        weaken_tag(&mut head);
    }
    let mut out = line.to_vec();
    write_fields(&head.fields, &mut out);
    Ok((out, content))
}

fn has_no_transform<'v>(values: impl Iterator<Item = &'v [u8]>) -> bool {
    let mut directives = ResponseDirectives::default();
    values.for_each(|value| directives.add_line(value));
    directives.no_transform
}

fn response_head<'h>(
    exchange: &RequestState,
    status: u16,
    fields: HeadFields<'h>,
) -> ResponseHead<'h> {
    let directives = &exchange.tx.request().directives;
    ResponseHead::new(status, fields).keeping_content(directives.no_transform)
}

fn changes_content(exchange: &RequestState) -> bool {
    let modules = exchange.modules.as_ref();
    modules.is_some_and(|modules| modules.changes_content())
}

/// Content that is changed for one client is not the same byte by byte (RFC 9110 §8.8.1).
fn weaken_tag(head: &mut ResponseHead<'_>) {
    if let Some(weak) = head.fields.get("etag").map(variants::weak) {
        let set = head.fields.set("ETag", &weak);
        debug_assert!(set.is_ok(), "an entity tag that was sent: {set:?}");
    }
}

fn take_content(exchange: &mut RequestState) -> Option<Box<ModuleContent>> {
    exchange.modules.as_mut()?.take_content()
}

/// Calls the modules for an exchange that is over.
pub(crate) async fn done(exchange: &mut RequestState) {
    if let Some(modules) = take(exchange, Hook::Done) {
        run(exchange, modules, Hook::Done, Head::None, (None, None)).await;
    }
    if let Some(modules) = &exchange.modules {
        modules.succeeded();
    }
}

/// A request without a client is over. Modules are not called for that; one that was called for a
/// trial and did not fail works again.
pub(crate) fn over_in_background(exchange: &RequestState) {
    if let Some(modules) = &exchange.modules {
        modules.succeeded();
    }
}

/// Whether the request continues after a hook.
fn check(result: HookResult) -> Result<(), ModuleAnswer> {
    match result {
        // the caller finds the end of its source there
        HookResult::Continue | HookResult::SourceEnded => Ok(()),
        HookResult::Respond(response) => Err(ModuleAnswer::Respond(response)),
        HookResult::Refuse(refusal) => Err(ModuleAnswer::Refuse(refusal)),
    }
}

/// The modules' part of the request, if one may be called at `hook`.
fn take(exchange: &mut RequestState, hook: Hook) -> Option<Box<RequestModules>> {
    exchange.modules.take_if(|modules| modules.is_hooked(hook))
}

fn may_transform_sent(exchange: &RequestState) -> bool {
    let modules = exchange.modules.as_ref();
    modules.is_some_and(|modules| modules.may_transform(Hook::ResponseSent))
}

fn may_store(exchange: &RequestState, hook: Hook) -> bool {
    let modules = exchange.modules.as_ref();
    modules.is_some_and(|modules| modules.may_store(hook))
}

async fn run<'h>(
    exchange: &mut RequestState,
    mut modules: Box<RequestModules>,
    hook: Hook,
    head: Head<'_, 'h>,
    (begun, source): (Option<Reached<'h>>, Option<&mut dyn ContentSource>),
) -> HookResult {
    let worker = Rc::clone(&exchange.worker);
    let settings = Arc::clone(&exchange.settings);
    let called = HookCall {
        hook,
        ..call_for(&worker, &settings, exchange.client.facts(), worker.now())
    };
    let result = modules.reach(&called, head, begun, source).await;
    exchange.modules = Some(modules);
    result
}

/// What modules are called with for a request of `client`, at the first hook. Each call is timed.
pub(crate) fn call_for<'a>(
    worker: &'a Worker,
    settings: &'a Settings,
    client: ClientFacts<'_>,
    now: Now,
) -> HookCall<'a> {
    HookCall {
        hook: Hook::RequestReceived,
        call: Call {
            client: client.peer.ip(),
            mode: client.listener.mode.into(),
            now_ms: now.tick.0,
        },
        now,
        modules: &settings.modules,
        hosts: &worker.hosts,
        counters: worker.counters(),
        account: (worker.shared.common_counters(), worker.shared.clock()),
        is_timed: true,
    }
}

/// The head of a request as modules see it.
fn head_of<'h>(request: &'h Request, path: &'h str, fields: HeadFields<'h>) -> RequestHead<'h> {
    let head = RequestHead::of_host(request.method_token(), &request.host, path, fields);
    match request.port {
        80 if request.form != Form::Authority => head,
        port => head.with_port(port),
    }
}

/// The start line of a head that was made here, with its CRLF, and the fields behind it.
fn read_made(head: &[u8]) -> Option<(&[u8], HeadFields<'_>)> {
    let end = head.iter().position(|byte| *byte == b'\n')? + 1;
    let (line, section) = head.split_at(end);
    Some((line, HeadFields::of_section(section)))
}

pub(crate) fn write_fields<'f>(
    fields: impl IntoIterator<Item = (&'f str, &'f [u8])>,
    out: &mut Vec<u8>,
) {
    for (name, value) in fields {
        write::field(out, name, value);
    }
}

/// Whether the fields differ that decide whether a response is stored, how long it is fresh, and
/// for whom. It is not stored then: a module that forbids storing has its way, and one that allows
/// more than the next hop needs the operator's permission.
fn decides_storing_differently(
    before: &[FieldLine<'_>],
    after: &HeadFields<'_>,
    targeted: &TargetedFields,
) -> bool {
    let decides = |name: &str| {
        let is_known = matches!(
            identify(name),
            Some(
                Known::CacheControl
                    | Known::Expires
                    | Known::Pragma
                    | Known::Date
                    | Known::LastModified
                    | Known::ETag
                    | Known::Vary
                    | Known::SetCookie
                    | Known::SetCookie2
                    | Known::ClearSiteData
            )
        );
        is_known || targeted.contains(name)
    };
    let before = before.iter().filter(|line| decides(line.name));
    let before = before.map(|line| (line.name, line.value));
    let after = after.iter().filter(|line| decides(line.0));
    !before.eq(after)
}
