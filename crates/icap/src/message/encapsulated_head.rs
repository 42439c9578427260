//! HTTP heads inside of ICAP messages (RFC 3507 §4.4.2).

use alloc::vec::Vec;

use weir_wire::{
    HeadError, HeadLimits, LineBuffer, Progress, RequestHead, ResponseHead, parse_request,
    parse_response,
};

use crate::message::encapsulated::Encapsulated;
use crate::message::error::MessageError;

/// The HTTP heads of one message: read, and as long as `Encapsulated` has them.
///
/// Fields about framing in them (`Content-Length`, `Transfer-Encoding`) do not frame the content of
/// the ICAP message, which is chunked. A hostile peer may write anything into them: the driver
/// frames the HTTP message anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncapsulatedHeads {
    bytes: Vec<u8>,
    /// How many of the bytes are the request head; all others are the response head.
    request_bytes: usize,
    limits: HeadLimits,
}

impl EncapsulatedHeads {
    /// Splits `bytes` as `list` has them and reads each head.
    pub(crate) fn parse(
        bytes: Vec<u8>,
        list: &Encapsulated,
        limits: HeadLimits,
    ) -> Result<Self, MessageError> {
        let request_bytes = list.request_head_bytes.map_or(0, |bytes| bytes as usize);
        let (request, response) = bytes.split_at(request_bytes.min(bytes.len()));
        if !request.is_empty() {
            check_request_head(request, &limits)?;
        }
        if !response.is_empty() {
            check_response_head(response, &limits)?;
        }
        Ok(Self {
            bytes,
            request_bytes,
            limits,
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

/// Whether `bytes` are one whole request head.
pub(crate) fn check_request_head(bytes: &[u8], limits: &HeadLimits) -> Result<(), MessageError> {
    // before a request line on a connection empty lines are skipped; in here nothing precedes it
    if matches!(bytes.first(), Some(b'\r' | b'\n')) {
        return Err(MessageError::RequestHead(HeadError::EmptyLines));
    }
    let mut lines = LineBuffer::new();
    match parse_request(bytes, limits, &mut lines).map_err(MessageError::RequestHead)? {
        Progress::Complete { consumed, .. } if consumed == bytes.len() => Ok(()),
        _ => Err(MessageError::EncapsulatedHeadEnd),
    }
}

/// Whether `bytes` are one whole response head.
pub(crate) fn check_response_head(bytes: &[u8], limits: &HeadLimits) -> Result<(), MessageError> {
    let mut lines = LineBuffer::new();
    match parse_response(bytes, limits, &mut lines).map_err(MessageError::ResponseHead)? {
        Progress::Complete { consumed, .. } if consumed == bytes.len() => Ok(()),
        _ => Err(MessageError::EncapsulatedHeadEnd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::encapsulated::BodyPart;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: e\r\n\r\n";
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n";

    fn parse(request: u32, response: u32, text: &[u8]) -> Result<EncapsulatedHeads, MessageError> {
        let list = Encapsulated {
            request_head_bytes: (request > 0).then_some(request),
            response_head_bytes: (response > 0).then_some(response),
            body: BodyPart::None,
        };
        assert_eq!((request + response) as usize, text.len());
        EncapsulatedHeads::parse(text.to_vec(), &list, HeadLimits::default())
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
}
