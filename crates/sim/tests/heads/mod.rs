//! Rows of requests and responses that are written out as field lines: by way of an archive, as any
//! archive is imported.

use serde_json::{Value, json};
use weir_trace::import::{Format, Settings, open};
use weir_trace::{Anonymiser, Row};

/// Field lines: name and value.
pub(crate) type Lines = Vec<(String, String)>;

/// A request, and what its origin answers.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Microseconds since 1970.
    pub(crate) arrival_us: i64,
    pub(crate) method: String,
    /// The whole URI.
    pub(crate) uri: String,
    pub(crate) request: Lines,
    pub(crate) status: u16,
    pub(crate) response: Lines,
    /// Content of the response, bytes; also where none is sent for a HEAD.
    pub(crate) content_bytes: u64,
    /// Content of the request, bytes.
    pub(crate) request_content_bytes: u64,
}

/// The rows of these exchanges, in their order.
pub(crate) fn rows(exchanges: &[Exchange]) -> Vec<Row> {
    let entries: Vec<Value> = exchanges.iter().map(entry).collect();
    let archive =
        json!({"log": {"version": "1.2", "creator": {"name": "heads"}, "entries": entries}});
    let text = archive.to_string();
    let hide = Anonymiser::none();
    let opened = open(text.as_bytes(), Some(Format::Har), Settings::new(&hide))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut rows: Vec<Row> = opened
        .rows
        .map(|row| row.unwrap_or_else(|damaged| panic!("{damaged}")))
        .collect();
    assert_eq!(rows.len(), exchanges.len(), "an exchange was lost");
    for (row, exchange) in rows.iter_mut().zip(exchanges) {
        row.arrival_us = exchange.arrival_us;
        row.declared_bytes = Some(exchange.content_bytes);
        row.received_bytes = Some(if exchange.method == "HEAD" {
            0
        } else {
            exchange.content_bytes
        });
        if exchange.status == 304 {
            (row.declared_bytes, row.received_bytes) = (None, Some(0));
        }
    }
    rows
}

fn entry(exchange: &Exchange) -> Value {
    let lines = |lines: &Lines| -> Vec<Value> {
        let pairs = lines.iter();
        pairs
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    };
    json!({
        // only years of two digits depend on it
        "startedDateTime": "2026-01-01T00:00:00Z",
        "request": {
            "method": exchange.method, "url": exchange.uri, "httpVersion": "HTTP/1.1", "headers": lines(&exchange.request),
            "headersSize": head_bytes(&exchange.request), "bodySize": exchange.request_content_bytes,
        },
        "response": {
            "status": exchange.status, "httpVersion": "HTTP/1.1", "headers": lines(&exchange.response),
            "headersSize": head_bytes(&exchange.response), "bodySize": exchange.content_bytes,
        },
    })
}

/// Length of a head with these lines, about: the first line counts 17 bytes, as `HTTP/1.1 200 OK`
/// does.
pub(crate) fn head_bytes(lines: &Lines) -> usize {
    let each = lines
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    17 + each.sum::<usize>() + 2
}
