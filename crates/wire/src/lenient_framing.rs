//! Framing fields of a response that a strict recipient refuses and that have one reading (RFC 9112
//! §6.3).

use core::mem;

use weir_semantics::{FieldLine, Known, identify};

use crate::body_length::{
    CONTENT_LENGTH_BYTES, CONTENT_LENGTH_DIGITS_MAX, TRANSFER_ENCODING_BYTES, is_digits,
};
use crate::head::Version;
use crate::line_buffer::LineBuffer;

/// The most empty elements of a Transfer-Encoding that are ignored. RFC 9110 §5.6.1.2 requires "a
/// reasonable number".
const EMPTY_ELEMENTS_MAX: usize = 8;

/// What the framing fields of a head say, where that has one reading.
#[derive(Clone, Copy, Debug, Default)]
struct FramingFields<'a> {
    /// The length, as often as it is said.
    length: Option<&'a [u8]>,
    length_lines: usize,
    coding_lines: usize,
    /// A value is not as a strict recipient reads it.
    is_list: bool,
}

/// Makes the framing fields what a strict recipient reads, where there is one reading; says whether
/// it did. What has more than one stays as it is, and is refused with its reason by
/// [`response_body`](crate::response_body).
pub(crate) fn repair(version: Version, status: u16, lines: &mut LineBuffer<'_>) -> bool {
    let Some(declared) = declared(lines.lines()) else {
        return false;
    };
    let FramingFields {
        length_lines,
        coding_lines,
        ..
    } = declared;
    let contradicts = length_lines > 0 || version == Version::Http10;
    if coding_lines > 1 || coding_lines == 1 && contradicts {
        return false;
    }
    if status < 200 || status == 204 {
        return drop_framing(status, declared, lines);
    }
    if length_lines <= 1 && !declared.is_list {
        return false;
    }
    let mut is_first = true;
    lines.repair(|line| match framing_field(line.name) {
        Some(FramingField::ContentLength) => {
            let value = one_length(line.value)?;
            mem::take(&mut is_first).then_some(FieldLine { value, ..line })
        }
        Some(FramingField::TransferEncoding) => {
            let value = only_chunked(line.value)?;
            Some(FieldLine { value, ..line })
        }
        None => Some(line),
    });
    true
}

/// RFC 9112 §6.3: a 1xx or 204 ends with its head, "regardless of the header fields present".
fn drop_framing(status: u16, declared: FramingFields<'_>, lines: &mut LineBuffer<'_>) -> bool {
    let FramingFields {
        length,
        length_lines,
        coding_lines,
        is_list,
    } = declared;
    let says_nothing = length_lines + coding_lines == 0;
    // common, and a recipient that believes it finds the same end
    let says_zero = length == Some(b"0") && length_lines == 1 && coding_lines == 0 && !is_list;
    if says_nothing || status == 204 && says_zero {
        return false;
    }
    lines.repair(|line| framing_field(line.name).is_none().then_some(line));
    true
}

/// `None` where the fields contradict each other or are malformed.
fn declared<'a>(lines: &[FieldLine<'a>]) -> Option<FramingFields<'a>> {
    let mut declared = FramingFields::default();
    for line in lines {
        match framing_field(line.name) {
            Some(FramingField::ContentLength) => {
                let length = one_length(line.value)?;
                if declared.length.is_some_and(|before| before != length) {
                    return None;
                }
                declared.length = Some(length);
                declared.length_lines += 1;
                declared.is_list |= length.len() != line.value.len();
            }
            Some(FramingField::TransferEncoding) => {
                let coding = only_chunked(line.value)?;
                declared.coding_lines += 1;
                declared.is_list |= coding.len() != line.value.len();
            }
            None => {}
        }
    }
    Some(declared)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingField {
    ContentLength,
    TransferEncoding,
}

#[inline]
fn framing_field(name: &str) -> Option<FramingField> {
    // lengths first: nearly all lines have another
    match name.len() {
        CONTENT_LENGTH_BYTES | TRANSFER_ENCODING_BYTES => match identify(name)? {
            Known::ContentLength => Some(FramingField::ContentLength),
            Known::TransferEncoding => Some(FramingField::TransferEncoding),
            _ => None,
        },
        _ => None,
    }
}

/// The one length that a value says, if it is a list of the same digits (RFC 9110 §8.6).
fn one_length(value: &[u8]) -> Option<&[u8]> {
    // nearly all of them
    if is_digits(value) && value.len() <= CONTENT_LENGTH_DIGITS_MAX {
        return Some(value);
    }
    let mut elements = elements(value);
    let first = elements.next()?;
    let is_one = is_digits(first)
        && first.len() <= CONTENT_LENGTH_DIGITS_MAX
        && elements.all(|element| element == first);
    is_one.then_some(first)
}

/// `chunked` in a list of nothing else but empty elements.
fn only_chunked(value: &[u8]) -> Option<&[u8]> {
    let empty = elements(value).filter(|element| element.is_empty()).count();
    let mut codings = elements(value).filter(|element| !element.is_empty());
    let coding = codings.next()?;
    let is_one = coding.eq_ignore_ascii_case(b"chunked")
        && codings.next().is_none()
        && empty <= EMPTY_ELEMENTS_MAX;
    is_one.then_some(coding)
}

fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}
