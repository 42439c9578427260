//! A 304 updates what is stored (RFC 9111 §3.2, §4.3.4).

use crate::exchange::Exchange;
use crate::hit::stored_fields;
use crate::inbound;
use crate::worker::Worker;
use std::sync::Arc;
use weir_measure::Metric;
use weir_policy::StoredFacts;
use weir_semantics::{
    FieldLine, ResponseFacts, identify, is_freshened, line_named, parse_http_date,
};
use weir_store::StoredResponse;
use weir_wire::{LineBuffer, Progress, parse_response, write};

/// Merges the fields of the 304 in `received` into `stored`, stores the result, and returns it. If the stored
/// response has left meanwhile the result still serves this request.
pub(crate) fn apply(
    worker: &Worker,
    exchange: &Exchange,
    stored: &Arc<StoredResponse>,
    received: &[u8],
) -> Arc<StoredResponse> {
    let mut lines = LineBuffer::new();
    let Ok(Progress::Complete { head, .. }) =
        parse_response(received, &exchange.settings.heads, &mut lines)
    else {
        return Arc::clone(stored);
    };
    let mut stored_lines = LineBuffer::new();
    let before = stored_fields(&stored.head, &mut stored_lines);
    let merged = merge(before, head.fields);
    let fresh = Arc::new(rebuild(worker, exchange, stored, &merged));
    worker.counters().inc(Metric::Freshened);
    worker
        .shared
        .store
        .replace(worker.now(), exchange.key, stored, Arc::clone(&fresh));
    fresh
}

/// Each field of the 304 stands in for all stored lines of its name; the others stay, in their order.
fn merge<'a>(stored: &[FieldLine<'a>], update: &[FieldLine<'a>]) -> Vec<FieldLine<'a>> {
    let updates: Vec<&FieldLine<'a>> = update
        .iter()
        .filter(|line| identify(line.name).is_none_or(is_freshened))
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
    inbound::write_stored_fields(fields, &mut head);
    if stored.facts.status != 204 {
        write::number_field(&mut head, "Content-Length", stored.body.len());
    }
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
