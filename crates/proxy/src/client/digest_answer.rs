//! Sends another node the digest of this one.

use crate::cluster::digests::Making;
use crate::exchange::respond::{Content, begin, log_own, respond, send};
use crate::exchange::state::RequestState;
use crate::request::answer::{Answer, AnswerReason, reason_phrase};
use std::rc::Rc;
use std::sync::Arc;
use weir_measure::Metric;
use weir_net::http::{ClientStream, ContentForm};
use weir_policy::RefuseReason;
use weir_policy::route::DigestVersion;
use weir_semantics::ProxyError;
use weir_store::ChargedMemory;
use weir_wire::{Version, write};

/// Sends what a member needs that has `known`. It is made on a thread of its own, and charged to
/// the memory of responses that arrive while it is sent.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    known: Option<DigestVersion>,
) {
    let worker = Rc::clone(&exchange.worker);
    let made = make(exchange, known).await;
    let mut charged = ChargedMemory::new(&worker.shared.store);
    let message = made.filter(|message| charged.hold(message.len() as u64).is_ok());
    let Some(message) = message else {
        let why = "there is no memory for the digest of this node now";
        let reason = AnswerReason::new(ProxyError::ProxyInternalError, why);
        return respond(stream, exchange, Answer::open(503, reason)).await;
    };
    worker.counters().inc(Metric::DigestsSent);
    let _ = exchange.tx.refuse(RefuseReason::AnsweredHere);
    let mut head = Vec::with_capacity(256);
    write::status_line(&mut head, Version::Http11, 200, reason_phrase(200));
    write::field(&mut head, "Date", &worker.date());
    write::field(&mut head, "Content-Type", b"application/octet-stream");
    write::field(&mut head, "Cache-Control", b"no-store");
    write::number_field(&mut head, "Content-Length", message.len() as u64);
    let form = ContentForm::Sized;
    begin(&mut stream.response, exchange, 200, head, form);
    let (sent, end) = send(stream, exchange, Content::Bytes(&message)).await;
    log_own(exchange, sent, end);
}

/// `None` if others are being made: so many bytes are not charged yet.
async fn make(exchange: &RequestState, known: Option<DigestVersion>) -> Option<Vec<u8>> {
    let shared = &exchange.worker.shared;
    let cluster = exchange.settings.cluster()?;
    let (digests, store) = (Arc::clone(&shared.digests), Arc::clone(&shared.store));
    let making = Making::begin(&digests)?;
    let made = tokio::task::spawn_blocking(move || {
        let _making = making;
        digests.message_for(&cluster, &store, known)
    });
    made.await.ok()
}
