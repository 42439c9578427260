//! The begin of an in-flight response: from a response head that may be stored, to what its first
//! reader is sent.
//!
//! RFC 9111 §3.3, §3.4: a whole response, a part of one, or the part that completes one that is
//! stored.

use crate::cache::freshen::Merging;
use crate::exchange::heads::inbound;
use crate::exchange::state::RequestState;
use crate::fetch::collapse::Leader;
use crate::fetch::in_flight::{InFlightParams, InFlightResponse};
use crate::fetch::storable_head::{StorableHead, room};
use crate::fetch::store_writer::expected;
use crate::fetch::transfer::FetchTarget;
use crate::send::heads::ServedForm;
use crate::worker::core::Worker;
use std::sync::Arc;
use weir_net::http::{BufferedContent, ContentForm};
use weir_policy::fetch::{ByteSpan, InFlightRules};
use weir_policy::{Serving, StoredFacts};
use weir_semantics::{ContentRange, line_named};
use weir_store::{InFlightContent, StoredResponse};
use weir_wire::{BodyLength, ResponseHead};

use crate::exchange::download::FetchStart;

/// A final response head with the bytes received behind it.
pub(crate) struct Response<'a> {
    pub(crate) head: &'a ResponseHead<'a, 'a>,
    pub(crate) body: BodyLength,
    /// The content that was received with the head.
    pub(crate) buffered: BufferedContent<'a>,
}

/// What of it is stored.
#[derive(Clone, Copy)]
pub(crate) enum Storing {
    /// A response, or a part of one, that is new.
    New(StoredFacts),
    /// The part that completes what is stored, or in flight.
    Part(StoredFacts),
}

impl Storing {
    pub(crate) const fn facts(&self) -> &StoredFacts {
        match self {
            Self::New(facts) | Self::Part(facts) => facts,
        }
    }
}

/// What the request that began the fetch is sent.
pub(crate) enum InitiatorResponse {
    /// What the next hop sent: this head, and the content of the fetch.
    Relayed {
        /// Its status.
        status: u16,
        /// The head for the client: status line and end-to-end fields.
        head: Vec<u8>,
        /// What follows it.
        form: ContentForm,
        /// The content.
        span: ByteSpan,
    },
    /// What was stored before and what arrives now, joined: in this form, with the head of this
    /// response, which has the fields that are for this client alone.
    Joined(ServedForm, Serving, Arc<StoredResponse>),
    /// Nothing: the fetch fills a missing range, and its readers learn of it by the in-flight
    /// response.
    None,
}

/// Whether a response is stored by the relay: all of it is there already, or it is fetched for the
/// store alone. A fetch of its own costs more than such a response. What another node keeps is not
/// stored, and only a fetch of its own is for those that wait for it.
pub(crate) fn is_stored_by_relay(
    exchange: &RequestState,
    response: &Response<'_>,
    storing: &Storing,
) -> bool {
    let is_whole = matches!(storing, Storing::New(_)) && response.head.status != 206;
    let is_awaited = exchange.leader.as_ref().is_some_and(Leader::is_awaited);
    is_whole
        && (exchange.background || response.buffered.is_whole())
        && !(exchange.left_to_source().is_some() && is_awaited)
}

/// Enters the content that was received with a head into the log, where no client gets that
/// content.
pub(crate) fn discard(exchange: &mut RequestState, response: &Response<'_>) {
    exchange
        .log
        .waste_received(response.buffered.content_bytes());
}

/// Begins the in-flight response, or continues it; `None` if there is no room for it: then the
/// response is relayed.
pub(crate) fn begin(
    worker: &Worker,
    exchange: &mut RequestState,
    response: &Response<'_>,
    storing: Storing,
    merging: Option<Merging<'_>>,
) -> Option<FetchStart> {
    let span = span_of(response)?;
    if exchange.fills_missing_range() {
        return fill(exchange, response);
    }
    match (storing, merging) {
        (Storing::Part(facts), Some(merging)) => {
            complete(worker, exchange, response, facts, &merging, span)
        }
        (Storing::New(facts) | Storing::Part(facts), _) => {
            new(worker, exchange, response, facts, span)
        }
    }
}

/// Continues the in-flight response that the missing range belongs to; `None` if the response has
/// nothing of it.
pub(crate) fn fill(exchange: &mut RequestState, response: &Response<'_>) -> Option<FetchStart> {
    let span = span_of(response)?;
    let (in_flight, id) = exchange.missing.as_mut()?.into.take()?;
    in_flight.narrow(id, span.to);
    Some(FetchStart {
        target: FetchTarget { in_flight, id },
        answer: InitiatorResponse::None,
    })
}

/// A new response: the client whose request began it gets what the next hop sends, unchanged.
fn new(
    worker: &Worker,
    exchange: &mut RequestState,
    response: &Response<'_>,
    facts: StoredFacts,
    span: ByteSpan,
) -> Option<FetchStart> {
    let complete_length = complete_length(response);
    let storable = StorableHead::of(
        worker,
        exchange,
        response.head,
        response.body,
        complete_length,
        facts,
    );
    let reservation = match storable.begin(worker, exchange, expected(response.body)) {
        Some(reservation) => Ok(reservation),
        // those that wait for it share the one fetch nevertheless
        None => Err(exchange.left_to_source()?),
    };
    let vary = storable.vary.clone();
    let (status, fields) = (response.head.status, response.head.fields);
    let content_type = line_named(fields, "content-type");
    let params = InFlightParams {
        key: exchange.key,
        reuse: exchange.reuse_for(status, content_type),
        vary,
        reservation,
        rules: rules(exchange, response, &facts, complete_length),
        abort: exchange.abort(),
        complete_length,
        part: None,
        keeps_part: exchange.tx.keeps_part(),
        span,
        names: exchange.fetch_names(),
        response: storable.with_body(InFlightContent::new(complete_length, None).finish()),
    };
    let (in_flight, id) = InFlightResponse::begin(worker, params);
    let form = ContentForm::of(exchange.request.method, status, response.body);
    let head = inbound::response_head(exchange, response.head, form);
    Some(FetchStart {
        target: FetchTarget { in_flight, id },
        answer: InitiatorResponse::Relayed {
            status,
            head,
            form,
            span,
        },
    })
}

/// The missing part: the client whose request began it gets the stored part and the new one as one
/// response. If there is no room, the response is sent to the client and not stored: the new part
/// alone would not answer the request.
fn complete(
    worker: &Worker,
    exchange: &mut RequestState,
    response: &Response<'_>,
    facts: StoredFacts,
    merging: &Merging<'_>,
    span: ByteSpan,
) -> Option<FetchStart> {
    let stored = merging.stored();
    let known = stored.complete_length();
    let complete_length = known.or_else(|| complete_length(response));
    let now = worker.now();
    let (mut fresh, vary) = merging.parts(worker, exchange, facts);
    if known.is_none() && complete_length.is_some() {
        // chunked content is framed by its length from now on
        fresh.body = InFlightContent::new(complete_length, Some(&stored.body)).finish();
        fresh.add_content_length();
    }
    let tag = fresh.entity_tag.as_ref().map_or(0, |tag| tag.len());
    let beside_content = fresh.head.len() + tag;
    let reservation = room(
        worker,
        exchange,
        beside_content,
        vary.as_ref(),
        Some(span.len()),
    );
    let form = exchange.form_of(&fresh, now.wall);
    let params = InFlightParams {
        key: exchange.key,
        reuse: exchange.reuse_of(&fresh),
        vary,
        reservation,
        rules: rules(exchange, response, &facts, complete_length),
        abort: exchange.abort(),
        complete_length,
        part: Some(Arc::clone(stored)),
        keeps_part: facts.can_be_part(),
        span,
        names: exchange.fetch_names(),
        response: fresh,
    };
    let (in_flight, id) = InFlightResponse::begin(worker, params);
    let serving = Serving {
        age: in_flight.response.facts.current_age(now),
    };
    let own = merging.with_own_fields(worker, exchange, &in_flight.response);
    Some(FetchStart {
        target: FetchTarget { in_flight, id },
        answer: InitiatorResponse::Joined(form, serving, own),
    })
}

fn rules(
    exchange: &RequestState,
    response: &Response<'_>,
    facts: &StoredFacts,
    complete_length: Option<u64>,
) -> InFlightRules {
    let refuses = line_named(response.head.fields, "accept-ranges")
        .is_some_and(|value| value.eq_ignore_ascii_case(b"none"));
    InFlightRules {
        read_ahead: exchange.read_ahead(),
        fetches_max: exchange.settings.config.fetch.fetches_per_response_max,
        can_range: facts.can_be_joined() && complete_length.is_some() && !refuses,
    }
}

/// Which bytes of the whole the response brings; `None` if it brings none.
fn span_of(response: &Response<'_>) -> Option<ByteSpan> {
    if response.head.status == 206 {
        return match content_range(response)? {
            ContentRange::Part { range, .. }
                if expected(response.body).is_some_and(|bytes| bytes != range.length()) =>
            {
                None
            }
            ContentRange::Part { range, .. } => Some(ByteSpan {
                from: range.first,
                to: range.last + 1,
            }),
            ContentRange::Unsatisfied { .. } => None,
        };
    }
    let to = expected(response.body).unwrap_or(u64::MAX);
    (to > 0).then_some(ByteSpan { from: 0, to })
}

fn complete_length(response: &Response<'_>) -> Option<u64> {
    if response.head.status != 206 {
        return expected(response.body);
    }
    match content_range(response)? {
        ContentRange::Part {
            complete_length, ..
        } => complete_length,
        ContentRange::Unsatisfied { complete_length } => Some(complete_length),
    }
}

fn content_range(response: &Response<'_>) -> Option<ContentRange> {
    line_named(response.head.fields, "content-range").and_then(ContentRange::parse)
}
