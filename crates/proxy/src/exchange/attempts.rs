//! The attempts to send one request: which next hop after which, and whether the request is sent
//! again.

use crate::exchange::next_hop::NextHop;
use crate::exchange::state::RequestState;
use crate::request::answer::AnswerReason;
use crate::worker::core::Worker;
use std::sync::Arc;
use weir_measure::Metric;
use weir_net::http::NextHopStream;
use weir_net::next_hops::ConnectFailure;
use weir_policy::now::Tick;
use weir_policy::retry::{BodySent, FailedAttempt, HopAttempts, NoConnection, may_retry};
use weir_policy::route::Place;
use weir_semantics::ProxyError;

/// The attempts to send one request: to the next hops of its route, and once more where that is
/// safe.
pub(crate) struct Attempts {
    next_hop: NextHop,
    is_retry: bool,
    /// Nodes of the cluster that did not answer.
    failed_peers: Vec<Place>,
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
    ) -> Result<NextHopStream, ConnectFailure> {
        let rules = &Arc::clone(&exchange.settings).connections;
        let mut attempts = HopAttempts::first(self.next_hop.route_hop());
        loop {
            let destination = &self.next_hop.destination;
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
            if self.pass_peer(exchange, worker, None) {
                attempts = HopAttempts::first(self.next_hop.route_hop());
                continue;
            }
            let lack = match failure.error {
                ProxyError::ConnectionLimitReached => NoConnection::Ours,
                _ => NoConnection::NextHop,
            };
            match attempts.next(lack, || NextHop::another(exchange, worker)) {
                Ok(another) => self.next_hop = another,
                Err(_) => return Err(failure),
            }
        }
    }

    /// Goes on to the next node, or the origin, after a node did not answer as a member does;
    /// `false` if it was none that was asked.
    ///
    /// What other nodes are asked for is safe to be asked for again, and has no content.
    pub(crate) fn pass_peer(
        &mut self,
        exchange: &RequestState,
        worker: &Worker,
        reason: Option<&AnswerReason>,
    ) -> bool {
        let Some(peer) = self.next_hop.peer() else {
            return false;
        };
        let is_silent =
            reason.is_some_and(|reason| reason.error == ProxyError::ConnectionReadTimeout);
        peer.failed(worker.now(), is_silent.then_some(self.connected));
        worker.counters().inc(Metric::PeersFailed);
        self.failed_peers.push(peer.place());
        let Ok(next) = NextHop::after(exchange, &self.failed_peers) else {
            return false;
        };
        self.next_hop = next;
        self.is_retry = false;
        true
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
