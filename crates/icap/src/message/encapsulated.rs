//! The `Encapsulated` field (RFC 3507 §4.4.1): which parts a message has, and where each begins.
//!
//! Our readings: the list ends with its one body part, which may be `null-body`, because the
//! grammar of every message has one there. Offsets ascend strictly, because no part is empty.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use weir_semantics::words;
use weir_wire::write;

words! {
    /// The body part of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BodyPart {
        /// Content of an HTTP request.
        Request = "req-body",
        /// Content of an HTTP response.
        Response = "res-body",
        /// Content of an answer to OPTIONS.
        Options = "opt-body",
        /// No content.
        None = "null-body",
    }
}

/// The list of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulated {
    /// The bytes of the HTTP request head, if there is one; never zero.
    pub request_head_bytes: Option<u32>,
    /// The bytes of the HTTP response head, if there is one; never zero. It follows the other.
    pub response_head_bytes: Option<u32>,
    /// The body part. It follows the heads.
    pub body: BodyPart,
}

/// The message that a list stands in, which decides the parts that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// `[req-hdr] req-body`; we require the head.
    ReqmodRequest,
    /// `{req-hdr req-body} | {res-hdr res-body}`; we require the head.
    ReqmodAnswer,
    /// `[req-hdr] [res-hdr] res-body`
    RespmodRequest,
    /// `res-hdr res-body`; we require the head.
    RespmodAnswer,
    /// `opt-body`
    OptionsAnswer,
    /// No part: an OPTIONS request, 100, 204 and errors.
    Bare,
}

/// Why an `Encapsulated` field is refused.
///
/// `Display` is a fragment that fits "failed to read Encapsulated: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EncapsulatedError {
    /// The message needs the field and has none.
    Missing,
    /// An element is not `name=offset`, or the list is empty or has an empty element.
    Element,
    /// The name of an element is not one of the RFC.
    UnknownPart,
    /// An offset is not 1 to 9 decimal digits.
    Offset,
    /// The first offset is not 0.
    FirstOffset,
    /// An offset is not greater than the one before it.
    OffsetNotAscending,
    /// A head stands twice.
    RepeatedPart,
    /// `req-hdr` stands after `res-hdr`.
    Order,
    /// A part follows the body part, such as a second one.
    AfterBody,
    /// The list does not end with a body part.
    NoBody,
    /// The message cannot have one of the parts.
    PartNotAllowed,
    /// The message lacks the head that it is about.
    NoHead,
}

impl fmt::Display for EncapsulatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the message has no Encapsulated field",
            Self::Element => "an element is not `name=offset`",
            Self::UnknownPart => "a part has a name that does not exist",
            Self::Offset => "an offset is not 1 to 9 decimal digits",
            Self::FirstOffset => "the first offset is not 0",
            Self::OffsetNotAscending => "an offset is not greater than the one before it",
            Self::RepeatedPart => "a head stands twice",
            Self::Order => "the request head stands after the response head",
            Self::AfterBody => "a part follows the body part",
            Self::NoBody => "the list does not end with a body part",
            Self::PartNotAllowed => "the message cannot have this part",
            Self::NoHead => "the message lacks its HTTP head",
        })
    }
}

impl Error for EncapsulatedError {}

/// The most digits of an offset: a head of more than 10^9 bytes is beyond every limit.
const OFFSET_DIGITS_MAX: usize = 9;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    RequestHead,
    ResponseHead,
    Body(BodyPart),
}

impl Part {
    fn parse(name: &[u8]) -> Option<Self> {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        if is("req-hdr") {
            return Some(Self::RequestHead);
        }
        if is("res-hdr") {
            return Some(Self::ResponseHead);
        }
        BodyPart::ALL
            .into_iter()
            .find(|body| is(body.as_str()))
            .map(Self::Body)
    }
}

impl Encapsulated {
    /// The list of a message without parts.
    pub const BARE: Self = Self {
        request_head_bytes: None,
        response_head_bytes: None,
        body: BodyPart::None,
    };

    /// Reads the value of the field. Names are compared without regard to case.
    ///
    /// # Errors
    ///
    /// The first element that breaks a rule.
    pub fn parse(value: &[u8]) -> Result<Self, EncapsulatedError> {
        let mut list = Self::BARE;
        let mut previous: Option<(Part, u32)> = None;
        for element in value.split(|&byte| byte == b',') {
            let (part, offset) = parse_element(element.trim_ascii())?;
            match previous {
                None if offset != 0 => return Err(EncapsulatedError::FirstOffset),
                None => {}
                Some((Part::Body(_), _)) => return Err(EncapsulatedError::AfterBody),
                Some((before, _)) if before == part => return Err(EncapsulatedError::RepeatedPart),
                Some((Part::ResponseHead, _)) if part == Part::RequestHead => {
                    return Err(EncapsulatedError::Order);
                }
                Some((before, begin)) => {
                    if offset <= begin {
                        return Err(EncapsulatedError::OffsetNotAscending);
                    }
                    match before {
                        Part::RequestHead => list.request_head_bytes = Some(offset - begin),
                        _ => list.response_head_bytes = Some(offset - begin),
                    }
                }
            }
            previous = Some((part, offset));
        }
        match previous {
            Some((Part::Body(body), _)) => Ok(Self { body, ..list }),
            _ => Err(EncapsulatedError::NoBody),
        }
    }

    /// Appends the value of the field.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut offset: u64 = 0;
        let heads = [
            ("req-hdr=", self.request_head_bytes),
            ("res-hdr=", self.response_head_bytes),
        ];
        for (name, bytes) in heads {
            if let Some(bytes) = bytes {
                out.extend_from_slice(name.as_bytes());
                write::decimal(out, offset);
                out.extend_from_slice(b", ");
                offset += u64::from(bytes);
            }
        }
        out.extend_from_slice(self.body.as_str().as_bytes());
        out.push(b'=');
        write::decimal(out, offset);
    }

    /// Whether the message has content.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.body != BodyPart::None
    }

    /// Whether a message of this kind may have these parts.
    ///
    /// # Errors
    ///
    /// [`EncapsulatedError::PartNotAllowed`] or [`EncapsulatedError::NoHead`].
    pub fn check(&self, kind: ListKind) -> Result<(), EncapsulatedError> {
        use BodyPart::{None, Options, Request, Response};
        let request = self.request_head_bytes.is_some();
        let response = self.response_head_bytes.is_some();
        let (heads_are_allowed, head_is_there, bodies) = match kind {
            ListKind::ReqmodRequest => (!response, request, [Request, None]),
            ListKind::ReqmodAnswer if response => (!request, true, [Response, None]),
            ListKind::ReqmodAnswer => (true, request, [Request, None]),
            ListKind::RespmodRequest => (true, true, [Response, None]),
            ListKind::RespmodAnswer => (!request, response, [Response, None]),
            ListKind::OptionsAnswer => (!request && !response, true, [Options, None]),
            ListKind::Bare => (!request && !response, true, [None, None]),
        };
        if !heads_are_allowed || !bodies.contains(&self.body) {
            return Err(EncapsulatedError::PartNotAllowed);
        }
        if head_is_there {
            Ok(())
        } else {
            Err(EncapsulatedError::NoHead)
        }
    }
}

fn parse_element(element: &[u8]) -> Result<(Part, u32), EncapsulatedError> {
    let equals = element.iter().position(|&byte| byte == b'=');
    let (name, digits) = element.split_at(equals.ok_or(EncapsulatedError::Element)?);
    if name.is_empty() {
        return Err(EncapsulatedError::Element);
    }
    let part = Part::parse(name).ok_or(EncapsulatedError::UnknownPart)?;
    let digits = &digits[1..];
    if !(1..=OFFSET_DIGITS_MAX).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(EncapsulatedError::Offset);
    }
    // nine digits are less than 2^32
    let offset = digits
        .iter()
        .fold(0, |offset, digit| offset * 10 + u32::from(digit - b'0'));
    Ok((part, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(request: Option<u32>, response: Option<u32>, body: BodyPart) -> Encapsulated {
        Encapsulated {
            request_head_bytes: request,
            response_head_bytes: response,
            body,
        }
    }

    #[test]
    fn lists_of_the_rfc_are_read_and_written_alike() {
        for (text, expected) in [
            (
                "req-hdr=0, null-body=170",
                list(Some(170), None, BodyPart::None),
            ),
            (
                "req-hdr=0, req-body=147",
                list(Some(147), None, BodyPart::Request),
            ),
            (
                "req-hdr=0, res-hdr=137, res-body=296",
                list(Some(137), Some(159), BodyPart::Response),
            ),
            (
                "res-hdr=0, res-body=222",
                list(None, Some(222), BodyPart::Response),
            ),
            ("null-body=0", Encapsulated::BARE),
            ("opt-body=0", list(None, None, BodyPart::Options)),
        ] {
            assert_eq!(Encapsulated::parse(text.as_bytes()), Ok(expected), "{text}");
            let mut written = Vec::new();
            expected.write(&mut written);
            assert_eq!(String::from_utf8_lossy(&written), text);
        }
    }

    #[test]
    fn case_and_space_after_commas_have_one_reading() {
        let expected = list(Some(5), None, BodyPart::Request);
        for text in ["req-hdr=0,req-body=5", "REQ-HDR=0 ,\tReq-Body=05"] {
            assert_eq!(Encapsulated::parse(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn list_that_breaks_a_rule_is_refused_by_name() {
        use EncapsulatedError as E;
        for (text, expected) in [
            ("", E::Element),
            (",", E::Element),
            ("null-body", E::Element),
            ("=0", E::Element),
            ("req-hdr=0,, null-body=5", E::Element),
            // an element is read before its place is judged
            ("req-hdr=0, null-body=5,", E::Element),
            ("body=0", E::UnknownPart),
            ("req-hdr =0, null-body=5", E::UnknownPart),
            ("req-hdr=, null-body=5", E::Offset),
            ("req-hdr= 0, null-body=5", E::Offset),
            ("req-hdr=+0, null-body=5", E::Offset),
            ("req-hdr=0x0, null-body=5", E::Offset),
            ("req-hdr=0, null-body=-5", E::Offset),
            ("req-hdr=0, null-body=1000000000", E::Offset),
            ("req-hdr=0=0, null-body=5", E::Offset),
            ("req-hdr=0; null-body=5", E::Offset),
            ("req-hdr=1, null-body=5", E::FirstOffset),
            ("null-body=1", E::FirstOffset),
            ("req-hdr=0, null-body=0", E::OffsetNotAscending),
            ("req-hdr=0, res-hdr=9, res-body=9", E::OffsetNotAscending),
            ("req-hdr=0, res-hdr=9, res-body=8", E::OffsetNotAscending),
            ("req-hdr=0, req-hdr=9, req-body=18", E::RepeatedPart),
            ("res-hdr=0, req-hdr=9, res-body=18", E::Order),
            ("req-body=0, req-hdr=9", E::AfterBody),
            ("req-hdr=0, req-body=9, res-body=18", E::AfterBody),
            ("null-body=0, null-body=0", E::AfterBody),
            ("req-hdr=0", E::NoBody),
            ("req-hdr=0, res-hdr=9", E::NoBody),
        ] {
            assert_eq!(
                Encapsulated::parse(text.as_bytes()),
                Err(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn each_message_has_its_own_parts() {
        use BodyPart::{None as Null, Options, Request, Response};
        use EncapsulatedError::{NoHead, PartNotAllowed};
        let kinds = [
            ListKind::ReqmodRequest,
            ListKind::ReqmodAnswer,
            ListKind::RespmodRequest,
            ListKind::RespmodAnswer,
            ListKind::OptionsAnswer,
            ListKind::Bare,
        ];
        let (good, head, part) = (Ok(()), Err(NoHead), Err(PartNotAllowed));
        let (some, none) = (Some(9), None);
        for (list, expected) in [
            (list(none, none, Null), [head, head, good, head, good, good]),
            (list(some, none, Null), [good, good, good, part, part, part]),
            (
                list(some, none, Request),
                [good, good, part, part, part, part],
            ),
            (
                list(some, none, Response),
                [part, part, good, part, part, part],
            ),
            (
                list(none, some, Response),
                [part, good, good, good, part, part],
            ),
            (list(none, some, Null), [part, good, good, good, part, part]),
            (list(none, some, Request), [part; 6]),
            (
                list(some, some, Response),
                [part, part, good, part, part, part],
            ),
            (list(some, some, Request), [part; 6]),
            (
                list(none, none, Request),
                [head, head, part, part, part, part],
            ),
            (
                list(none, none, Response),
                [part, part, good, head, part, part],
            ),
            (
                list(none, none, Options),
                [part, part, part, part, good, part],
            ),
        ] {
            let results = kinds.map(|kind| list.check(kind));
            assert_eq!(results, expected, "{list:?}");
        }
    }
}
