//! A response updates what is stored: a 304, the 206 that joins a part, a 200 to HEAD (RFC 9111
//! §3.2, §3.4, §4.3.4, §4.3.5).
//!
//! The merge is `weir_semantics::merge`, the decision `Transaction`'s. Here are the two responses
//! that come of it: one for the store, and one for the client that brought the update, with the
//! fields that are for it alone.

use crate::cache::variants::ClientTag;
use crate::exchange::heads::inbound;
use crate::exchange::state::RequestState;
use crate::fetch::missing_range::MissingRange;
use crate::fetch::storable_head::StorableHead;
use crate::send::heads::stored_fields;
use crate::worker::core::Worker;
use std::sync::Arc;
use weir_measure::Metric;
use weir_policy::{Digest, Rules, StoredFacts, Update};
use weir_semantics::{
    FieldLine, Fits, Known, MergedFields, ResponseFacts, StoredValidators, TargetedFields,
    identify, line_named, merge, parse_http_date,
};
use weir_store::{StoredResponse, VaryRule};
use weir_wire::{BodyLength, FIELDS_CAPACITY, LineBuffer, ResponseHead};

/// The most field lines of a merged head, with the one for a length that is added to it: what the
/// parser reads again.
const MERGED_FIELDS_MAX: usize = FIELDS_CAPACITY - 1;

/// A response that may update the stored one, merged into that.
pub(crate) struct Merging<'a> {
    stored: &'a Arc<StoredResponse>,
    merged: MergedFields<'a>,
    facts: ResponseFacts,
    fits: Fits,
}

impl<'a> Merging<'a> {
    /// Merges `update` into `stored`, whose field lines are read into `lines`. `targeted` are the
    /// targeted cache control fields of the request's listener; `date` is the time of receipt.
    pub(crate) fn new(
        worker: &Worker,
        targeted: &TargetedFields,
        stored: &'a Arc<StoredResponse>,
        lines: &mut LineBuffer<'a>,
        update: &[FieldLine<'a>],
        date: &'a [u8],
        fits: Fits,
    ) -> Self {
        let stored_lines = stored_fields(&stored.head, lines);
        let merged = if stored.facts.is_transformed {
            // the next hop knows its own content alone
            let about_others: Vec<_> = update
                .iter()
                .filter(|line| !is_about_content(line.name))
                .copied()
                .collect();
            merge(&as_received(stored, stored_lines), &about_others, date)
        } else {
            merge(stored_lines, update, date)
        };
        let fits = if is_within_limits(&merged, worker) {
            fits
        } else {
            Fits::Other
        };
        Self {
            stored,
            facts: merged.facts(stored.facts.status, worker.now().wall, targeted),
            merged,
            fits,
        }
    }

    /// The event for the transaction.
    pub(crate) fn update<'u>(&'u self, response: &'u ResponseFacts) -> Update<'u> {
        Update {
            response,
            merged: &self.facts,
            fits: self.fits,
            changes_vary: self.merged.changes_vary,
        }
    }

    /// The rules of storing for the merged response.
    pub(crate) fn rules(&self, exchange: &RequestState) -> Rules {
        let content_type = line_named(&self.merged.stored, "content-type");
        exchange.storing_rules(self.stored.facts.status, content_type)
    }

    /// Stores the merged response with these `facts` in the place of the stored one, if that was
    /// not forgotten meanwhile. What its waiting requests get.
    pub(crate) fn store(
        &self,
        worker: &Worker,
        exchange: &mut RequestState,
        facts: StoredFacts,
    ) -> Arc<StoredResponse> {
        let fresh = self.response(worker, exchange, &self.merged.stored);
        let fresh = Arc::new(StoredResponse { facts, ..fresh });
        let now = worker.now();
        if let Some(expected) = exchange.expected.take() {
            let expected = expected.copied(exchange.brings_copy());
            let vary = StorableHead::vary_of(worker, exchange, &self.merged.stored);
            if expected.freshen(now, self.stored, &fresh, vary.as_ref()) {
                worker.counters().inc(Metric::Freshened);
            }
        }
        fresh
    }

    /// The merged response as the client that brought the update gets it; never to be stored.
    /// `stored` is what was stored of it, if anything was.
    pub(crate) fn for_client(
        &self,
        worker: &Worker,
        exchange: &RequestState,
        stored: Option<Arc<StoredResponse>>,
    ) -> Arc<StoredResponse> {
        match stored {
            Some(stored) if self.merged.own.is_empty() => stored,
            _ => Arc::new(self.response(worker, exchange, &self.merged.for_client())),
        }
    }

    /// Whether the response is about the stored one.
    pub(crate) const fn fits(&self) -> Fits {
        self.fits
    }

    /// What is merged into.
    pub(crate) const fn stored(&self) -> &'a Arc<StoredResponse> {
        self.stored
    }

    /// The merged response for the store with these `facts`, not stored yet, and what it varies on.
    pub(crate) fn parts(
        &self,
        worker: &Worker,
        exchange: &RequestState,
        facts: StoredFacts,
    ) -> (StoredResponse, Option<(VaryRule, Digest)>) {
        let vary = StorableHead::vary_of(worker, exchange, &self.merged.stored);
        let merged = self.response(worker, exchange, &self.merged.stored);
        (StoredResponse { facts, ..merged }, vary)
    }

    /// `joined`, which was made of these parts, as the client that brought the update gets it;
    /// never to be stored.
    pub(crate) fn with_own_fields(
        &self,
        worker: &Worker,
        exchange: &RequestState,
        joined: &Arc<StoredResponse>,
    ) -> Arc<StoredResponse> {
        if self.merged.own.is_empty() {
            return Arc::clone(joined);
        }
        let mut own = self.response(worker, exchange, &self.merged.for_client());
        own.body = joined.body.clone();
        if line_named(&self.merged.stored, "content-length").is_none()
            && own.complete_length().is_some()
        {
            own.add_content_length();
        }
        Arc::new(own)
    }

    fn response(
        &self,
        worker: &Worker,
        exchange: &RequestState,
        fields: &[FieldLine<'_>],
    ) -> StoredResponse {
        let (now, stored) = (worker.now(), self.stored);
        let end_of_status = stored.head.iter().position(|byte| *byte == b'\n');
        let mut head = stored.head[..end_of_status.map_or(0, |at| at + 1)].to_vec();
        let date =
            |name| line_named(fields, name).and_then(|value| parse_http_date(value, now.wall));
        let tag = if stored.has_own_tag() {
            let received = line_named(fields, "etag");
            ClientTag::changed(exchange, received, date("last-modified"))
        } else {
            ClientTag::AsReceived
        };
        // an update never replaces the length (RFC 9111 §3.2): what is merged is what was stored
        inbound::write_merged_fields(fields, &tag, &mut head);
        StoredResponse {
            head: head.into_boxed_slice(),
            facts: StoredFacts::new(
                &self.facts,
                exchange.tx.request_time(),
                now,
                &self.rules(exchange).heuristic,
            )
            .transformed(stored.facts.is_transformed)
            .keeping_lifetime(stored.facts.keeps_lifetime),
            entity_tag: line_named(fields, "etag").map(Into::into),
            last_modified: date("last-modified"),
            date: date("date").unwrap_or(now.wall),
            body: stored.body.clone(),
        }
    }
}

/// The fields of a stored response whose content modules have changed, with the entity tag of the
/// next hop.
fn as_received<'a>(stored: &'a StoredResponse, fields: &[FieldLine<'a>]) -> Vec<FieldLine<'a>> {
    let is_tag = |line: &FieldLine<'_>| identify(line.name) == Some(Known::ETag);
    let others = fields.iter().filter(|line| !is_tag(line)).copied();
    let tag = stored.entity_tag.as_deref();
    others
        .chain(tag.map(|tag| FieldLine::new("ETag", tag)))
        .collect()
}

/// Whether a field tells how content is to be read, or of its bytes.
fn is_about_content(name: &str) -> bool {
    let of_content = name
        .get(..8)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("content-"));
    let others = ["digest", "repr-digest", "accept-ranges"];
    of_content || others.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a merged head may be stored. Each update can bring fields of other names: without a
/// limit a next hop could make the stored head grow for ever. As much as two heads: what was stored
/// and one update.
fn is_within_limits(merged: &MergedFields<'_>, worker: &Worker) -> bool {
    let fields = || merged.stored.iter().chain(&merged.own);
    let bytes = fields()
        .map(|line| line.name.len() + line.value.len() + 4)
        .sum::<usize>();
    let head_bytes_max = worker.settings().response_heads.bytes_max;
    fields().count() <= MERGED_FIELDS_MAX && bytes <= 2 * head_bytes_max
}

/// Whether the response `head` is about `stored`: a 304 by its entity tag, a 200 to HEAD by all
/// validators, a 206 also by the range that was requested, `missing`.
pub(crate) fn fits(
    stored: &StoredResponse,
    missing: Option<&MissingRange>,
    head: &ResponseHead<'_, '_>,
    facts: &ResponseFacts,
    body: BodyLength,
) -> Fits {
    let compared = StoredValidators {
        entity_tag: stored.entity_tag.as_deref(),
        last_modified: stored.last_modified,
        // of changed content the next hop has another length
        complete_length: stored
            .complete_length()
            .filter(|_| !stored.facts.is_transformed),
    };
    match (head.status, missing) {
        (206, Some(missing)) => missing.fits(stored, facts, head.fields, body),
        (206, None) => Fits::Other,
        (304, _) => compared.validated_by(head.fields, facts),
        _ => compared.fits(head.fields, facts),
    }
}
