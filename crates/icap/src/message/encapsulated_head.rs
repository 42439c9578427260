//! HTTP heads inside of ICAP messages, without their hop-by-hop fields (RFC 3507 §4.4.2).
//!
//! What is for one connection does not travel: fields of RFC 9110 §7.6.1, those that `Connection`
//! names, `Trailer` (trailer sections are not sent), and fields for one proxy. A driver that may
//! show `Proxy-Authorization` to the service writes it into the ICAP head. Received heads lose the
//! same fields, because a peer may write anything into them.

use alloc::vec::Vec;

use weir_semantics::{ConnectionOptions, FieldLine, Known, identify, is_stored};
use weir_wire::{
    HeadError, HeadLimits, LineBuffer, Progress, RequestHead, ResponseHead, parse_request,
    parse_response, write,
};

use crate::message::encapsulated::Encapsulated;
use crate::message::error::MessageError;

/// The HTTP heads of one message: well formed, as long as `Encapsulated` has them, and without
/// hop-by-hop fields.
///
/// An adapted head, which a client receives, is also without `Content-Length`: the content is as
/// long as its chunks, and a hostile server may write any number. The driver frames the HTTP
/// message anew. A head that a server receives has the `Content-Length` that the origin sent, if
/// any; it does not frame the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncapsulatedHeads {
    bytes: Vec<u8>,
    /// How many of the bytes are the request head; all others are the response head.
    request_bytes: usize,
    /// Of the heads as they were received; field lines only, because the bytes were counted.
    limits: HeadLimits,
}

/// What becomes of a `Content-Length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LengthField {
    /// It stays: the content is what it was.
    Kept,
    /// It goes: the content may have changed.
    Dropped,
}

impl EncapsulatedHeads {
    /// Splits `bytes` as `list` has them and reads each head.
    pub(crate) fn parse(
        bytes: &[u8],
        list: &Encapsulated,
        length_field: LengthField,
        limits: &HeadLimits,
    ) -> Result<Self, MessageError> {
        let request_bytes = list.request_head_bytes.map_or(0, |bytes| bytes as usize);
        let (request, response) = bytes.split_at(request_bytes.min(bytes.len()));
        let mut bytes = Vec::new();
        if !request.is_empty() {
            write_request_head(&mut bytes, request, length_field, limits)?;
        }
        let request_bytes = bytes.len();
        if !response.is_empty() {
            write_response_head(&mut bytes, response, length_field, limits)?;
        }
        Ok(Self {
            bytes,
            request_bytes,
            limits: HeadLimits {
                bytes_max: usize::MAX,
                ..*limits
            },
        })
    }

    /// The bytes of the request head, the empty line included; empty if there is none.
    #[must_use]
    pub fn request_bytes(&self) -> &[u8] {
        &self.bytes[..self.request_bytes]
    }

    /// The bytes of the response head, the empty line included; empty if there is none.
    #[must_use]
    pub fn response_bytes(&self) -> &[u8] {
        &self.bytes[self.request_bytes..]
    }

    /// The request head.
    pub fn request<'s, 'a>(&'a self, lines: &'s mut LineBuffer<'a>) -> Option<RequestHead<'s, 'a>> {
        match parse_request(self.request_bytes(), &self.limits, lines) {
            Ok(Progress::Complete { head, .. }) => Some(head),
            _ => None,
        }
    }

    /// The response head.
    pub fn response<'s, 'a>(
        &'a self,
        lines: &'s mut LineBuffer<'a>,
    ) -> Option<ResponseHead<'s, 'a>> {
        match parse_response(self.response_bytes(), &self.limits, lines) {
            Ok(Progress::Complete { head, .. }) => Some(head),
            _ => None,
        }
    }
}

/// Appends `head`, which must be one whole request head, without its hop-by-hop fields.
pub(crate) fn write_request_head(
    out: &mut Vec<u8>,
    head: &[u8],
    length_field: LengthField,
    limits: &HeadLimits,
) -> Result<(), MessageError> {
    // before a request line on a connection empty lines are skipped; in here nothing precedes it
    if matches!(head.first(), Some(b'\r' | b'\n')) {
        return Err(MessageError::RequestHead(HeadError::EmptyLines));
    }
    let mut lines = LineBuffer::new();
    let read = parse_request(head, limits, &mut lines).map_err(MessageError::RequestHead)?;
    match read {
        Progress::Complete {
            head: read,
            consumed,
        } if consumed == head.len() => write_end_to_end(out, head, read.fields, length_field),
        _ => Err(MessageError::EncapsulatedHeadEnd),
    }
}

/// Appends `head`, which must be one whole response head, without its hop-by-hop fields.
pub(crate) fn write_response_head(
    out: &mut Vec<u8>,
    head: &[u8],
    length_field: LengthField,
    limits: &HeadLimits,
) -> Result<(), MessageError> {
    let mut lines = LineBuffer::new();
    let read = parse_response(head, limits, &mut lines).map_err(MessageError::ResponseHead)?;
    match read {
        Progress::Complete {
            head: read,
            consumed,
        } if consumed == head.len() => write_end_to_end(out, head, read.fields, length_field),
        _ => Err(MessageError::EncapsulatedHeadEnd),
    }
}

/// Appends the start line of `head`, those of its `fields` that are for all recipients, and the
/// empty line.
fn write_end_to_end(
    out: &mut Vec<u8>,
    head: &[u8],
    fields: &[FieldLine<'_>],
    length_field: LengthField,
) -> Result<(), MessageError> {
    let options = ConnectionOptions::gather(fields);
    // each field is compared with each option
    if options.are_too_many() {
        return Err(MessageError::ConnectionOptions);
    }
    let line_end = head.iter().position(|&byte| byte == b'\n');
    out.extend_from_slice(&head[..line_end.map_or(head.len(), |at| at + 1)]);
    for line in fields {
        let travels = match identify(line.name) {
            Some(Known::ContentLength) => length_field == LengthField::Kept,
            Some(Known::Trailer) => false,
            Some(known) => is_stored(known),
            None => !options.names(line.name),
        };
        if travels {
            write::field(out, line.name, line.value);
        }
    }
    write::end_of_head(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::encapsulated::BodyPart;
    use weir_semantics::CONNECTION_OPTIONS_MAX;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: e\r\n\r\n";
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n";

    fn parse(request: u32, response: u32, text: &[u8]) -> Result<EncapsulatedHeads, MessageError> {
        let list = Encapsulated {
            request_head_bytes: (request > 0).then_some(request),
            response_head_bytes: (response > 0).then_some(response),
            body: BodyPart::None,
        };
        assert_eq!((request + response) as usize, text.len());
        let limits = HeadLimits::default();
        EncapsulatedHeads::parse(text, &list, LengthField::Kept, &limits)
    }

    #[test]
    fn heads_are_split_where_the_list_has_them() {
        let both = [REQUEST, RESPONSE].concat();
        let heads = parse(27, 25, &both).unwrap();
        assert_eq!(heads.request_bytes(), REQUEST);
        assert_eq!(heads.response_bytes(), RESPONSE);
        let mut lines = LineBuffer::new();
        assert_eq!(heads.request(&mut lines).unwrap().method, "GET");
        let mut lines = LineBuffer::new();
        assert_eq!(heads.response(&mut lines).unwrap().status, 200);
        let alone = parse(0, 25, RESPONSE).unwrap();
        assert_eq!(alone.request(&mut LineBuffer::new()), None);
    }

    #[test]
    fn head_that_ends_elsewhere_is_refused() {
        let both = [REQUEST, RESPONSE].concat();
        for request in 1..52 {
            let result = parse(request, 52 - request, &both);
            assert_eq!(result.is_ok(), request == 27, "split at {request}");
        }
        let end = Err(MessageError::EncapsulatedHeadEnd);
        assert_eq!(parse(52, 0, &both), end);
        assert_eq!(parse(26, 0, &REQUEST[..26]), end);
        let padded = [b"\r\n", REQUEST].concat();
        let empty_line = MessageError::RequestHead(HeadError::EmptyLines);
        assert_eq!(parse(29, 0, &padded), Err(empty_line));
    }
    fn check_response(fields: &str, length_field: LengthField, expected: &str) {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let mut out = Vec::new();
        let limits = HeadLimits::default();
        write_response_head(&mut out, head.as_bytes(), length_field, &limits).unwrap();
        let expected = format!("HTTP/1.1 200 OK\r\n{expected}\r\n");
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn field_of_one_connection_does_not_travel() {
        use LengthField::{Dropped, Kept};
        check_response("A:  b \r\nA: c\r\n", Dropped, "A: b\r\nA: c\r\n");
        for line in [
            "Connection: close",
            "connection: keep-alive",
            "Keep-Alive: timeout=5",
            "Proxy-Connection: close",
            "TE: trailers",
            "Trailer: Digest",
            "TRANSFER-ENCODING: chunked",
            "Upgrade: h2c",
            "HTTP2-Settings: x",
            "Proxy-Authenticate: Basic",
            "Proxy-Authorization: Basic x",
        ] {
            check_response(&format!("A: b\r\n{line}\r\n"), Kept, "A: b\r\n");
        }
        let named = "X-Hop: 1\r\nConnection: x-hop, Host, Set-Cookie\r\nHost: e\r\n";
        check_response(named, Kept, "Host: e\r\n");
    }

    #[test]
    fn length_of_changed_content_does_not_travel() {
        let line = "Content-Length: 5\r\n";
        check_response(line, LengthField::Kept, line);
        check_response(line, LengthField::Dropped, "");
    }

    #[test]
    fn connection_options_are_bounded() {
        let with = |count: usize| {
            let names = vec!["a"; count].join(",");
            let head = format!("GET / HTTP/1.1\r\nConnection: {names}\r\n\r\n");
            let limits = HeadLimits::default();
            write_request_head(&mut Vec::new(), head.as_bytes(), LengthField::Kept, &limits)
        };
        assert_eq!(with(CONNECTION_OPTIONS_MAX), Ok(()));
        let refused = Err(MessageError::ConnectionOptions);
        assert_eq!(with(CONNECTION_OPTIONS_MAX + 1), refused);
    }

    #[test]
    fn head_of_the_limit_is_read_after_it_was_written_longer() {
        let head = b"HTTP/1.1 200 OK\r\nA:b\r\nC:d\r\n\r\n";
        let list = Encapsulated {
            request_head_bytes: None,
            response_head_bytes: Some(29),
            body: BodyPart::None,
        };
        let limits = HeadLimits {
            bytes_max: head.len(),
            fields_max: 2,
        };
        let heads = EncapsulatedHeads::parse(head, &list, LengthField::Kept, &limits).unwrap();
        let mut lines = LineBuffer::new();
        assert_eq!(heads.response(&mut lines).unwrap().fields.len(), 2);
    }
}
