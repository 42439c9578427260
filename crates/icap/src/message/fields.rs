//! The header fields of an ICAP message (RFC 3507 §4.3).

use alloc::vec::Vec;

use weir_semantics::{FieldLine, is_token, line_named, lines_named, list_elements};
use weir_wire::{HeadError, HeadLimits, LineBuffer, parse_fields};

use crate::message::encapsulated::{Encapsulated, EncapsulatedError};
use crate::message::error::MessageError;

/// The field lines of a received ICAP head: whole, within limits, and well formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcapFields {
    /// The lines with their ends, and the empty line.
    section: Vec<u8>,
}

impl IcapFields {
    pub(crate) fn parse(section: &[u8], limits: &HeadLimits) -> Result<Self, MessageError> {
        let mut buffer = LineBuffer::new();
        let lines = parse_fields(section, &mut buffer).map_err(MessageError::Head)?;
        if lines.len() > limits.fields_max {
            return Err(MessageError::Head(HeadError::TooManyFields));
        }
        Ok(Self {
            section: section.to_vec(),
        })
    }

    /// As [`Self::parse`], of an answer, in which field lines may be folded (RFC 2616 §2.2, which
    /// RFC 3507 builds on): scanners write `X-Violations-Found` so. A fold becomes spaces (RFC 9112
    /// §5.2). One in a field that this crate reads or writes is refused, as is a line of whitespace
    /// alone, which others might take for the end of the head.
    pub(crate) fn parse_answer(section: &[u8], limits: &HeadLimits) -> Result<Self, MessageError> {
        Self::parse(&unfold(section)?, limits)
    }

    /// The lines in order of arrival.
    pub fn lines<'s, 'a>(&'a self, buffer: &'s mut LineBuffer<'a>) -> &'s [FieldLine<'a>] {
        // they were read before, so there is no error
        parse_fields(&self.section, buffer).unwrap_or(&[])
    }

    /// The value of the first line with this name, which is compared without regard to case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        line_named(self.lines(&mut LineBuffer::new()), name)
    }

    /// The value of the one line with this name.
    pub(crate) fn single(&self, name: &'static str) -> Result<Option<&[u8]>, MessageError> {
        let mut buffer = LineBuffer::new();
        let lines = self.lines(&mut buffer);
        let mut values = lines_named(lines, name);
        let value = values.next();
        match values.next() {
            None => Ok(value),
            Some(_) => Err(MessageError::RepeatedField(name)),
        }
    }

    /// The members of the lists in all lines with this name.
    pub(crate) fn members(&self, name: &str) -> Vec<&[u8]> {
        let mut buffer = LineBuffer::new();
        let lines = self.lines(&mut buffer);
        lines_named(lines, name).flat_map(list_elements).collect()
    }

    /// The number in the one line with this name.
    pub(crate) fn number(&self, name: &'static str) -> Result<Option<u64>, MessageError> {
        let Some(value) = self.single(name)? else {
            return Ok(None);
        };
        // eighteen digits are less than 2^63
        if !(1..=18).contains(&value.len()) || !value.iter().all(u8::is_ascii_digit) {
            return Err(MessageError::FieldValue(name));
        }
        let digits = value.iter().map(|digit| u64::from(digit - b'0'));
        Ok(Some(digits.fold(0, |number, digit| number * 10 + digit)))
    }

    /// `Encapsulated`, if it is there.
    pub(crate) fn encapsulated(&self) -> Result<Option<Encapsulated>, MessageError> {
        let Some(value) = self.single("Encapsulated")? else {
            return Ok(None);
        };
        Encapsulated::parse(value)
            .map(Some)
            .map_err(MessageError::Encapsulated)
    }

    /// `Encapsulated` of a message that must have it.
    pub(crate) fn required_encapsulated(&self) -> Result<Encapsulated, MessageError> {
        self.encapsulated()?
            .ok_or(MessageError::Encapsulated(EncapsulatedError::Missing))
    }

    /// Whether the sender closes the connection after this message.
    pub(crate) fn has_close(&self) -> bool {
        let is_close = |option: &&[u8]| option.eq_ignore_ascii_case(b"close");
        self.members("Connection").iter().any(is_close)
    }

    /// Whether `Allow` has 204.
    pub(crate) fn allows_204(&self) -> bool {
        self.members("Allow").contains(&&b"204"[..])
    }

    /// Fields that would frame an HTTP message disagree with `Encapsulated`. `Content-Length: 0`
    /// of a message without content agrees.
    pub(crate) fn check_framing(&self, has_parts: bool) -> Result<(), MessageError> {
        let mut buffer = LineBuffer::new();
        for line in self.lines(&mut buffer) {
            let agrees = match line.name {
                name if name.eq_ignore_ascii_case("transfer-encoding") => false,
                name if name.eq_ignore_ascii_case("content-length") => {
                    !has_parts && line.value == b"0"
                }
                _ => true,
            };
            if !agrees {
                return Err(MessageError::FramingField);
            }
        }
        Ok(())
    }
}

/// The section with its folded lines as one line each, of the same length.
fn unfold(section: &[u8]) -> Result<Vec<u8>, MessageError> {
    let refused = Err(MessageError::Head(HeadError::ObsFold));
    let (mut unfolded, mut may_fold) = (Vec::with_capacity(section.len()), false);
    for line in section.split_inclusive(|byte| *byte == b'\n') {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            let is_own = |own: &str| own.as_bytes().eq_ignore_ascii_case(name.trim_ascii());
            may_fold = !OWN_FIELDS.iter().any(|own| is_own(own));
        } else if !may_fold || line.trim_ascii().is_empty() || !unfolded.ends_with(b"\r\n") {
            return refused;
        } else {
            let end = unfolded.len() - 2;
            unfolded[end..].fill(b' ');
        }
        unfolded.extend_from_slice(line);
    }
    Ok(unfolded)
}

/// Fields that this crate reads or writes itself.
const OWN_FIELDS: [&str; 16] = [
    "Allow",
    "Connection",
    "Content-Length",
    "Encapsulated",
    "Host",
    "ISTag",
    "Max-Connections",
    "Methods",
    "Options-TTL",
    "Preview",
    "Service",
    "Service-ID",
    "Trailer",
    "Transfer-Encoding",
    "Transfer-Preview",
    "Upgrade",
];

/// The first of `fields` that must not be written: no token, a value with a control character, or
/// a field that this crate writes.
pub(crate) fn unusable_field<'a>(fields: &[FieldLine<'a>]) -> Option<&'a str> {
    let is_usable = |line: &&FieldLine<'_>| {
        is_token(line.name.as_bytes())
            && line
                .value
                .iter()
                .all(|&byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
            && !OWN_FIELDS
                .iter()
                .any(|own| line.name.eq_ignore_ascii_case(own))
    };
    fields
        .iter()
        .find(|line| !is_usable(line))
        .map(|line| line.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> IcapFields {
        IcapFields::parse(text.as_bytes(), &HeadLimits::default()).unwrap()
    }

    #[test]
    fn repeated_single_field_is_refused() {
        let fields = fields("Preview: 1\r\nHost: e\r\npreview: 1\r\n\r\n");
        let expected = Err(MessageError::RepeatedField("Preview"));
        assert_eq!(fields.number("Preview"), expected);
        assert_eq!(fields.single("Host"), Ok(Some(&b"e"[..])));
        assert_eq!(fields.single("ISTag"), Ok(None));
    }

    #[test]
    fn number_is_decimal_digits_only() {
        for (value, expected) in [
            ("0", Ok(Some(0))),
            ("007", Ok(Some(7))),
            ("999999999999999999", Ok(Some(999_999_999_999_999_999))),
            (
                "1000000000000000000",
                Err(MessageError::FieldValue("Preview")),
            ),
            ("", Err(MessageError::FieldValue("Preview"))),
            ("+1", Err(MessageError::FieldValue("Preview"))),
            ("1, 1", Err(MessageError::FieldValue("Preview"))),
            ("0x1", Err(MessageError::FieldValue("Preview"))),
        ] {
            let fields = fields(&format!("Preview: {value}\r\n\r\n"));
            assert_eq!(fields.number("Preview"), expected, "{value}");
        }
    }

    #[test]
    fn folded_line_of_an_answer_is_one_unless_the_field_is_ours() {
        let parse = |text: &str| IcapFields::parse_answer(text.as_bytes(), &HeadLimits::default());
        let found = parse("X-Found: 1\r\n\t-\r\n\tA.B\r\nISTag: \"a\"\r\n\r\n").unwrap();
        assert_eq!(found.get("X-Found"), Some(&b"1  \t-  \tA.B"[..]));
        assert_eq!(found.get("ISTag"), Some(&b"\"a\""[..]));
        for refused in [
            " A: b\r\n\r\n",
            "A: b\r\n \r\n\r\n",
            "Encapsulated: res-hdr=0,\r\n res-body=9\r\n\r\n",
            "encapsulated : a\r\n b\r\n\r\n",
            "Transfer-Encoding:\r\n chunked\r\n\r\n",
        ] {
            let error = MessageError::Head(HeadError::ObsFold);
            assert_eq!(parse(refused), Err(error), "{refused:?}");
        }
        let folded = b"A: b\r\n c\r\n\r\n";
        assert!(IcapFields::parse(folded, &HeadLimits::default()).is_err());
    }

    #[test]
    fn list_fields_are_read_over_all_lines() {
        let fields = fields("Allow: 206\r\nConnection: a, Close\r\nallow: x, 204\r\n\r\n");
        assert!(fields.allows_204());
        assert!(fields.has_close());
        assert_eq!(fields.members("Allow"), [&b"206"[..], b"x", b"204"]);
        assert!(!super::tests::fields("Allow: 2040\r\n\r\n").allows_204());
    }

    #[test]
    fn http_framing_fields_are_refused() {
        let error = Err(MessageError::FramingField);
        assert_eq!(
            fields("Content-Length: 0\r\n\r\n").check_framing(false),
            Ok(())
        );
        assert_eq!(
            fields("Content-Length: 0\r\n\r\n").check_framing(true),
            error
        );
        assert_eq!(
            fields("Content-Length: 1\r\n\r\n").check_framing(false),
            error
        );
        assert_eq!(
            fields("Transfer-Encoding: chunked\r\n\r\n").check_framing(false),
            error
        );
    }

    #[test]
    fn field_that_ends_its_line_or_frames_the_message_is_not_written() {
        for (name, value, is_usable) in [
            ("X-Client-IP", "127.0.0.1", true),
            ("X", "", true),
            ("X", "a\r\nISTag: b", false),
            ("X", "\0", false),
            ("X Y", "a", false),
            ("", "a", false),
            ("encapsulated", "null-body=0", false),
            ("istag", "\"a\"", false),
            ("Transfer-Encoding", "chunked", false),
        ] {
            let line = FieldLine::new(name, value.as_bytes());
            assert_eq!(
                unusable_field(&[line]).is_none(),
                is_usable,
                "{name}: {value}"
            );
        }
    }
}
