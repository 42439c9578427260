//! Writes a response that is made at once, and reports it.

use super::Receiver;
use crate::client::peer_listener::{lacks_content, seal_refusal};
use crate::log::report;
use crate::log::request_log::{ContentSource, RequestLog};
use crate::log::served::ServedRequest;
use crate::request::answer::{Answer, head_of};
use crate::request::judge::ReceivedRequest;
use crate::send::heads::{self, ServedForm};
use std::ops::Range;
use std::sync::Arc;
use weir_net::http::write_connection;
use weir_policy::{Now, Serving, Transaction};
use weir_semantics::{Form, line_named};
use weir_store::StoredResponse;
use weir_wire::{RequestHead, Version, write};

/// Room for the field lines that are made for each response, bytes: Age, Cache-Status, Connection.
pub(super) const MADE_LINES_BYTES: usize = 160;

#[expect(
    clippy::too_many_arguments,
    reason = "the hot path passes what it has at hand"
)]
pub(super) fn serve(
    receiver: &Receiver<'_>,
    (head, received): (&RequestHead<'_, '_>, Range<usize>),
    request: &ReceivedRequest<'_>,
    tx: &Transaction,
    (response, serving): (&Arc<StoredResponse>, Serving),
    now: Now,
    log: &mut RequestLog,
    (out, served): (&mut Vec<u8>, &mut Vec<ServedRequest>),
) {
    let form = ServedForm::of(&request.facts, head.fields, response, now.wall);
    if out.capacity() == 0 {
        // of this response alone: all of it at once
        let (from, to) = form.content(response);
        let content = (to - from).min(response.body.len());
        let content = usize::try_from(content).unwrap_or_default();
        out.reserve_exact(response.head.len() + MADE_LINES_BYTES + content);
    }
    let before = out.len();
    heads::write_head(
        receiver.settings,
        response,
        form,
        serving,
        tx.verdict(),
        out,
    );
    let made = MadeResponse {
        response,
        form,
        before,
    };
    finish(receiver, received, request, tx, made, log, (out, served));
}

/// A response whose head is made, up to its fields.
pub(in crate::client) struct MadeResponse<'a> {
    pub(in crate::client) response: &'a Arc<StoredResponse>,
    pub(in crate::client) form: ServedForm,
    /// Where it begins among the bytes to send.
    pub(in crate::client) before: usize,
}

/// Completes a response whose head is made. Inlined as [`choose`](super::choose)
/// is.
#[inline(always)]
pub(in crate::client) fn finish(
    receiver: &Receiver<'_>,
    received: Range<usize>,
    request: &ReceivedRequest<'_>,
    tx: &Transaction,
    made: MadeResponse<'_>,
    log: &mut RequestLog,
    (out, served): (&mut Vec<u8>, &mut Vec<ServedRequest>),
) {
    let MadeResponse {
        response,
        form,
        before,
    } = made;
    let worker = receiver.worker;
    let closes = worker.shared.has_closed(receiver.client.listener);
    let is_persistent = request.is_persistent && !closes;
    let http11 = request.version == Version::Http11;
    if let Some(seal) = receiver.peer_seal {
        seal.append(worker, out, before);
    }
    write_connection(is_persistent, http11, out);
    write::end_of_head(out);
    let head_end = out.len();
    heads::write_content(response, form, out);
    log.response_made(form.status(response));
    log.sent((out.len() - before) as u64);
    let content_bytes = (out.len() - head_end) as u64;
    log.sent_content(content_bytes, ContentSource::of(response));
    report::count(worker.counters(), &receiver.client, tx.verdict(), log);
    report::count_phases_at_once(worker.counters());
    served.push(ServedRequest {
        log: log.take(),
        verdict: *tx.verdict(),
        sequence: receiver.client.sequence,
        request: Some(received),
        response: before..head_end,
        end: out.len(),
        request_content_bytes: Some(0),
        lacks_host: request.form == Form::Origin && !http11,
        is_persistent,
        came_at_once: receiver.head_time.is_at_once(),
    });
}

/// Answers with a message of our own.
pub(in crate::client) fn refuse(
    receiver: &Receiver<'_>,
    asked: Option<(&RequestHead<'_, '_>, Range<usize>)>,
    answer: &Answer,
    mut log: RequestLog,
    out: &mut Vec<u8>,
) -> ServedRequest {
    let before = out.len();
    let (head, received) = asked.unzip();
    let head_only = head.is_some_and(|head| head.method == "HEAD");
    let (worker, settings) = (receiver.worker, receiver.settings);
    let verdict = answer.verdict();
    let seal = |out: &mut Vec<u8>| seal_refusal(receiver, (out, before));
    let content_bytes = answer.write(settings, &verdict, head_only, &worker.date(), seal, out);
    log.response_made(answer.status);
    log.sent((out.len() - before) as u64);
    log.sent_content(content_bytes, ContentSource::Own);
    log.failed(answer.reason.error.as_str());
    report::count(worker.counters(), &receiver.client, &verdict, &log);
    report::count_phases(worker.counters(), log.reached());
    let lacks_content = head.is_some_and(lacks_content);
    ServedRequest {
        log,
        verdict,
        sequence: receiver.client.sequence,
        request: received,
        response: before..before + head_of(&out[before..], content_bytes).len(),
        end: out.len(),
        request_content_bytes: lacks_content.then_some(0),
        lacks_host: head.is_some_and(|head| {
            head.target.starts_with('/') && line_named(head.fields, "host").is_none()
        }),
        is_persistent: !answer.close,
        came_at_once: receiver.head_time.is_at_once(),
    }
}
