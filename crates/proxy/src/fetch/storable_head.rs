//! A response without its content, as it is stored: head, validators, nominated fields,
//! reservation.

use crate::exchange::heads::inbound;
use crate::exchange::state::RequestState;
use crate::request::vary::{VariantOf, rule_of, selecting_digest};
use crate::worker::core::Worker;
use weir_policy::catalog::Refusal;
use weir_policy::{Digest, Event, StoredFacts};
use weir_semantics::{FieldLine, Timestamp, line_named, parse_http_date};
use weir_store::{Reservation, StoredContent, StoredResponse, VaryRule};
use weir_wire::{BodyLength, ResponseHead, write};

/// All but the content of a response to store.
pub(crate) struct StorableHead {
    pub(crate) lines: Vec<u8>,
    pub(crate) facts: StoredFacts,
    pub(crate) entity_tag: Option<Box<[u8]>>,
    pub(crate) last_modified: Option<Timestamp>,
    pub(crate) date: Timestamp,
    pub(crate) vary: Option<(VaryRule, Digest)>,
}

impl StorableHead {
    /// The stored form of `response`. A 206 is stored as the 200 that it is a part of, with content
    /// of `complete_length` bytes (RFC 9111 §3.4).
    pub(crate) fn of(
        worker: &Worker,
        exchange: &RequestState,
        response: &ResponseHead<'_, '_>,
        body: BodyLength,
        complete_length: Option<u64>,
        facts: StoredFacts,
    ) -> Self {
        let now = worker.now();
        // the length stays where the origin put it, if it is the whole one's
        let is_part = response.status == 206;
        let in_place = !is_part && matches!(body, BodyLength::Exact(_));
        let date = worker.date();
        let mut head = inbound::stored_head(exchange, response, in_place, &date);
        if let Some(length) = complete_length
            && is_part
        {
            write::number_field(&mut head, "Content-Length", length);
        }
        let vary = Self::vary_of(worker, exchange, response.fields);
        let date = |name| {
            line_named(response.fields, name).and_then(|value| parse_http_date(value, now.wall))
        };
        Self {
            lines: head,
            facts,
            entity_tag: line_named(response.fields, "etag").map(Into::into),
            last_modified: date("last-modified"),
            date: date("date").unwrap_or(now.wall),
            vary,
        }
    }

    /// What a response with `fields` varies on, and the digest of these in the request (RFC 9111
    /// §4.1). What else selects a variant is among them.
    pub(crate) fn vary_of(
        worker: &Worker,
        exchange: &RequestState,
        fields: &[FieldLine<'_>],
    ) -> Option<(VaryRule, Digest)> {
        let store = &worker.shared.store;
        let of = VariantOf {
            modules: exchange.variant.is_some(),
            forwarded: exchange.settings.believes_proxies(exchange.request.mode),
        };
        rule_of(fields, of).map(|rule| {
            let fields = exchange.request.fields();
            let (key, fields) = (exchange.variant_key(), exchange.selecting(&fields));
            let selecting = selecting_digest(store.secret(), key, &rule, fields);
            (rule, selecting)
        })
    }

    /// Takes room for it and `content_bytes`, if known; `None` if the catalog refuses; the
    /// transaction gets that as an event.
    pub(crate) fn begin(
        &self,
        worker: &Worker,
        exchange: &mut RequestState,
        content_bytes: Option<u64>,
    ) -> Option<Reservation> {
        let tag = self.entity_tag.as_ref().map_or(0, |tag| tag.len());
        let beside_content = self.lines.capacity() + tag;
        let vary = self.vary.as_ref();
        // whatever it was to validate
        if let Some(expected) = &exchange.expected {
            expected.stand_alone();
        }
        room(worker, exchange, beside_content, vary, content_bytes).ok()
    }

    /// The stored response with `body`.
    pub(crate) fn with_body(self, body: StoredContent) -> StoredResponse {
        StoredResponse {
            head: self.lines.into_boxed_slice(),
            facts: self.facts,
            entity_tag: self.entity_tag,
            last_modified: self.last_modified,
            date: self.date,
            body,
        }
    }
}

/// Takes room for a response with `beside_content` bytes of head and entity tag. If the catalog
/// refuses, the transaction gets that as an event.
pub(crate) fn room(
    worker: &Worker,
    exchange: &mut RequestState,
    beside_content: usize,
    vary: Option<&(VaryRule, Digest)>,
    content_bytes: Option<u64>,
) -> Result<Reservation, Refusal> {
    let rule_bytes = vary.map_or(0, |(rule, _)| rule.charged_bytes());
    // without it, the request may be older than a purge
    let reservation = match (exchange.expected.take(), exchange.left_to_source()) {
        (Some(_), Some(refusal)) => Err(refusal),
        (Some(expected), None) => expected
            .varying(vary)
            .copied(exchange.brings_copy())
            .begin(beside_content + rule_bytes, content_bytes),
        (None, _) => Err(Refusal::NotResident),
    };
    if let Err(refusal) = &reservation {
        exchange.tell(worker, Event::NotAdmitted(*refusal));
    }
    reservation
}
