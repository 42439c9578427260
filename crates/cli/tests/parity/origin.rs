//! What an origin answers that has what the row says: HTTP as it is written down, and nothing of
//! the proxy's or the simulator's.
//!
//! RFC 9110 §13.2.2 (preconditions), §14.2 and §13.1.5 (ranges).

use crate::content::Identity;
use crate::message::Head;
use weir_semantics::{Timestamp, write_http_date};
use weir_trace::{AbortedBy, ResponseBit, Row};

/// A response: its head, and the bytes behind it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
}

/// Answers `request`, which is of `row`; the whole representation has `length` bytes.
pub(crate) fn answer(row: &Row, length: u64, request: &Head) -> Answer {
    let identity = identity_of(row);
    let is_get = request.method() == "GET";
    let is_safe = is_get || request.method() == "HEAD";
    let status = match row.status.unwrap_or(500) {
        206 | 304 => 200,
        status => status,
    };
    if status == 200 && is_safe && is_not_modified(row, request) {
        return respond(row, 304, None, Vec::new());
    }
    if status == 200
        && is_get
        && let Some((first, last)) = request.range()
        && if_range_holds(row, request)
    {
        if first >= length {
            return respond(row, 416, Some((0, format!("bytes */{length}"))), Vec::new());
        }
        let last = last.unwrap_or(length - 1).min(length - 1);
        let range = format!("bytes {first}-{last}/{length}");
        let content = identity.bytes(first, last + 1);
        return respond(row, 206, Some((content.len() as u64, range)), content);
    }
    let mut answer = respond(
        row,
        status,
        Some((length, String::new())),
        identity.bytes(0, length),
    );
    if !is_get && is_safe || matches!(status, 204 | 304) {
        answer.content.clear();
    }
    answer
}

/// How much content it sends before it breaks off, if it does with such an answer.
pub(crate) fn breaks_off_after(row: &Row, answer: &Answer, is_part: bool) -> Option<u64> {
    let is_as_traced = row.status == Some(answer.status) && !is_part;
    let cut = row.aborted_by == Some(AbortedBy::Server);
    (cut && is_as_traced).then_some(row.received_bytes?)
}

/// What a row is of, at its time.
pub(crate) fn identity_of(row: &Row) -> Identity {
    let is_varying = row.vary.is_some_and(|vary| vary != Row::VARY_NONE);
    let modified = row
        .last_modified_s
        .map(|seconds| u64::try_from(seconds).expect("after 1970"));
    Identity {
        target: row.target,
        variant: row.variant.filter(|_| is_varying).unwrap_or(0),
        version: row.etag.or(modified).unwrap_or(0),
    }
}

/// What a response says that it is of.
pub(crate) fn identity_in(row: &Row, response: &Head, modified: Option<i64>) -> Identity {
    let tag = response.field("etag").and_then(tag_number);
    let modified = modified.map(|seconds| u64::try_from(seconds).expect("after 1970"));
    let variant = row.variant.filter(|_| response.field("vary").is_some());
    Identity {
        target: row.target,
        variant: variant.unwrap_or(0),
        version: tag.or(modified).unwrap_or(0),
    }
}

/// An entity tag as it is written.
pub(crate) fn tag_text(tag: u64, is_weak: bool) -> String {
    let weak = if is_weak { "W/" } else { "" };
    format!("{weak}\"{tag:x}\"")
}

fn tag_number(text: &str) -> Option<u64> {
    let opaque = text.trim_start_matches("W/").trim_matches('"');
    u64::from_str_radix(opaque, 16).ok()
}

/// A time as HTTP writes it.
pub(crate) fn date(seconds: i64) -> String {
    let mut text = [0; 29];
    write_http_date(Timestamp(seconds), &mut text);
    String::from_utf8(text.to_vec()).expect("ASCII")
}

fn is_not_modified(row: &Row, request: &Head) -> bool {
    if let Some(tags) = request.field("if-none-match") {
        let known = tags.split(',').map(|tag| tag_number(tag.trim()));
        return row.etag.is_some() && known.into_iter().any(|tag| tag == row.etag);
    }
    match (request.field("if-modified-since"), row.last_modified_s) {
        // dates of one form compare as what they mean where they are equal, and all here are equal
        // or older
        (Some(since), Some(modified)) => since == date(modified),
        _ => false,
    }
}

fn if_range_holds(row: &Row, request: &Head) -> bool {
    let Some(tag) = request.field("if-range") else {
        return true;
    };
    let is_strong = row.etag_is_weak != Some(true) && !tag.starts_with("W/");
    is_strong && row.etag.is_some() && tag_number(tag) == row.etag
}

/// A response with everything that the row says; `length` comes with its Content-Range, if it has
/// one.
fn respond(row: &Row, status: u16, length: Option<(u64, String)>, content: Vec<u8>) -> Answer {
    let mut head = format!("HTTP/1.1 {status} Said\r\n");
    let mut field = |name: &str, value: &str| {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    };
    if let Some(seconds) = row.date_s {
        field("Date", &date(seconds));
    }
    if let Some(seconds) = row.age_s {
        field("Age", &seconds.to_string());
    }
    let directives = directives(row);
    if !directives.is_empty() {
        field("Cache-Control", &directives.join(", "));
    }
    if has(row, ResponseBit::ExpiresInvalid) {
        field("Expires", "0");
    } else if let Some(seconds) = row.expires_s {
        field("Expires", &date(seconds));
    }
    if has(row, ResponseBit::PragmaNoCache) {
        field("Pragma", "no-cache");
    }
    if let Some(tag) = row.etag {
        field("ETag", &tag_text(tag, row.etag_is_weak == Some(true)));
    }
    if let Some(seconds) = row.last_modified_s {
        field("Last-Modified", &date(seconds));
    }
    match row.vary {
        None | Some(Row::VARY_NONE) => {}
        Some(Row::VARY_ALL) => field("Vary", "*"),
        Some(_) => field("Vary", "X-Variant"),
    }
    if row.has_set_cookie == Some(true) {
        field("Set-Cookie", "a=b");
    }
    if let Some((length, range)) = length {
        if !range.is_empty() {
            field("Content-Range", &range);
        }
        if status != 204 {
            field("Content-Length", &length.to_string());
        }
    }
    head.push_str("\r\n");
    Answer {
        status,
        head,
        content,
    }
}

fn has(row: &Row, bit: ResponseBit) -> bool {
    row.response_directives.unwrap_or(0) & bit.bit() != 0
}

fn directives(row: &Row) -> Vec<String> {
    let flags = [
        ResponseBit::NoCache,
        ResponseBit::NoStore,
        ResponseBit::Private,
        ResponseBit::Public,
        ResponseBit::MustRevalidate,
        ResponseBit::ProxyRevalidate,
        ResponseBit::MustUnderstand,
        ResponseBit::Immutable,
    ];
    let flags = flags.into_iter().filter(|bit| has(row, *bit));
    let mut directives: Vec<String> = flags.map(|bit| bit.as_str().to_owned()).collect();
    let lifetimes = [
        ("max-age", row.max_age_s),
        ("s-maxage", row.s_maxage_s),
        ("stale-while-revalidate", row.stale_while_revalidate_s),
        ("stale-if-error", row.stale_if_error_s),
    ];
    for (name, seconds) in lifetimes {
        directives.extend(seconds.map(|seconds| format!("{name}={seconds}")));
    }
    directives
}
