//! Fetches the rest of a response whose beginning was sent to a client, where the rest is not
//! stored any more.
//!
//! `weir_policy::fetch::continuation` says when it can be fetched. It uses an in-flight response
//! without other readers, which is not stored. Its request has `Range` and `If-Range`, so that the
//! next hop sends the rest only of the same representation.

use crate::exchange::follow;
use crate::exchange::state::RequestState;
use crate::fetch::in_flight::InFlightResponse;
use crate::fetch::reader::{ReaderHandle, Start};
use std::sync::Arc;
use weir_measure::{Lost, Metric};
use weir_net::http::ClientStream;
use weir_policy::fetch::{ByteSpan, Continuation, RemainingRange, continuation};
use weir_store::StoredResponse;

/// Begins it for the bytes from `at` up to `to`; `None` if they cannot be fetched.
pub(crate) fn begin(
    exchange: &RequestState,
    response: &Arc<StoredResponse>,
    (at, to): (u64, u64),
    why: Lost,
) -> Option<ReaderHandle> {
    let rest = RemainingRange {
        at,
        to,
        complete_length: response.complete_length(),
        strong_tag: response.facts.can_be_joined(),
        forwards: !exchange.tx.request().directives.only_if_cached,
    };
    let Continuation::Fetch(span) = continuation(&rest) else {
        return None;
    };
    let worker = &exchange.worker;
    let (key, terms) = (exchange.key, (exchange.read_ahead(), exchange.abort()));
    let (in_flight, reader) = InFlightResponse::for_one(worker, key, terms, response, span)?;
    worker.counters().inc(Metric::Continued(why));
    Some(ReaderHandle::new(worker, &in_flight, reader, true))
}

/// Sends the bytes from `at` up to `to` of a stored response that cannot be read any further;
/// `false` if the response must be cut.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    response: &Arc<StoredResponse>,
    (at, to): (u64, u64),
) -> bool {
    let Some(handle) = begin(exchange, response, (at, to), Lost::Unreadable) else {
        return false;
    };
    let start = Start {
        handle,
        span: ByteSpan { from: at, to },
    };
    // boxed: the future of a hit would be as large as this one
    Box::pin(follow::read(stream, exchange, start)).await;
    true
}
