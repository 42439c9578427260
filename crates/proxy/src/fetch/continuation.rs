//! The rest of a response for a client that was sent some of it, where the rest is not here any
//! more.
//!
//! `weir_policy::fetch::continuation` says when it can be fetched. It goes by an in-flight response
//! that nobody else reads and nothing keeps: its fetch asks by `Range` with `If-Range`, and finds
//! out whether the next hop still has the same.

use crate::client::connection::Client;
use crate::exchange::follow;
use crate::exchange::state::RequestState;
use crate::fetch::in_flight::InFlightResponse;
use crate::fetch::reader::{ReaderHandle, Start};
use crate::send::framing::Framing;
use crate::send::outgoing::Outgoing;
use std::sync::Arc;
use weir_measure::{Lost, Metric};
use weir_policy::fetch::{ByteSpan, Continuation, Rest, continuation};
use weir_store::StoredResponse;

/// Begins it for the bytes from `at` up to `to`; `None` if they cannot be fetched.
pub(crate) fn begin(
    client: &Client,
    exchange: &RequestState,
    response: &Arc<StoredResponse>,
    (at, to): (u64, u64),
    why: Lost,
) -> Option<ReaderHandle> {
    let rest = Rest {
        at,
        to,
        complete_length: response.complete_length(),
        strong_tag: response.facts.strong_tag,
        forwards: !exchange.tx.request().directives.only_if_cached,
    };
    let Continuation::Fetch(span) = continuation(&rest) else {
        return None;
    };
    let worker = &client.worker;
    let (key, read_ahead) = (exchange.key, exchange.read_ahead());
    let (in_flight, reader) = InFlightResponse::for_one(worker, key, read_ahead, response, span)?;
    worker.counters().inc(Metric::Continued(why));
    Some(ReaderHandle::new(worker, &in_flight, reader, true))
}

/// Goes on with a stored response that cannot be read any further; whether the connection may go
/// on, `None` if the client is to be cut.
pub(crate) async fn run(
    client: &mut Client,
    exchange: &mut RequestState,
    response: &Arc<StoredResponse>,
    unread: Outgoing,
) -> Option<bool> {
    let (head, at, to) = unread.into_unread()?;
    let handle = begin(client, exchange, response, (at, to), Lost::Unreadable)?;
    let start = Start {
        handle,
        span: ByteSpan { from: at, to },
        head,
        framing: Framing::Length,
    };
    // boxed: the future of a hit would be as large as this one
    Some(Box::pin(follow::read(client, exchange, start)).await)
}
