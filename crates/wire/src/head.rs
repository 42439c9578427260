//! Heads: the start line and the header section (RFC 9112 §2 to §5).
//!
//! The grammar is read by `httparse`, and what that lets pass is refused here: bare line feeds,
//! empty lines before a status line, non-ASCII targets. Our readings where the text permits
//! several:
//!
//! * Empty lines before a request line are skipped (§2.2 requires that of at least one) if they are
//!   CRLF and at most [`EMPTY_LINES_MAX`]; before a status line there are none.
//! * HTTP/1.2 to HTTP/1.9 do not exist and are refused; a request without a version is HTTP/0.9 and
//!   refused.
//! * In responses some of this is read after all:
//!   [`parse_response_leniently`](crate::parse_response_leniently).
//! * A status line may end after the status code: many servers omit the space (§4 calls for it),
//!   and nothing can be misread. A status code below 100 is refused; 600 to 999 pass, as their
//!   framing is that of any final response.
//! * obs-text in field values passes untouched (RFC 9110 §5.5). A reason phrase that holds it reads
//!   as empty.

use alloc::vec;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use weir_semantics::words;

use httparse::{EMPTY_HEADER, Header, Status};
use weir_semantics::FieldLine;

use crate::head_error::HeadError;
use crate::head_fault::{self, StartLine};
use crate::line_buffer::{FIELDS_CAPACITY, LineBuffer, REQUEST_FIELDS_CAPACITY};
use crate::octet::has_bare_lf;

/// How many empty lines before a request line are skipped.
///
/// RFC 9112 §2.2 requires that of at least one; old clients sent one after a POST. More than a few
/// is no client.
pub const EMPTY_LINES_MAX: usize = 4;

/// What a header or trailer section may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The most bytes from the first byte to the empty line that ends the section, both included.
    /// Default 65536; others allow 8 KiB (httpd, a line) to 64 KiB (Squid).
    pub bytes_max: usize,
    /// The most field lines, at most [`FIELDS_CAPACITY`], in a request [`REQUEST_FIELDS_CAPACITY`];
    /// greater values mean that. Default 128.
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self {
            bytes_max: 65_536,
            fields_max: REQUEST_FIELDS_CAPACITY,
        }
    }
}

impl HeadLimits {
    /// The part of `buf` in which a head within the limit ends.
    pub(crate) fn window<'a>(&self, buf: &'a [u8]) -> &'a [u8] {
        &buf[..buf.len().min(self.bytes_max)]
    }

    /// The number of slots for field lines.
    pub(crate) fn fields(&self) -> usize {
        self.fields_max.min(FIELDS_CAPACITY)
    }

    /// The same limits, and no more field lines than a request can have.
    fn of_request(self) -> Self {
        Self {
            fields_max: self.fields_max.min(REQUEST_FIELDS_CAPACITY),
            ..self
        }
    }
}

words! {
    /// The versions we speak (RFC 9112 §2.3).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Version {
        /// HTTP/1.0 (RFC 1945): no transfer codings, connections end unless both sides say
        /// otherwise.
        Http10 = "HTTP/1.0",
        /// HTTP/1.1.
        Http11 = "HTTP/1.1",
    }
}

impl Version {
    const fn from_minor(minor: u8) -> Self {
        if minor == 0 {
            Self::Http10
        } else {
            Self::Http11
        }
    }
}

/// The head of a request, borrowed from the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'s, 'a> {
    /// The method as received: a token, case kept.
    pub method: &'a str,
    /// The request-target as received: visible ASCII, at least one character, in no form checked
    /// yet.
    pub target: &'a str,
    /// The version.
    pub version: Version,
    /// The field lines in order of arrival.
    pub fields: &'s [FieldLine<'a>],
}

/// The head of a response, borrowed from the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'s, 'a> {
    /// The version.
    pub version: Version,
    /// The status code, 100 to 999.
    pub status: u16,
    /// The reason phrase; empty if there is none or if it holds obs-text.
    pub reason: &'a str,
    /// The field lines in order of arrival.
    pub fields: &'s [FieldLine<'a>],
}

/// Whether the bytes hold a whole head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// They do.
    Complete {
        /// The head.
        head: T,
        /// The bytes of the head, its empty line and skipped empty lines before it included.
        /// Content begins here.
        consumed: usize,
    },
    /// They do not yet, and nothing is wrong so far. Call again with the same bytes and more.
    Partial,
}

/// Reads the head of a request from the beginning of `buf`.
///
/// Each call reads from the beginning. For a head that arrives in pieces, let
/// [`Arrival`](crate::Arrival) say when a call is worth it; the cost then stays linear in the bytes
/// of the head.
///
/// # Errors
///
/// The first fault in the order of the bytes; [`HeadError::TooLarge`] or
/// [`HeadError::RequestLineTooLong`] as soon as the head cannot end within
/// [`HeadLimits::bytes_max`].
pub fn parse_request<'s, 'a>(
    buf: &'a [u8],
    limits: &HeadLimits,
    lines: &'s mut LineBuffer<'a>,
) -> Result<Progress<RequestHead<'s, 'a>>, HeadError> {
    let limits = &limits.of_request();
    let window = limits.window(buf);
    let full = window.len() >= limits.bytes_max;
    let Some(skipped) = skip_empty_lines(window)? else {
        return partial(StartLine::Request, b"", full).map(unread);
    };
    let text = &window[skipped..];
    let mut slots = [const { MaybeUninit::uninit() }; REQUEST_FIELDS_CAPACITY];
    let mut request = httparse::Request::new(&mut []);
    let consumed = match request.parse_with_uninit_headers(text, &mut slots[..limits.fields()]) {
        Ok(Status::Complete(consumed)) => consumed,
        Ok(Status::Partial) => return partial(StartLine::Request, text, full).map(unread),
        Err(error) => {
            return refuse(StartLine::Request, text, full, limits.fields(), error).map(unread);
        }
    };
    if has_bare_lf(&text[..consumed]) {
        return Err(HeadError::BareLf);
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(HeadError::RequestLine);
    };
    if !target.is_ascii() {
        return Err(HeadError::RequestLine);
    }
    let fields = lines.fill(request.headers);
    let head = RequestHead {
        method,
        target,
        version: Version::from_minor(minor),
        fields,
    };
    Ok(Progress::Complete {
        head,
        consumed: skipped + consumed,
    })
}

/// Reads the head of a response from the beginning of `buf`.
///
/// As [`parse_request`], except that nothing may stand before the status line.
///
/// # Errors
///
/// The first fault in the order of the bytes, or [`HeadError::TooLarge`].
pub fn parse_response<'s, 'a>(
    buf: &'a [u8],
    limits: &HeadLimits,
    lines: &'s mut LineBuffer<'a>,
) -> Result<Progress<ResponseHead<'s, 'a>>, HeadError> {
    Ok(match status_and_fields(buf, limits, lines)? {
        None => Progress::Partial,
        Some((status_line, consumed)) => Progress::Complete {
            head: status_line.with(lines),
            consumed,
        },
    })
}

/// A status line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusLine<'a> {
    pub(crate) version: Version,
    pub(crate) status: u16,
    pub(crate) reason: &'a str,
}

impl<'a> StatusLine<'a> {
    /// The head that it begins.
    pub(crate) fn with<'s>(self, lines: &'s LineBuffer<'a>) -> ResponseHead<'s, 'a> {
        ResponseHead {
            version: self.version,
            status: self.status,
            reason: self.reason,
            fields: lines.lines(),
        }
    }
}

/// Reads the head of a response into `lines`. Its status line and its length; `None` if it is not
/// all there.
pub(crate) fn status_and_fields<'a>(
    buf: &'a [u8],
    limits: &HeadLimits,
    lines: &mut LineBuffer<'a>,
) -> Result<Option<(StatusLine<'a>, usize)>, HeadError> {
    let text = limits.window(buf);
    if matches!(text.first(), Some(b'\r' | b'\n')) {
        return Err(HeadError::StatusLine);
    }
    let mut slots = [const { MaybeUninit::uninit() }; REQUEST_FIELDS_CAPACITY];
    let fields_max = limits.fields();
    let count = fields_max.min(slots.len());
    match status_and_fields_in(text, limits, &mut slots[..count], lines) {
        Err(HeadError::TooManyFields) if count < fields_max => {
            let mut slots = Vec::with_capacity(fields_max);
            let slots = &mut slots.spare_capacity_mut()[..fields_max];
            status_and_fields_in(text, limits, slots, lines)
        }
        read => read,
    }
}

/// The same with these slots. They may be fewer than `limits` allow.
fn status_and_fields_in<'a>(
    text: &'a [u8],
    limits: &HeadLimits,
    slots: &mut [MaybeUninit<Header<'a>>],
    lines: &mut LineBuffer<'a>,
) -> Result<Option<(StatusLine<'a>, usize)>, HeadError> {
    let full = text.len() >= limits.bytes_max;
    let slot_count = slots.len();
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        text,
        slots,
    );
    let consumed = match parsed {
        Ok(Status::Complete(consumed)) => consumed,
        Ok(Status::Partial) => return partial(StartLine::Status, text, full),
        Err(error) => return refuse(StartLine::Status, text, full, slot_count, error),
    };
    if has_bare_lf(&text[..consumed]) {
        return Err(HeadError::BareLf);
    }
    let (Some(status @ 100..), Some(reason), Some(minor)) =
        (response.code, response.reason, response.version)
    else {
        return Err(HeadError::StatusLine);
    };
    lines.fill(response.headers);
    let status_line = StatusLine {
        version: Version::from_minor(minor),
        status,
        reason,
    };
    Ok(Some((status_line, consumed)))
}

/// Reads a header or trailer section that stands alone: no start line, whole, with or without the
/// empty line at its end.
///
/// # Errors
///
/// A fault as in [`parse_request`]; [`HeadError::LineEnd`] if the last line is not whole,
/// [`HeadError::AfterEnd`] if bytes follow the empty line, [`HeadError::TooManyFields`] for more
/// than [`FIELDS_CAPACITY`] lines.
pub fn parse_fields<'s, 'a>(
    block: &'a [u8],
    lines: &'s mut LineBuffer<'a>,
) -> Result<&'s [FieldLine<'a>], HeadError> {
    // httparse has no uninitialised storage here, and few sections have more lines than this
    const USUAL: usize = 24;
    let mut slots = [EMPTY_HEADER; USUAL];
    match fields_into(block, &mut slots) {
        Ok(count) => Ok(lines.fill(&slots[..count])),
        Err(HeadError::TooManyFields) => {
            let line_count = memchr::memchr_iter(b'\n', block).count();
            let mut slots = vec![EMPTY_HEADER; line_count.min(FIELDS_CAPACITY)];
            fields_into(block, &mut slots).map(|count| lines.fill(&slots[..count]))
        }
        Err(error) => Err(error),
    }
}

/// Reads the section into `slots` and says how many lines it has.
fn fields_into<'a>(
    block: &'a [u8],
    slots: &mut [httparse::Header<'a>],
) -> Result<usize, HeadError> {
    if has_bare_lf(block) {
        return Err(HeadError::BareLf);
    }
    match httparse::parse_headers(block, slots) {
        Ok(Status::Complete((consumed, _))) if consumed < block.len() => {
            return Err(HeadError::AfterEnd);
        }
        Ok(Status::Complete((_, headers))) => return Ok(headers.len()),
        Ok(Status::Partial) if !block.is_empty() && !block.ends_with(b"\r\n") => {
            return Err(HeadError::LineEnd);
        }
        Ok(Status::Partial) => {}
        Err(error) => return Err(head_fault::in_fields(block, error)),
    }
    // every line is whole and only the empty line is absent; a name is never empty, so the count
    // shows
    Ok(slots
        .iter()
        .take_while(|slot| !slot.name.is_empty())
        .count())
}

/// How many bytes of empty lines stand before the request line, or `None` if it is too early to
/// say.
#[inline]
fn skip_empty_lines(window: &[u8]) -> Result<Option<usize>, HeadError> {
    for line in 0..=EMPTY_LINES_MAX {
        match window[2 * line..] {
            [] | [b'\r'] => return Ok(None),
            [b'\r', b'\n', ..] => {}
            [b'\r', ..] => return Err(HeadError::LineEnd),
            [b'\n', ..] => return Err(HeadError::BareLf),
            _ => return Ok(Some(2 * line)),
        }
    }
    Err(HeadError::EmptyLines)
}

/// No head yet.
fn unread<T>(_: Option<T>) -> Progress<T> {
    Progress::Partial
}

/// The answer when the text ends before the head does. `full`: no byte more may belong to the head.
#[cold]
fn partial<T>(start: StartLine, text: &[u8], full: bool) -> Result<Option<T>, HeadError> {
    if has_bare_lf(text) {
        Err(HeadError::BareLf)
    } else if !full {
        Ok(None)
    } else if start == StartLine::Request && !text.contains(&b'\n') {
        Err(HeadError::RequestLineTooLong)
    } else {
        Err(HeadError::TooLarge)
    }
}

/// The answer when the text of a response ends before its head does, whatever its line ends are.
pub(crate) fn partial_head<T>(text: &[u8], limits: &HeadLimits) -> Result<Option<T>, HeadError> {
    if text.len() >= limits.bytes_max {
        Err(HeadError::TooLarge)
    } else {
        Ok(None)
    }
}

/// The answer when `httparse` found a fault.
#[cold]
fn refuse<T>(
    start: StartLine,
    text: &[u8],
    full: bool,
    fields_max: usize,
    error: httparse::Error,
) -> Result<Option<T>, HeadError> {
    match head_fault::first(start, text, fields_max, error) {
        Some(fault) => Err(fault),
        None => partial(start, text, full),
    }
}
