//! The request that a call about a stored response stands for.

use super::calls::CallContext;
use crate::cache::variants;
use crate::client::fast::{self, HeadTime, Receiver};
use crate::config::Mode;
use crate::exchange::state::RequestState;
use crate::host::own_request::{end_to_end, whole_target};
use crate::log::client::{ClientFacts, ForPeers, HttpVersions, ListenerFacts};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{Fields, ListenerMode, StoredError, StoredTarget};
use weir_policy::verdict::NotStored;
use weir_semantics::{Authority, FieldLine, HostName, Known, Method, identify};
use weir_wire::{RequestHead, Version};

/// The state of a GET of `target` without a client, for the variant that a client gets which sends
/// these fields; nothing is looked up yet.
///
/// # Errors
///
/// [`StoredError::BadTarget`]; or modules do not let such a request come to what is stored.
pub(super) async fn selecting_variant(
    context: &CallContext,
    target: &StoredTarget,
) -> Result<Box<RequestState>, StoredError> {
    with_variant(exchange(context, target)?).await
}

/// The same for what is [`exchange`] already.
///
/// # Errors
///
/// Modules do not let such a request come to what is stored.
pub(super) async fn with_variant(
    mut exchange: Box<RequestState>,
) -> Result<Box<RequestState>, StoredError> {
    // boxed: few have modules that change what is stored
    if Box::pin(variants::select(&mut exchange)).await {
        Ok(exchange)
    } else {
        Err(StoredError::Refused(NotStored::Module.as_str(), None))
    }
}

/// The same without its variant, for what is about all of a target.
///
/// # Errors
///
/// [`StoredError::BadTarget`].
pub(super) fn exchange(
    context: &CallContext,
    target: &StoredTarget,
) -> Result<Box<RequestState>, StoredError> {
    let fields = selecting(&target.fields).ok_or(StoredError::BadTarget)?;
    let request = CallRequest {
        method: "GET",
        fields: &fields,
        client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        listener: None,
    };
    let judged = receive(context, target, &request, |receiver, head| {
        fast::for_store(receiver, head)
    });
    judged?.map_err(|_| StoredError::BadTarget)
}

/// What a request has that a call stands for, beside its target.
pub(super) struct CallRequest<'a> {
    pub(super) method: &'a str,
    /// Without `Host`.
    pub(super) fields: &'a Fields,
    /// The client that sends it; all zeros for none.
    pub(super) client: IpAddr,
    /// The listener that it comes to, by the address that the configuration has.
    pub(super) listener: Option<&'a str>,
}

/// What `judge` makes of the head of a request for `target`, received by a listener for clients.
///
/// # Errors
///
/// [`StoredError::BadTarget`].
pub(super) fn receive<T>(
    context: &CallContext,
    target: &StoredTarget,
    request: &CallRequest<'_>,
    judge: impl FnOnce(&Receiver<'_>, &RequestHead<'_, '_>) -> T,
) -> Result<T, StoredError> {
    let mut host_name = HostName::EMPTY;
    let canonical =
        whole_target(Method::Get, &target.url, &mut host_name).ok_or(StoredError::BadTarget)?;
    let mut host = Vec::new();
    canonical.write_authority(&mut host);
    let own = request.fields.iter();
    let own = own.map(|(name, value)| FieldLine::new(name, value));
    let lines: Vec<FieldLine<'_>> = [FieldLine::new("Host", &host)]
        .into_iter()
        .chain(own)
        .collect();
    let listener = Rc::new(ListenerFacts {
        versions: HttpVersions::Http1,
        scheme: canonical.scheme,
        tls: None,
        balancers: Arc::default(),
        tls_address: None,
        is_handed_over: false,
        mode: mode_of(target.mode),
        default: Authority::parse("localhost")
            .map_err(|_| StoredError::BadTarget)?
            .into(),
        peers: ForPeers::No,
        name: request.listener.map(Into::into),
        is_named: false,
        address: None,
        closed: Arc::default(),
    });
    let client = ClientFacts {
        listener: &listener,
        peer: SocketAddr::new(request.client, 0),
        connection: 0,
        sequence: 1,
    };
    let receiver = Receiver::new(&context.worker, &context.settings, client, HeadTime::Now);
    let head = RequestHead {
        method: request.method,
        target: &target.url,
        version: Version::Http11,
        fields: &lines,
    };
    Ok(judge(&receiver, &head))
}

pub(super) const fn mode_of(mode: ListenerMode) -> Mode {
    match mode {
        ListenerMode::Forward => Mode::Forward,
        ListenerMode::Gateway => Mode::Gateway,
    }
}

/// The fields of a request that select a response that is for all clients; without those that say
/// how a cache is to be used. `None` if one has credentials, a condition or a range.
fn selecting(fields: &Fields) -> Option<Fields> {
    let mut checked = end_to_end(fields)?;
    for (name, _) in fields.iter() {
        if !may_select(name) {
            return None;
        }
        if let Some(Known::CacheControl | Known::Pragma) = identify(name) {
            checked.remove(name).ok()?;
        }
    }
    Some(checked)
}

/// Whether a field may be one of a request that selects a stored response: it has no credentials,
/// and is neither a condition nor a range.
pub(crate) fn may_select(name: &str) -> bool {
    !matches!(
        identify(name),
        Some(
            Known::Authorization
                | Known::ProxyAuthorization
                | Known::Cookie
                | Known::IfMatch
                | Known::IfNoneMatch
                | Known::IfModifiedSince
                | Known::IfUnmodifiedSince
                | Known::IfRange
                | Known::Range
        )
    )
}
