//! What a client requests, and its ICAP head (RFC 3507 §4.3.2).

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use weir_semantics::FieldLine;
use weir_wire::write;

use crate::limits::Limits;
use crate::message::encapsulated::{BodyPart, Encapsulated, EncapsulatedError, ListKind};
use crate::message::encapsulated_head::{LengthField, write_request_head, write_response_head};
use crate::message::error::MessageError;
use crate::message::fields::unusable_field;
use crate::message::method::Method;
use crate::message::service_uri::ServiceUri;
use crate::message::start_line::write_request_line;

/// A REQMOD or RESPMOD request.
#[derive(Clone, Copy, Debug)]
pub struct AdaptRequest<'a> {
    /// The service.
    pub service: &'a ServiceUri,
    /// Further fields of the ICAP head, such as `X-Client-IP`.
    pub fields: &'a [FieldLine<'a>],
    /// What is adapted.
    pub subject: Subject<'a>,
    /// Whether content follows; it may turn out empty.
    pub has_content: bool,
    /// How many bytes of content are sent before the server has to answer; `None`: no preview. A
    /// server may answer 204 to a preview, even if there is no content.
    pub preview: Option<u32>,
    /// Whether the server may answer 204 at any time: the whole content must then be kept for it.
    pub allow_204: bool,
}

/// What is adapted: heads as bytes, each whole with its empty line. Hop-by-hop fields are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A request (REQMOD).
    Request(&'a [u8]),
    /// A response (RESPMOD).
    Response {
        /// The head of the request that it answers.
        request: Option<&'a [u8]>,
        /// Its own head.
        head: &'a [u8],
    },
}

impl<'a> Subject<'a> {
    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        match self {
            Self::Request(_) => Method::Reqmod,
            Self::Response { .. } => Method::Respmod,
        }
    }

    /// The heads of a request and of a response.
    const fn heads(&self) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
        match *self {
            Self::Request(head) => (Some(head), None),
            Self::Response { request, head } => (request, Some(head)),
        }
    }
}

/// Why a request cannot be sent.
///
/// `Display` is a fragment that fits "failed to write the ICAP request: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestError {
    /// A further field is malformed, or one that this crate writes.
    Field,
    /// An HTTP head is not whole, malformed or too large.
    Head(MessageError),
    /// A head is empty.
    Parts(EncapsulatedError),
    /// The preview is greater than [`Limits::preview_bytes_max`].
    PreviewTooLarge,
    /// The ICAP head is larger than [`Limits::icap_head`] allows.
    TooLarge,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head(error) => return error.fmt(f),
            Self::Parts(error) => return error.fmt(f),
            Self::Field => "a field of the ICAP head is malformed or not the caller's to set",
            Self::PreviewTooLarge => "the preview is greater than the limit",
            Self::TooLarge => "the ICAP head has more bytes than allowed",
        })
    }
}

impl Error for RequestError {}

/// Appends an OPTIONS request.
pub(crate) fn write_options(
    out: &mut Vec<u8>,
    service: &ServiceUri,
    fields: &[FieldLine<'_>],
    limits: &Limits,
) -> Result<(), RequestError> {
    write_start(out, Method::Options, service, fields)?;
    end_head(out, &Encapsulated::BARE, limits)
}

/// Appends all of the request but its content.
pub(crate) fn write_adapt(
    out: &mut Vec<u8>,
    request: &AdaptRequest<'_>,
    limits: &Limits,
) -> Result<(), RequestError> {
    if request
        .preview
        .is_some_and(|bytes| bytes > limits.preview_bytes_max)
    {
        return Err(RequestError::PreviewTooLarge);
    }
    let (heads, list) = write_heads(&request.subject, request.has_content, limits)?;
    write_start(
        out,
        request.subject.method(),
        request.service,
        request.fields,
    )?;
    if request.allow_204 {
        write::field(out, "Allow", b"204");
    }
    if let Some(bytes) = request.preview {
        write::number_field(out, "Preview", u64::from(bytes));
    }
    end_head(out, &list, limits)?;
    out.extend_from_slice(&heads);
    Ok(())
}

fn write_start(
    out: &mut Vec<u8>,
    method: Method,
    service: &ServiceUri,
    fields: &[FieldLine<'_>],
) -> Result<(), RequestError> {
    if unusable_field(fields).is_some() {
        return Err(RequestError::Field);
    }
    write_request_line(out, method, service);
    write::field(out, "Host", service.authority().as_bytes());
    for line in fields {
        write::field(out, line.name, line.value);
    }
    Ok(())
}

fn end_head(out: &mut Vec<u8>, list: &Encapsulated, limits: &Limits) -> Result<(), RequestError> {
    let mut value = Vec::new();
    list.write(&mut value);
    write::field(out, "Encapsulated", &value);
    write::end_of_head(out);
    if out.len() > limits.icap_head.bytes_max {
        return Err(RequestError::TooLarge);
    }
    Ok(())
}

/// The heads as they are sent, and the list that they stand in.
fn write_heads(
    subject: &Subject<'_>,
    has_content: bool,
    limits: &Limits,
) -> Result<(Vec<u8>, Encapsulated), RequestError> {
    let (request, response) = subject.heads();
    let (length_field, limits) = (LengthField::Kept, &limits.http_head);
    let mut out = Vec::new();
    if let Some(head) = request {
        write_request_head(&mut out, head, length_field, limits).map_err(RequestError::Head)?;
    }
    let request_bytes = out.len();
    if let Some(head) = response {
        write_response_head(&mut out, head, length_field, limits).map_err(RequestError::Head)?;
    }
    let (kind, body) = match subject {
        Subject::Request(_) => (ListKind::ReqmodRequest, BodyPart::Request),
        Subject::Response { .. } => (ListKind::RespmodRequest, BodyPart::Response),
    };
    let bytes_of = |bytes: usize| {
        u32::try_from(bytes).map_err(|_| RequestError::Head(MessageError::EncapsulatedHeadTooLarge))
    };
    let response_bytes = out.len() - request_bytes;
    let list = Encapsulated {
        request_head_bytes: request.map(|_| bytes_of(request_bytes)).transpose()?,
        response_head_bytes: response.map(|_| bytes_of(response_bytes)).transpose()?,
        body: if has_content { body } else { BodyPart::None },
    };
    list.check(kind).map_err(RequestError::Parts)?;
    Ok((out, list))
}
