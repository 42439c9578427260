//! Sending a stored response, whatever its size.

use crate::cache::content_load;
use crate::cache::disk_lookup;
use crate::exchange::respond::{self, Content, SendEnd, respond, settle_content};
use crate::exchange::state::RequestState;
use crate::fetch::continuation;
use crate::log::record::End;
use crate::log::request_log::ContentSource;
use crate::modules::module_answer::ModuleRefusal;
use crate::request::answer::Answer;
use crate::send::disk_read::ContentReadError;
use crate::send::heads::{self, ServedForm};
use crate::send::stored_piece::StoredPiece;
use crate::worker::kept_content::KeptContent;
use std::sync::Arc;
use weir_measure::Metric;
use weir_net::flow::SendQueue;
use weir_net::http::ClientStream;
use weir_policy::Serving;
use weir_semantics::Timestamp;
use weir_store::StoredResponse;

/// A copy of less takes no longer than `sendfile`, bytes.
const FILE_PIECE_BYTES_MIN: u64 = 32 * 1024;

/// Checks that a stored response can be read, before anything of it is sent.
pub(crate) async fn ready(
    stream: &ClientStream<'_>,
    exchange: &RequestState,
    response: &Arc<StoredResponse>,
) -> Result<Ready, ContentReadError> {
    let mut ready = Ready::of(exchange, response, exchange.worker.now().wall);
    let by_file = stream.response.can_send_file();
    let piece = &mut ready.piece;
    if !piece.is_in_memory() && piece.is_of_all() && !(by_file && piece.find_in_file()) {
        let load = content_load::run(&exchange.worker, exchange.key, response);
        let loaded = Box::pin(load).await?;
        if let Some(loaded) = loaded {
            ready.piece = StoredPiece::new(&loaded, 0, loaded.body.len());
        }
    }
    ready.prepare(by_file).await?;
    Ok(ready)
}

/// Whether a device has to be read for what is sent of a stored response.
pub(crate) fn needs_read(exchange: &RequestState, response: &Arc<StoredResponse>) -> bool {
    let needs_read = response.body.needs_read();
    needs_read
        && !Ready::of(exchange, response, exchange.worker.now().wall)
            .piece
            .is_sent()
}

/// Sends a stored response, whatever its size. There is no other response: if it cannot be read,
/// the client gets an error.
pub(crate) async fn serve(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    response: &Arc<StoredResponse>,
    serving: Serving,
) {
    match ready(stream, exchange, response).await {
        Ok(ready) => {
            let mut response = Arc::clone(response);
            send_stored(stream, exchange, &mut response, serving, ready).await;
        }
        Err(read_error) => {
            disk_lookup::forget(exchange, response);
            respond(stream, exchange, Answer::unreadable(read_error)).await;
        }
    }
}

/// A stored response about to be sent.
pub(crate) struct Ready {
    form: ServedForm,
    /// Its content. Where some is on disk, its first bytes are read before anything is sent.
    piece: StoredPiece,
}

impl Ready {
    fn of(exchange: &RequestState, response: &Arc<StoredResponse>, now: Timestamp) -> Self {
        let form = exchange.form_of(response, now);
        let (at, end) = form.content(response);
        let piece = StoredPiece::new(response, at, end);
        Self { form, piece }
    }

    /// Has the content of `response`, which was found and is to be sent, moved to a file in memory
    /// if it is sent without a copy from there. Then it is `response` from now on.
    pub(crate) fn move_to_file(
        &mut self,
        stream: &ClientStream<'_>,
        exchange: &RequestState,
        response: &mut Arc<StoredResponse>,
    ) {
        if !is_large_part(&self.piece, response) || !stream.response.can_send_file() {
            return;
        }
        let store = &exchange.worker.shared.store;
        if let Some(moved) = store.move_to_file(exchange.key, response) {
            self.piece.moved_to(&moved);
            *response = moved;
        }
    }

    async fn prepare(&mut self, by_file: bool) -> Result<(), ContentReadError> {
        if self.piece.is_in_memory() {
            return Ok(());
        }
        self.piece.prepare(by_file).await
    }
}

/// Sends a stored response that can be read. Without its content is what becomes of `response` if
/// that may be evicted meanwhile.
pub(crate) fn send_stored(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    response: &mut Arc<StoredResponse>,
    serving: Serving,
    ready: Ready,
) -> impl Future<Output = ()> {
    // taken apart before there is a future, which so holds them once
    let Ready { form, mut piece } = ready;
    async move {
        // its question is answered
        exchange.expected = None;
        settle_content(stream, exchange).await;
        if let Err(refusal) = begin_stored(stream, exchange, response, form, serving).await {
            return respond::refuse(stream, exchange, &refusal).await;
        }
        let source = ContentSource::of(response);
        let kept = keep(exchange, response, &mut piece);
        let queue = queue_for_file(stream, exchange, response, &piece);
        if queue.is_some() {
            piece.allow_memory_file();
        }
        let (sent, end) = respond::send(stream, exchange, Content::Stored(&mut piece)).await;
        if let (Some(queue), Some(content)) = (queue, piece.sent_by_memory_file()) {
            let connection = exchange.client.facts().connection;
            let in_queues = &exchange.worker.content_in_queues;
            in_queues.add(connection, queue, content);
        }
        drop(kept);
        exchange.log.sent_content(sent, source);
        match end {
            SendEnd::Whole => exchange.log.ended(End::Whole),
            SendEnd::ClientLeft => exchange.log.broke_off(End::ClientLeft, "client-left"),
            SendEnd::Unreadable => {
                if !piece.is_released() {
                    let store = &exchange.worker.shared.store;
                    store.drop_one(exchange.key, response);
                }
                let rest = piece.rest();
                if !continuation::run(stream, exchange, response, rest).await {
                    exchange.log.broke_off(End::Ours, "store-cut");
                    exchange.worker.counters().inc(Metric::StoreCuts);
                }
            }
        }
    }
}

/// Whether `piece` is so much of the content of `response` that it is not copied: a socket that has
/// some of that holds all of it in memory.
fn is_large_part(piece: &StoredPiece, response: &StoredResponse) -> bool {
    let (at, end) = piece.rest();
    let bytes = end.saturating_sub(at);
    bytes >= FILE_PIECE_BYTES_MIN && bytes >= response.body.len() / 2
}

/// The queue of the client's socket, if the content of `response` is in a file in memory and can be
/// sent from there, and held until it has left the queue.
fn queue_for_file(
    stream: &ClientStream<'_>,
    exchange: &RequestState,
    response: &StoredResponse,
    piece: &StoredPiece,
) -> Option<SendQueue> {
    if !response.body.is_in_file() || !is_large_part(piece, response) {
        return None;
    }
    let queue = stream.response.file_queue()?;
    let connection = exchange.client.facts().connection;
    let in_queues = &exchange.worker.content_in_queues;
    in_queues.have_room(connection, queue).then_some(queue)
}

/// Keeps `response` in memory while it is sent. If a rule has it sent slowly, and its client has as
/// much kept as it may, it may be evicted instead: then what is missing of it is fetched.
fn keep(
    exchange: &RequestState,
    response: &mut Arc<StoredResponse>,
    piece: &mut StoredPiece,
) -> Option<Box<KeptContent>> {
    if piece.is_sent() {
        return None;
    }
    let kept = exchange.keep_content(response, response.body.bytes_in_memory())?;
    if kept.is_kept() {
        // boxed, as few responses are sent at a rate
        return Some(Box::new(kept));
    }
    exchange.worker.counters().inc(Metric::RuleNotKept);
    piece.release();
    *response = Arc::new(response.without_content());
    None
}

/// Queues the head of `response`, in `form`.
///
/// # Errors
///
/// A module failed, and the response may not go without it.
pub(crate) async fn begin_stored(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    response: &StoredResponse,
    form: ServedForm,
    serving: Serving,
) -> Result<(), ModuleRefusal> {
    exchange.note_rules(response);
    let mut head = Vec::with_capacity(response.head.len() + 256);
    let settings = &exchange.settings;
    let verdict = exchange.tx.verdict();
    heads::write_head(settings, response, form, serving, verdict, &mut head);
    let status = form.status(response);
    let form = form.content_form();
    respond::begin_sent(&mut stream.response, exchange, status, head, form).await
}
