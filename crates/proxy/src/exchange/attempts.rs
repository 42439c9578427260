//! The attempts to send one request: which next hop after which, and whether the request is sent
//! again.

use crate::config::{Direct, Mode};
use crate::exchange::next_hop::{Decline, NextHop, PeerSource, Tried};
use crate::exchange::state::RequestState;
use crate::request::answer::{Answer, AnswerReason};
use crate::settings::Settings;
use crate::settings::hierarchy::ProxyOutcome;
use crate::worker::core::Worker;
use std::sync::Arc;
use tokio::time::timeout;
use weir_measure::Metric;
use weir_net::http::{ConnectionNeed, NextHopStream, RequestContent, is_target_of_http2};
use weir_net::next_hops::{ConnectionRules, Destination};
use weir_policy::connections::HopId;
use weir_policy::now::Tick;
use weir_policy::retry::{BodySent, FailedAttempt, HopAttempts, NoConnection, may_retry};
use weir_semantics::{Method, ProxyError};

/// The attempts to send one request: to the next hops of its route, and once more where that is
/// safe.
pub(crate) struct Attempts {
    next_hop: NextHop,
    /// Of the next attempt: whether it is a repetition, too.
    need: ConnectionNeed,
    /// What did not answer.
    tried: Tried,
    /// Next hops of the route whose links have spent their quotas.
    spent: Vec<HopId>,
    /// When the last connection to a node of the cluster was there.
    connected: Tick,
}

impl Attempts {
    /// None so far, with `next_hop` to be tried first.
    pub(crate) fn new(next_hop: NextHop) -> Self {
        Self {
            next_hop,
            need: ConnectionNeed::Any,
            tried: Tried::default(),
            spent: Vec::new(),
            connected: Tick::default(),
        }
    }

    /// What is to be tried now.
    pub(crate) const fn next_hop(&mut self) -> &mut NextHop {
        &mut self.next_hop
    }

    /// A stream for the next attempt: to the next hop, or to another one of its route if this one
    /// has no connection.
    ///
    /// # Errors
    ///
    /// The failure of the last one that was tried.
    pub(crate) async fn connect(
        &mut self,
        exchange: &mut RequestState,
        worker: &Worker,
    ) -> Result<NextHopStream, NoStream> {
        let settings = Arc::clone(&exchange.settings);
        let mut attempts = HopAttempts::first(self.next_hop.route_hop());
        loop {
            // the target is read for that: not where no HTTP/2 is spoken
            let speaks_http2 = self.next_hop.destination.hop.http2;
            let by_http1 = speaks_http2 && needs_http1(exchange);
            let is_alone = speaks_http2 && has_large_head(exchange);
            let need = match is_alone {
                true => self.need.alone(),
                false => self.need,
            };
            let how = (need, by_http1);
            let opened = open(worker, &settings, &self.next_hop, how).await;
            let failure = match opened {
                Ok(mut hop) => {
                    hop.set_background(exchange.is_for_store_alone());
                    let link = settings
                        .connections
                        .links
                        .of(&self.next_hop.destination.hop);
                    if link.is_some()
                        && let Some(of) = exchange.range_of()
                    {
                        hop.set_range_of(of);
                    }
                    exchange.is_answered_by_http2 = hop.is_http2();
                    exchange.response_timer = self.next_hop.connected(&mut hop).map(Box::new);
                    exchange.ask(&self.next_hop, &mut hop);
                    let (node, next_hop) = self.next_hop.choices();
                    exchange.log.chosen(node, next_hop);
                    if self.next_hop.peer().is_some() {
                        self.connected = worker.now().tick;
                    }
                    return Ok(hop);
                }
                Err(failure) => failure,
            };
            match self.pass_on(exchange, worker, Failed::unsent(&failure)) {
                PassResult::Next => {
                    attempts = HopAttempts::first(self.next_hop.route_hop());
                    continue;
                }
                PassResult::Answer(answer) => return Err(NoStream::Answer(answer)),
                PassResult::NoOther => {}
            }
            if failure.spent.is_some() {
                match self.beside_spent(exchange) {
                    Some(another) => self.next_hop = another,
                    None => return Err(NoStream::Failed(failure)),
                }
                continue;
            }
            let lack = match failure.error {
                ProxyError::ConnectionLimitReached => NoConnection::Ours,
                _ => NoConnection::NextHop,
            };
            match attempts.next(lack, || NextHop::another(exchange, worker)) {
                Ok(another) => self.next_hop = another,
                Err(_) => return Err(NoStream::Failed(failure)),
            }
        }
    }

    /// Another next hop of the route, after the link to this one has spent its quota.
    fn beside_spent(&mut self, exchange: &RequestState) -> Option<NextHop> {
        let hop = self.next_hop.route_hop()?;
        if !self.spent.contains(&hop) {
            self.spent.push(hop);
        }
        NextHop::beside(exchange, &self.spent)
    }

    /// Goes on to what comes next, after the next hop gave no response: from a node of the cluster
    /// or a sibling in any case, from a parent to another one or the origin, from the origin to a
    /// parent.
    ///
    /// What nodes and siblings are asked for is safe to be asked for again, and has no content.
    pub(crate) fn pass_on(
        &mut self,
        exchange: &RequestState,
        worker: &Worker,
        failed: Failed,
    ) -> PassResult {
        let mut is_optional = true;
        let failed = failed.of_peer(self.next_hop.peer().is_some());
        if let Some(peer) = self.next_hop.peer() {
            fail_peer(worker, peer, failed, self.connected);
        } else if let Some(proxy) = self.next_hop.proxy() {
            match failed {
                Failed::Declined(_) => proxy.ended(worker, ProxyOutcome::Missed),
                // it was not asked, or would have answered
                Failed::LinkSpent { .. } => {}
                Failed::NoConnection(_) if !failed.is_of_next_hop() => proxy.not_asked(),
                Failed::NoConnection(_) | Failed::Sent(_) => {
                    proxy.ended(worker, ProxyOutcome::Failed);
                }
            }
            is_optional = proxy.is_sibling();
            if !is_optional && !may_ask_again(exchange, failed) {
                return PassResult::NoOther;
            }
        } else {
            is_optional = false;
            if !failed.leads_on() || !prefers_direct(exchange) {
                return PassResult::NoOther;
            }
        }
        let is_node = self.next_hop.peer().is_some();
        let is_spent = failed == Failed::LinkSpent { is_sent: false };
        self.tried.note(&self.next_hop, is_spent);
        let next = match failed {
            // what one node lacks, others may lack, too
            Failed::Declined(Decline::NoResponse) if exchange.tx.is_for_caches_alone() => {
                Err(Answer::only_if_cached())
            }
            Failed::Declined(Decline::NoResponse) if is_node => {
                NextHop::of_origin(exchange, &self.tried)
            }
            _ => NextHop::after(exchange, &self.tried),
        };
        match next {
            Ok(next) => self.next_hop = next,
            Err(answer) if is_optional => return PassResult::Answer(answer),
            Err(_) => return PassResult::NoOther,
        }
        self.need = ConnectionNeed::Any;
        PassResult::Next
    }

    /// [`Self::pass_on`] without a client, after a failure for `reason`.
    ///
    /// # Errors
    ///
    /// There is no other next hop: why the request failed.
    pub(crate) fn pass(
        &mut self,
        exchange: &RequestState,
        worker: &Worker,
        reason: AnswerReason,
    ) -> Result<(), AnswerReason> {
        match self.pass_on(exchange, worker, Failed::sent(&reason)) {
            PassResult::Next => Ok(()),
            PassResult::NoOther => Err(reason),
            PassResult::Answer(answer) => Err(answer.reason),
        }
    }

    /// Goes on to the origin if the request was about to be sent to another node, and its target
    /// has been purged since that was decided, or that node is known now not to have been told of
    /// a purge: it may have what was purged. To be called
    /// behind [`RequestState::expect`]: a purge that comes later finds the ticket. Whether that is
    /// so.
    ///
    /// # Errors
    ///
    /// The answer to give as there is no origin.
    pub(crate) fn is_held_back(
        &mut self,
        exchange: &RequestState,
        worker: &Worker,
    ) -> Result<bool, Answer> {
        let purges = &worker.shared.cluster_purges;
        let is_held = exchange
            .lateral
            .as_ref()
            .is_some_and(|lateral| purges.is_held(exchange.key) || lateral.is_behind(purges));
        if is_held {
            self.next_hop = NextHop::after(exchange, &self.tried)?;
            self.need = ConnectionNeed::Any;
        }
        Ok(is_held)
    }

    /// Whether the request is sent once more, after `hop` was closed without a byte of an
    /// answer; `content` is then given again, if the next hop has not acted upon it.
    pub(crate) fn repeat(
        &mut self,
        exchange: &RequestState,
        worker: &Worker,
        hop: &NextHopStream,
        content: Option<&mut RequestContent<'_>>,
    ) -> bool {
        let attempt = FailedAttempt {
            method: exchange.request.method,
            body: match content.filter(|_| hop.is_unprocessed()) {
                _ if !exchange.request.has_content() => BodySent::None,
                Some(content) => match content.rewind() {
                    true => BodySent::Replayable,
                    false => BodySent::Consumed,
                },
                // by HTTP/1.1 it is not repeated either
                None => BodySent::Consumed,
            },
            connection_was_reused: hop.facts().reused,
            shared_connection_broke: hop.has_shared_connection_broken(),
            is_unprocessed: hop.is_unprocessed(),
            response_begun: false,
            is_retry: self.need.is_fresh(),
        };
        let repeats = may_retry(&attempt).is_ok();
        if repeats {
            worker.counters().inc(Metric::Retries);
            self.need = hop.repetition_need();
        }
        repeats
    }
}

/// How a next hop failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// There is no connection to it.
    NoConnection(ProxyError),
    /// It was sent the request.
    Sent(ProxyError),
    /// It is a node or a sibling, and said that it has no response.
    Declined(Decline),
    /// The link to it has spent its quota.
    LinkSpent {
        /// It was sent the request, or some of it.
        is_sent: bool,
    },
}

impl Failed {
    /// There is no connection for `reason`.
    pub(crate) const fn unsent(reason: &AnswerReason) -> Self {
        match reason.spent {
            Some(_) => Self::LinkSpent { is_sent: false },
            None => Self::NoConnection(reason.error),
        }
    }

    /// It was sent the request, and failed for `reason`.
    pub(crate) const fn sent(reason: &AnswerReason) -> Self {
        match reason.spent {
            Some(_) => Self::LinkSpent { is_sent: true },
            None => Self::Sent(reason.error),
        }
    }

    /// The same, of a node of the cluster if it `is_node`: a response that is too large here with
    /// the fields that it has added is none that it has for this node.
    const fn of_peer(self, is_node: bool) -> Self {
        match self {
            Self::Sent(ProxyError::HttpResponseHeaderSectionSize) if is_node => {
                Self::Declined(Decline::NoResponse)
            }
            other => other,
        }
    }

    /// Whether there is no connection for a reason of the next hop: not one of our own, and no
    /// rule.
    const fn is_of_next_hop(self) -> bool {
        matches!(self, Self::NoConnection(error) if !matches!(
            error,
            ProxyError::ConnectionLimitReached
                | ProxyError::DestinationIpProhibited
                | ProxyError::HttpRequestDenied
                | ProxyError::ProxyInternalError
        ))
    }

    /// Whether it was not sent the request, and another one may be.
    const fn leads_on(self) -> bool {
        self.is_of_next_hop() || matches!(self, Self::LinkSpent { is_sent: false })
    }
}

/// Why a node of the cluster gave no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerFailure {
    /// All connections to it are in use.
    Busy,
    /// It accepts no connection.
    Unreachable,
    /// It sent no head in time.
    Silent,
    /// It closed the connection, or does not answer as a member does.
    Broken,
    /// It answered that it has no response.
    Declined,
}

impl PeerFailure {
    const fn of(failed: Failed) -> Self {
        match failed {
            Failed::NoConnection(ProxyError::ConnectionLimitReached) | Failed::LinkSpent { .. } => {
                Self::Busy
            }
            Failed::NoConnection(_) => Self::Unreachable,
            Failed::Sent(ProxyError::ConnectionReadTimeout) => Self::Silent,
            Failed::Sent(_) => Self::Broken,
            Failed::Declined(_) => Self::Declined,
        }
    }

    /// Why the node is gone.
    const fn text(self) -> &'static str {
        match self {
            Self::Busy => "all connections to it are in use",
            Self::Unreachable => "it cannot be reached",
            Self::Silent => "it did not answer in time",
            Self::Broken => "it does not answer as a member of the cluster does",
            Self::Declined => "it has no response",
        }
    }

    const fn metric(self) -> Metric {
        match self {
            Self::Busy => Metric::PeersBusy,
            Self::Declined => Metric::PeersDeclined,
            Self::Unreachable | Self::Silent | Self::Broken => Metric::PeersFailed,
        }
    }
}

/// What follows when a next hop gave no response.
pub(crate) enum PassResult {
    /// Another next hop is tried.
    Next,
    /// There is no other one to try: the request has failed.
    NoOther,
    /// There is no next hop besides those that need not have been asked: what to answer.
    Answer(Answer),
}

/// Why there is no stream to a next hop.
pub(crate) enum NoStream {
    /// None accepts a connection.
    Failed(AnswerReason),
    /// There is no next hop: what to answer.
    Answer(Answer),
}

/// A node of the cluster gave no response to a request for which there was a connection at
/// `connected`.
pub(crate) fn fail_peer(worker: &Worker, peer: &PeerSource, failed: Failed, connected: Tick) {
    let why = PeerFailure::of(failed.of_peer(true));
    match why {
        PeerFailure::Silent => peer.silent(worker, why.text(), connected),
        PeerFailure::Unreachable | PeerFailure::Broken => peer.failed(worker, why.text(), None),
        PeerFailure::Busy | PeerFailure::Declined => {}
    }
    worker.counters().inc(why.metric());
}

/// Whether a request is to be sent by HTTP/1.1: it is to switch protocols, or HTTP/2 has no such
/// target.
fn needs_http1(exchange: &RequestState) -> bool {
    let request = &exchange.request;
    request.upgrade || !is_target_of_http2(request.path_and_query())
}

/// Request heads of more bytes share no connection of HTTP/2: nginx ends it for a field of more
/// than 8 KiB, HAProxy for a head of 15, and the requests of others would end with it. For what is
/// added on the way there is the rest of 8 KiB; rules and modules may add more.
const SHARED_HEAD_BYTES_MAX: usize = 7 * 1024;

fn has_large_head(exchange: &RequestState) -> bool {
    exchange.request.head_bytes() > SHARED_HEAD_BYTES_MAX
}

/// A stream to `next_hop`, by HTTP/1.1 if it must be; a sibling has its own time to accept a
/// connection.
///
/// # Errors
///
/// There is no connection, or the link to it has spent its quota.
pub(crate) async fn open(
    worker: &Worker,
    settings: &Settings,
    next_hop: &NextHop,
    (need, by_http1): (ConnectionNeed, bool),
) -> Result<NextHopStream, AnswerReason> {
    let destination = &next_hop.destination;
    let rules = match next_hop.peer() {
        None => &settings.connections,
        Some(_) => &settings.peer_connections,
    };
    check_link(rules, destination)?;
    let opening = async {
        match by_http1 {
            false => NextHopStream::open(worker.net(), rules, destination, need).await,
            // boxed, as few requests need it
            true => {
                let http1 = NextHopStream::open_http1(worker.net(), rules, destination, need);
                Box::pin(http1).await
            }
        }
    };
    let sibling = next_hop.proxy().filter(|proxy| proxy.is_sibling());
    let Some(limit) = sibling.map(|sibling| sibling.configured().timeout) else {
        return opening.await.map_err(AnswerReason::from);
    };
    match Box::pin(timeout(limit.as_duration(), opening)).await {
        Ok(opened) => opened.map_err(AnswerReason::from),
        Err(_) => Err(AnswerReason::new(
            ProxyError::ConnectionTimeout,
            format!("the sibling did not accept a connection within {limit}"),
        )),
    }
}

/// Refuses a request that would be sent over a link which has spent its quota.
///
/// # Errors
///
/// The link has.
pub(crate) fn check_link(
    rules: &ConnectionRules,
    destination: &Destination,
) -> Result<(), AnswerReason> {
    let link = rules.links.of(&destination.hop);
    let spent = link.and_then(|link| link.spent());
    spent.map_or(Ok(()), |spent| Err(AnswerReason::link_spent(spent)))
}

/// Whether a request that a parent failed at may be sent to another one, or to the origin: it never
/// got there, or the parent closed the connection or its link has no quota left, and a repetition
/// is safe.
fn may_ask_again(exchange: &RequestState, failed: Failed) -> bool {
    let request = &exchange.request;
    let is_safe = matches!(
        request.method,
        Method::Get | Method::Head | Method::Options | Method::Connect
    ) && !request.has_content()
        && !request.upgrade;
    let is_closed = matches!(
        failed,
        Failed::Sent(ProxyError::ConnectionTerminated | ProxyError::HttpResponseIncomplete)
            | Failed::LinkSpent { is_sent: true }
    );
    failed.leads_on() || is_closed && is_safe
}

/// Whether the host of its URL was asked, and parents may be.
fn prefers_direct(exchange: &RequestState) -> bool {
    let hierarchy = &exchange.settings.hierarchy;
    let request = &exchange.request;
    request.mode == Mode::Forward
        && !hierarchy.is_empty()
        && hierarchy.direct(request.host.as_str(), request.path_and_query()) == Direct::Prefer
}
