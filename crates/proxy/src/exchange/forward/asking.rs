//! A request that is sent to one next hop after the other, until there is a response.

use super::{AS_SENT, AnswerResult, answer, fail, no_next_hop, note_next_hop, release_whole};
use crate::exchange::attempts::{Attempts, Failed, NoStream, PassResult};
use crate::exchange::download::{HopFailure, ResponseOutcome};
use crate::exchange::heads::outbound;
use crate::exchange::module_calls;
use crate::exchange::next_hop::NextHop;
use crate::exchange::respond;
use crate::exchange::state::RequestState;
use crate::request::answer::Answer;
use crate::worker::in_box;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::http::{ClientStream, NextHopStream};
use weir_policy::Forwarding;
use weir_store::StoredResponse;

/// A request on its way to one next hop after the other.
pub(super) struct Asking {
    pub(super) attempts: Attempts,
    pub(super) forwarding: Forwarding,
    /// What the response may validate or complete.
    pub(super) stored: Option<Arc<StoredResponse>>,
}

impl Asking {
    /// A request that is about to be sent to its first next hop.
    ///
    /// # Errors
    ///
    /// There is none: what to answer.
    pub(super) fn begin(
        exchange: &mut RequestState,
        forwarding: Forwarding,
        stored: Option<Arc<StoredResponse>>,
    ) -> Result<Self, Box<Answer>> {
        Ok(Self {
            attempts: Attempts::new(NextHop::of(exchange)?),
            forwarding,
            stored,
        })
    }

    /// Connects, and makes the head of the request; `None`: it is to be done again. Breaks if an
    /// answer was sent in the place of that.
    pub(super) async fn prepare(
        &mut self,
        stream: &mut ClientStream<'_>,
        exchange: &mut RequestState,
    ) -> ControlFlow<(), Option<(NextHopStream, Vec<u8>)>> {
        let worker = Rc::clone(&exchange.worker);
        match self.attempts.connect(exchange, &worker).await {
            Ok(hop) => self.make_head(stream, exchange, hop).await,
            Err(no_stream) => {
                Box::pin(self.without_stream(stream, exchange, no_stream)).await;
                ControlFlow::Break(())
            }
        }
    }

    /// Makes the head of the request for `hop`. What that needs is not held while it is connected.
    async fn make_head(
        &mut self,
        stream: &mut ClientStream<'_>,
        exchange: &mut RequestState,
        mut hop: NextHopStream,
    ) -> ControlFlow<(), Option<(NextHopStream, Vec<u8>)>> {
        let worker = Rc::clone(&exchange.worker);
        note_next_hop(stream, exchange, &mut hop);
        if exchange.is_hooked() {
            exchange.run_hooks().await;
        }
        if !exchange.expect(&worker) && self.stored.take().is_some() {
            self.forwarding = exchange.forget_chosen(&worker);
        }
        match self.attempts.is_held_back(exchange, &worker) {
            Ok(false) => {}
            Ok(true) => {
                hop.release_unused(worker.net());
                return ControlFlow::Continue(None);
            }
            Err(answer) => {
                no_next_hop(stream, exchange, answer).await;
                return ControlFlow::Break(());
            }
        }
        let head = outbound::request_head(exchange, self.forwarding, self.stored.as_deref());
        if exchange.modules.is_none() {
            return ControlFlow::Continue(Some((hop, head)));
        }
        match Box::pin(module_calls::request_sent(exchange, head)).await {
            Ok(head) => ControlFlow::Continue(Some((hop, head))),
            Err(answer) => {
                hop.release_unused(worker.net());
                Box::pin(respond::module_answer(stream, exchange, answer)).await;
                ControlFlow::Break(())
            }
        }
    }

    /// Answers a request for which there is no connection.
    async fn without_stream(
        &mut self,
        stream: &mut ClientStream<'_>,
        exchange: &mut RequestState,
        no_stream: NoStream,
    ) {
        match no_stream {
            NoStream::Failed(reason) => fail(stream, exchange, self.stored.take(), reason).await,
            NoStream::Answer(answer) => no_next_hop(stream, exchange, answer).await,
        }
    }

    /// What follows from `outcome`: a response to the client, or another request.
    pub(super) async fn follow_up(
        &mut self,
        stream: &mut ClientStream<'_>,
        exchange: &mut RequestState,
        hop: NextHopStream,
        outcome: ResponseOutcome,
    ) -> ControlFlow<()> {
        match outcome {
            ResponseOutcome::ForwardAgain => {
                drop(hop);
                // the next request is another one than the store expects the response to
                exchange.expected = None;
                exchange.missing = None;
                self.forwarding = AS_SENT;
            }
            ResponseOutcome::Failed(failure) => {
                return Box::pin(self.after_failure(stream, exchange, hop, failure)).await;
            }
            ResponseOutcome::Declined(why) => {
                release_whole(exchange, hop);
                let worker = Rc::clone(&exchange.worker);
                let declined = Failed::Declined(why);
                let passed = self.attempts.pass_on(exchange, &worker, declined);
                if let PassResult::Answer(answer) = passed {
                    no_next_hop(stream, exchange, answer).await;
                    return ControlFlow::Break(());
                }
            }
            _ => {
                let stored = self.stored.take();
                let answered = in_box::pinned(|| answer(stream, exchange, hop, outcome, stored));
                match answered.await {
                    AnswerResult::Ended => return ControlFlow::Break(()),
                    AnswerResult::NotReadable => self.forwarding = AS_SENT,
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The next hop gave no usable response: the request is repeated there, or sent to the next
    /// one.
    async fn after_failure(
        &mut self,
        stream: &mut ClientStream<'_>,
        exchange: &mut RequestState,
        hop: NextHopStream,
        failure: HopFailure,
    ) -> ControlFlow<()> {
        let worker = Rc::clone(&exchange.worker);
        let (reason, repeats) = match failure {
            HopFailure::Unanswered(reason) => {
                let content = Some(&mut stream.content);
                let repeats = self.attempts.repeat(exchange, &worker, &hop, content);
                (reason, repeats)
            }
            HopFailure::Broken(reason) => (reason, false),
        };
        drop(hop);
        if repeats {
            let bytes = stream.content.received_bytes();
            exchange.log.request_content_again(bytes);
            return ControlFlow::Continue(());
        }
        let sent = Failed::sent(&reason);
        match self.attempts.pass_on(exchange, &worker, sent) {
            PassResult::Next => ControlFlow::Continue(()),
            PassResult::Answer(answer) => {
                no_next_hop(stream, exchange, answer).await;
                ControlFlow::Break(())
            }
            PassResult::NoOther => {
                fail(stream, exchange, self.stored.take(), reason).await;
                ControlFlow::Break(())
            }
        }
    }
}
