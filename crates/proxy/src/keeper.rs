//! Keeps what is relayed: room in the store, the head, the content as it passes.

use crate::exchange::Exchange;
use crate::inbound;
use crate::vary::{rule_of, selecting_digest};
use crate::worker::Worker;
use weir_policy::catalog::Refusal;
use weir_policy::{Digest, Event, Now, StoredFacts};
use weir_semantics::{Timestamp, line_named, parse_http_date};
use weir_store::{BodyBuilder, Building, StoredResponse, VaryRule};
use weir_wire::{BodyLength, ResponseHead, write};

/// A response on its way into the store.
pub(crate) struct Keeper {
    building: Building,
    content: BodyBuilder,
    head: Vec<u8>,
    facts: StoredFacts,
    entity_tag: Option<Box<[u8]>>,
    last_modified: Option<Timestamp>,
    date: Timestamp,
    vary: Option<(VaryRule, Digest)>,
    /// The head says the length already, where the origin put it.
    has_length: bool,
}

impl Keeper {
    /// Takes room for a response; `None` if the catalog refuses, which the transaction is told.
    pub(crate) fn begin(
        worker: &Worker,
        exchange: &mut Exchange,
        response: &ResponseHead<'_, '_>,
        body: BodyLength,
        facts: StoredFacts,
    ) -> Option<Self> {
        let now = worker.now();
        let store = &worker.shared.store;
        let expected = match body {
            BodyLength::Exact(bytes) => Some(bytes),
            BodyLength::None => Some(0),
            BodyLength::Chunked | BodyLength::UntilClose => None,
        };
        let head = inbound::stored_head(
            &exchange.settings,
            response,
            matches!(body, BodyLength::Exact(_)),
            &worker.date(),
        );
        let vary = rule_of(response.fields).map(|rule| {
            let selecting = exchange
                .with_fields(|fields| selecting_digest(store.secret(), exchange.key, &rule, fields))
                .unwrap_or_default();
            (rule, selecting)
        });
        let entity_tag: Option<Box<[u8]>> = line_named(response.fields, "etag").map(Into::into);
        let beside_content = head.capacity()
            + entity_tag.as_ref().map_or(0, |tag| tag.len())
            + vary.as_ref().map_or(0, |(rule, _)| rule.charged_bytes());
        let building = match store.begin(now, exchange.key, beside_content, expected) {
            Ok(building) => building,
            Err(refusal) => {
                let rules = &exchange.settings.rules;
                let _ = exchange.tx.handle(now, rules, Event::NotAdmitted(refusal));
                return None;
            }
        };
        let date = |name| {
            line_named(response.fields, name).and_then(|value| parse_http_date(value, now.wall))
        };
        Some(Self {
            building,
            content: BodyBuilder::new(expected),
            head,
            facts,
            entity_tag,
            last_modified: date("last-modified"),
            date: date("date").unwrap_or(now.wall),
            vary,
            has_length: matches!(body, BodyLength::Exact(_)),
        })
    }

    /// Keeps the next bytes.
    ///
    /// # Errors
    ///
    /// The catalog's reason for not keeping it after all; the keeper is of no use then.
    pub(crate) fn push(&mut self, now: Now, bytes: &[u8]) -> Result<(), Refusal> {
        self.building
            .reserve(now, self.content.len() + bytes.len() as u64)?;
        self.content.push(bytes);
        Ok(())
    }

    /// The response is whole: from now on it is found.
    ///
    /// # Errors
    ///
    /// As for `push`.
    pub(crate) fn finish(mut self, now: Now) -> Result<(), Refusal> {
        let body = self.content.finish();
        if self.facts.status != 204 && !self.has_length {
            write::number_field(&mut self.head, "Content-Length", body.len());
        }
        let response = StoredResponse {
            head: self.head.into_boxed_slice(),
            facts: self.facts,
            entity_tag: self.entity_tag,
            last_modified: self.last_modified,
            date: self.date,
            body,
        };
        self.building.commit(now, self.vary, response)
    }
}
