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
    let node = asked.as_ref().map_or("", |asked| asked.node);
    let mut charged = ChargedMemory::new(&exchange.worker.shared.store);
    let Some(content) = receive(stream, exchange, node, &mut charged).await else {
        return stream.response.abort();
    };
    let settings = Arc::clone(&exchange.settings);
    let cluster = settings.cluster();
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
    let (status, mut text) = carry_out(exchange, asked.node, &message).await;
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

/// The content of a message of `node`, of which there is no more than its listener lets through;
/// `None` if it does not come, there is no memory for it, or the next one comes: a member sends one
/// at a time, and has given up this one, or another program has sent a copy.
async fn receive(
    stream: &mut ClientStream<'_>,
    exchange: &RequestState,
    node: &str,
    charged: &mut ChargedMemory,
) -> Option<String> {
    let silence = exchange.settings.config.limits.client_silence;
    let worker = Rc::clone(&exchange.worker);
    let mut next = worker.shared.cluster_purges.inbox.begin(node);
    let mut content = Vec::new();
    let (received, deadline) = (&mut stream.content, &mut *stream.deadline);
    deadline.set(silence.as_duration());
    let is_whole = poll_fn(|cx| {
        if Pin::new(&mut next).poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        while content.len() <= PURGE_MESSAGE_BYTES_MAX {
            let mut scratch = worker.scratch();
            let polled = received.poll_receive(cx, &mut scratch, &mut content);
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
    is_proved.then(|| PurgeMessage::read(signed)).flatten()
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
    let (session, number, is_next) = shared.cluster_purges.inbox.take(node, &message.sequence);
    let mut answer = PurgeAnswer {
        sequence: PurgeSequence {
            session: &session,
            number,
        },
        outcomes: Vec::new(),
    };
    if !is_next {
        answer.write(&mut text);
        return (409, text);
    }
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
