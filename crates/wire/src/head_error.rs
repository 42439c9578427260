//! What can be wrong with a head.

use core::error::Error;
use core::fmt;

/// Why a head, or a header or trailer section, is refused.
///
/// `Display` is a fragment that fits "failed to read the head: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadError {
    /// The head has more bytes than [`HeadLimits::bytes_max`](crate::HeadLimits::bytes_max).
    TooLarge,
    /// The request line alone has more bytes than
    /// [`HeadLimits::bytes_max`](crate::HeadLimits::bytes_max).
    RequestLineTooLong,
    /// There are more field lines than [`HeadLimits::fields_max`](crate::HeadLimits::fields_max).
    TooManyFields,
    /// More than [`EMPTY_LINES_MAX`](crate::EMPTY_LINES_MAX) empty lines stand before the request
    /// line.
    EmptyLines,
    /// The request line is not `method SP request-target SP HTTP-version` (RFC 9112 §3).
    RequestLine,
    /// The request line has no version: HTTP/0.9.
    Http09,
    /// The status line is not `HTTP-version SP status-code [SP reason-phrase]` (RFC 9112 §4).
    StatusLine,
    /// The version is well formed and neither HTTP/1.0 nor HTTP/1.1.
    UnsupportedVersion,
    /// A line feed stands without a carriage return before it (RFC 9112 §2.2).
    BareLf,
    /// A line ends in something else than CRLF, such as a carriage return alone (RFC 9112 §2.2).
    LineEnd,
    /// A field line begins with whitespace: obs-fold, or space before the first field (RFC 9112
    /// §5.2, §2.2).
    ObsFold,
    /// Whitespace stands in a field name or between it and the colon (RFC 9112 §5.1).
    SpaceInName,
    /// A field name is empty, has no colon after it, or holds an octet that is no token character.
    FieldName,
    /// A field value holds NUL, CR or another control character (RFC 9110 §5.5).
    FieldValue,
    /// The `Connection` lines name [too
    /// many](weir_semantics::ConnectionOptions::are_too_many) options, as the users of this crate
    /// find that.
    ConnectionOptions,
    /// Bytes follow the empty line that ends a field section which should be alone.
    AfterEnd,
}

impl HeadError {
    /// The status with which a request that fails so is answered: 400, 414, 431 or 505.
    ///
    /// A response that fails so becomes a 502, whatever the reason.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            // RFC 9112 §3: a request-target longer than one wishes to parse is a 414, and it is a
            // MUST
            Self::RequestLineTooLong => 414,
            Self::TooLarge | Self::TooManyFields => 431,
            Self::UnsupportedVersion => 505,
            _ => 400,
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the head has more bytes than allowed",
            Self::RequestLineTooLong => "the request line has more bytes than allowed",
            Self::TooManyFields => "the head has more field lines than allowed",
            Self::EmptyLines => "too many empty lines before the request line",
            Self::RequestLine => "the request line is not a method, a target and a version with one space between them",
            Self::Http09 => "the request line has no version (HTTP/0.9)",
            Self::StatusLine => "the status line is not a version, a status code and a reason phrase",
            Self::UnsupportedVersion => "the version is neither HTTP/1.0 nor HTTP/1.1",
            Self::BareLf => "a line feed without a carriage return before it",
            Self::LineEnd => "a line does not end in carriage return and line feed",
            Self::ObsFold => "a field line begins with whitespace (line folding is refused)",
            Self::SpaceInName => "whitespace in a field name or before its colon",
            Self::FieldName => "a field name is empty, not a token, or without a colon",
            Self::FieldValue => "a field value holds a control character",
            Self::ConnectionOptions => "the head has more than 64 options in Connection, or 4096 bytes of them",
            Self::AfterEnd => "bytes follow the end of the field section",
        })
    }
}

impl Error for HeadError {}
