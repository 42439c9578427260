//! The answer to a request for the file by which clients find the proxy.

use super::{Front, InputResult, Receiver};
use crate::log::report;
use crate::log::request_log::ContentSource;
use crate::log::served::ServedRequest;
use crate::log::words::write_cache_status;
use crate::request::answer::{Answer, AnswerReason};
use crate::request::pac::{self, PAC_PATH, PAC_TYPE};
use weir_net::http::write_connection;
use weir_semantics::{ConnectionOptions, Method, lines_named};
use weir_wire::{BodyLength, RequestHead, Version, request_body, write};

/// Whether it is asked for: by a path, as of an origin, which no other request to a forward proxy
/// has.
#[inline]
pub(super) fn is_asked(head: &RequestHead<'_, '_>) -> bool {
    head.target.starts_with('/') && is_pac(head)
}

fn is_pac(head: &RequestHead<'_, '_>) -> bool {
    let path = head.target.split('?').next();
    path == Some(PAC_PATH) && matches!(Method::parse(head.method), Method::Get | Method::Head)
}

/// Sends it to a client that may use the proxy. No login is needed: browsers send none for it.
#[inline(never)]
pub(super) fn take(
    receiver: &Receiver<'_>,
    Front {
        head,
        consumed,
        started,
        input,
    }: Front<'_, '_, '_>,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let (worker, settings, client) = (receiver.worker, receiver.settings, receiver.client);
    let answered = InputResult::Answered { consumed };
    let mut log = receiver.log(started, consumed);
    let received = input.at..input.at + consumed;
    let mut hosts = lines_named(head.fields, "host");
    let (host, other) = (hosts.next(), hosts.next());
    let is_tls = client.listener.is_tls();
    let found =
        pac::authority_of(host, &client.listener.default, is_tls).filter(|_| other.is_none());
    let script = found.and_then(|(host, port)| pac::script(&host, port, is_tls));
    let has_content = !matches!(
        request_body(head.version, head.fields),
        Ok(BodyLength::None | BodyLength::Exact(0))
    );
    let Some(script) = script.filter(|_| !has_content) else {
        let reason = AnswerReason::bad("the Host of the request does not name this proxy");
        let answer = Answer::closing(400, reason);
        let asked = Some((head, received));
        served.push(super::refuse(receiver, asked, &answer, log, out));
        return answered;
    };
    let http11 = head.version == Version::Http11;
    let options = ConnectionOptions::gather(head.fields);
    let closes = options.close || worker.shared.has_closed(client.listener);
    let is_persistent = !closes && (http11 || options.keep_alive);
    let verdict = Answer::options().verdict();
    let before = out.len();
    write::status_line(out, Version::Http11, 200, "OK");
    write::field(out, "Date", &worker.date());
    write::field(out, "Content-Type", PAC_TYPE.as_bytes());
    write::number_field(out, "Content-Length", script.len() as u64);
    // it names the proxy as this client has reached it
    write::field(out, "Cache-Control", b"no-store");
    write::field(out, "X-Content-Type-Options", b"nosniff");
    write_cache_status(settings, &verdict, out);
    write_connection(is_persistent, http11, out);
    write::end_of_head(out);
    let head_end = out.len();
    if Method::parse(head.method) == Method::Get {
        out.extend_from_slice(script.as_bytes());
    }
    log.response_made(200);
    log.sent((out.len() - before) as u64);
    log.sent_content((out.len() - head_end) as u64, ContentSource::Own);
    report::count(worker.counters(), !client.is_reused(), &verdict, &log);
    report::count_phases(worker.counters(), log.reached());
    served.push(ServedRequest {
        log,
        verdict,
        sequence: client.sequence,
        request: Some(received),
        response: before..head_end,
        end: out.len(),
        request_content_bytes: Some(0),
        lacks_host: host.is_none(),
        is_persistent,
        came_at_once: receiver.head_began.is_none(),
    });
    answered
}
