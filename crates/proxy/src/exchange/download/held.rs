//! The wait for what a response invalidates: the client gets none of the response before, and the
//! next hop is to be free meanwhile.
//!
//! Members of a cluster may take long, and a next hop has few connections. So the content is
//! received while they are waited for, up to a limit; once it is whole the connection is given back
//! and the response waits alone. A longer response keeps its connection, as one does whose client
//! is slow.

use crate::cache::settling::Settling;
use crate::exchange::download::content::RelayPlan;
use crate::exchange::download::{Download, ResponseOutcome, Step};
use crate::exchange::respond::{self, Content, SendEnd};
use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::Sending;
use crate::fetch::held_content::HeldContent;
use crate::log::record::End;
use crate::log::report;
use crate::log::request_log::ContentSource;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_measure::Metric;
use weir_net::http::{ClientStream, ContentForm, Disconnect};

/// A whole response that is sent once what it invalidates is settled.
pub(crate) struct HeldResponse {
    status: u16,
    head: Vec<u8>,
    form: ContentForm,
    held: HeldContent,
    settling: Settling,
}

/// What ends the wait, or the receiving meanwhile.
enum HoldEnd {
    Settled,
    /// All content was received.
    Whole,
    ClientLeft,
}

impl Download<'_, '_> {
    /// Waits until `settling` is over, and receives content meanwhile.
    pub(super) async fn hold(&mut self, settling: Settling, mut plan: RelayPlan) -> Step {
        let mut settling = settling;
        let exchange = &self.parties.exchange;
        let is_held = self.parties.to_client.is_some()
            && self.parties.sending.get() == Sending::Done
            && exchange.modules.is_none()
            && plan.store_writer.is_none();
        let mut held =
            is_held.then(|| HeldContent::new(self.parties.worker, exchange.read_ahead().bytes()));
        let mut is_watched = true;
        loop {
            let end = poll_fn(|cx| self.poll_hold(cx, &mut settling, &mut held, is_watched)).await;
            match (end, held.take()) {
                (HoldEnd::Settled, received) => {
                    self.parties.deadline.moved();
                    plan.held = received.filter(HeldContent::is_begun).map(Box::new);
                    return Step::Relay(plan);
                }
                (HoldEnd::Whole, Some(held)) => {
                    let (status, head, form) = (plan.status, plan.head, plan.form);
                    let response = HeldResponse {
                        status,
                        head,
                        form,
                        held,
                        settling,
                    };
                    return Step::Final(ResponseOutcome::Held(Box::new(response)));
                }
                (_, received) => {
                    held = received;
                    settling = match settling.abandon() {
                        Ok(()) => return Step::Final(ResponseOutcome::ClientLeft),
                        Err(settling) => settling,
                    };
                    is_watched = false;
                }
            }
        }
    }

    fn poll_hold(
        &mut self,
        cx: &mut Context<'_>,
        settling: &mut Settling,
        held: &mut Option<HeldContent>,
        is_watched: bool,
    ) -> Poll<HoldEnd> {
        if settling.poll(cx).is_ready() {
            return Poll::Ready(HoldEnd::Settled);
        }
        let from_hop = &mut self.parties.from_hop;
        if let Some(held) = held {
            held.receive(from_hop, self.parties.worker, cx);
            // trailers are sent by a relay alone, and few responses have some
            if held.is_whole() && from_hop.trailers().is_empty() {
                return Poll::Ready(HoldEnd::Whole);
            }
        }
        match &mut self.disconnect {
            Some(disconnect) if is_watched => disconnect.poll(cx).map(|()| HoldEnd::ClientLeft),
            _ => Poll::Pending,
        }
    }
}

impl HeldResponse {
    /// Sends it when it may be sent.
    pub(crate) async fn send(self, stream: &mut ClientStream<'_>, exchange: &mut RequestState) {
        let worker = Rc::clone(&exchange.worker);
        let half_closed = exchange.settings.config.fetch.half_closed.as_duration();
        let mut disconnect = stream.response.disconnect(half_closed);
        let Self {
            status,
            head,
            form,
            held,
            settling,
        } = self;
        exchange.log.handed_on(held.with_head_bytes);
        let is_awaited = wait(settling, &mut disconnect).await;
        let (sent, end) = if is_awaited {
            let begun =
                respond::begin_sent(&mut stream.response, exchange, status, head, form).await;
            if let Err(refusal) = begun {
                return respond::refuse(stream, exchange, &refusal).await;
            }
            let content = match form {
                ContentForm::None => &[][..],
                _ => &held.content,
            };
            respond::send(stream, exchange, Content::Bytes(content)).await
        } else {
            worker.counters().inc(Metric::ClientAborts);
            (0, SendEnd::ClientLeft)
        };
        let wasted = (held.content.len() as u64).saturating_sub(sent);
        let log = &mut exchange.log;
        log.relayed(held.read_bytes, sent, wasted, held.overhead_bytes);
        log.sent_content(sent, ContentSource::NextHop);
        match end {
            SendEnd::Whole => log.ended(End::Whole),
            SendEnd::ClientLeft | SendEnd::Unreadable => {
                log.broke_off(End::ClientLeft, "client-left");
            }
        }
        report::count_storing(worker.counters(), exchange.tx.verdict());
    }
}

/// Waits until `settling` is over; `false` if the client has gone, and the wait goes on without.
async fn wait(mut settling: Settling, disconnect: &mut Disconnect<'_>) -> bool {
    let is_awaited = poll_fn(|cx| {
        if settling.poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        disconnect.poll(cx).map(|()| false)
    });
    if is_awaited.await {
        return true;
    }
    match settling.abandon() {
        Ok(()) => false,
        // too many go on by themselves
        Err(settling) => {
            settling.over().await;
            true
        }
    }
}
