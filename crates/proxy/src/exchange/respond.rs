//! Sending an answer of our own, and what both kinds of answers need: settling the content of the
//! request, and sending within the silence limit.

use crate::client::connection::Client;
use crate::exchange::state::RequestState;
use crate::exchange::upload::{self};
use crate::log::record::{ContentTimes, End};
use crate::log::request_log::ContentSource;
use crate::request::answer::{Answer, head_of};
use crate::send::heads::Persistence;
use crate::send::outgoing::Outgoing;
use crate::settings::Settings;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_measure::Metric;
use weir_semantics::Method;

/// Sends an answer of our own; `true` if the connection may go on.
pub(crate) async fn respond(
    client: &mut Client,
    exchange: &mut RequestState,
    answer: Answer,
) -> bool {
    let keep = settle_content(client, exchange).await;
    let persistence = keep.and(exchange.persistence, client);
    let mut answer = answer;
    answer.close |= !persistence.keep_alive;
    let settings = Arc::clone(&exchange.settings);
    let mut out = Vec::new();
    // the transaction may know a finer reason already
    if !matches!(
        exchange.tx.verdict().handling,
        weir_policy::Handling::Refused(_)
    ) {
        let _ = exchange.tx.refuse(answer.reason.refused);
    }
    let content = answer.write(
        &settings,
        exchange.tx.verdict(),
        exchange.request.method == Method::Head,
        &client.worker.date(),
        &mut out,
    );
    let mut outgoing = Outgoing::default();
    outgoing.push(&out);
    // head first: what was sent beyond it is content
    let head_bytes = out.len() as u64 - content;
    let log = &mut exchange.log;
    log.response_head(answer.status, head_of(&out, content));
    log.failed(answer.reason.error.as_str());
    let mut times = log.content_times();
    let (sent, end) = send_all(client, &mut outgoing, &settings, (&mut times, head_bytes)).await;
    let log = &mut exchange.log;
    log.content_left(times);
    log.sent(sent);
    log.ended(match end {
        SendEnd::Whole => End::Whole,
        SendEnd::ClientLeft => End::ClientLeft,
        SendEnd::Unreadable => End::Ours,
    });
    log.sent_content(sent.saturating_sub(head_bytes), ContentSource::Own);
    client.closing = answer.close;
    end == SendEnd::Whole && !answer.close
}

/// What is left of the request's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing: the next bytes are a request.
    Settled,
    /// Some may follow: the connection must not be read as requests again.
    Unsettled,
}

impl Content {
    pub(super) fn and(self, persistence: Persistence, client: &Client) -> Persistence {
        Persistence {
            keep_alive: persistence.keep_alive
                && self == Self::Settled
                && !client.worker.shared.is_draining(),
            ..persistence
        }
    }
}

/// Reads away content that nobody will use, up to the limit: what follows must never be taken for a
/// request.
pub(super) async fn settle_content(client: &mut Client, exchange: &RequestState) -> Content {
    if !exchange.request.has_content() {
        return Content::Settled;
    }
    if let Some(end) = exchange.uploaded {
        return if end.is_whole() {
            Content::Settled
        } else {
            Content::Unsettled
        };
    }
    // whoever waits for 100 may send the content or not: only closing is unambiguous (RFC 9110
    // §10.1.1)
    if exchange.tx.request().expects_continue {
        return Content::Unsettled;
    }
    if upload::discard(client, exchange).await {
        Content::Settled
    } else {
        Content::Unsettled
    }
}

/// How sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendEnd {
    /// The client's kernel has everything.
    Whole,
    /// The client went away, or stopped reading.
    ClientLeft,
    /// The rest of what was promised cannot be read from disk: the client is cut, and sees that by
    /// the length it was told.
    Unreadable,
}

/// Sends everything in `outgoing` within the silence limit; bytes sent and how that ended. The
/// times are those of what is behind so many bytes of the head.
pub(crate) async fn send_all(
    client: &mut Client,
    outgoing: &mut Outgoing,
    settings: &Settings,
    (times, head_bytes): (&mut ContentTimes, u64),
) -> (u64, SendEnd) {
    let silence = settings.config.limits.client_silence.as_duration();
    client.deadline.set(silence);
    let mut sent = 0;
    let whole = poll_fn(|cx: &mut Context<'_>| {
        while !outgoing.is_empty() {
            match outgoing.poll_send_some(&mut client.stream, cx) {
                Poll::Pending => return client.deadline.poll_passed(cx).map(|()| false),
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Ready(Ok(written)) => {
                    sent += written as u64;
                    times.reach(sent.saturating_sub(head_bytes));
                    client.deadline.set(silence);
                }
            }
        }
        Poll::Ready(true)
    })
    .await;
    client.worker.counters().add(Metric::BytesToClients, sent);
    if whole {
        return (sent, SendEnd::Whole);
    }
    if outgoing.read_error().is_some() {
        return (sent, SendEnd::Unreadable);
    }
    client.worker.counters().inc(Metric::ClientAborts);
    (sent, SendEnd::ClientLeft)
}
