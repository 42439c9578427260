//! `/next-hops`: how the next hops of the configuration are.

use super::super::{Proxy, json, table::aligned, text, wants_json};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use weir_measure::live::{NextHopRow, NextHops, VERSION};

/// `GET /next-hops`.
pub(in crate::admin) async fn next_hops(
    State(control): Proxy,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let table = NextHops {
        version: VERSION,
        next_hops: control.next_hops(),
    };
    if wants_json(query.as_deref(), &headers) {
        return json(serde_json::to_string(&table));
    }
    text(StatusCode::OK, written(&table.next_hops))
}

fn written(rows: &[NextHopRow]) -> String {
    if rows.is_empty() {
        return "no next hop is configured: hosts of URLs are asked themselves\n".into();
    }
    let head = ["url", "kind", "state", "back in s", "requests", "of"].map(str::to_owned);
    let cells = |row: &NextHopRow| {
        let (state, left) = match row.ejected_for_s {
            Some(0) => ("to be tried", String::new()),
            left => (
                row.state.as_str(),
                left.map_or_else(String::new, |s| s.to_string()),
            ),
        };
        let outstanding = row.outstanding.to_string();
        [
            row.url.clone(),
            row.kind.clone(),
            state.to_owned(),
            left,
            outstanding,
            row.routes.clone(),
        ]
    };
    let rows = std::iter::once(head).chain(rows.iter().map(cells));
    aligned(&rows.collect::<Vec<_>>())
}
