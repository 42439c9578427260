//! A response whose content is the proxy's own, to a request that is never forwarded.

use super::{Front, InputResult, Receiver};
use crate::log::report;
use crate::log::request_log::ContentSource;
use crate::log::served::ServedRequest;
use crate::log::words::write_cache_status;
use crate::request::answer::{Answer, AnswerReason};
use weir_net::http::write_connection;
use weir_semantics::{ConnectionOptions, Method, lines_named};
use weir_wire::{BodyLength, RequestHead, Version, request_body, write};

/// Whether the request has content.
pub(super) fn has_content(head: &RequestHead<'_, '_>) -> bool {
    !matches!(
        request_body(head.version, head.fields),
        Ok(BodyLength::None | BodyLength::Exact(0))
    )
}

/// Refuses a request for such content, for what it says.
#[inline(never)]
pub(super) fn refuse(
    receiver: &Receiver<'_>,
    front: Front<'_, '_, '_>,
    reason: &'static str,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let Front {
        head,
        consumed,
        started,
        input,
        ..
    } = front;
    let log = receiver.log(started, consumed);
    let answer = Answer::closing(400, AnswerReason::bad(reason));
    let asked = Some((head, input.at..input.at + consumed));
    served.push(super::refuse(receiver, asked, &answer, log, out));
    InputResult::Answered { consumed }
}

/// Sends content of this media type, which is for this client and now, and is stored nowhere.
#[inline(never)]
pub(super) fn serve(
    receiver: &Receiver<'_>,
    front: Front<'_, '_, '_>,
    (media_type, content): (&str, &[u8]),
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let Front {
        head,
        consumed,
        started,
        input,
        ..
    } = front;
    let (worker, settings, client) = (receiver.worker, receiver.settings, receiver.client);
    let mut log = receiver.log(started, consumed);
    let received = input.at..input.at + consumed;
    let http11 = head.version == Version::Http11;
    let options = ConnectionOptions::gather(head.fields);
    let closes = options.close || worker.shared.has_closed(client.listener);
    let is_persistent = !closes && (http11 || options.keep_alive);
    let verdict = Answer::options().verdict();
    let before = out.len();
    write::status_line(out, Version::Http11, 200, "OK");
    write::field(out, "Date", &worker.date());
    write::field(out, "Content-Type", media_type.as_bytes());
    write::number_field(out, "Content-Length", content.len() as u64);
    write::field(out, "Cache-Control", b"no-store");
    write::field(out, "X-Content-Type-Options", b"nosniff");
    write_cache_status(settings, &verdict, out);
    write_connection(is_persistent, http11, out);
    write::end_of_head(out);
    let head_end = out.len();
    if Method::parse(head.method) == Method::Get {
        out.extend_from_slice(content);
    }
    log.response_made(200);
    log.sent((out.len() - before) as u64);
    log.sent_content((out.len() - head_end) as u64, ContentSource::Own);
    report::count(worker.counters(), &client, &verdict, &log);
    report::count_phases(worker.counters(), log.reached());
    served.push(ServedRequest {
        log,
        verdict,
        sequence: client.sequence,
        request: Some(received),
        response: before..head_end,
        end: out.len(),
        request_content_bytes: Some(0),
        lacks_host: lines_named(head.fields, "host").next().is_none(),
        is_persistent,
        came_at_once: receiver.head_time.is_at_once(),
    });
    InputResult::Answered { consumed }
}
