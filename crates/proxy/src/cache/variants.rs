//! The variant of stored responses that a request gets where modules change responses before they
//! are stored (`weir_policy::extension::Variant`), and the entity tag of changed content.

use crate::exchange::module_calls::{self, Received};
use crate::exchange::state::RequestState;
use crate::modules::request_modules::RequestModules;
use crate::request::facts::Request;
use crate::request::judge::{JudgeRules, ReceivedRequest};
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::Hook;
use weir_policy::Transaction;
use weir_policy::extension::Variant;
use weir_semantics::{FieldLine, HostName, Known, Method, Timestamp, line_named, parse_http_date};
use weir_wire::write;

/// How a response is chosen for a request.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    /// The variant, if modules change responses before they are stored.
    pub(crate) variant: Option<Variant>,
    /// The request is sent to the next hop for the whole, without the client's preconditions.
    pub(crate) fetches_whole: bool,
    /// A rule of the operator has it bypass the cache.
    pub(crate) bypass: bool,
    /// Rules of the operator may say how a stored response is used.
    pub(crate) is_ruled: bool,
    /// Such a rule has changed its target for the cache key.
    pub(crate) is_rekeyed: bool,
}

impl Choice {
    /// Without modules and rules.
    pub(crate) const PLAIN: Self = Self {
        variant: None,
        fetches_whole: false,
        bypass: false,
        is_ruled: false,
        is_rekeyed: false,
    };
}

/// To be called once the modules have seen the request, and its target is known.
pub(crate) fn begin(exchange: &mut RequestState, method: Method, keeps_content: bool) -> Choice {
    let worker = Rc::clone(&exchange.worker);
    let ruled = Choice {
        bypass: exchange.bypasses_by_rule(),
        is_ruled: exchange.settings.operator_rules.may_decide_storing(),
        is_rekeyed: exchange.is_rekeyed,
        ..Choice::PLAIN
    };
    let Some(modules) = &mut exchange.modules else {
        return ruled;
    };
    let variant = modules.variant(worker.shared.store.secret(), keeps_content);
    exchange.variant = variant.map(Box::new);
    let is_read = matches!(method, Method::Get | Method::Head);
    Choice {
        variant,
        fetches_whole: is_read && modules.may_transform(Hook::ResponseReceived),
        ..ruled
    }
}

/// Whether the modules that saw the response are those of the variant that the request gets: none
/// of them has failed, or has come to another state. To be called for each response, before it is
/// stored.
pub(crate) fn holds(exchange: &mut RequestState) -> bool {
    let worker = Rc::clone(&exchange.worker);
    let keeps_content = exchange.tx.request().directives.no_transform;
    let modules = exchange.modules.as_mut();
    let now = modules.and_then(|modules| {
        let secret = worker.shared.store.secret();
        modules.variant_now(secret, keeps_content)
    });
    now.as_ref() == exchange.variant.as_deref()
}

/// Shows the modules a request without a client, as the client sent it; `false` if they would
/// answer it, send it elsewhere, or make another variant of its response. Then what it brings must
/// not be stored.
pub(crate) async fn receive_again(exchange: &mut RequestState) -> bool {
    let modules = exchange.modules.as_deref();
    if exchange.variant.is_none() && !modules.is_some_and(RequestModules::changes_stored) {
        return true;
    }
    let is_hooked = |modules: &RequestModules| modules.is_hooked(Hook::RequestReceived);
    if modules.is_some_and(is_hooked) && !show(exchange).await {
        return false;
    }
    holds(exchange)
}

/// Has modules see the request of a call about stored responses, as they would see it of a client,
/// and finds the variant that it gets; `false` if they answer it, or send it elsewhere. Only those
/// that change what is stored see it: any other may be the one that makes the call.
pub(crate) async fn select(exchange: &mut RequestState) -> bool {
    exchange.is_of_call = true;
    let sent = exchange.request.clone();
    let (host, path) = (sent.host.as_bytes(), sent.path_and_query());
    exchange.modules = RequestModules::of(&exchange.settings.modules, host, path);
    match &mut exchange.modules {
        Some(modules) if modules.changes_stored() => modules.call_changing_stored(),
        _ => return true,
    }
    let received = module_calls::request_received(None, exchange).await;
    // they are not called for it any more
    module_calls::over_in_background(exchange);
    match received {
        Received::Unchanged => {}
        Received::Answered(_) => return false,
        Received::Changed(changed) => {
            if !changed.is_for(&sent) || !change(exchange, &changed.lines()) {
                return false;
            }
            exchange.received = Some(Box::new(sent.clone()));
        }
    }
    if let Some(modules) = &mut exchange.modules {
        modules.retarget(host, path);
    }
    begin(exchange, Method::Get, false);
    true
}

/// Gives a request for the store alone other fields; `false` if it would be refused with them.
fn change(exchange: &mut RequestState, fields: &[FieldLine<'_>]) -> bool {
    let (settings, before) = (Arc::clone(&exchange.settings), exchange.request.clone());
    let client = exchange.client.clone();
    let listener = client.facts().listener;
    let rules = JudgeRules {
        settings: &settings,
        mode: listener.mode,
        default: &listener.default,
        scheme: listener.scheme,
        tls: None,
        client: None,
    };
    let head = before.head(fields);
    let mut host = HostName::EMPTY;
    let Ok(mut received) = ReceivedRequest::judge(&head, &rules, &mut host) else {
        return false;
    };
    let modules = exchange.modules.as_deref();
    module_calls::keep_strict(exchange.tx.request(), modules, &mut received.facts);
    exchange.tx = Transaction::new(received.facts, exchange.worker.now());
    exchange.request = Request::new(&received, &head);
    true
}

async fn show(exchange: &mut RequestState) -> bool {
    let sent = exchange.request.clone();
    let received = exchange.received.clone();
    let received = received.map_or_else(|| sent.clone(), |received| received.for_store());
    // as for the client: from the target that it has requested to the one that they made of it
    let (host, path) = (received.host.as_bytes(), received.path_and_query());
    let modules = exchange.modules.as_ref();
    exchange.modules = modules.and_then(|modules| modules.again(host, path));
    if exchange.is_of_call
        && let Some(modules) = &mut exchange.modules
    {
        modules.call_changing_stored();
    }
    let is_same = received.target_uri() == sent.target_uri();
    exchange.request = received;
    let again = module_calls::request_received(None, exchange).await;
    let leads_there = match again {
        Received::Unchanged => is_same,
        Received::Changed(changed) => changed.is_for(&sent),
        Received::Answered(_) => false,
    };
    if let Some(modules) = &mut exchange.modules {
        modules.retarget(sent.host.as_bytes(), sent.path_and_query());
    }
    exchange.request = sent;
    leads_there
}

/// The entity tag of a response for clients.
pub(crate) enum ClientTag {
    /// That of the next hop.
    AsReceived,
    /// Another one, or none: modules have changed the content.
    Other(Option<Vec<u8>>),
}

impl ClientTag {
    /// Of the response with `fields` whose head has passed the modules.
    pub(crate) fn of(exchange: &RequestState, fields: &[FieldLine<'_>]) -> Self {
        let modules = exchange.modules.as_ref();
        if !modules.is_some_and(|modules| modules.changes_content()) {
            return Self::AsReceived;
        }
        let now = exchange.worker.now().wall;
        let modified = line_named(fields, "last-modified");
        let modified = modified.and_then(|value| parse_http_date(value, now));
        Self::changed(exchange, line_named(fields, "etag"), modified)
    }

    /// Of changed content, made of the validators of the next hop.
    pub(crate) fn changed(
        exchange: &RequestState,
        tag: Option<&[u8]>,
        last_modified: Option<Timestamp>,
    ) -> Self {
        Self::Other(match &exchange.variant {
            Some(variant) => variant.entity_tag(tag, last_modified),
            None => tag.map(weak),
        })
    }

    /// Whether the field of the next hop is left out.
    pub(crate) fn replaces(&self, known: Option<Known>) -> bool {
        known == Some(Known::ETag) && matches!(self, Self::Other(_))
    }

    /// Writes the other one.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Self::Other(Some(tag)) = self {
            write::field(out, "ETag", tag);
        }
    }
}

/// The weak form of an entity tag.
pub(crate) fn weak(tag: &[u8]) -> Vec<u8> {
    let prefix: &[u8] = if tag.starts_with(b"\"") { b"W/" } else { b"" };
    [prefix, tag].concat()
}
