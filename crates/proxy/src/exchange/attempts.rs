//! The attempts to send one request: which next hop after which, and whether the request is sent
//! again.

use crate::exchange::next_hop::NextHop;
use crate::exchange::state::RequestState;
use crate::request::answer::{Answer, AnswerReason};
use crate::worker::core::Worker;
use std::sync::Arc;
use weir_measure::Metric;
use weir_net::http::NextHopStream;
use weir_policy::now::Tick;
use weir_policy::retry::{BodySent, FailedAttempt, HopAttempts, NoConnection, may_retry};
use weir_policy::route::NodeKey;
use weir_semantics::ProxyError;

/// The attempts to send one request: to the next hops of its route, and once more where that is
/// safe.
pub(crate) struct Attempts {
    next_hop: NextHop,
    is_retry: bool,
    /// Nodes of the cluster that did not answer.
    failed_peers: Vec<NodeKey>,
    /// When the last connection was there.
    connected: Tick,
}

impl Attempts {
    /// None so far, with `next_hop` to be tried first.
    pub(crate) fn new(next_hop: NextHop) -> Self {
        Self {
            next_hop,
            is_retry: false,
            failed_peers: Vec::new(),
            connected: Tick::default(),
        }
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
            let destination = &self.next_hop.destination;
            let rules = match self.next_hop.peer() {
                None => &settings.connections,
                Some(_) => &settings.peer_connections,
            };
            let opened = NextHopStream::open(worker.net(), rules, destination, self.is_retry).await;
            let failure = match opened {
                Ok(mut hop) => {
                    exchange.response_timer = self.next_hop.connected(&mut hop);
                    exchange.ask(self.next_hop.peer(), &mut hop);
                    self.connected = worker.now().tick;
                    return Ok(hop);
                }
                Err(failure) => failure,
            };
            let why = match failure.error {
                ProxyError::ConnectionLimitReached => PeerFailure::Busy,
                _ => PeerFailure::Unreachable,
            };
            match self.pass_peer(exchange, worker, why) {
                PassResult::Next => {
                    attempts = HopAttempts::first(self.next_hop.route_hop());
                    continue;
                }
                PassResult::Answer(answer) => return Err(NoStream::Answer(answer)),
                PassResult::NoPeer => {}
            }
            let lack = match failure.error {
                ProxyError::ConnectionLimitReached => NoConnection::Ours,
                _ => NoConnection::NextHop,
            };
            match attempts.next(lack, || NextHop::another(exchange, worker)) {
                Ok(another) => self.next_hop = another,
                Err(_) => return Err(NoStream::Failed(failure.into())),
            }
        }
    }

    /// Goes on after a node gave no response: to the next node, or to the origin.
    ///
    /// What other nodes are asked for is safe to be asked for again, and has no content.
    pub(crate) fn pass_peer(
        &mut self,
        exchange: &RequestState,
        worker: &Worker,
        failure: PeerFailure,
    ) -> PassResult {
        let Some(peer) = self.next_hop.peer() else {
            return PassResult::NoPeer;
        };
        let (metric, now) = (failure.metric(), worker.now());
        match failure {
            PeerFailure::Silent => peer.failed(now, Some(self.connected)),
            PeerFailure::Unreachable | PeerFailure::Broken => peer.failed(now, None),
            PeerFailure::Busy | PeerFailure::Declined => {}
        }
        worker.counters().inc(metric);
        self.failed_peers.push(peer.key());
        let next = match failure {
            // what one node lacks, others may lack, too
            PeerFailure::Declined if exchange.tx.is_for_caches_alone() => {
                Err(Answer::only_if_cached())
            }
            PeerFailure::Declined => NextHop::of_origin(exchange),
            _ => NextHop::after(exchange, &self.failed_peers),
        };
        match next {
            Ok(next) => self.next_hop = next,
            Err(answer) => return PassResult::Answer(answer),
        }
        self.is_retry = false;
        PassResult::Next
    }

    /// [`Self::pass_peer`] without a client, after a failure for `reason`.
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
        match self.pass_peer(exchange, worker, PeerFailure::of(&reason)) {
            PassResult::Next => Ok(()),
            PassResult::NoPeer => Err(reason),
            PassResult::Answer(answer) => Err(answer.reason),
        }
    }

    /// Goes on to the origin if the request was about to be sent to another node, and its target
    /// has been purged since that was decided: that node may not know of the purge. To be called
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
        let is_held =
            exchange.lateral.is_some() && worker.shared.cluster_purges.is_held(exchange.key);
        if is_held {
            self.next_hop = NextHop::after(exchange, &self.failed_peers)?;
            self.is_retry = false;
        }
        Ok(is_held)
    }

    /// Whether the request is sent once more, after `hop` was closed without a byte of an
    /// answer.
    pub(crate) fn repeat(
        &mut self,
        exchange: &RequestState,
        worker: &Worker,
        hop: &NextHopStream,
    ) -> bool {
        let attempt = FailedAttempt {
            method: exchange.request.method,
            body: if exchange.request.has_content() {
                BodySent::Consumed
            } else {
                BodySent::None
            },
            connection_was_reused: hop.facts().reused,
            response_begun: false,
            is_retry: self.is_retry,
        };
        let repeats = may_retry(&attempt).is_ok();
        if repeats {
            worker.counters().inc(Metric::Retries);
            self.is_retry = true;
        }
        repeats
    }
}

/// Why a node of the cluster gave no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerFailure {
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
    /// Of one that was asked and failed for `reason`.
    pub(crate) fn of(reason: &AnswerReason) -> Self {
        match reason.error {
            ProxyError::ConnectionReadTimeout => Self::Silent,
            _ => Self::Broken,
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
    /// It was no node of the cluster.
    NoPeer,
    /// There is no other one: what to answer.
    Answer(Answer),
}

/// Why there is no stream to a next hop.
pub(crate) enum NoStream {
    /// None accepts a connection.
    Failed(AnswerReason),
    /// There is no next hop: what to answer.
    Answer(Answer),
}
