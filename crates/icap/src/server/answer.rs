//! What a server answers, and how it is written (RFC 3507 §4.3.3, §4.8.2, §4.9.2, §4.10.2).

use alloc::vec::Vec;
use core::time::Duration;

use weir_semantics::FieldLine;
use weir_wire::write;

use crate::limits::Limits;
use crate::message::encapsulated::{BodyPart, Encapsulated};
use crate::message::encapsulated_head::{LengthField, write_request_head, write_response_head};
use crate::message::error::MessageError;
use crate::message::fields::unusable_field;
use crate::message::istag::IsTag;
use crate::message::method::Method;
use crate::message::service_id::is_service_id;
use crate::message::start_line::write_status_line;
use crate::server::error::AnswerError;

/// The head of an adapted message: its bytes, whole with the empty line. Hop-by-hop fields are not
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapted<'a> {
    /// A request, in answer to REQMOD.
    Request(&'a [u8]),
    /// A response, in answer to REQMOD or RESPMOD.
    Response(&'a [u8]),
}

/// The content of an adapted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdaptedContent {
    /// There is none.
    None,
    /// It is sent as it was received, so the head keeps its `Content-Length`.
    Unchanged,
    /// It may have another length: the head loses its `Content-Length`.
    Changed,
}

impl Adapted<'_> {
    /// Appends the head as it is sent. Returns the list that it stands in.
    pub(crate) fn write(
        &self,
        content: AdaptedContent,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<Encapsulated, AnswerError> {
        let length_field = match content {
            AdaptedContent::Changed => LengthField::Dropped,
            // a response to HEAD has the length of content that is not there
            AdaptedContent::None | AdaptedContent::Unchanged => LengthField::Kept,
        };
        let begin = out.len();
        match self {
            Self::Request(head) => write_request_head(out, head, length_field, &limits.http_head),
            Self::Response(head) => write_response_head(out, head, length_field, &limits.http_head),
        }
        .map_err(AnswerError::Head)?;
        let bytes = u32::try_from(out.len() - begin)
            .map_err(|_| AnswerError::Head(MessageError::EncapsulatedHeadTooLarge))?;
        let (request, response, body) = match self {
            Self::Request(_) => (Some(bytes), None, BodyPart::Request),
            Self::Response(_) => (None, Some(bytes), BodyPart::Response),
        };
        let has_content = content != AdaptedContent::None;
        Ok(Encapsulated {
            request_head_bytes: request,
            response_head_bytes: response,
            body: if has_content { body } else { BodyPart::None },
        })
    }
}

/// An answer to OPTIONS. Its `ISTag` is that of the server.
#[derive(Clone, Copy, Debug)]
pub struct OptionsAnswer<'a> {
    /// REQMOD or RESPMOD. Clients expect one of them a service, and several are possible.
    pub methods: &'a [Method],
    /// Name and version, for people; visible ASCII and spaces.
    pub service: &'a str,
    /// A short label: a token of at most
    /// [`SERVICE_ID_BYTES_MAX`](crate::SERVICE_ID_BYTES_MAX) bytes.
    pub service_id: Option<&'a str>,
    /// How many bytes of a preview the service needs, of all files, at most
    /// [`Limits::preview_bytes_max`]; `None`: no previews.
    pub preview_bytes: Option<u32>,
    /// The most connections; `None`: no limit is announced.
    pub max_connections: Option<u32>,
    /// How long the answer is valid, in whole seconds; `None`: as long as the client likes.
    pub ttl: Option<Duration>,
    /// Whether the service may answer 204 outside of previews.
    pub allows_204: bool,
    /// Further fields.
    pub fields: &'a [FieldLine<'a>],
}

impl OptionsAnswer<'_> {
    /// Appends the fields.
    pub(crate) fn write(&self, limits: &Limits, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let is_plain = |byte| matches!(byte, b' '..=b'~');
        let id_is_good = self.service_id.is_none_or(is_service_id);
        if !self.service.bytes().all(is_plain) || !id_is_good {
            return Err(AnswerError::Field);
        }
        if self.methods.is_empty() || self.methods.contains(&Method::Options) {
            return Err(AnswerError::Method);
        }
        if self.preview_bytes > Some(limits.preview_bytes_max) {
            return Err(AnswerError::PreviewTooLarge);
        }
        let mut methods = Vec::new();
        for method in self.methods {
            if !methods.is_empty() {
                methods.extend_from_slice(b", ");
            }
            methods.extend_from_slice(method.as_str().as_bytes());
        }
        write::field(out, "Methods", &methods);
        if !self.service.is_empty() {
            write::field(out, "Service", self.service.as_bytes());
        }
        if let Some(id) = self.service_id {
            write::field(out, "Service-ID", id.as_bytes());
        }
        if let Some(bytes) = self.preview_bytes {
            write::number_field(out, "Preview", u64::from(bytes));
            write::field(out, "Transfer-Preview", b"*");
        }
        if let Some(count) = self.max_connections {
            write::number_field(out, "Max-Connections", u64::from(count));
        }
        if let Some(ttl) = self.ttl {
            write::number_field(out, "Options-TTL", ttl.as_secs());
        }
        if self.allows_204 {
            write::field(out, "Allow", b"204");
        }
        Ok(())
    }
}

/// The ICAP head of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerStart<'a> {
    pub(crate) status: u16,
    pub(crate) reason: &'a str,
    pub(crate) istag: &'a IsTag,
    pub(crate) fields: &'a [FieldLine<'a>],
    pub(crate) list: Encapsulated,
    pub(crate) is_closing: bool,
}

impl AnswerStart<'_> {
    /// Appends the head but for its empty line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        if unusable_field(self.fields).is_some() {
            return Err(AnswerError::Field);
        }
        write_status_line(out, self.status, self.reason);
        out.extend_from_slice(b"ISTag: \"");
        out.extend_from_slice(self.istag.as_str().as_bytes());
        out.extend_from_slice(b"\"\r\n");
        for line in self.fields {
            write::field(out, line.name, line.value);
        }
        if self.is_closing {
            write::field(out, "Connection", b"close");
        }
        out.extend_from_slice(b"Encapsulated: ");
        self.list.write(out);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}
