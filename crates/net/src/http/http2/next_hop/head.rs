//! Heads of requests to next hops as HTTP/2 has them, and those of responses as HTTP/1.1 has them
//! (RFC 9113 §8).
//!
//! Of a response, `h2` has refused names that are not in lower case, pseudo-header fields that are
//! unknown or missing, and a `content-length` that contradicts another or the content. Refused here
//! is what else could frame a message of HTTP/1.1 or end a line of it: fields of the connection
//! (§8.2.2), names that are no tokens, values with white space around them (§8.2.1), and a switch
//! of protocols (§8.6), which HTTP/2 does not have.

use crate::http::http2::head::{FieldValues, fields_of, has_outer_space, is_of_connection};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri};
use weir_semantics::is_token;
use weir_wire::{LineBuffer, parse_fields, write};

/// Where a request goes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) is_tls: bool,
    /// What is its authority if the request has no `Host`.
    pub(super) authority: &'a str,
}

/// Whether a request target, in origin-form, is one of HTTP/2: it has no characters that no URI
/// has.
#[must_use]
pub fn is_target_of_http2(target: &str) -> bool {
    PathAndQuery::try_from(target).is_ok_and(|whole| whole.as_str().len() == target.len())
}

/// The request of `head`: a request line in origin-form or asterisk-form, and end-to-end fields,
/// each with CRLF. `None` if HTTP/2 has no such: its target has characters that no URI has.
pub(super) fn request(head: &Bytes, place: Place<'_>) -> Option<Request<()>> {
    let line_end = head.windows(2).position(|two| two == b"\r\n")?;
    let mut words = head[..line_end].splitn(3, |byte| *byte == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let target = std::str::from_utf8(target).ok()?;
    if !is_target_of_http2(target) {
        return None;
    }
    let mut lines = LineBuffer::new();
    let section = parse_fields(&head[line_end + 2..], &mut lines).ok()?;
    let mut fields = fields_of(&FieldValues::new(head, head.len()), section)?;
    let host = fields.remove(HOST);
    let host = host.as_ref().map(HeaderValue::as_bytes);
    let authority = match host {
        Some(host) if !host.is_empty() => Authority::try_from(host).ok()?,
        _ => Authority::try_from(place.authority).ok()?,
    };
    let scheme = match place.is_tls {
        true => Scheme::HTTPS,
        false => Scheme::HTTP,
    };
    let uri = Uri::builder().scheme(scheme).authority(authority);
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method).ok()?;
    *request.uri_mut() = uri.path_and_query(target).build().ok()?;
    *request.headers_mut() = fields;
    Some(request)
}

/// What the text of a response depends on besides its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// It is to a HEAD.
    pub(super) is_to_head: bool,
    /// Nothing follows it.
    pub(super) ends: bool,
}

/// A response is malformed (RFC 9113 §8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The text of a response head, interim or final, with its empty line.
pub(super) fn response(head: &Response<()>, answered: Answered) -> Result<Vec<u8>, Malformed> {
    let (status, fields) = (head.status(), head.headers());
    if status == 101 {
        return Err(Malformed);
    }
    let size: usize = fields
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let mut out = Vec::with_capacity(size + 64);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in fields {
        let name = name.as_str();
        let is_foreign = is_of_connection(name) || !is_token(name.as_bytes());
        if is_foreign || has_outer_space(value) {
            return Err(Malformed);
        }
        write::field(&mut out, name, value.as_bytes());
    }
    let has_content =
        !status.is_informational() && !matches!(status.as_u16(), 204 | 304) && !answered.is_to_head;
    if has_content && !fields.contains_key(CONTENT_LENGTH) {
        // its length is known, or its end is: by frames
        out.extend_from_slice(match answered.ends {
            true => b"Content-Length: 0\r\n",
            false => b"Transfer-Encoding: chunked\r\n",
        });
    }
    write::end_of_head(&mut out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, StatusCode};

    const PLACE: Place<'static> = Place {
        is_tls: true,
        authority: "origin.example:8443",
    };

    #[test]
    fn request_has_its_authority_from_host_and_no_field_of_the_connection() {
        let head = b"GET /a?b=%20 HTTP/1.1\r\nHost: www.example.com\r\n\
            Connection: Upgrade\r\nX-A: 1\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nX-A: 2\r\n";
        let request = request(&Bytes::from_static(head), PLACE).unwrap();
        assert_eq!(request.method(), "GET");
        assert_eq!(request.uri(), "https://www.example.com/a?b=%20");
        let fields: Vec<(&str, &[u8])> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let expected: [(&str, &[u8]); 2] = [("x-a", b"1"), ("x-a", b"2")];
        assert_eq!(fields, expected);
    }

    #[test]
    fn request_without_host_is_for_the_next_hop() {
        let place = Place {
            is_tls: false,
            ..PLACE
        };
        let head = Bytes::from_static(b"OPTIONS * HTTP/1.1\r\n");
        let request = request(&head, place).unwrap();
        assert_eq!(request.uri().authority().unwrap(), "origin.example:8443");
        assert_eq!(request.uri().scheme_str(), Some("http"));
        assert_eq!(request.uri().path(), "*");
    }

    #[test]
    fn target_that_is_no_path_of_a_uri_is_none_of_http2() {
        for target in ["/a<b", "/a#b", "/a?b#c", "/a`", "/a>b"] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n");
            assert!(request(&head.into(), PLACE).is_none(), "{target}");
        }
        for target in ["/a%3Cb", "/a|b", "/a?b=c&d[]=e", "//a//b", "/%ff", "/a\"b"] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n");
            let request = request(&head.into(), PLACE).unwrap();
            let same = request.uri().path_and_query().unwrap().as_str();
            assert_eq!(same, target);
        }
    }

    fn text_of(
        status: u16,
        fields: &[(&str, &str)],
        is_to_head: bool,
        ends: bool,
    ) -> Result<String, Malformed> {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in fields {
            // as `h2` reads it, which permits more
            let name = HeaderName::from_lowercase(name.as_bytes()).unwrap();
            let value = HeaderValue::from_str(value).unwrap();
            head.headers_mut().append(name, value);
        }
        let text = response(&head, Answered { is_to_head, ends })?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn response_is_framed_by_its_length_its_end_or_chunked() {
        type Case<'c> = (u16, &'c [(&'c str, &'c str)], bool, bool, &'c str);
        let length = [("content-length", "5")];
        let cases: [Case<'_>; 8] = [
            (
                200,
                &length,
                false,
                false,
                "200 OK\r\ncontent-length: 5\r\n\r\n",
            ),
            (
                200,
                &[],
                false,
                false,
                "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            ),
            (200, &[], false, true, "200 OK\r\nContent-Length: 0\r\n\r\n"),
            (200, &[], true, true, "200 OK\r\n\r\n"),
            (204, &[], false, true, "204 No Content\r\n\r\n"),
            (304, &[], false, true, "304 Not Modified\r\n\r\n"),
            (
                103,
                &[("link", "a")],
                false,
                false,
                "103 Early Hints\r\nlink: a\r\n\r\n",
            ),
            (
                799,
                &length,
                true,
                true,
                "799 \r\ncontent-length: 5\r\n\r\n",
            ),
        ];
        for (status, fields, is_to_head, ends, expected) in cases {
            let text = text_of(status, fields, is_to_head, ends).unwrap();
            assert_eq!(text, format!("HTTP/1.1 {expected}"));
        }
    }

    #[test]
    fn response_that_could_frame_a_message_or_end_a_line_is_malformed() {
        for field in [
            ("connection", "close"),
            ("keep-alive", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-connection", "close"),
            ("a", " b"),
            ("a", "b\t"),
            ("a\"", "b"),
        ] {
            assert_eq!(
                text_of(200, &[field], false, true),
                Err(Malformed),
                "{field:?}"
            );
        }
        assert_eq!(text_of(101, &[], false, true), Err(Malformed));
    }
}
