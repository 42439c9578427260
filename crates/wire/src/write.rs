//! Writing heads and chunks: everything is appended to a buffer, and nothing goes through `fmt`.
//!
//! A head is a start line, any number of [`field`]s and [`end_of_head`]. Values are written as they
//! are: the parser ensures that received values hold no CR, LF or NUL, and the caller that others
//! do not. Debug builds check it.

use alloc::vec::Vec;

use crate::head::Version;
use crate::octet::{is_field_byte, is_token};

/// A request line (RFC 9112 §3).
pub fn request_line(out: &mut Vec<u8>, method: &str, target: &str, version: Version) {
    debug_assert!(
        is_token(method.as_bytes()),
        "method {method:?} is not a token"
    );
    debug_assert!(
        !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic()),
        "target {target:?}"
    );
    out.reserve(method.len() + target.len() + 12);
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.push(b' ');
    out.extend_from_slice(version.as_str().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A status line (RFC 9112 §4). `status` is 100 to 999; `reason` may be empty.
pub fn status_line(out: &mut Vec<u8>, version: Version, status: u16, reason: &str) {
    debug_assert!(
        (100..1000).contains(&status),
        "status {status} has not three digits"
    );
    debug_assert!(reason.bytes().all(is_field_byte), "reason {reason:?}");
    out.reserve(reason.len() + 15);
    out.extend_from_slice(version.as_str().as_bytes());
    out.push(b' ');
    decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A field line (RFC 9112 §5).
pub fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    debug_assert!(
        is_token(name.as_bytes()),
        "field name {name:?} is not a token"
    );
    debug_assert!(
        value.iter().copied().all(is_field_byte),
        "value of {name} holds a control character"
    );
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// A field line whose value is a number, such as Content-Length or Age.
pub fn number_field(out: &mut Vec<u8>, name: &str, value: u64) {
    debug_assert!(
        is_token(name.as_bytes()),
        "field name {name:?} is not a token"
    );
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    decimal(out, value);
    out.extend_from_slice(b"\r\n");
}

/// The empty line that ends a head.
pub fn end_of_head(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// What stands before the data of a chunk of `len` bytes (RFC 9112 §7.1). After the data comes
/// [`chunk_end`].
///
/// # Panics
///
/// If `len` is zero: that would be the last chunk, and end the message in the middle.
pub fn chunk_header(out: &mut Vec<u8>, len: usize) {
    assert!(len > 0, "a chunk of no bytes ends the message");
    hexadecimal(out, len as u64);
    out.extend_from_slice(b"\r\n");
}

/// What stands after the data of a chunk.
pub fn chunk_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// The last chunk, the trailer section and its end.
///
/// `trailers` are whole field lines, each with its CRLF, as from
/// [`BodyReader::trailers`](crate::BodyReader::trailers).
pub fn last_chunk(out: &mut Vec<u8>, trailers: &[u8]) {
    debug_assert!(
        trailers.is_empty() || trailers.ends_with(b"\r\n"),
        "the last trailer line is not whole"
    );
    out.reserve(trailers.len() + 5);
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers);
    out.extend_from_slice(b"\r\n");
}

/// `value` in decimal digits.
pub fn decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `value` in hexadecimal digits, lower case.
pub fn hexadecimal(out: &mut Vec<u8>, mut value: u64) {
    // four bits a digit
    let mut text = [0; 16];
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b"0123456789abcdef"[(value & 0xf) as usize];
        value >>= 4;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let mut out = b"before ".to_vec();
        write(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), format!("before {expected}"));
    }

    #[test]
    fn numbers_are_written_as_by_the_standard_library() {
        for value in [
            0,
            1,
            9,
            10,
            15,
            16,
            99,
            100,
            255,
            256,
            4_294_967_296,
            u64::MAX - 1,
            u64::MAX,
        ] {
            check(|out| decimal(out, value), &format!("{value}"));
            check(|out| hexadecimal(out, value), &format!("{value:x}"));
        }
    }

    #[test]
    fn written_lines_follow_the_http1_grammar() {
        check(
            |out| request_line(out, "GET", "/a?b", Version::Http11),
            "GET /a?b HTTP/1.1\r\n",
        );
        check(
            |out| status_line(out, Version::Http10, 200, "OK"),
            "HTTP/1.0 200 OK\r\n",
        );
        check(
            |out| status_line(out, Version::Http11, 404, ""),
            "HTTP/1.1 404 \r\n",
        );
        check(|out| field(out, "Host", b"example"), "Host: example\r\n");
        check(|out| field(out, "Empty", b""), "Empty: \r\n");
        check(
            |out| number_field(out, "Content-Length", 0),
            "Content-Length: 0\r\n",
        );
        check(end_of_head, "\r\n");
        check(|out| chunk_header(out, 1), "1\r\n");
        check(|out| chunk_header(out, 65_536), "10000\r\n");
        check(chunk_end, "\r\n");
        check(|out| last_chunk(out, b""), "0\r\n\r\n");
        check(|out| last_chunk(out, b"A: b\r\n"), "0\r\nA: b\r\n\r\n");
    }

    #[test]
    #[should_panic(expected = "ends the message")]
    fn writing_an_empty_chunk_panics() {
        chunk_header(&mut Vec::new(), 0);
    }

    #[test]
    #[should_panic(expected = "control character")]
    #[cfg(debug_assertions)]
    fn writing_a_line_break_in_a_value_panics_in_debug_builds() {
        field(&mut Vec::new(), "A", b"b\r\nC: d");
    }
}
