//! A message of another node of the cluster that says what is to be purged here.

use crate::cache::invalidate::DURABLE_WAIT;
use crate::cache::purge::{apply, outcome};
use crate::cluster::purges::PurgedTarget;
use crate::cluster::{Cluster, PURGES};
use crate::config::Mode;
use crate::exchange::respond::{Content, begin, log_own, respond, send};
use crate::exchange::state::RequestState;
use crate::request::answer::{Answer, AnswerReason, reason_phrase};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use weir_measure::{Metric, PeerRefusal};
use weir_net::http::{ClientStream, ContentForm, ReceivedContent};
use weir_policy::RefuseReason;
use weir_semantics::{
    PEER_FIELD, PURGE_MESSAGE_BYTES_MAX, PeerRequest, PurgeAnswer, PurgeMessage, PurgeSequence,
    PurgedTarget as ReceivedTarget, lines_named, split_purge_proof, write_purge_proof,
};
use weir_store::{ChargedMemory, Purge};
use weir_wire::{Version, write};

/// Bytes of a message for which there is always memory, whatever responses have: few purges are
/// told even then. One message of each member is received at a time, so it is bounded.
const UNCHARGED_BYTES: usize = 16 << 10;

/// Receives the message, carries it out, and answers it.
pub(crate) async fn run(stream: &mut ClientStream<'_>, exchange: &mut RequestState) {
    let field = peer_field(exchange);
    let asked = PeerRequest::read(&field);
    let settings = Arc::clone(&exchange.settings);
    let cluster = settings.cluster();
    let mut charged = ChargedMemory::new(&exchange.worker.shared.store);
    // without a place in the sequence it is not the next one
    let inbox = &exchange.worker.shared.cluster_purges.inbox;
    let next = asked.and_then(|asked| inbox.begin(asked.node, &asked.sequence?));
    let is_next = next.is_some();
    let Some(content) = receive(stream, exchange, next, &mut charged).await else {
        return stream.response.abort();
    };
    if let Some((asked, cluster)) = asked.zip(cluster.as_deref()).filter(|_| !is_next) {
        let refusal = refusal_of(exchange, asked.node);
        return answer(stream, exchange, (cluster, &asked), refusal).await;
    }
    let message = asked.zip(cluster.as_deref());
    let message = message.and_then(|(asked, cluster)| {
        let message = proved_message(cluster, &asked, &content)?;
        Some((cluster, asked, message))
    });
    let Some((cluster, asked, message)) = message else {
        exchange
            .worker
            .counters()
            .inc(Metric::PeersRefused(PeerRefusal::Message));
        let reason = "the message is not of a member, or none that this node understands";
        let answer = Answer::closing(403, AnswerReason::denied(reason));
        return respond(stream, exchange, answer).await;
    };
    let carried_out = carry_out(exchange, asked.node, &message).await;
    answer(stream, exchange, (cluster, &asked), carried_out).await;
}

/// Answers the message in the name of the cluster's node with this status and text.
async fn answer(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    (cluster, asked): (&Cluster, &PeerRequest<'_>),
    (status, mut text): (u16, String),
) {
    let names = (cluster.own_name(), asked.node);
    let proof = cluster.purge_answer_proof(names, asked.nonce, &text);
    write_purge_proof(proof.as_str(), &mut text);
    let _ = exchange.tx.refuse(RefuseReason::AnsweredHere);
    let mut head = Vec::with_capacity(256);
    write::status_line(&mut head, Version::Http11, status, reason_phrase(status));
    write::field(&mut head, "Date", &exchange.worker.date());
    write::field(&mut head, "Content-Type", b"text/plain");
    write::number_field(&mut head, "Content-Length", text.len() as u64);
    begin(
        &mut stream.response,
        exchange,
        status,
        head,
        ContentForm::Sized,
    );
    let (sent, end) = send(stream, exchange, Content::Bytes(text.as_bytes())).await;
    log_own(exchange, sent, end);
}

/// The content of a message, of which there is no more than its listener lets through; `None` if it
/// does not come, there is no memory for it, or the `next` one comes: a member sends one at a time,
/// and has given up this one. Without a `next` one what comes is dropped, and nothing is kept: the
/// message is refused, which its sender reads once it has sent it.
async fn receive(
    stream: &mut ClientStream<'_>,
    exchange: &RequestState,
    mut next: Option<oneshot::Receiver<()>>,
    charged: &mut ChargedMemory,
) -> Option<String> {
    let silence = exchange.settings.config.limits.client_silence;
    let worker = Rc::clone(&exchange.worker);
    let mut content = Vec::new();
    let (received, deadline) = (&mut stream.content, &mut *stream.deadline);
    deadline.set(silence.as_duration());
    let is_whole = poll_fn(|cx| {
        if let Some(next) = &mut next
            && Pin::new(next).poll(cx).is_ready()
        {
            return Poll::Ready(false);
        }
        while content.len() <= PURGE_MESSAGE_BYTES_MAX {
            let mut scratch = worker.scratch();
            let polled = received.poll_receive(cx, &mut scratch, &mut content);
            if next.is_none() {
                content.clear();
            }
            let bytes = content.capacity();
            if bytes > UNCHARGED_BYTES && charged.hold(bytes as u64).is_err() {
                return Poll::Ready(false);
            }
            match polled {
                Poll::Pending => {
                    ready!(deadline.poll_passed(cx));
                    return Poll::Ready(false);
                }
                Poll::Ready(Ok(ReceivedContent::More)) => {}
                Poll::Ready(Ok(ReceivedContent::Whole)) => {
                    return Poll::Ready(true);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(false),
            }
        }
        Poll::Ready(false)
    })
    .await;
    let content = is_whole.then_some(content)?;
    String::from_utf8(content).ok()
}

fn peer_field(exchange: &RequestState) -> Vec<u8> {
    let fields = exchange.request.fields();
    let line = lines_named(&fields, PEER_FIELD).next();
    line.unwrap_or_default().to_vec()
}

fn proved_message<'m>(
    cluster: &Cluster,
    asked: &PeerRequest<'_>,
    content: &'m str,
) -> Option<PurgeMessage<'m>> {
    let (signed, proof) = split_purge_proof(content);
    let is_proved = asked.mode == PURGES && cluster.are_purges_proved(asked.node, signed, proof);
    let message = is_proved.then(|| PurgeMessage::read(signed)).flatten();
    // the head of another message does not stand for it
    message.filter(|message| Some(message.sequence) == asked.sequence)
}

/// The answer to a message of `node` that is not the next one: status and lines, which say after
/// which one that is.
fn refusal_of(exchange: &RequestState, node: &str) -> (u16, String) {
    let (session, number) = exchange.worker.shared.cluster_purges.inbox.last(node);
    let answer = PurgeAnswer {
        sequence: PurgeSequence {
            session: &session,
            number,
        },
        outcomes: Vec::new(),
    };
    let mut text = String::new();
    answer.write(&mut text);
    (409, text)
}

/// Does what the message of `node` says, if it is the next one: the status and the lines of the
/// answer.
async fn carry_out(
    exchange: &RequestState,
    node: &str,
    message: &PurgeMessage<'_>,
) -> (u16, String) {
    let shared = &exchange.worker.shared;
    let mut text = String::with_capacity(256);
    if !shared.cluster_purges.inbox.take(node, &message.sequence) {
        return refusal_of(exchange, node);
    }
    let mut answer = PurgeAnswer {
        sequence: message.sequence,
        outcomes: Vec::new(),
    };
    // before anything is purged: what is purged is not fetched from them from then on
    shared.cluster_purges.take_behind(node, &message.behind);
    let counters = exchange.worker.counters();
    let mut purges: Vec<Vec<Purge>> = Vec::with_capacity(message.orders.len());
    for order in &message.orders {
        let (what, counted) = match order.what {
            ReceivedTarget::All => (PurgedTarget::All, Metric::Purged),
            ReceivedTarget::Validate => (PurgedTarget::Validate, Metric::Purged),
            ReceivedTarget::Url(url) => (PurgedTarget::Url(url.to_owned()), Metric::Purged),
            ReceivedTarget::Invalidated { mode, url } => {
                let modes = [Mode::Forward, Mode::Gateway];
                let mode = modes.into_iter().find(|known| known.as_str() == mode);
                let url = url.to_owned();
                // what is not known is purged for all
                let what = mode.map_or_else(
                    || PurgedTarget::Url(url.clone()),
                    |mode| PurgedTarget::Invalidated {
                        mode,
                        url: url.clone(),
                    },
                );
                (what, Metric::Invalidated)
            }
        };
        let hold = Duration::from_millis(u64::from(order.hold_ms));
        // a URL that names no target here can have no stored response
        let purged = apply(shared, &what, hold).unwrap_or_default();
        let removed: usize = purged.iter().map(|purge| purge.removed).sum();
        counters.add(counted, removed as u64);
        purges.push(purged);
    }
    counters.add(Metric::PeerPurgesApplied, purges.len() as u64);
    let until = Instant::now() + DURABLE_WAIT;
    for purged in purges {
        let outcome = outcome(shared, purged, until).await;
        answer.outcomes.push(outcome);
    }
    answer.write(&mut text);
    (200, text)
}
