//! The right response: status, fields and the part of the content, from the site's description of a
//! target.

use weir_semantics::{
    ByteRange, ContentRange, EntityTag, FieldLine, Method, Precondition, RangeOutcome, Validators,
    evaluate, if_range_holds, line_named, select, write_http_date,
};
use weir_wire::{Version, write};
use weir_workload::{Content, Representation, Site, Target, UnixSeconds};

use super::by_target;
use super::request_facts::RequestFacts;
use crate::mark::{self, ResponseMark};

/// A response before it is written.
#[derive(Clone, Debug)]
pub(super) struct Answer<'s> {
    source: Source<'s>,
    pub(super) at: UnixSeconds,
    pub(super) status: u16,
    pub(super) described: Representation<'s>,
    /// The part of the content that the response has, half-open; empty in a 304 and a 416.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// What decides entity tags and content.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'s> {
    /// A target of the scenario's site.
    Site(&'s Site, Target),
    /// The spelling of a target that describes its response.
    Spelling(&'s str),
}

/// How a response is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseFormat<'a> {
    pub(super) version: Version,
    /// The time of the response, as an HTTP-date.
    pub(super) date: &'a [u8; 29],
    /// Does the origin know conditions and ranges at all?
    pub(super) is_conditional: bool,
    /// Is there a `Content-Length`? Else the end of the connection is that of the content.
    pub(super) has_length: bool,
    /// Does the connection persist?
    pub(super) keeps: bool,
    /// When the response begins, microseconds since 1970; `None` to a request without an id.
    pub(super) begun_us: Option<u64>,
}

/// A `Range` of more parts than one is answered with all of the content (RFC 9110 §14.2 allows
/// that): no proxy requests them.
const RANGES_MAX: usize = 1;

/// No cookie is longer: what browsers take (RFC 6265 §6.1).
const COOKIE_BYTES_MAX: u64 = 4096;

impl<'s> Answer<'s> {
    /// The right one at this time.
    pub(super) fn new(
        source: Source<'s>,
        described: Representation<'s>,
        request: (Method, &[FieldLine<'_>]),
        at: UnixSeconds,
        is_conditional: bool,
    ) -> Self {
        let mut answer = Self {
            source,
            at,
            status: 200,
            from: 0,
            to: described.length,
            described,
        };
        let (method, fields) = request;
        if is_conditional && matches!(method, Method::Get | Method::Head) {
            answer.weigh(method, fields, at);
        }
        answer
    }

    fn write_tag(&self, out: &mut Vec<u8>) {
        match self.source {
            Source::Site(site, target) => {
                site.write_entity_tag(target, self.described.version, out);
            }
            Source::Spelling(target) => {
                out.extend_from_slice(format!("\"{:016x}\"", by_target::hash(target)).as_bytes());
            }
        }
    }

    /// What the response has a part of.
    pub(super) fn content(&self) -> Content {
        match self.source {
            Source::Site(site, target) => site.content(target, self.described.version),
            Source::Spelling(target) => by_target::content_of(target),
        }
    }

    /// Takes the request's conditions into account, in the order of RFC 9110 §13.2.2.
    fn weigh(&mut self, method: Method, fields: &[FieldLine<'_>], at: UnixSeconds) {
        let mut tag = Vec::new();
        if self.described.etag {
            self.write_tag(&mut tag);
        }
        let validators = Validators {
            entity_tag: EntityTag::parse(&tag),
            last_modified: self.described.modified,
            // stands in for Last-Modified at caches only
            date: None,
        };
        if evaluate(method, fields, &validators, at) == Precondition::NotModified {
            (self.status, self.to) = (304, 0);
            return;
        }
        let Some(range) = line_named(fields, "range").filter(|_| method == Method::Get) else {
            return;
        };
        let strong = Validators {
            date: Some(at),
            ..validators
        };
        if !if_range_holds(fields, &strong, at) {
            return;
        }
        match select(range, self.to, RANGES_MAX) {
            RangeOutcome::Single(range) => {
                (self.status, self.from, self.to) = (206, range.first, range.last + 1);
            }
            RangeOutcome::Unsatisfiable => (self.status, self.to) = (416, 0),
            RangeOutcome::Whole | RangeOutcome::Multiple(_) => {}
        }
    }

    /// Appends the head. `declared` is what `Content-Length` says.
    pub(super) fn write_head(
        &self,
        request: &RequestFacts,
        format: &ResponseFormat<'_>,
        declared: u64,
        out: &mut Vec<u8>,
    ) {
        let about = &self.described;
        start(self.status, format, out);
        if self.status != 304 {
            write::field(out, "Content-Type", about.content_type.as_bytes());
            if format.has_length {
                write::number_field(out, "Content-Length", declared);
            }
            self.write_range(format, out);
        }
        if self.status != 416 {
            self.write_metadata(out);
        }
        if let Source::Site(site, target) = self.source
            && about.set_cookie
            && self.status == 200
        {
            write_cookie(site.cookie_bytes(target), out);
        }
        let answered = ResponseMark {
            id: request.id,
            version: about.version,
            is_validated: self.status == 304,
            begun_us: format.begun_us,
        };
        end(answered, request, format, out);
    }

    fn write_range(&self, format: &ResponseFormat<'_>, out: &mut Vec<u8>) {
        let range = match self.status {
            206 => ContentRange::Part {
                range: ByteRange {
                    first: self.from,
                    last: self.to - 1,
                },
                complete_length: Some(self.described.length),
            },
            416 => ContentRange::Unsatisfied {
                complete_length: self.described.length,
            },
            _ if format.is_conditional => {
                return write::field(out, "Accept-Ranges", b"bytes");
            }
            _ => return,
        };
        out.extend_from_slice(b"Content-Range: ");
        range.write(out);
        out.extend_from_slice(b"\r\n");
    }

    /// Validators, freshness and what the representation was chosen by: in a 200, a 206 and a 304
    /// alike (RFC 9110 §15.4.5).
    fn write_metadata(&self, out: &mut Vec<u8>) {
        let about = &self.described;
        if let Some(modified) = about.modified {
            date_field(out, "Last-Modified", modified);
        }
        if about.etag {
            out.extend_from_slice(b"ETag: ");
            self.write_tag(out);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(expires) = about.expires {
            date_field(out, "Expires", expires);
        }
        write_cache_control(about, out);
        if let Some(vary) = about.vary {
            write::field(out, "Vary", vary.as_bytes());
        }
    }
}

/// A response about the origin itself: why there is none of the site's. Says how many of the bytes
/// are the head's.
pub(super) fn write_plain(
    status: u16,
    text: &str,
    request: Option<&RequestFacts>,
    format: &ResponseFormat<'_>,
    out: &mut Vec<u8>,
) -> usize {
    start(status, format, out);
    write::field(out, "Content-Type", b"text/plain; charset=utf-8");
    write::number_field(out, "Content-Length", text.len() as u64);
    write::field(out, "Cache-Control", b"no-store");
    if status == 405 {
        write::field(out, "Allow", b"GET, HEAD, POST");
    }
    match request {
        Some(request) => {
            let answered = ResponseMark {
                id: request.id,
                version: 0,
                is_validated: false,
                begun_us: format.begun_us,
            };
            end(answered, request, format, out);
        }
        None => out.extend_from_slice(b"Connection: close\r\n\r\n"),
    }
    let head_bytes = out.len();
    if request.is_none_or(|request| request.method != Method::Head) {
        out.extend_from_slice(text.as_bytes());
    }
    head_bytes
}

fn start(status: u16, format: &ResponseFormat<'_>, out: &mut Vec<u8>) {
    write::status_line(out, format.version, status, reason(status));
    write::field(out, "Date", format.date);
}

/// The mark, and what becomes of the connection (RFC 9112 §9.3).
fn end(
    answered: ResponseMark,
    request: &RequestFacts,
    format: &ResponseFormat<'_>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(mark::FIELD.as_bytes());
    out.extend_from_slice(b": ");
    answered.write(out);
    out.extend_from_slice(b"\r\n");
    if !format.keeps {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if request.version == Version::Http10 || format.version == Version::Http10 {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    write::end_of_head(out);
}

fn write_cache_control(about: &Representation<'_>, out: &mut Vec<u8>) {
    if about.cache_control.is_none() && about.max_age_s.is_none() {
        return;
    }
    out.extend_from_slice(b"Cache-Control: ");
    if let Some(directives) = about.cache_control {
        out.extend_from_slice(directives.as_bytes());
        if about.max_age_s.is_some() {
            out.extend_from_slice(b", ");
        }
    }
    if let Some(seconds) = about.max_age_s {
        out.extend_from_slice(b"max-age=");
        write::decimal(out, seconds);
    }
    out.extend_from_slice(b"\r\n");
}

/// As long as the site requires, name and value together.
fn write_cookie(bytes: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Set-Cookie: visit=");
    for _ in (b"visit=".len() as u64)..bytes.min(COOKIE_BYTES_MAX) {
        out.push(b'x');
    }
    out.extend_from_slice(b"; Path=/\r\n");
}

fn date_field(out: &mut Vec<u8>, name: &str, at: UnixSeconds) {
    let mut text = [0; 29];
    write_http_date(at, &mut text);
    write::field(out, name, &text);
}

/// The phrases of RFC 9110 §15 for what the origin and its fault scripts send.
const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        // may be empty (RFC 9112 §4)
        _ => "",
    }
}
