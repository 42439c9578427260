//! A guess at what is still to come of a message.

/// Where the status is in the head of a response.
const STATUS_AT: usize = b"HTTP/1.1 ".len();

const CONTENT_LENGTH: &[u8] = b"content-length:";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding:";

/// What chunked content ends with, if it has no trailer section (RFC 9112 §7.1).
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// How many bytes at least are missing of the response that `received` begins with. What counts is
/// the first line of its head that says how content is framed. `None` if the head is not whole, is
/// an interim one or has no such line, or if more bytes were received than that.
///
/// Nothing is validated: it is for guesses about what comes next, and much cheaper than parsing.
/// It takes time in proportion to the bytes of the head.
#[must_use]
pub fn missing_content(received: &[u8]) -> Option<u64> {
    // HTTP/1.x 1xx
    if received.get(STATUS_AT) == Some(&b'1') {
        return None;
    }
    let mut rest = received;
    let mut framing = None;
    loop {
        let end = memchr::memchr(b'\n', rest)?;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        framing = framing.or_else(|| framing_of(line));
    }
    match framing? {
        Framing::Length(length) => length.checked_sub(rest.len() as u64),
        Framing::Chunks if received.ends_with(LAST_CHUNK) => Some(0),
        Framing::Chunks => Some(1),
    }
}

enum Framing {
    Length(u64),
    Chunks,
}

/// What a line says of the length of content.
fn framing_of(line: &[u8]) -> Option<Framing> {
    match line.first()? {
        b'c' | b'C' => {
            let value = core::str::from_utf8(value_of(line, CONTENT_LENGTH)?).ok()?;
            value.trim_ascii().parse().ok().map(Framing::Length)
        }
        b't' | b'T' => value_of(line, TRANSFER_ENCODING).map(|_| Framing::Chunks),
        _ => None,
    }
}

/// What follows `name`, which ends with a colon.
fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (begin, value) = line.split_at_checked(name.len())?;
    begin.eq_ignore_ascii_case(name).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_is_what_the_first_length_of_a_whole_head_has_beyond_what_came() {
        for (fields_and_content, expected) in [
            ("Date: x\r\n\r\nabc", None),
            ("Content-Length: 5\r\n", None),
            ("Content-Length: 5\r\n\r\n", Some(5)),
            ("A: b\r\ncontent-LENGTH:5 \r\nC: d\r\n\r\nab", Some(3)),
            ("Content-Length: 5\n\nabcde", Some(0)),
            ("Content-Length: 5\r\n\r\nabcdef", None),
            ("Content-Length: 5\r\nContent-Length: 9\r\n\r\n", Some(5)),
            ("Content-Length: -5\r\n\r\n", None),
            ("Content-Lengths: 5\r\n\r\n", None),
            ("Content-Length: 99999999999999999999\r\n\r\n", None),
            ("Transfer-Encoding: chunked\r\n", None),
            ("Transfer-Encoding: chunked\r\n\r\n", Some(1)),
            ("transfer-encoding:chunked\r\n\r\n1\r\na\r\n", Some(1)),
            (
                "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
                Some(0),
            ),
        ] {
            let received = [b"HTTP/1.1 200 OK\r\n", fields_and_content.as_bytes()].concat();
            let missing = missing_content(&received);
            assert_eq!(missing, expected, "{fields_and_content:?}");
        }
        assert_eq!(missing_content(b""), None);
        let interim = b"HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(missing_content(interim), None);
    }
}
