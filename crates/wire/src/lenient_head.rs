//! Response heads that are not as the grammar has them, and that the RFCs say how to read.
//!
//! For responses only: a request that two parsers read differently can carry another one past the
//! first. A response is serialised again for the client, in canonical form, so no recipient sees
//! the repaired bytes. [`Repairs`] says that the connection must not be used for another response:
//! a recipient that finds another end of this one would read the next one from there.
//!
//! | read | refused |
//! | --- | --- |
//! | lines that end in LF (RFC 9112 §2.2), alone or among lines that end in CRLF | CR elsewhere |
//! | spaces and tabs before a colon, removed (§5.1) | in a name, before a name, folded lines (§5.2) |
//! | HTTP/1.2 to HTTP/1.9, as 1.1 (RFC 9110 §2.5) | other majors, two digits, lower case |
//! | equal Content-Lengths in several lines or a list, as one (§6.3) | different ones, `5, 05`, `5,`, with Transfer-Encoding |
//! | framing fields in 1xx and 204, dropped (§6.3) | malformed ones, Content-Length with Transfer-Encoding |
//! | empty elements beside one `chunked` (RFC 9110 §5.6.1.2) | other codings, two lines, HTTP/1.0, only commas |
//!
//! **LF among CRLF.** §2.2 makes each LF the end of a line, without a condition on the other lines;
//! CGI scripts behind a server that writes its own lines with CRLF send such heads, and clients
//! read them. RFC 9110 §5.5 would also allow to take a LF within a value for a space. So the LF may
//! be one that a user of the origin put into a value (response splitting, RFC 9112 §11.1): a lone
//! client is exposed to that without us too, but it must not reach the other clients.
//! [`Repairs::mixed_line_ends`] reports it, and such a response is not stored.

use alloc::vec::Vec;
use core::str;

use weir_semantics::FieldLine;

use crate::head::{
    HeadLimits, Progress, ResponseHead, StatusLine, Version, partial_head, status_and_fields,
};
use crate::head_error::HeadError;
use crate::lenient_framing;
use crate::line_buffer::LineBuffer;
use crate::octet::{is_field_byte, is_token};

/// What was repaired in a response head. Where anything was, the connection must not be used for
/// another response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// The ends of its lines, a name or the version.
    pub lines: bool,
    /// Some lines end in LF and some in CRLF: the response must not reach other clients than that
    /// of its request.
    pub mixed_line_ends: bool,
    /// The fields that frame the content.
    pub framing: bool,
}

impl Repairs {
    /// Was anything repaired?
    #[must_use]
    pub const fn any(self) -> bool {
        self.lines || self.framing
    }
}

/// As [`parse_response`](crate::parse_response), and reads what the RFCs say how to read. The
/// fields are those that a strict recipient reads alike: equal lengths as one, none where there is
/// no content.
///
/// # Errors
///
/// As [`parse_response`](crate::parse_response), for what stays refused.
pub fn parse_response_leniently<'s, 'a>(
    buf: &'a [u8],
    limits: &HeadLimits,
    lines: &'s mut LineBuffer<'a>,
) -> Result<Progress<(ResponseHead<'s, 'a>, Repairs)>, HeadError> {
    let mut repairs = Repairs::default();
    let read = match status_and_fields(buf, limits, lines) {
        Err(error) if is_repairable(error, buf) => {
            repairs.lines = true;
            read(limits.window(buf), limits, lines, &mut repairs)
        }
        read => read,
    };
    let Some((status_line, consumed)) = read? else {
        return Ok(Progress::Partial);
    };
    repairs.framing = lenient_framing::repair(status_line.version, status_line.status, lines);
    Ok(Progress::Complete {
        head: (status_line.with(lines), repairs),
        consumed,
    })
}

/// May the head be read in spite of this, which is the first fault in it?
fn is_repairable(error: HeadError, buf: &[u8]) -> bool {
    match error {
        HeadError::BareLf | HeadError::SpaceInName => true,
        HeadError::UnsupportedVersion => buf.starts_with(b"HTTP/1."),
        _ => false,
    }
}

/// Reads a head line by line; `None` if it is not all there.
fn read<'a>(
    text: &'a [u8],
    limits: &HeadLimits,
    lines: &mut LineBuffer<'a>,
    repairs: &mut Repairs,
) -> Result<Option<(StatusLine<'a>, usize)>, HeadError> {
    let mut rest = Lines::new(text);
    let Some(line) = rest.next() else {
        return partial_head(text, limits);
    };
    let status_line = status_line(line)?;
    let mut fields = Vec::new();
    while let Some(line) = rest.next() {
        if line.is_empty() {
            repairs.mixed_line_ends = rest.are_mixed();
            lines.replace(fields);
            return Ok(Some((status_line, rest.at)));
        }
        if fields.len() == limits.fields() {
            return Err(HeadError::TooManyFields);
        }
        fields.push(field_line(line)?);
    }
    partial_head(text, limits)
}

/// The lines of a head.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    has_lf: bool,
    has_crlf: bool,
}

impl<'a> Lines<'a> {
    const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            has_lf: false,
            has_crlf: false,
        }
    }

    /// The next line without its end; `None` if that has not come. RFC 9112 §2.2: LF ends it, and a
    /// CR before that is ignored.
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.text[self.at..];
        let line_feed = memchr::memchr(b'\n', rest)?;
        self.at += line_feed + 1;
        let line = &rest[..line_feed];
        let stripped = line.strip_suffix(b"\r");
        self.has_crlf |= stripped.is_some();
        self.has_lf |= stripped.is_none();
        Some(stripped.unwrap_or(line))
    }

    const fn are_mixed(&self) -> bool {
        self.has_lf && self.has_crlf
    }
}

/// RFC 9112 §4: a version of HTTP/1, a status code and a reason phrase.
fn status_line(line: &[u8]) -> Result<StatusLine<'_>, HeadError> {
    let Some((version, [b' ', a, b, c, rest @ ..])) = line.split_at_checked(8) else {
        return Err(HeadError::StatusLine);
    };
    let version = match version {
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => Version::Http11,
        _ => return Err(HeadError::StatusLine),
    };
    let reason = match rest {
        [] => rest,
        [b' ', reason @ ..] => reason,
        _ => return Err(HeadError::StatusLine),
    };
    let mut status = 0;
    for digit in [a, b, c] {
        if !digit.is_ascii_digit() {
            return Err(HeadError::StatusLine);
        }
        status = status * 10 + u16::from(digit - b'0');
    }
    if status < 100 || !reason.iter().copied().all(is_field_byte) {
        return Err(HeadError::StatusLine);
    }
    Ok(StatusLine {
        version,
        status,
        // obs-text reads as empty, as in the strict reading
        reason: str::from_utf8(reason)
            .ok()
            .filter(|reason| reason.is_ascii())
            .unwrap_or(""),
    })
}

/// RFC 9112 §5 and §5.1: whitespace before the colon is removed.
fn field_line(line: &[u8]) -> Result<FieldLine<'_>, HeadError> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(HeadError::ObsFold);
    }
    let colon = memchr::memchr(b':', line).ok_or(HeadError::FieldName)?;
    let padded = &line[..colon];
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let spaces = padded
        .iter()
        .rev()
        .take_while(|byte| is_space(byte))
        .count();
    let name = &padded[..padded.len() - spaces];
    if !is_token(name) {
        return Err(if name.iter().any(is_space) {
            HeadError::SpaceInName
        } else {
            HeadError::FieldName
        });
    }
    let value = &line[colon + 1..];
    if !value.iter().copied().all(is_field_byte) {
        return Err(HeadError::FieldValue);
    }
    Ok(FieldLine {
        name: str::from_utf8(name).map_err(|_| HeadError::FieldName)?,
        value: value.trim_ascii(),
    })
}
