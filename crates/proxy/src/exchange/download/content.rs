//! Relays the content of the response, and enters the result into the log.

use crate::exchange::download::{Download, Parties, ResponseOutcome};
use crate::exchange::heads::inbound;
use crate::exchange::respond;
use crate::exchange::response_outcome::cut;
use crate::exchange::state::RequestState;
use crate::fetch::arrival::Response;
use crate::fetch::held_content::HeldContent;
use crate::fetch::relay::{LINK_SPENT, Relay, RelayEnd, Terms};
use crate::fetch::store_writer::StoreWriter;
use crate::log::record::End;
use crate::log::report;
use crate::log::request_log::ContentSource;
use crate::modules::module_answer::ModuleAnswer;
use crate::worker::core::Worker;
use weir_measure::Metric;
use weir_net::http::ContentForm;
use weir_policy::Event;
use weir_semantics::Method;
use weir_wire::BodyLength;

pub(super) struct RelayPlan {
    pub(super) status: u16,
    pub(super) head: Vec<u8>,
    body: BodyLength,
    pub(super) form: ContentForm,
    pub(super) store_writer: Option<Box<StoreWriter>>,
    /// Content that was received while the response had to wait.
    pub(super) held: Option<Box<HeldContent>>,
}

impl Download<'_, '_> {
    /// Sends the head and relays the content. The plan is taken apart before there is a future,
    /// which so holds it once.
    pub(super) fn relay(&mut self, plan: RelayPlan) -> impl Future<Output = ResponseOutcome> {
        let RelayPlan {
            status,
            head,
            body,
            form,
            store_writer,
            held,
        } = plan;
        async move {
            let Parties {
                to_client,
                exchange,
                ..
            } = &mut self.parties;
            if let Some(client) = to_client
                && let Err(refusal) =
                    respond::begin_sent(client, exchange, status, head, form).await
            {
                let answer = Box::new(ModuleAnswer::Refuse(refusal));
                return ResponseOutcome::Module(answer);
            }
            self.relay_content((body, form), store_writer, held).await
        }
    }

    async fn relay_content(
        &mut self,
        content: (BodyLength, ContentForm),
        store_writer: Option<Box<StoreWriter>>,
        held: Option<Box<HeldContent>>,
    ) -> ResponseOutcome {
        let Parties {
            sending,
            from_hop,
            to_client,
            exchange,
            worker,
            deadline,
            ..
        } = &mut self.parties;
        let mut relay = Relay::new(
            worker,
            (sending, deadline),
            Terms::of(exchange),
            content,
            store_writer,
            exchange.log.content_times(),
        );
        let held_bytes = held.as_ref().map(|held| held.with_head_bytes);
        let buffered_bytes = from_hop.buffered_bytes() as u64;
        exchange.log.handed_on(held_bytes.unwrap_or(buffered_bytes));
        relay.begin_with(held);
        let mut ended = relay.run(from_hop, to_client.as_deref_mut()).await;
        let is_taken_back = matches!(ended.end, RelayEnd::Cut(_))
            && match to_client {
                Some(client) => client.retract(),
                None => ended.body_bytes == 0,
            };
        if self.has_client_closed && ended.end == RelayEnd::Whole {
            // it was received for the store alone
            ended.end = RelayEnd::ClientLeft;
        }
        settle(exchange, worker, &ended, is_taken_back);
        if let RelayEnd::Cut(word) = ended.end
            && is_taken_back
        {
            let spent = from_hop.link_spent().filter(|_| word == LINK_SPENT);
            return ResponseOutcome::Failed(cut(spent, &word));
        }
        ResponseOutcome::Relayed
    }
}

pub(super) fn relay_plan(
    exchange: &RequestState,
    response: &Response<'_>,
    store_writer: Option<Box<StoreWriter>>,
) -> RelayPlan {
    let Response { head, body, .. } = *response;
    let form = ContentForm::of(exchange.request.method, head.status, body);
    RelayPlan {
        status: head.status,
        head: inbound::response_head(exchange, head, form),
        body,
        form,
        store_writer,
        held: None,
    }
}

/// Enters the bytes of a relay into the log, and whether the response was stored into the verdict.
/// If the head was taken back, the proxy sends a response of its own.
fn settle(
    exchange: &mut RequestState,
    worker: &Worker,
    ended: &crate::fetch::relay::RelayResult,
    is_taken_back: bool,
) {
    let log = &mut exchange.log;
    log.content_left(ended.content_times.clone());
    log.relayed(
        ended.from_hop_bytes,
        ended.delivered_bytes,
        ended.body_bytes - ended.delivered_bytes,
        ended.overhead_bytes,
    );
    log.sent_content(ended.delivered_bytes, ContentSource::NextHop);
    if let Some(refusal) = ended.refused {
        exchange.tell(worker, Event::NotAdmitted(refusal));
    }
    match ended.end {
        RelayEnd::Whole => exchange.log.ended(End::Whole),
        RelayEnd::Cut(word) => {
            exchange.log.broke_off(End::NextHopCut, word);
            exchange.tell(worker, Event::Incomplete);
            // an answer of ours is counted there, and the end of a quota is no error of a next hop
            if !is_taken_back && word != LINK_SPENT {
                worker.counters().inc(Metric::NextHopErrors);
            }
        }
        RelayEnd::Ours => {
            exchange.log.broke_off(End::Ours, "module-failed");
            exchange.tell(worker, Event::Incomplete);
        }
        RelayEnd::ClientLeft => {
            exchange.log.broke_off(End::ClientLeft, "client-left");
            if !ended.stored {
                exchange.tell(worker, Event::Incomplete);
            }
            if !exchange.background {
                worker.counters().inc(Metric::ClientAborts);
            }
        }
    }
    if exchange.request.method == Method::Head {
        report::count_merged(worker.counters(), exchange.tx.verdict());
    } else {
        report::count_storing(worker.counters(), exchange.tx.verdict());
    }
}
