//! Receives the response of the next hop: interim responses, the final head, then its content.
//!
//! The next hop is trusted no more than the client: bytes that are not unambiguously one response
//! to this request are refused. Deviations that the RFCs say how to read are accepted
//! (`wire::parse_response_leniently`), and the head is serialised again for the client. In both
//! cases the connection is not used again.

mod content;
mod decision;
mod head;
mod held;
mod source;

use crate::cache::invalidate::Invalidation;
use crate::cache::settling::Settling;
use crate::exchange::download::content::RelayPlan;
pub(crate) use crate::exchange::download::decision::login_refused;
pub(crate) use crate::exchange::download::held::HeldResponse;
pub(crate) use crate::exchange::response_outcome::{
    FetchStart, HopFailure, ResponseOutcome, broken,
};
use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::Sending;
use crate::fetch::collapse::Leader;
use crate::worker::core::Worker;
use crate::worker::in_box;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::Deadline;
use weir_net::http::{Disconnect, FormerHead, ReceivedBytes, ResponseReceiver, ResponseSender};
use weir_policy::fetch::AbortPolicy;
use weir_store::StoredResponse;

/// The two sides of the exchange, and what belongs to it.
pub(crate) struct Parties<'a, 'c> {
    pub(crate) sending: &'a Cell<Sending>,
    pub(crate) from_hop: ResponseReceiver<'a>,
    /// The client, if there is one.
    pub(crate) to_client: Option<&'a mut ResponseSender<'c>>,
    pub(crate) exchange: &'a mut RequestState,
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) deadline: &'a mut Deadline,
    pub(crate) stored: Option<&'a Arc<StoredResponse>>,
}

/// Receives the response. What that needs is made before the future is, which so holds it once.
pub(crate) fn run<'a, 'c>(
    parties: Parties<'a, 'c>,
) -> impl Future<Output = ResponseOutcome> + use<'a, 'c> {
    let config = &parties.exchange.settings.config;
    let half_closed = config.fetch.half_closed.as_duration();
    let mut download = Download {
        interim: 0,
        disconnect: parties
            .to_client
            .as_ref()
            .map(|client| client.disconnect(half_closed)),
        invalidated: Invalidation::default(),
        former: None,
        decided: None,
        has_client_closed: false,
        parties,
    };
    async move { download.run().await }
}

struct Download<'a, 'c> {
    parties: Parties<'a, 'c>,
    interim: u32,
    disconnect: Option<Disconnect<'c>>,
    /// What the response invalidates: it is passed on once that is settled.
    invalidated: Invalidation,
    /// The head as it was before modules changed it; `None` until they have seen it.
    former: Option<FormerHead>,
    /// The head as modules have decided on it by the content, some of which was received.
    decided: Option<ReceivedBytes>,
    /// The client had closed its connection when an interim response was sent.
    has_client_closed: bool,
}

enum Step {
    Interim { head: Vec<u8> },
    Final(ResponseOutcome),
    Relay(RelayPlan),
}

/// The result of forwarding an interim response.
#[derive(PartialEq, Eq)]
enum InterimResult {
    Sent,
    /// The client has closed its connection.
    ClientClosed,
    /// The client took only some of it, in all the time it had.
    Stuck,
}

impl Download<'_, '_> {
    async fn run(&mut self) -> ResponseOutcome {
        loop {
            let step = self.next_head().await;
            let step = if self.invalidated.is_none() {
                step
            } else {
                // boxed, as few responses invalidate anything
                Box::pin(self.settle(step)).await
            };
            let step = match step {
                Ok(step) => step,
                Err(failure) => return ResponseOutcome::Failed(failure),
            };
            match step {
                Step::Interim { head } => {
                    let is_continue = head.starts_with(b"HTTP/1.1 100 ");
                    if is_continue && self.parties.sending.get() == Sending::Expected {
                        // it is the client's turn
                        self.parties.sending.set(Sending::NotBegun);
                    }
                    let passed = self.pass_interim(&head).await;
                    if passed == InterimResult::Stuck
                        || passed == InterimResult::ClientClosed && !self.continues_without_client()
                    {
                        return ResponseOutcome::ClientLeft;
                    }
                }
                Step::Final(outcome) => return outcome,
                // boxed: a response that is awaited is not to be as large as one that is relayed
                Step::Relay(plan) => return in_box::pinned(|| self.relay(plan)).await,
            }
        }
    }

    /// Whether the fetch continues though the client has disconnected: other requests wait for the
    /// response, or it is to be finished for the store.
    fn continues_without_client(&self) -> bool {
        let exchange = &self.parties.exchange;
        let is_awaited = exchange.leader.as_ref().is_some_and(Leader::is_awaited);
        is_awaited || exchange.abort() == AbortPolicy::Finish
    }

    /// Waits until what the response invalidates is settled.
    async fn settle(&mut self, step: Result<Step, HopFailure>) -> Result<Step, HopFailure> {
        let invalidated = std::mem::take(&mut self.invalidated);
        let Parties {
            worker, exchange, ..
        } = &self.parties;
        let settling = Settling::new(worker, exchange, invalidated);
        match step {
            Ok(Step::Relay(plan)) => Ok(self.hold(settling, plan).await),
            other => {
                settling.over().await;
                other
            }
        }
    }

    /// Passes an interim response on.
    async fn pass_interim(&mut self, head: &[u8]) -> InterimResult {
        let Some(client) = &mut self.parties.to_client else {
            return InterimResult::Sent;
        };
        if head.is_empty() {
            return InterimResult::Sent;
        }
        client.push_interim(head);
        let silence = {
            let config = &self.parties.exchange.settings.config;
            config.limits.client_silence.as_duration()
        };
        let sending = poll_fn(|cx| client.poll_send(cx, &[], None));
        match tokio::time::timeout(silence, sending).await {
            Ok(Ok(_)) => InterimResult::Sent,
            Ok(Err(_)) => {
                // nothing more can be sent to it
                self.parties.to_client = None;
                self.has_client_closed = true;
                InterimResult::ClientClosed
            }
            Err(_) => InterimResult::Stuck,
        }
    }
}
