//! `/links`: what is moved over the links of the configuration.

use super::super::{Proxy, json, table::aligned, text, wants_json};
use crate::log::words::http_date;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use weir_measure::live::{LinkRow, LinkRows, VERSION};
use weir_semantics::Timestamp;

/// `GET /links`.
pub(in crate::admin) async fn links(
    State(control): Proxy,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let table = LinkRows {
        version: VERSION,
        links: control.links(),
    };
    if wants_json(query.as_deref(), &headers) {
        return json(serde_json::to_string(&table));
    }
    text(StatusCode::OK, written(&table.links))
}

fn written(rows: &[LinkRow]) -> String {
    if rows.is_empty() {
        return "no link is configured: next hops have no rate and no quota\n".into();
    }
    let head = [
        "link", "state", "rate B/s", "received", "sent", "waited s", "quota", "spent", "booked",
        "begun", "until", "then", "refused",
    ];
    let cells = |row: &LinkRow| {
        let quota = row.quota.as_ref();
        let number = |value: Option<u64>| value.map_or_else(String::new, |it| it.to_string());
        let date = |at: Option<i64>| at.map_or_else(String::new, |at_s| http_date(Timestamp(at_s)));
        [
            row.name.clone(),
            row.state_words().join(","),
            number(row.rate_bytes_s),
            row.received_bytes.to_string(),
            row.sent_bytes.to_string(),
            (row.waited_ms / 1000).to_string(),
            number(quota.map(|quota| quota.bytes)),
            number(quota.map(|quota| quota.spent_bytes)),
            number(quota.map(|quota| quota.booked_bytes)),
            date(quota.map(|quota| quota.begin_unix_s)),
            date(quota.map(|quota| quota.end_unix_s)),
            quota.map_or_else(String::new, |quota| quota.when_spent.clone()),
            row.refused.to_string(),
        ]
    };
    let rows = std::iter::once(head.map(str::to_owned)).chain(rows.iter().map(cells));
    aligned(&rows.collect::<Vec<_>>())
}
