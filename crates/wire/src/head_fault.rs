//! Naming the first fault of a head. Slow, and only reached when a head is refused.
//!
//! `httparse` takes a bare line feed for the end of a line and says of a fault only its kind. Here
//! the text is looked at again, so that what is reported depends on the first faulty byte and on
//! nothing after it: a head is refused for the same reason whether it arrives whole or byte by
//! byte.

use alloc::vec::Vec;

use httparse::{Error, ParserConfig};

use crate::head_error::HeadError;
use crate::octet::{find_bare_lf, is_tchar, is_token};

/// Which start line a head has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartLine {
    Request,
    Status,
}

impl StartLine {
    /// The fault `httparse` sees in `text`, if it sees one.
    fn fault(self, text: &[u8], fields_max: usize) -> Option<Error> {
        let mut slots = Vec::with_capacity(fields_max);
        let slots = &mut slots.spare_capacity_mut()[..fields_max];
        match self {
            Self::Request => httparse::Request::new(&mut [])
                .parse_with_uninit_headers(text, slots)
                .err(),
            Self::Status => ParserConfig::default()
                .parse_response_with_uninit_headers(
                    &mut httparse::Response::new(&mut []),
                    text,
                    slots,
                )
                .err(),
        }
    }

    /// The fault of a start line that is none.
    const fn malformed(self) -> HeadError {
        match self {
            Self::Request => HeadError::RequestLine,
            Self::Status => HeadError::StatusLine,
        }
    }
}

/// The first fault of a head in which `httparse` found `error`; `None` if more bytes are needed.
pub(crate) fn first(
    start: StartLine,
    text: &[u8],
    fields_max: usize,
    error: Error,
) -> Option<HeadError> {
    let Some(bare_lf) = find_bare_lf(text) else {
        return name(start, text, error);
    };
    let before = &text[..bare_lf];
    let earlier = start
        .fault(before, fields_max)
        .and_then(|error| name(start, before, error));
    Some(earlier.unwrap_or(HeadError::BareLf))
}

/// The fault of a field section that stands alone.
pub(crate) fn in_fields(section: &[u8], error: Error) -> HeadError {
    match error {
        Error::HeaderName => field_name(section),
        Error::HeaderValue => HeadError::FieldValue,
        Error::TooManyHeaders => HeadError::TooManyFields,
        // the others are faults of start lines
        Error::NewLine | Error::Status | Error::Token | Error::Version => HeadError::LineEnd,
    }
}

/// Our name for `error`, in a text without a bare line feed.
fn name(start: StartLine, text: &[u8], error: Error) -> Option<HeadError> {
    match error {
        Error::Version => version(start, text),
        Error::Token => Some(request_line(text)),
        Error::Status => Some(HeadError::StatusLine),
        Error::NewLine | Error::HeaderName | Error::HeaderValue | Error::TooManyHeaders => {
            let section = memchr::memchr(b'\n', text).map_or(&b""[..], |end| &text[end + 1..]);
            Some(in_fields(section, error))
        }
    }
}

/// What is wrong with a version: malformed, or well formed and not ours, or not all there.
fn version(start: StartLine, text: &[u8]) -> Option<HeadError> {
    let (skipped, end) = match start {
        StartLine::Request => (2, b'\r'),
        StartLine::Status => (0, b' '),
    };
    let mut written = text
        .splitn(skipped + 1, |&byte| byte == b' ')
        .nth(skipped)?
        .iter();
    for expected in *b"HTTP/#.#" {
        let &byte = written.next()?;
        let fits = if expected == b'#' {
            byte.is_ascii_digit()
        } else {
            byte == expected
        };
        if !fits {
            return Some(start.malformed());
        }
    }
    let &after = written.next()?;
    Some(if after == end {
        HeadError::UnsupportedVersion
    } else {
        start.malformed()
    })
}

/// What is wrong with a request line that has no version where one should be.
fn request_line(text: &[u8]) -> HeadError {
    let mut parts = text.splitn(2, |&byte| byte == b' ');
    let (Some(method), Some(rest)) = (parts.next(), parts.next()) else {
        return HeadError::RequestLine;
    };
    let target_bytes = rest
        .iter()
        .take_while(|&&byte| byte > b' ' && byte != 0x7f)
        .count();
    let ends_line = rest.get(target_bytes) == Some(&b'\r');
    if is_token(method) && target_bytes > 0 && ends_line {
        HeadError::Http09
    } else {
        HeadError::RequestLine
    }
}

/// What is wrong with the first field name that is none.
fn field_name(section: &[u8]) -> HeadError {
    for line in section.split_inclusive(|&byte| byte == b'\n') {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return HeadError::ObsFold;
        }
        match line.iter().find(|&&byte| !is_tchar(byte)) {
            Some(b':') if line[0] != b':' => {}
            Some(b' ' | b'\t') => return HeadError::SpaceInName,
            _ => return HeadError::FieldName,
        }
    }
    HeadError::FieldName
}
