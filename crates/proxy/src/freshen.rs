//! A 304 updates what is stored (RFC 9111 §3.2, §4.3.4).

use crate::exchange::Exchange;
use crate::hit::stored_fields;
use crate::inbound;
use crate::kept::Kept;
use crate::worker::Worker;
use std::sync::Arc;
use weir_measure::Metric;
use weir_policy::{Digest, StoredFacts};
use weir_semantics::{
    ConnectionOptions, EntityTag, FieldLine, ResponseFacts, identify, is_freshened, line_named,
    parse_http_date,
};
use weir_store::{StoredResponse, VaryRule};
use weir_wire::{LineBuffer, Progress, parse_response};

/// Merges the fields of the 304 in `received` into `stored`, stores the result, and returns it. If the stored
/// response has left meanwhile the result still serves this request. `None` if the 304 is about another response:
/// then `stored` is forgotten.
pub(crate) fn apply(
    worker: &Worker,
    exchange: &mut Exchange,
    stored: &Arc<StoredResponse>,
    received: &[u8],
) -> Option<Arc<StoredResponse>> {
    let expected = exchange.expected.take();
    let mut lines = LineBuffer::new();
    let Ok(Progress::Complete { head, .. }) =
        parse_response(received, &exchange.settings.heads, &mut lines)
    else {
        return Some(Arc::clone(stored));
    };
    let store = &worker.shared.store;
    if names_another(stored, head.fields) {
        store.drop_one(exchange.key, stored);
        return None;
    }
    let mut stored_lines = LineBuffer::new();
    let before = stored_fields(&stored.head, &mut stored_lines);
    let date = worker.date();
    let merged = merge(before, &dated(head.fields, &date));
    let fresh = Arc::new(rebuild(worker, exchange, stored, &merged));
    worker.counters().inc(Metric::Freshened);
    let now = worker.now();
    if let Some(expected) = expected {
        let vary = Kept::vary_of(worker, exchange, &merged);
        expected.freshen(now, stored, &fresh, vary.as_ref());
    } else {
        store.replace(now, exchange.key, stored, Arc::clone(&fresh));
    }
    Some(fresh)
}

/// `stored` with the fields of a response that brings a part of it, and what it varies on; the two are combined (RFC 9111
/// §3.4).
pub(crate) fn merged(
    worker: &Worker,
    exchange: &Exchange,
    stored: &StoredResponse,
    update: &[FieldLine<'_>],
) -> (StoredResponse, Option<(VaryRule, Digest)>) {
    let mut stored_lines = LineBuffer::new();
    let before = stored_fields(&stored.head, &mut stored_lines);
    let date = worker.date();
    let merged = merge(before, &dated(update, &date));
    let vary = Kept::vary_of(worker, exchange, &merged);
    (rebuild(worker, exchange, stored, &merged), vary)
}

/// A strong entity tag that is not the stored one's (RFC 9111 §4.3.4).
fn names_another(stored: &StoredResponse, update: &[FieldLine<'_>]) -> bool {
    let tag = line_named(update, "etag").and_then(EntityTag::parse);
    let ours = stored.validators().entity_tag;
    tag.is_some_and(|tag| !tag.weak && !ours.is_some_and(|ours| ours.strong_eq(&tag)))
}

/// The fields of a 304 with the Date of its receipt if it has none (RFC 9110 §6.6.1): the stored one would make it old.
fn dated<'a>(update: &[FieldLine<'a>], date: &'a [u8]) -> Vec<FieldLine<'a>> {
    let mut fields = update.to_vec();
    if line_named(update, "date").is_none() {
        fields.push(FieldLine::new("Date", date));
    }
    fields
}

/// Each field of the 304 stands in for all stored lines of its name; the others stay, in their order.
fn merge<'a>(stored: &[FieldLine<'a>], update: &[FieldLine<'a>]) -> Vec<FieldLine<'a>> {
    let options = ConnectionOptions::gather(update);
    let updates: Vec<&FieldLine<'a>> = update
        .iter()
        .filter(|line| identify(line.name).is_none_or(is_freshened) && !options.names(line.name))
        .collect();
    let is_replaced = |name: &str| {
        updates
            .iter()
            .any(|update| update.name.eq_ignore_ascii_case(name))
    };
    let kept = stored.iter().filter(|line| !is_replaced(line.name));
    kept.chain(updates.iter().copied()).copied().collect()
}

fn rebuild(
    worker: &Worker,
    exchange: &Exchange,
    stored: &StoredResponse,
    fields: &[FieldLine<'_>],
) -> StoredResponse {
    let now = worker.now();
    let settings = &exchange.settings;
    let facts = ResponseFacts::gather(stored.facts.status, fields, now.wall);
    let end_of_status = stored.head.iter().position(|byte| *byte == b'\n');
    let mut head = stored.head[..end_of_status.map_or(0, |at| at + 1)].to_vec();
    // a 304 never replaces the length (RFC 9111 §3.2): what is merged is what was stored
    inbound::write_stored_fields(fields, true, &mut head);
    let date = |name| line_named(fields, name).and_then(|value| parse_http_date(value, now.wall));
    StoredResponse {
        head: head.into_boxed_slice(),
        facts: StoredFacts::new(
            &facts,
            exchange.tx.request_time(),
            now,
            &settings.rules.heuristic,
        ),
        entity_tag: line_named(fields, "etag").map(Into::into),
        last_modified: date("last-modified"),
        date: date("date").unwrap_or(now.wall),
        body: stored.body.clone(),
    }
}
