//! The trailer section after the last chunk (RFC 9112 §7.1.2), bounded and sifted (RFC 9110 §6.5).

use alloc::vec::Vec;

use crate::body_reader::BodyError;
use crate::head::{HeadLimits, parse_fields};
use crate::head_error::HeadError;
use crate::line_buffer::LineBuffer;
use crate::write;
use weir_semantics::{NamedFields, is_forwarding_claim, is_same_field};

/// Collects a trailer section and keeps what may be passed on.
#[derive(Clone, Debug)]
pub(crate) struct Trailers {
    limits: HeadLimits,
    /// Fields that the head says are for its connection alone.
    named: NamedFields,
    at: At,
    /// The section's lines as received, and once it is whole those that are kept.
    lines: Vec<u8>,
}

/// Where in the section we are.
#[derive(Clone, Copy, Debug)]
enum At {
    LineStart,
    Line,
    /// After the carriage return of the empty line.
    LineFeed,
}

impl Trailers {
    /// An empty section. Nothing is allocated until a field line arrives.
    pub(crate) const fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            named: NamedFields::NONE,
            at: At::LineStart,
            lines: Vec::new(),
        }
    }

    /// Keeps no field that `named` has (RFC 9110 §7.6.1).
    pub(crate) fn leave_out(&mut self, named: NamedFields) {
        self.named = named;
    }

    /// The field lines that are kept, each with its CRLF. Only meaningful once the section is
    /// whole.
    pub(crate) fn kept(&self) -> &[u8] {
        &self.lines
    }

    /// Takes bytes of the section. Returns how many were taken and whether the section is whole.
    pub(crate) fn push(&mut self, input: &[u8]) -> Result<(usize, bool), BodyError> {
        let mut taken = 0;
        while let Some(&byte) = input.get(taken) {
            match self.at {
                At::LineStart if byte == b'\r' => {
                    taken += 1;
                    self.at = At::LineFeed;
                }
                At::LineStart | At::Line => taken += self.push_line(&input[taken..])?,
                At::LineFeed if byte == b'\n' => {
                    self.sift()?;
                    return Ok((taken + 1, true));
                }
                At::LineFeed => return Err(BodyError::Trailer(HeadError::LineEnd)),
            }
        }
        Ok((taken, false))
    }

    /// Takes bytes up to the end of the line, or all of them.
    fn push_line(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let end = memchr::memchr(b'\n', input).map(|line_feed| line_feed + 1);
        let piece = &input[..end.unwrap_or(input.len())];
        // the two bytes of the empty line count too
        if self.lines.len() + piece.len() + 2 > self.limits.bytes_max {
            return Err(BodyError::Trailer(HeadError::TooLarge));
        }
        self.lines.extend_from_slice(piece);
        self.at = At::Line;
        if end.is_some() {
            if !self.lines.ends_with(b"\r\n") {
                return Err(BodyError::Trailer(HeadError::BareLf));
            }
            self.at = At::LineStart;
        }
        Ok(piece.len())
    }

    /// Checks the lines and keeps those that may be passed on.
    fn sift(&mut self) -> Result<(), BodyError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let mut buffer = LineBuffer::new();
        let fields = parse_fields(&self.lines, &mut buffer).map_err(BodyError::Trailer)?;
        if fields.len() > self.limits.fields() {
            return Err(BodyError::Trailer(HeadError::TooManyFields));
        }
        let mut kept = Vec::new();
        let is_kept = |name: &str| !is_forbidden(name) && !self.named.has(name);
        for line in fields.iter().filter(|line| is_kept(line.name)) {
            write::field(&mut kept, line.name, line.value);
        }
        self.lines = kept;
        Ok(())
    }
}

/// Must the field not be merged or passed on when it arrives as a trailer?
///
/// An underscore counts as a hyphen: some recipients treat them as equal (`Content_Length`).
fn is_forbidden(name: &str) -> bool {
    let mut forbidden = FORBIDDEN.iter();
    // for whom a request is forwarded is routing, too
    forbidden.any(|forbidden| is_same_field(forbidden, name)) || is_forwarding_claim(name)
}

/// What RFC 9110 §6.5.1 excludes: fields for framing, routing, authentication, request modifiers,
/// or the format of the content. By then all that has been decided.
const FORBIDDEN: &[&str] = &[
    // framing
    "transfer-encoding",
    "content-length",
    "trailer",
    // routing and connection (RFC 9110 §7.6.1)
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "upgrade",
    "http2-settings",
    "weir-peer",
    "via",
    "cdn-loop",
    // request modifiers: controls and conditions (RFC 9110 §10.1, §13.1, §14.2)
    "expect",
    "max-forwards",
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    // authentication and state
    "authorization",
    "proxy-authorization",
    "www-authenticate",
    "proxy-authenticate",
    "proxy-authentication-info",
    "cookie",
    "set-cookie",
    "set-cookie2",
    // response control data (RFC 9110 §10.2, RFC 9111 §5)
    "age",
    "cache-control",
    "cdn-cache-control",
    "clear-site-data",
    "date",
    "expires",
    "location",
    "pragma",
    "retry-after",
    "surrogate-control",
    "vary",
    "warning",
    // how to read the content
    "content-encoding",
    "content-location",
    "content-range",
    "content-type",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_claim_for_whom_a_request_is_forwarded_is_forbidden_in_trailers() {
        for name in [
            "Forwarded",
            "x_forwarded_for",
            "X-Forwarded-Uri",
            "X-Real-IP",
        ] {
            assert!(is_forbidden(name), "{name}");
        }
    }

    #[test]
    fn framing_and_routing_fields_are_forbidden_in_trailers() {
        for name in FORBIDDEN {
            assert!(is_forbidden(name));
            assert!(is_forbidden(&name.to_ascii_uppercase()));
            assert!(is_forbidden(&name.replace('-', "_")));
            assert_eq!(*name, name.to_ascii_lowercase());
        }
        for name in [
            "Server-Timing",
            "Grpc-Status",
            "ETag",
            "Digest",
            "Host2",
            "Tee",
            "x",
        ] {
            assert!(!is_forbidden(name), "{name} is lost");
        }
    }
}
