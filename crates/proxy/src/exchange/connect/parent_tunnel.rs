//! A tunnel through a parent: CONNECT is sent to it, and what it answers is read (RFC 9110 §9.3.6).

use crate::exchange::attempts::Failed;
use crate::exchange::download::login_refused;
use crate::exchange::heads::outbound;
use crate::exchange::response_outcome::{HopFailure, broken, silent};
use crate::exchange::state::RequestState;
use crate::exchange::upload;
use crate::request::answer::{Answer, AnswerReason};
use std::future::poll_fn;
use std::task::Poll;
use weir_net::Deadline;
use weir_net::http::{NextHopStream, ReceivedHead};
use weir_semantics::{Method, ProxyError};
use weir_wire::LineBuffer;

/// Why there is no tunnel.
pub(super) enum NoTunnel {
    /// The parent did not answer: another one may.
    Failed(Failed, AnswerReason),
    /// It has refused the tunnel.
    Refused(Answer),
}

/// Has the parent at the other end of `hop` open the tunnel.
pub(super) async fn ask(
    exchange: &mut RequestState,
    hop: &mut NextHopStream,
) -> Result<(), NoTunnel> {
    let mut head = outbound::connect_head(exchange);
    exchange.write_login(&mut head);
    let status = send(exchange, hop, head).await.map_err(|failure| {
        let (HopFailure::Unanswered(reason) | HopFailure::Broken(reason)) = failure;
        NoTunnel::Failed(Failed::sent(&reason), reason)
    })?;
    match status {
        200..300 => Ok(()),
        407 => {
            let reason = login_refused();
            Err(NoTunnel::Failed(Failed::Sent(reason.error), reason))
        }
        _ => Err(NoTunnel::Refused(refused(status))),
    }
}

/// Sends the head; the status of the final response. What was received behind that belongs to the
/// tunnel.
async fn send(
    exchange: &mut RequestState,
    hop: &mut NextHopStream,
    head: Vec<u8>,
) -> Result<u16, HopFailure> {
    let (mut to_hop, mut from_hop) = hop.split();
    upload::send_head(&mut to_hop, head, exchange).await?;
    let silence = exchange.settings.config.limits.next_hop_silence;
    // for all of the head: interim responses give it no more time
    let mut deadline = Deadline::new(silence.as_duration());
    let heads = exchange.settings.response_heads;
    loop {
        while from_hop.is_worth_reading(&heads) {
            let received = from_hop.take_received();
            let mut lines = LineBuffer::new();
            let found = received.head(Method::Connect, &heads, &mut lines);
            let accepted = found.as_ref().ok().and_then(Option::as_ref);
            let accepted = accepted.map(ReceivedHead::acceptance);
            let status = found.map(|found| found.map(|it| it.head.status));
            from_hop.return_received(received, accepted);
            match status {
                Ok(Some(status)) if status >= 200 => return Ok(status),
                Ok(Some(101)) => {
                    let why = "it switches protocols without being asked to";
                    return Err(HopFailure::Broken(broken(&why)));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return Err(HopFailure::Broken(broken(&error))),
            }
        }
        let worker = &exchange.worker;
        let read = poll_fn(|cx| {
            let received = from_hop.poll_receive_head(cx, &mut worker.scratch());
            match received {
                Poll::Ready(read) => Poll::Ready(Some(read)),
                Poll::Pending if from_hop.is_held_back() => {
                    deadline.set(silence.as_duration());
                    Poll::Pending
                }
                Poll::Pending => deadline.poll_passed(cx).map(|()| None),
            }
        });
        match read.await {
            None => return Err(silent(silence)),
            Some(Ok(count)) if count > 0 => exchange.log.received(count as u64),
            Some(read) => {
                let spent = read.err().and_then(|_| from_hop.link_spent());
                if let Some(spent) = spent {
                    return Err(HopFailure::Broken(AnswerReason::link_spent(spent)));
                }
                return Err(HopFailure::Unanswered(AnswerReason::new(
                    ProxyError::ConnectionTerminated,
                    "the parent closed the connection without a response to CONNECT",
                )));
            }
        }
    }
}

/// The answer to a client for whom the parent opens no tunnel. A status that clients do not expect
/// of a proxy becomes 502.
fn refused(status: u16) -> Answer {
    let text = format!("the parent opens no tunnel, and answers {status}");
    let (status, error) = match status {
        403 => (403, ProxyError::HttpRequestDenied),
        502..=504 => (status, ProxyError::DestinationUnavailable),
        _ => (502, ProxyError::DestinationUnavailable),
    };
    Answer::open(status, AnswerReason::new(error, text))
}
