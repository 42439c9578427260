//! The request line within a log.

use crate::{TraceMethod, TraceVersion};
use std::borrow::Cow;
use weir_semantics::is_token;

/// Undoes what servers do to bytes that would break a line: `\"` and `\\`, `\n` and its like, `\x`
/// with two digits (Apache's `ap_escape_logitem`, nginx's default escape). What is no escape stands
/// for itself.
pub(super) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let (byte, used) = match (first, behind) {
            (b'\\', [b'x', high, low, ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (b'\\', 1),
            },
            (b'\\', [sign, ..]) => match simple(*sign) {
                Some(byte) => (byte, 2),
                None => (b'\\', 1),
            },
            _ => (*first, 1),
        };
        out.push(byte);
        rest = &rest[used..];
    }
    Cow::Owned(out)
}

const fn simple(sign: u8) -> Option<u8> {
    Some(match sign {
        b'"' | b'\\' => sign,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        _ => return None,
    })
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// A request line in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a [u8],
    pub(super) version: Option<TraceVersion>,
}

/// Bytes of a method; registered ones have at most 17.
const METHOD_BYTES_MAX: usize = 32;

/// `None` where it is no HTTP: nothing at all, a handshake of TLS, another protocol, noise. A
/// target with spaces in it was requested and answered: it is kept as it is. A `GET` without
/// version is one of HTTP/0.9.
pub(super) fn parse(line: &[u8]) -> Option<Request<'_>> {
    let line = line.trim_ascii();
    let space = memchr::memchr(b' ', line)?;
    let method = std::str::from_utf8(&line[..space]).ok()?;
    if !is_token(method.as_bytes()) || method.len() > METHOD_BYTES_MAX || method == "PRI" {
        return None;
    }
    let rest = line[space..].trim_ascii();
    let start = memchr::memrchr(b' ', rest).map_or(0, |space| space + 1);
    let (before, last) = rest.split_at(start);
    let is_known = TraceMethod::from_word(method).is_some_and(|found| found != TraceMethod::Other);
    let (target, version) = match protocol(last) {
        Some(b"HTTP") => (before.trim_ascii(), version(last)),
        Some(_) if !before.is_empty() => return None,
        _ => (rest, (method == "GET").then_some(TraceVersion::Http09)),
    };
    if target.is_empty() || !(is_known || is_like_target(target)) {
        return None;
    }
    Some(Request {
        method,
        target,
        version,
    })
}

/// The name of `HTTP/1.1`, `SIP/2.0`, `RTSP/1.0`.
fn protocol(text: &[u8]) -> Option<&[u8]> {
    let slash = memchr::memchr(b'/', text)?;
    let (name, version) = (&text[..slash], &text[slash + 1..]);
    let is_version = version.first().is_some_and(u8::is_ascii_digit)
        && version
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_uppercase);
    (is_name && is_version).then_some(name)
}

fn version(text: &[u8]) -> Option<TraceVersion> {
    Some(match text {
        b"HTTP/0.9" => TraceVersion::Http09,
        b"HTTP/1.0" => TraceVersion::Http10,
        b"HTTP/1.1" => TraceVersion::Http11,
        b"HTTP/2.0" | b"HTTP/2" => TraceVersion::Http2,
        b"HTTP/3.0" | b"HTTP/3" => TraceVersion::Http3,
        _ => return None,
    })
}

fn is_like_target(target: &[u8]) -> bool {
    target.starts_with(b"/") || target == b"*" || memchr::memmem::find(target, b"://").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use TraceVersion::{Http2, Http09, Http10, Http11};

    fn check(line: &[u8], expected: Option<(&str, &[u8], Option<TraceVersion>)>) {
        let expected = expected.map(|(method, target, version)| Request {
            method,
            target,
            version,
        });
        assert_eq!(parse(line), expected, "{}", line.escape_ascii());
    }

    #[test]
    fn unusual_http_request_line_is_parsed() {
        check(b"GET / HTTP/1.1", Some(("GET", b"/", Some(Http11))));
        check(b"GET /a b HTTP/1.0", Some(("GET", b"/a b", Some(Http10))));
        check(b"GET /a b", Some(("GET", b"/a b", Some(Http09))));
        check(b"GET /HTTP/1.0", Some(("GET", b"/HTTP/1.0", Some(Http09))));
        check(b"GET  /a  HTTP/9.9", Some(("GET", b"/a", None)));
        check(b"POST /a", Some(("POST", b"/a", None)));
        check(b"PURGE /a HTTP/2.0", Some(("PURGE", b"/a", Some(Http2))));
        check(b"GET a HTTP/1.0", Some(("GET", b"a", Some(Http10))));
        check(
            b"CONNECT a:443 HTTP/1.1",
            Some(("CONNECT", b"a:443", Some(Http11))),
        );
    }

    #[test]
    fn line_that_is_no_http_request_is_refused() {
        for line in [
            &b""[..],
            b"-",
            b"GET",
            b"GET ",
            b"GET HTTP/1.1",
            b"SSH-2.0-Go",
            b"\x16\x03\x01\x02 \x00",
            b"PRI * HTTP/2.0",
            b"OPTIONS sip:nm SIP/2.0",
            b"t3 12.1.2",
            b"a{b} / HTTP/1.1",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn escape_sequences_are_decoded_and_unknown_ones_left_unchanged() {
        for (escaped, expected) in [
            (&br#"a\"b\\c"#[..], &br#"a"b\c"#[..]),
            (br"\x22\xe4\n\q\xg0\x1", b"\"\xe4\n\\q\\xg0\\x1"),
            (br"end\", br"end\"),
        ] {
            assert_eq!(unescape(escaped), expected);
        }
    }
}
