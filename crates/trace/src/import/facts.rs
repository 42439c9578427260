//! From heads to columns: what the field lines of a request and of its response say, as a trace has
//! it.
//!
//! The readings are those of `weir-semantics`, which the live cache uses too; only facts that it
//! does not need (which directives were written at all) are read here. A column is set when its
//! head was seen, also to "no": `None` stays for heads that were not seen.

mod directives;
mod target_uri;

pub(crate) use target_uri::{RequestTarget, TargetForm};

use weir_semantics::{
    ContentRange, EntityTag, Expires, FieldLine, Known, Method, RangeKind, RangeSpan, RequestFacts,
    ResponseFacts, TargetedFields, Timestamp, VaryKind, feed_selecting, identify, lines_named,
    nominated, single_range,
};

use super::Hide;
use crate::{Anonymiser, Row, TraceMethod};

/// A media type with more bytes than this is no media type: the longest that is registered has 83.
const CONTENT_TYPE_BYTES_MAX: usize = 127;

/// Sets what a request's head says: target, server, method, scheme, and all columns about its
/// fields.
pub(crate) fn request_facts(
    row: &mut Row,
    asked: &RequestTarget<'_>,
    fields: &[FieldLine<'_>],
    hide: &dyn Hide,
) {
    let uri = asked.target_uri(fields);
    row.method = Some(TraceMethod::from_word(asked.method).unwrap_or(TraceMethod::Other));
    row.scheme = uri.scheme;
    row.server = Some(hide.server(uri.origin.as_bytes()));
    row.target = hide.target(uri.text.as_bytes());
    let facts = RequestFacts::gather(Method::parse(asked.method), uri.path_and_query(), fields);
    row.has_query = Some(facts.has_query);
    row.has_cgi_bin = Some(facts.has_cgi_bin);
    row.target_text = hide.keeps_names().then_some(uri.text);
    row.has_cookie = Some(facts.has_cookie);
    row.has_authorization = Some(facts.has_authorization);
    row.request_directives = Some(directives::of_request(fields));
    row.request_max_age_s = facts.directives.max_age.map(|seconds| seconds.0);
    if facts.range == RangeKind::One {
        set_range(row, fields);
    }
}

/// Sets what the final response's head says. What decided about storing goes into the columns of
/// Cache-Control: one of the `targeted` fields, if the cache that saw the response reads such
/// fields (RFC 9213), so that a replay decides by the same. `request` are the field lines of the
/// request, empty where only the response was seen; `now_s` is the time of the response, seconds
/// since 1970, which places years of two digits.
pub(crate) fn response_facts(
    row: &mut Row,
    status: u16,
    fields: &[FieldLine<'_>],
    targeted: &TargetedFields,
    request: &[FieldLine<'_>],
    now_s: i64,
    hide: &dyn Hide,
) {
    let facts = ResponseFacts::gather(status, fields, Timestamp(now_s)).targeted(fields, targeted);
    row.status = Some(status);
    row.has_set_cookie = Some(facts.has_set_cookie);
    row.response_directives = Some(directives::of_response(&facts, fields));
    row.set_response_seconds(facts.directives);
    row.date_s = facts.date.map(|date| date.0);
    row.expires_s = match facts.expires {
        Some(Expires::At(date)) => Some(date.0),
        Some(Expires::Invalid) | None => None,
    };
    row.age_s = facts.age.map(|seconds| seconds.0);
    row.last_modified_s = facts.last_modified.map(|date| date.0);
    if let Some(tag) = lines_named(fields, "etag").find_map(EntityTag::parse) {
        row.etag = Some(hide.value(tag.opaque));
        row.etag_is_weak = Some(tag.weak);
    }
    set_vary(row, facts.vary, fields, request, hide);
    row.content_type = content_type(fields);
    row.declared_bytes = declared_bytes(fields);
    row.complete_bytes = match facts.content_range {
        Some(ContentRange::Part {
            complete_length, ..
        }) => complete_length,
        _ => None,
    };
}

/// The one range that is requested, if it counts from the beginning; the columns have no way to say
/// "the last 500 bytes".
fn set_range(row: &mut Row, fields: &[FieldLine<'_>]) {
    let range = lines_named(fields, "range").next().and_then(single_range);
    if let Some(RangeSpan::From { first, last }) = range {
        row.range_first = Some(first);
        row.range_last = (last != u64::MAX).then_some(last);
    }
}

/// Which fields the response varies on, and what the request has there.
fn set_vary(
    row: &mut Row,
    kind: VaryKind,
    fields: &[FieldLine<'_>],
    request: &[FieldLine<'_>],
    hide: &dyn Hide,
) {
    row.vary = Some(Row::VARY_NONE);
    match kind {
        VaryKind::None => {}
        VaryKind::Star => row.vary = Some(Row::VARY_ALL),
        VaryKind::Fields => {
            let mut names: Vec<String> = nominated(lines_named(fields, "vary"))
                .map(str::to_ascii_lowercase)
                .collect();
            names.sort_unstable();
            names.dedup();
            row.vary = Some(Anonymiser::vary(names.iter().map(String::as_str)));
            let said = names.iter().map(|name| {
                let mut value = Vec::new();
                feed_selecting(request, name, &mut |bytes| value.extend_from_slice(bytes));
                (name.as_str(), value)
            });
            row.variant = Some(hide.variant(&said.collect::<Vec<_>>()));
        }
    }
}

/// The media type in lower case without its parameters, if it looks like one.
fn content_type(fields: &[FieldLine<'_>]) -> Option<String> {
    lines_named(fields, "content-type")
        .next()
        .and_then(media_type)
}

/// The media type that a Content-Type begins with, in lower case, if it looks like one.
pub(crate) fn media_type(value: &[u8]) -> Option<String> {
    let media_type = value.split(|&byte| byte == b';').next()?.trim_ascii();
    let slash = media_type.iter().position(|&byte| byte == b'/')?;
    let is_one = media_type.len() <= CONTENT_TYPE_BYTES_MAX
        && weir_semantics::is_token(&media_type[..slash])
        && weir_semantics::is_token(&media_type[slash + 1..]);
    is_one.then(|| String::from_utf8_lossy(media_type).to_ascii_lowercase())
}

/// Content-Length, if all that is written about it agrees (RFC 9112 §6.3: a list of equal values
/// may be taken for one).
pub(crate) fn declared_bytes(fields: &[FieldLine<'_>]) -> Option<u64> {
    let mut declared = None;
    for line in fields {
        if identify(line.name) != Some(Known::ContentLength) {
            continue;
        }
        for member in line.value.split(|&byte| byte == b',') {
            let digits = member.trim_ascii();
            let bytes: u64 = match str::from_utf8(digits).map(str::parse) {
                Ok(Ok(bytes)) if digits.iter().all(u8::is_ascii_digit) => bytes,
                _ => return None,
            };
            if declared.is_some_and(|other| other != bytes) {
                return None;
            }
            declared = Some(bytes);
        }
    }
    declared
}

#[cfg(test)]
mod tests;
