//! The outcome of a request to a next hop.

use crate::exchange::download::HeldResponse;
use crate::exchange::next_hop::Decline;
use crate::fetch::arrival;
use crate::fetch::transfer::FetchTarget;
use crate::modules::module_answer::ModuleAnswer;
use crate::request::answer::AnswerReason;
use std::sync::Arc;
use weir_net::next_hops::SpentLink;
use weir_policy::Serving;
use weir_policy::fetch::RestRefusal;
use weir_semantics::ProxyError;
use weir_store::StoredResponse;
use weir_wire::BodyError;

/// The outcome of receiving a response: what the client and the store have of it.
pub(crate) enum ResponseOutcome {
    /// The response was relayed to the client, complete or as far as it was received.
    Relayed,
    /// All of the response was received, and waits for what it invalidates: the connection is free.
    Held(Box<HeldResponse>),
    /// 304 to our validators: the store is up to date.
    Merged {
        /// What the client gets.
        response: Arc<StoredResponse>,
        /// What is stored of it, if anything is.
        stored: Option<Arc<StoredResponse>>,
        /// How.
        serving: Serving,
    },
    /// Its content will be stored: a fetch of its own receives it.
    FetchStarted(Box<FetchStart>),
    /// The stored representation has changed, or the next hop does not send the missing range: send
    /// the request again as the client sent it.
    ForwardAgain,
    /// It is not the rest of a part, which nothing has asked for: the part stays as it is.
    NotRest(RestRefusal),
    /// The missing range of an in-flight response was received, and may not be stored: it is for
    /// this client alone.
    NotShared,
    /// An error in whose place the stale response may be served.
    ServeStale(Serving),
    /// 101: from here on it is a tunnel.
    Switched {
        /// The head for the client.
        head: Vec<u8>,
    },
    /// The client has disconnected, and no other request waits.
    ClientLeft,
    /// A module has put its own in the place of the response, or failed.
    Module(Box<ModuleAnswer>),
    /// The client's content is not framed as it says, and no answer has begun.
    BadContent(BodyError),
    /// Another node or a sibling has no response for it.
    Declined(Decline),
    /// There is no usable response head.
    Failed(HopFailure),
}

/// The start of a fetch whose response head was received.
pub(crate) struct FetchStart {
    /// The target of its content.
    pub(crate) target: FetchTarget,
    /// What the request that started it is sent.
    pub(crate) answer: arrival::InitiatorResponse,
}

/// How the next hop failed before a final head.
pub(crate) enum HopFailure {
    /// It closed before the first byte: the request may be repeated if that is safe.
    Unanswered(AnswerReason),
    /// Anything else.
    Broken(AnswerReason),
}

/// The failure of a next hop that sends nothing.
pub(crate) fn silent(limit: crate::config::Span) -> HopFailure {
    HopFailure::Broken(AnswerReason::new(
        ProxyError::ConnectionReadTimeout,
        format!("the next hop was silent for {limit}"),
    ))
}

/// The failure of a response that ends early: of its link, if that has `spent` its quota.
pub(crate) fn cut(spent: Option<SpentLink>, why: &dyn std::fmt::Display) -> HopFailure {
    HopFailure::Broken(spent.map_or_else(|| broken(why), AnswerReason::link_spent))
}

/// The reason of an answer in place of a response that is not HTTP.
pub(crate) fn broken(why: &dyn std::fmt::Display) -> AnswerReason {
    AnswerReason::new(
        ProxyError::HttpProtocolError,
        format!("the next hop's response is not valid HTTP: {why}"),
    )
}
