//! What can be wrong with a received message, on either side.

use core::error::Error;
use core::fmt;

use weir_wire::{BodyError, HeadError};

use crate::message::encapsulated::EncapsulatedError;
use crate::message::istag::IsTagError;
use crate::message::service_uri::ServiceUriError;

/// Why a message is refused. Nothing that follows on its connection can be read.
///
/// `Display` is a fragment that fits "failed to read the ICAP message: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageError {
    /// The ICAP head is refused: its size or its fields.
    Head(HeadError),
    /// The request line is not `method SP uri SP ICAP/1.0`.
    RequestLine,
    /// The method is a token and not one of ICAP.
    UnknownMethod,
    /// The URI of the service is refused.
    ServiceUri(ServiceUriError),
    /// The status line is not `ICAP/1.0 SP three digits [SP reason]`.
    StatusLine,
    /// The version is well formed and not ICAP/1.0.
    UnsupportedVersion,
    /// A field that may stand once stands several times, or is a list where it is none.
    RepeatedField(&'static str),
    /// The request has no `Host`.
    MissingHost,
    /// The value of this field is malformed.
    FieldValue(&'static str),
    /// The head has `Transfer-Encoding` or a `Content-Length` other than 0: `Encapsulated` alone
    /// frames an ICAP message.
    FramingField,
    /// `Preview` is greater than [`Limits::preview_bytes_max`](crate::Limits::preview_bytes_max).
    PreviewTooLarge,
    /// `Encapsulated` is refused.
    Encapsulated(EncapsulatedError),
    /// An encapsulated head is larger than
    /// [`Limits::http_head`](crate::Limits::http_head) allows.
    EncapsulatedHeadTooLarge,
    /// The encapsulated request head is refused.
    RequestHead(HeadError),
    /// The encapsulated response head is refused.
    ResponseHead(HeadError),
    /// An encapsulated head does not end where `Encapsulated` has its end.
    EncapsulatedHeadEnd,
    /// The `Connection` fields of an encapsulated head have more than 64 options, or 4096 bytes
    /// ([`are_too_many`](weir_semantics::ConnectionOptions::are_too_many)).
    ConnectionOptions,
    /// The chunks of the content are refused.
    Content(BodyError),
    /// A chunk has an extension other than the `ieof` of a preview's last chunk.
    ChunkExtension,
    /// `ieof` stands at the last chunk of content that is no preview.
    IeofOutsidePreview,
    /// A preview has more bytes than its `Preview` field.
    PreviewExceeded,
    /// A preview that is not the whole content is shorter than its `Preview` field.
    PreviewShort,
    /// A preview has a trailer section and is not the whole content.
    TrailersInPreview,
    /// The `ISTag` is refused.
    IsTag(IsTagError),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head(error) => return write!(f, "in the ICAP head: {error}"),
            Self::ServiceUri(error) => return error.fmt(f),
            Self::RepeatedField(name) => return write!(f, "{name} stands more than once"),
            Self::FieldValue(name) => return write!(f, "the value of {name} is malformed"),
            Self::Encapsulated(error) => return write!(f, "in Encapsulated: {error}"),
            Self::RequestHead(error) => return write!(f, "in the HTTP request head: {error}"),
            Self::ResponseHead(error) => return write!(f, "in the HTTP response head: {error}"),
            Self::Content(error) => return write!(f, "in the content: {error}"),
            Self::IsTag(error) => return write!(f, "in the ISTag: {error}"),
            Self::RequestLine => "the request line is not a method, a URI and a version",
            Self::UnknownMethod => "the method is not one of ICAP",
            Self::StatusLine => "the status line is not a version, a status code and a reason",
            Self::UnsupportedVersion => "the version is not ICAP/1.0",
            Self::MissingHost => "the request has no Host field",
            Self::FramingField => "a Content-Length or Transfer-Encoding in an ICAP head",
            Self::PreviewTooLarge => "the preview has more bytes than allowed",
            Self::EncapsulatedHeadTooLarge => "an HTTP head has more bytes than allowed",
            Self::EncapsulatedHeadEnd => "an HTTP head does not end where Encapsulated has its end",
            Self::ConnectionOptions => {
                "an HTTP head has more than 64 connection options, or 4096 bytes of them"
            }
            Self::ChunkExtension => "a chunk has an extension",
            Self::IeofOutsidePreview => "`ieof` outside of a preview",
            Self::PreviewExceeded => "the preview has more bytes than its Preview field",
            Self::PreviewShort => "the preview is shorter than its Preview field without `ieof`",
            Self::TrailersInPreview => "a trailer section in a preview",
        })
    }
}

impl Error for MessageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::Head(error) | Self::RequestHead(error) | Self::ResponseHead(error) => error,
            Self::ServiceUri(error) => error,
            Self::Encapsulated(error) => error,
            Self::Content(error) => error,
            Self::IsTag(error) => error,
            _ => return None,
        })
    }
}
