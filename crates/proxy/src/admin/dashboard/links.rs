//! `/links`: what is moved over the links of the configuration.

use super::super::{Proxy, json, table::aligned, text, wants_json};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use weir_measure::live::{LinkRow, LinkRows, VERSION};
use weir_semantics::{Timestamp, write_http_date};

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
        "link", "rate B/s", "received", "sent", "waited s", "quota", "spent", "until", "refused",
    ];
    let cells = |row: &LinkRow| {
        let quota = row.quota.as_ref();
        let number = |value: Option<u64>| value.map_or_else(String::new, |it| it.to_string());
        [
            row.name.clone(),
            number(row.rate_bytes_s),
            row.received_bytes.to_string(),
            row.sent_bytes.to_string(),
            (row.waited_ms / 1000).to_string(),
            number(quota.map(|quota| quota.bytes)),
            number(quota.map(|quota| quota.spent_bytes)),
            quota.map_or_else(String::new, |quota| date(quota.end_unix_s)),
            row.refused.to_string(),
        ]
    };
    let rows = std::iter::once(head.map(str::to_owned)).chain(rows.iter().map(cells));
    aligned(&rows.collect::<Vec<_>>())
}

/// A time as HTTP writes it.
fn date(unix_s: i64) -> String {
    let mut text = [0; 29];
    write_http_date(Timestamp(unix_s), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
