//! Sending a stored response, whatever its size.

use crate::cache::disk_lookup;
use crate::client::connection::Client;
use crate::exchange::respond::{SendEnd, respond, send_all, settle_content};
use crate::exchange::state::RequestState;
use crate::fetch::continuation;
use crate::log::record::End;
use crate::log::request_log::ContentSource;
use crate::request::answer::Answer;
use crate::send::disk_read::ContentReadError;
use crate::send::heads::{self, ServedForm};
use crate::send::outgoing::{Outgoing, StoredPiece};
use std::sync::Arc;
use weir_measure::Metric;
use weir_policy::Serving;
use weir_semantics::Timestamp;
use weir_store::StoredResponse;

/// Finds out whether a stored response can be sent, while nothing of it was promised.
pub(crate) async fn ready(
    client: &Client,
    exchange: &RequestState,
    response: &Arc<StoredResponse>,
) -> Result<Ready, ContentReadError> {
    let mut ready = Ready::of(exchange, response, client.worker.now().wall);
    ready.prepare().await?;
    Ok(ready)
}

/// Sends a stored response, whatever its size; `true` if the connection may go on. There is nothing
/// else to send: if it cannot be read, that is said.
pub(crate) async fn serve(
    client: &mut Client,
    exchange: &mut RequestState,
    response: &Arc<StoredResponse>,
    serving: Serving,
) -> bool {
    match ready(client, exchange, response).await {
        Ok(ready) => send_stored(client, exchange, response, serving, ready).await,
        Err(read_error) => {
            disk_lookup::forget(&client.worker, exchange, response);
            respond(client, exchange, Answer::unreadable(read_error)).await
        }
    }
}

/// A stored response about to be sent.
pub(crate) struct Ready {
    form: ServedForm,
    /// Its content, if some is on disk: the first bytes of it are read before anything is promised.
    piece: Option<StoredPiece>,
}

impl Ready {
    fn of(exchange: &RequestState, response: &Arc<StoredResponse>, now: Timestamp) -> Self {
        let form = exchange.form_of(response, now);
        let is_on_disk = !response.body.is_in_memory();
        let (at, end) = form.content(response);
        let piece = is_on_disk.then(|| StoredPiece::new(response, at, end));
        Self { form, piece }
    }

    async fn prepare(&mut self) -> Result<(), ContentReadError> {
        match &mut self.piece {
            Some(piece) => piece.prepare().await,
            None => Ok(()),
        }
    }
}

/// Sends a stored response that can be read; `true` if the connection may go on.
pub(crate) async fn send_stored(
    client: &mut Client,
    exchange: &mut RequestState,
    response: &Arc<StoredResponse>,
    serving: Serving,
    ready: Ready,
) -> bool {
    // its question is answered
    exchange.expected = None;
    let keep = settle_content(client, exchange).await;
    let Ready { form, piece } = ready;
    let mut out = Vec::with_capacity(response.head.len() + 256);
    let persistence = keep.and(exchange.persistence, client);
    let settings = Arc::clone(&exchange.settings);
    heads::write_head(
        &settings,
        response,
        form,
        serving,
        exchange.tx.verdict(),
        persistence,
        &mut out,
    );
    exchange.log.response_head(form.status(response), &out);
    let (at, end) = form.content(response);
    let head_bytes = out.len() as u64;
    let mut outgoing = Outgoing::default();
    outgoing.push(&out);
    // not copied behind the head: here there is no buffer for that
    outgoing.push_stored(piece.unwrap_or_else(|| StoredPiece::new(response, at, end)));
    let mut times = exchange.log.content_times();
    let (sent, end_of_it) =
        send_all(client, &mut outgoing, &settings, (&mut times, head_bytes)).await;
    let log = &mut exchange.log;
    log.content_left(times);
    log.sent(sent);
    let content = sent.saturating_sub(head_bytes).min(end - at);
    log.sent_content(content, ContentSource::of(response));
    match end_of_it {
        SendEnd::Whole => {
            log.ended(End::Whole);
            client.closing = !persistence.keep_alive;
            persistence.keep_alive
        }
        SendEnd::ClientLeft => {
            log.broke_off(End::ClientLeft, "client-left");
            false
        }
        SendEnd::Unreadable => {
            client.worker.shared.store.drop_one(exchange.key, response);
            exchange.persistence = persistence;
            let went_on = continuation::run(client, exchange, response, outgoing).await;
            went_on.unwrap_or_else(|| {
                exchange.log.broke_off(End::Ours, "store-cut");
                client.worker.counters().inc(Metric::StoreCuts);
                false
            })
        }
    }
}
