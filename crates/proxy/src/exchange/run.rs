//! The way of a request that needs more than one pass: its plan, step by step, until it is
//! reported.

use crate::cache::chosen::ChosenResponse;
use crate::cache::disk_lookup;
use crate::cache::peer_purges;
use crate::cache::refresh;
use crate::client::digest_answer;
use crate::client::fast;
use crate::client::hand_off;
use crate::exchange::connect;
use crate::exchange::forward;
use crate::exchange::forward::instead_of_read::{self, InMemory};
use crate::exchange::module_calls;
use crate::exchange::next_hop::{NextHop, PeerSource};
use crate::exchange::respond::{self, respond};
use crate::exchange::state::{MemberMessage, Plan, RequestState};
use crate::exchange::stored::{Ready, needs_read, ready, send_stored};
use crate::log::record::End;
use crate::log::report::{self, FinishedRequest};
use crate::log::served::Interruption;
use crate::worker::core::Worker;
use std::pin::Pin;
use std::sync::Arc;
use weir_measure::Metric;
use weir_net::http::ClientStream;
use weir_policy::{Missing, Phase, Serving};
use weir_semantics::Form;
use weir_store::{ExpectedResponse, StoredResponse};

/// Carries out an exchange; `true` if the client's connection may be used further.
pub(crate) async fn run(stream: &mut ClientStream<'_>, exchange: Box<RequestState>) -> bool {
    let worker = std::rc::Rc::clone(&exchange.worker);
    // its parts are not borrowed for long: the future would hold the references, too
    let mut it = UnderWay::begin(stream, exchange);
    let cluster = it.exchange.settings.cluster();
    // only a node of a cluster asks others, and the look that precedes it is a call to the kernel
    let mut may_ask = cluster.is_some();
    let _serving = cluster.map(|cluster| cluster.state().serve());
    let mut plan = std::mem::replace(&mut it.exchange.plan, Plan::Connect);
    loop {
        if it.exchange.is_hooked() {
            it.exchange.run_hooks().await;
        }
        match plan {
            // boxed, as few requests need them: a future is as large as its largest part
            Plan::Judge => plan = Box::pin(fast::judge(it.stream, &mut it.exchange)).await,
            Plan::DiskLookup(missing) => {
                match look_up(it.stream, &mut it.exchange, missing).await {
                    // another node was asked, if one was to be
                    Some(found) => (plan, may_ask) = (found, false),
                    None => break,
                }
            }
            Plan::Serve {
                mut response,
                serving,
                refresh,
            } => {
                let asks = may_ask && refresh.is_none() && needs_read(&it.exchange, &response);
                if asks && asked_instead(it.stream, &mut it.exchange, InMemory::Head).await {
                    break;
                }
                let how = (serving, refresh);
                let served = match ready(it.stream, &it.exchange, &response).await {
                    Ok(ready) => Box::pin(serve(
                        it.stream,
                        &mut it.exchange,
                        &mut response,
                        how,
                        ready,
                    )),
                    Err(_) => {
                        plan = disk_lookup::unreadable(&mut it.exchange, &response);
                        continue;
                    }
                };
                break served.await;
            }
            Plan::Forward { forwarding, stored } => {
                break forward::run(it.stream, &mut it.exchange, forwarding, stored).await;
            }
            Plan::Connect => break Box::pin(connect::run(it.stream, &mut it.exchange)).await,
            Plan::Answer(_) if PeerSource::may_have(&it.exchange) => {
                let forwarding = it.exchange.tx.ask_another_cache(worker.now());
                let stored = None;
                plan = Plan::Forward { forwarding, stored };
            }
            Plan::Answer(answer) => {
                break Box::pin(respond(it.stream, &mut it.exchange, *answer)).await;
            }
            Plan::Member(message) => {
                break Box::pin(member_message(it.stream, &mut it.exchange, message)).await;
            }
            Plan::Module(response) => {
                break Box::pin(respond::local(it.stream, &mut it.exchange, *response)).await;
            }
        }
    }
    finish(&mut it).await
}

/// Ends an exchange that was answered, and reports it.
async fn finish(it: &mut UnderWay<'_, '_>) -> bool {
    let UnderWay {
        stream,
        exchange,
        is_reported,
    } = it;
    send_content_answers(stream, exchange).await;
    if !stream.response.is_complete() {
        stream.response.abort();
    }
    exchange.log.sent(stream.response.sent_bytes());
    if exchange.log.is_whole() {
        exchange.log.reach(Phase::ResponseContent);
        if exchange.is_hooked() {
            exchange.run_hooks().await;
        }
    }
    let alive = stream.is_persistent() && !exchange.is_last();
    if exchange.modules.is_some() {
        Box::pin(module_calls::done(exchange)).await;
    }
    exchange.log.reach(Phase::Done);
    *is_reported = true;
    report(stream, exchange, alive);
    if exchange.is_hooked() {
        exchange.run_hooks().await;
    }
    alive
}

/// What counts as under way until this is dropped, and is reported at its end, whatever ends it.
struct UnderWay<'s, 'c> {
    stream: &'s mut ClientStream<'c>,
    exchange: Box<RequestState>,
    is_reported: bool,
}

impl<'s, 'c> UnderWay<'s, 'c> {
    fn begin(stream: &'s mut ClientStream<'c>, exchange: Box<RequestState>) -> Self {
        exchange.worker.counters().inc(Metric::RequestsInFlight);
        Self {
            stream,
            exchange,
            is_reported: false,
        }
    }
}

impl Drop for UnderWay<'_, '_> {
    /// Unless it was reported, the end of a drain cuts it.
    fn drop(&mut self) {
        let exchange = &mut self.exchange;
        exchange.worker.counters().dec(Metric::RequestsInFlight);
        if !self.is_reported && !std::thread::panicking() {
            Interruption::Drained.enter(&mut exchange.log);
            exchange.log.sent(self.stream.response.sent_bytes());
            report(self.stream, exchange, false);
        }
    }
}

/// How a request is answered of which memory has no response, and the disk may have one; `None`: it
/// was, by another node in place of the disk.
async fn look_up(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    missing: Missing,
) -> Option<Plan> {
    let in_memory = InMemory::Nothing(missing);
    if asked_instead(stream, exchange, in_memory).await {
        return None;
    }
    let plan = Box::pin(disk_lookup::run(exchange, missing)).await;
    exchange.log.reach(Phase::Choose);
    Some(plan)
}

/// Whether another node has answered a request in place of the disk, which is busy.
async fn asked_instead(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    in_memory: InMemory,
) -> bool {
    match ask_instead(stream, exchange, in_memory) {
        Some(asked) => asked.await,
        None => false,
    }
}

/// Asks another node in place of the disk, if that is busy.
fn ask_instead<'a>(
    stream: &'a mut ClientStream<'_>,
    exchange: &'a mut RequestState,
    in_memory: InMemory,
) -> Option<Pin<Box<impl Future<Output = bool>>>> {
    let next_hop = NextHop::instead_of_read(exchange)?;
    let asked = instead_of_read::run(stream, exchange, next_hop, in_memory);
    Some(Box::pin(asked))
}

/// Carries out what a message of another node says.
async fn member_message(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    message: MemberMessage,
) {
    match message {
        MemberMessage::Purges => peer_purges::run(stream, exchange).await,
        MemberMessage::HandOff(step) => hand_off::run(stream, exchange, step).await,
        MemberMessage::Digest(known) => digest_answer::run(stream, exchange, known).await,
    }
}

/// Sends what modules of the content have put in its place.
async fn send_content_answers(stream: &mut ClientStream<'_>, exchange: &mut RequestState) {
    // each time fewer modules see what is sent
    while let Some(answer) = exchange.content_answer() {
        if !stream.response.retract() {
            exchange.log.broke_off(End::Ours, answer.as_str());
            break;
        }
        Box::pin(respond::module_answer(stream, exchange, answer)).await;
    }
}

fn report(stream: &ClientStream<'_>, exchange: &RequestState, alive: bool) {
    let RequestState {
        worker,
        client,
        request,
        settings,
        log,
        tx,
        ..
    } = exchange;
    let facts = client.facts();
    let verdict = tx.verdict();
    let total_us = log.elapsed_us();
    let sent_bytes = stream.response.sent_bytes();
    worker.counters().add(Metric::BytesToClients, sent_bytes);
    report::count(worker.counters(), &facts, verdict, log);
    report::count_phases(worker.counters(), log.reached());
    exchange.count_heavy_hitters();
    let sinks = worker.log_sinks();
    let finished = FinishedRequest {
        settings,
        client: facts,
        line: None,
        // they are in the log
        heads: Some((&[], &[])),
        verdict,
        log,
        content_type: log.content_type(),
        total_us,
        request_content_bytes: (!request.has_content()).then_some(0),
        lacks_host: request.form == Form::Origin && !request.is_http11(),
        is_persistent: alive,
    };
    if sinks.access_log.is_on() {
        let sent = exchange.logged.as_deref().unwrap_or(request);
        sent.with_line(|line| {
            let line = Some(line);
            sinks.report(&FinishedRequest { line, ..finished });
        });
    } else {
        sinks.report(&finished);
    }
}

/// A request counts as under way until this is dropped.
pub(crate) struct InFlight<'a>(&'a Worker);

impl<'a> InFlight<'a> {
    pub(crate) fn begin(worker: &'a Worker) -> Self {
        worker.counters().inc(Metric::RequestsInFlight);
        Self(worker)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.counters().dec(Metric::RequestsInFlight);
    }
}

/// Sends a stored response that was found, and validates it in the background if there is a
/// `refresh`.
fn serve(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    response: &mut Arc<StoredResponse>,
    (serving, refresh): (Serving, Option<Box<ExpectedResponse>>),
    mut ready: Ready,
) -> impl Future<Output = ()> {
    if refresh.is_none() {
        ready.move_to_file(stream, exchange, response);
    }
    // a hit counts as a request for it, too
    exchange.worker.shared.popularity.note(exchange.key);
    if let Some(expected) = refresh {
        let chosen = ChosenResponse {
            response: Arc::clone(response),
            expected,
        };
        refresh::spawn(exchange, chosen);
    }
    send_stored(stream, exchange, response, serving, ready)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::size_of_exchange;
    use crate::exchange::follow;

    /// The size of the future that `make` would make.
    fn size_of_made<F>(_: impl FnOnce() -> F) -> usize {
        size_of::<F>()
    }

    /// Stands for an argument: it is never made.
    fn any<T>() -> T {
        unreachable!("nothing is called")
    }

    /// What a request holds while its client reads nothing, or its next hop sends nothing: a client
    /// may have 100 of them on one connection.
    #[test]
    fn request_under_way_holds_no_more_than_it_needs() {
        let state = size_of::<RequestState>();
        let exchange = size_of_exchange();
        let served = size_of_made(|| serve(any(), any(), any(), any(), any()));
        let forward = size_of_made(|| forward::forward(any(), any(), any(), any()));
        let awaiting = size_of_made(|| follow::wait(any(), any(), any(), any()));
        let answered = size_of_made(|| forward::read_fetch(any(), any(), any(), any()));
        let sizes = [state, exchange, served, forward, awaiting, answered];
        let most = [752, 752, 408, 1232, 400, 872];
        let holds = sizes.iter().zip(most).all(|(size, most)| *size <= most);
        assert!(holds, "{sizes:?} bytes");
    }
}
