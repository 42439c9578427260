//! How long the content of a message is (RFC 9112 §6.3).
//!
//! The RFC says which of several contradictory fields wins. We refuse to choose: a recipient on the
//! other side may choose differently (§11.2). What has one reading only is repaired before, in
//! responses ([`parse_response_leniently`](crate::parse_response_leniently)). Our readings where
//! the text permits several:
//!
//! * Content-Length at most once, in at most 19 digits, at most [`CONTENT_LENGTH_MAX`]. Neither a
//!   second line nor a list of equal values is repaired (§6.3 allows that).
//! * Transfer-Encoding is one line that says `chunked` and nothing else, in HTTP/1.1 (§6.1), never
//!   with Content-Length.
//! * `Content_Length` and `Transfer_Encoding` are refused: some recipients take them for the true
//!   names.
//! * A 1xx or 204 response with framing fields is refused, as §6.3 and the fields disagree about
//!   the bytes that follow; `Content-Length: 0` in a 204 is common and agrees. A 2xx to CONNECT may
//!   say anything: RFC 9110 §9.3.6 has us ignore it, and what follows is a tunnel.
//! * To HEAD, and in a 304, the fields describe the content that is not there; they must still be
//!   well formed.

use core::error::Error;
use core::fmt;

use weir_semantics::{FieldLine, Known, Method, identify, is_same_field};

use crate::head::Version;

/// The greatest Content-Length: 2^63 - 1 bytes, because recipients that count in signed integers
/// see more as negative.
pub const CONTENT_LENGTH_MAX: u64 = i64::MAX.unsigned_abs();

pub(crate) const CONTENT_LENGTH_BYTES: usize = Known::ContentLength.as_str().len();
pub(crate) const TRANSFER_ENCODING_BYTES: usize = Known::TransferEncoding.as_str().len();

/// The digits of [`CONTENT_LENGTH_MAX`]. Leading zeros count: no sender writes them to help.
pub(crate) const CONTENT_LENGTH_DIGITS_MAX: usize = 19;

/// How the end of the content is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no content: the message ends with its head.
    None,
    /// So many bytes follow the head.
    Exact(u64),
    /// Chunks follow, then a trailer section (RFC 9112 §7.1).
    Chunked,
    /// All bytes until the connection closes. Responses only.
    UntilClose,
}

/// Why it cannot be said without doubt where a message ends.
///
/// `Display` is a fragment that fits "failed to find the end of the message: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramingError {
    /// Both Transfer-Encoding and Content-Length are there.
    BothLengths,
    /// There are several Content-Length lines, alike or not.
    RepeatedContentLength,
    /// A Content-Length is not digits only: a list, a sign, hexadecimal, empty.
    ContentLength,
    /// A Content-Length is greater than [`CONTENT_LENGTH_MAX`], or has more digits than that.
    ContentLengthTooLarge,
    /// There are several Transfer-Encoding lines.
    RepeatedTransferEncoding,
    /// A Transfer-Encoding is not exactly `chunked`.
    TransferEncoding,
    /// A Transfer-Encoding is well formed and ends in `chunked`, with codings before it that we do
    /// not speak.
    UnknownCoding,
    /// A Transfer-Encoding in a message of HTTP/1.0, which has none.
    TransferEncodingInHttp10,
    /// A response that cannot have content has fields that say where it ends.
    LengthOfNothing,
    /// A field name is that of a framing field but for underscores.
    Lookalike,
}

impl FramingError {
    /// The status with which a request that fails so is answered, before the connection is closed:
    /// 400 or 501.
    ///
    /// A response that fails so becomes a 502, whatever the reason.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            // RFC 9112 §6.1
            Self::UnknownCoding => 501,
            _ => 400,
        }
    }
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BothLengths => "both Transfer-Encoding and Content-Length",
            Self::RepeatedContentLength => "more than one Content-Length line",
            Self::ContentLength => "Content-Length is not digits only",
            Self::ContentLengthTooLarge => "Content-Length is too large",
            Self::RepeatedTransferEncoding => "more than one Transfer-Encoding line",
            Self::TransferEncoding => "Transfer-Encoding is not `chunked`",
            Self::UnknownCoding => "Transfer-Encoding has codings other than `chunked`",
            Self::TransferEncodingInHttp10 => "Transfer-Encoding in HTTP/1.0",
            Self::LengthOfNothing => "a length in a response that has no content",
            Self::Lookalike => {
                "a field name is Content-Length or Transfer-Encoding with an underscore"
            }
        })
    }
}

impl Error for FramingError {}

/// How long the content of a request is. Never [`BodyLength::UntilClose`].
///
/// The method has no say (RFC 9112 §6.3): a GET can have content, and so can a CONNECT, to which
/// RFC 9110 §9.3.6 gives no meaning; whether to accept that is the caller's decision.
///
/// # Errors
///
/// Any doubt about where the request ends. The connection must then be closed, for nothing that
/// follows can be read.
pub fn request_body(
    version: Version,
    fields: &[FieldLine<'_>],
) -> Result<BodyLength, FramingError> {
    Ok(declared(version, fields)?.unwrap_or(BodyLength::None))
}

/// How long the content of a response to `request_method` is.
///
/// # Errors
///
/// Any doubt about where the response ends. The connection must then be closed, for nothing that
/// follows can be read.
pub fn response_body(
    version: Version,
    request_method: Method,
    status: u16,
    fields: &[FieldLine<'_>],
) -> Result<BodyLength, FramingError> {
    if request_method == Method::Connect && (200..300).contains(&status) {
        return Ok(BodyLength::None);
    }
    let declared = declared(version, fields)?;
    match (status, declared) {
        (100..200, None) | (204, None | Some(BodyLength::Exact(0))) => Ok(BodyLength::None),
        (100..200 | 204, Some(_)) => Err(FramingError::LengthOfNothing),
        (304, _) => Ok(BodyLength::None),
        _ if request_method == Method::Head => Ok(BodyLength::None),
        (_, declared) => Ok(declared.unwrap_or(BodyLength::UntilClose)),
    }
}

/// What the fields say about the length, if they say anything.
fn declared(
    version: Version,
    fields: &[FieldLine<'_>],
) -> Result<Option<BodyLength>, FramingError> {
    let mut content_length = None;
    let mut transfer_encoding = None;
    for line in fields {
        // lengths first: nearly all lines have another
        let field = match line.name.len() {
            CONTENT_LENGTH_BYTES => Known::ContentLength,
            TRANSFER_ENCODING_BYTES => Known::TransferEncoding,
            _ => continue,
        };
        if !is_named(line.name, field)? {
            continue;
        }
        if field == Known::ContentLength {
            if content_length.replace(line.value).is_some() {
                return Err(FramingError::RepeatedContentLength);
            }
        } else if transfer_encoding.replace(line.value).is_some() {
            return Err(FramingError::RepeatedTransferEncoding);
        }
    }
    match (transfer_encoding, content_length) {
        (None, None) => Ok(None),
        (None, Some(value)) => Ok(Some(BodyLength::Exact(parse_content_length(value)?))),
        (Some(_), Some(_)) => Err(FramingError::BothLengths),
        (Some(_), None) if version == Version::Http10 => {
            Err(FramingError::TransferEncodingInHttp10)
        }
        (Some(value), None) if value.eq_ignore_ascii_case(b"chunked") => {
            Ok(Some(BodyLength::Chunked))
        }
        (Some(value), None) => Err(unusable_coding(value)),
    }
}

/// Is the name, which has the same length, this framing field's? Nearly is an error.
fn is_named(name: &str, framing_field: Known) -> Result<bool, FramingError> {
    if identify(name) == Some(framing_field) {
        Ok(true)
    } else if is_same_field(name, framing_field.as_str()) {
        Err(FramingError::Lookalike)
    } else {
        Ok(false)
    }
}

/// Is it digits and nothing else?
pub(crate) fn is_digits(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

fn parse_content_length(value: &[u8]) -> Result<u64, FramingError> {
    if !is_digits(value) {
        return Err(FramingError::ContentLength);
    }
    if value.len() > CONTENT_LENGTH_DIGITS_MAX {
        return Err(FramingError::ContentLengthTooLarge);
    }
    // nineteen digits are less than 10^19, and that is less than 2^64
    let length = value
        .iter()
        .fold(0, |length, digit| length * 10 + u64::from(digit - b'0'));
    if length > CONTENT_LENGTH_MAX {
        Err(FramingError::ContentLengthTooLarge)
    } else {
        Ok(length)
    }
}

/// Distinguishes an unknown coding (501) from one that leaves the end in doubt (400): RFC 9112
/// §6.1, §6.3.
fn unusable_coding(value: &[u8]) -> FramingError {
    const KNOWN: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"];
    let mut codings = value.rsplit(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let last = codings.next();
    let chunked_is_last = last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
    if chunked_is_last
        && codings.all(|coding| KNOWN.iter().any(|known| coding.eq_ignore_ascii_case(known)))
    {
        FramingError::UnknownCoding
    } else {
        FramingError::TransferEncoding
    }
}
