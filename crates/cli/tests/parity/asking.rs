//! A row as the client's request.

use crate::origin::{date, tag_text};
use weir_trace::{RequestBit, Row, TraceMethod};

/// Content of a request that has some.
const REQUEST_CONTENT: &str = "0123456789";

/// The request of row `number`, for a proxy; `authority` is its server's.
pub(crate) fn request(number: u64, row: &Row, authority: &str) -> String {
    let method = row.method.unwrap_or(TraceMethod::Get).as_str();
    let path = path(row);
    let mut text = format!(
        "{method} http://{authority}{path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: row/{number}\r\n"
    );
    let mut field = |name: &str, value: &str| {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    };
    if row.has_cookie == Some(true) {
        field("Cookie", "a=b");
    }
    if row.has_authorization == Some(true) {
        field("Authorization", "Basic YTpi");
    }
    let directives = directives(row);
    if !directives.is_empty() {
        field("Cache-Control", &directives.join(", "));
    }
    if has(row, RequestBit::PragmaNoCache) {
        field("Pragma", "no-cache");
    }
    if let Some(variant) = row.variant.filter(|variant| *variant > 0) {
        field("X-Variant", &variant.to_string());
    }
    if has(row, RequestBit::IfNoneMatch) {
        field("If-None-Match", &known_tag(row));
    }
    if has(row, RequestBit::IfModifiedSince) {
        field("If-Modified-Since", &known_date(row));
    }
    if let Some(first) = row.range_first {
        let last = row
            .range_last
            .map_or_else(String::new, |last| last.to_string());
        field("Range", &format!("bytes={first}-{last}"));
    }
    let content = row.request_content_bytes.unwrap_or(0) > 0;
    if content {
        field("Content-Length", &REQUEST_CONTENT.len().to_string());
    }
    text.push_str("\r\n");
    if content {
        text.push_str(REQUEST_CONTENT);
    }
    text
}

/// What the client knows: the present tag where the origin said so in the trace, another one
/// elsewhere.
pub(crate) fn known_tag(row: &Row) -> String {
    match row.etag {
        Some(tag) if row.status == Some(304) => tag_text(tag, row.etag_is_weak == Some(true)),
        _ => "\"another\"".to_owned(),
    }
}

/// The same for this one.
pub(crate) fn known_date(row: &Row) -> String {
    let modified = row.last_modified_s.unwrap_or(0);
    date(if row.status == Some(304) {
        modified
    } else {
        modified - 1_000_000
    })
}

/// Whether the request says this.
pub(crate) fn has(row: &Row, bit: RequestBit) -> bool {
    row.request_directives.unwrap_or(0) & bit.bit() != 0
}

fn path(row: &Row) -> String {
    let folder = if row.has_cgi_bin == Some(true) {
        "cgi-bin/"
    } else {
        ""
    };
    let query = if row.has_query == Some(true) {
        "?q"
    } else {
        ""
    };
    format!("/{folder}{}{query}", row.target)
}

fn directives(row: &Row) -> Vec<String> {
    let flags = [
        (RequestBit::NoCache, "no-cache"),
        (RequestBit::NoStore, "no-store"),
        (RequestBit::OnlyIfCached, "only-if-cached"),
        (RequestBit::MaxStale, "max-stale"),
        (RequestBit::MinFresh, "min-fresh=0"),
    ];
    let flags = flags.iter().filter(|(bit, _)| has(row, *bit));
    let mut directives: Vec<String> = flags.map(|(_, text)| (*text).to_owned()).collect();
    if has(row, RequestBit::MaxAge) {
        directives.push(format!("max-age={}", row.request_max_age_s.unwrap_or(0)));
    }
    directives
}
