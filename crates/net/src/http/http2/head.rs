//! Heads of HTTP/2 as HTTP/1.1 has them, and back (RFC 9113 §8).
//!
//! `h2` has refused fields of the connection, names that are not in lower case, and pseudo-header
//! fields that are unknown, repeated, missing or behind others (§8.2, §8.3). Here is refused what
//! it lets pass, as a malformed request (§8.1.1): nothing of it is judged or forwarded. What is
//! left cannot frame a message of HTTP/1.1 or name another target than the one that was judged:
//!
//! * the target and `Host` are made of the pseudo-header fields. A `host` field must say what
//!   `:authority` does, and takes its place if there is none (§8.3.1);
//! * of `content-length` one line is passed on, whose value `h2` compares with the content; content
//!   without is chunked;
//! * a name is a token, which `"` is in none of (RFC 9110 §5.6.2);
//! * a value neither begins nor ends with white space (§8.2.1) and has no CR, LF or NUL (`http`).

use super::websocket;
use bytes::Bytes;
use h2::ext::Protocol;
use http::header::{CONTENT_LENGTH, COOKIE, HOST, TE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use std::ptr;
use weir_semantics::{FieldLine, NamedFields, Scheme, is_token};
use weir_wire::{
    BodyEvent, BodyLength, BodyReader, HeadLimits, LineBuffer, Progress, parse_response, write,
};

/// Room for a field line that is usual, bytes. Longer ones have the text of a head grow.
const LINE_BYTES: usize = 40;

/// Field lines that there is such room for, at most.
const LINES_MAX: usize = 128;

/// As many lines more: the request line, `Host`, the target.
const LINES_BESIDE: usize = 6;

/// In which form the targets of requests are written (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Form {
    /// As to a gateway with this scheme: in origin-form; in absolute-form if the client says
    /// another scheme.
    Origin(Scheme),
    /// As to a forward proxy: in absolute-form.
    Absolute,
}

/// Why a request is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// `:authority` has user information, or `host` says something else.
    Authority,
    /// `:path` is neither a path nor `*` of an OPTIONS.
    Path,
    /// A field that the connection is said by, or a value that begins or ends with white space; the
    /// length of content that there is none of.
    Field,
    /// It is for another protocol than WebSocket, which is no mistake of its own: 501.
    Protocol,
}

/// Whether a request opens a WebSocket (RFC 8441 §4). `h2` takes `:protocol` of CONNECT alone, with
/// a scheme and a path.
pub(super) fn opens_websocket(parts: &Parts) -> Result<bool, Malformed> {
    match parts.extensions.get::<Protocol>() {
        None => Ok(false),
        Some(protocol) if protocol.as_str() == websocket::PROTOCOL => Ok(true),
        Some(_) => Err(Malformed::Protocol),
    }
}

/// The text of a head, with its empty line; `ends` if no content follows.
pub(super) fn request_head(
    parts: &Parts,
    form: Http2Form,
    ends: bool,
) -> Result<Vec<u8>, Malformed> {
    let fields = &parts.headers;
    let mut out = Vec::with_capacity(LINE_BYTES * (fields.len().min(LINES_MAX) + LINES_BESIDE));
    let authority = authority(parts)?;
    let opens_websocket = opens_websocket(parts)?;
    let is_connect = parts.method == Method::CONNECT;
    let method = match opens_websocket {
        true => &Method::GET,
        false => &parts.method,
    };
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    match is_connect && !opens_websocket {
        // authority-form, which is all of the target (RFC 9113 §8.5)
        true => {
            let authority = parts.uri.authority().ok_or(Malformed::Authority)?;
            out.extend_from_slice(authority.as_str().as_bytes());
        }
        false => target(parts, form, authority, &mut out)?,
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(authority) = authority {
        write::field(&mut out, "Host", authority);
    }
    let (mut has_cookies, mut has_length) = (false, false);
    let mut plain: Option<(&HeaderName, &str)> = None;
    for (name, value) in fields {
        if has_outer_space(value) {
            return Err(Malformed::Field);
        }
        // the lines of a name come one after the other
        if let Some((_, text)) = plain.filter(|(last, _)| ptr::eq(*last, name)) {
            write::field(&mut out, text, value.as_bytes());
            continue;
        }
        let text = name.as_str();
        if !is_name(text) {
            return Err(Malformed::Field);
        }
        match name {
            // said by `Host`; a matter of this connection
            &HOST | &TE => {}
            // the client's own says nothing on a stream
            name if opens_websocket && name == websocket::KEY => {}
            // what follows is no content
            &CONTENT_LENGTH if opens_websocket => return Err(Malformed::Field),
            &COOKIE if has_cookies => {}
            &COOKIE => {
                has_cookies = true;
                write_cookies(fields.get_all(COOKIE).iter(), &mut out);
            }
            &CONTENT_LENGTH if has_length => {}
            &CONTENT_LENGTH => {
                has_length = true;
                write::field(&mut out, text, value.as_bytes());
            }
            name => {
                plain = Some((name, text));
                write::field(&mut out, text, value.as_bytes());
            }
        }
    }
    if opens_websocket {
        websocket::write_upgrade(&mut out).ok_or(Malformed::Field)?;
    }
    if !ends && !is_connect && !has_length {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    write::end_of_head(&mut out);
    Ok(out)
}

/// Whether a request may have a field of this name, which is in lower case.
fn is_name(name: &str) -> bool {
    (!is_of_connection(name) || name == "te") && is_token(name.as_bytes())
}

/// `:authority`, or `host` in its place.
fn authority(parts: &Parts) -> Result<Option<&[u8]>, Malformed> {
    let mut hosts = parts
        .headers
        .get_all(HOST)
        .iter()
        .map(HeaderValue::as_bytes);
    let host = hosts.next();
    let authority = parts.uri.authority();
    let authority = authority.map(|authority| authority.as_str().as_bytes());
    let differs = |host: &[u8]| {
        let said = authority.unwrap_or(host);
        !said.eq_ignore_ascii_case(host)
    };
    let said = authority.or(host);
    if hosts.next().is_some()
        || host.is_some_and(differs)
        || said.is_some_and(|said| said.contains(&b'@'))
    {
        return Err(Malformed::Authority);
    }
    Ok(said)
}

/// Writes the request target.
fn target(
    parts: &Parts,
    form: Http2Form,
    authority: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let path = parts.uri.path_and_query().map(|path| path.as_str());
    let path = path.ok_or(Malformed::Path)?;
    let is_asterisk = path == "*" && parts.method == Method::OPTIONS;
    if !path.starts_with('/') && !is_asterisk {
        return Err(Malformed::Path);
    }
    let own = match form {
        Http2Form::Origin(scheme) => Some(scheme),
        Http2Form::Absolute => None,
    };
    // `h2` drops the scheme of a request without `:authority`
    let said = parts.uri.scheme_str();
    let is_origin = own.is_some_and(|own| said.is_none_or(|said| said == own.as_str()));
    if is_origin || authority.is_none() || is_asterisk {
        out.extend_from_slice(path.as_bytes());
        return Ok(());
    }
    out.extend_from_slice(said.unwrap_or("http").as_bytes());
    out.extend_from_slice(b"://");
    out.extend_from_slice(authority.unwrap_or_default());
    out.extend_from_slice(path.as_bytes());
    Ok(())
}

/// Writes what `cookie` lines say as one (RFC 9113 §8.2.3).
fn write_cookies<'v>(values: impl Iterator<Item = &'v HeaderValue>, out: &mut Vec<u8>) {
    let crumbs: Vec<&[u8]> = values.map(HeaderValue::as_bytes).collect();
    write::field(out, COOKIE.as_str(), &crumbs.join(&b"; "[..]));
}

pub(super) fn has_outer_space(value: &HeaderValue) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_space(value.as_bytes().first()) || is_space(value.as_bytes().last())
}

/// Whether a field is of an HTTP/1.1 connection (RFC 9113 §8.2.2); `name` is in lower case.
pub(super) fn is_of_connection(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "te" | "transfer-encoding" | "upgrade"
    )
}

/// The field lines that a section of trailers has for whom they are passed on to, by the rules of
/// HTTP/1.1 (RFC 9110 §6.5); `None` if it is not as the limits have it.
pub(super) fn trailers(
    fields: &HeaderMap,
    limits: HeadLimits,
    named: &NamedFields,
) -> Option<Vec<u8>> {
    let mut chunk = b"0\r\n".to_vec();
    for (name, value) in fields {
        let is_name = is_token(name.as_str().as_bytes()) && !is_of_connection(name.as_str());
        if !is_name || has_outer_space(value) {
            return None;
        }
        write::field(&mut chunk, name.as_str(), value.as_bytes());
    }
    chunk.extend_from_slice(b"\r\n");
    let mut reader = BodyReader::new(BodyLength::Chunked, limits).without_trailers(named.clone());
    let mut rest = &chunk[..];
    loop {
        let step = reader.step(rest).ok()?;
        rest = &rest[step.consumed..];
        match step.event {
            BodyEvent::End => return Some(reader.trailers().to_vec()),
            BodyEvent::Data(_) => {}
            BodyEvent::NeedMore => return None,
        }
    }
}

/// A response with the status and the end-to-end fields of the head that `text` begins with, and
/// the length of that head; `None` if it has none.
pub(super) fn response(text: &Bytes) -> Option<(Response<()>, usize)> {
    let limits = HeadLimits {
        bytes_max: usize::MAX,
        fields_max: usize::MAX,
    };
    let mut lines = LineBuffer::new();
    let parsed = parse_response(text, &limits, &mut lines);
    let Ok(Progress::Complete { head, consumed }) = parsed else {
        return None;
    };
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(head.status).ok()?;
    *response.headers_mut() = fields_of(&FieldValues::new(text, consumed), head.fields)?;
    Some((response, consumed))
}

/// The field lines of a trailer section: lines with CRLF.
pub(super) fn trailer_fields(section: &[u8]) -> Option<HeaderMap> {
    let text = Bytes::copy_from_slice(section);
    let mut lines = LineBuffer::new();
    let fields = weir_wire::parse_fields(&text, &mut lines).ok()?;
    fields_of(&FieldValues::new(&text, text.len()), fields)
}

/// Maximum length of a section of fields whose values share memory, bytes. The encoder of HPACK has
/// a dynamic table of 4 KiB, in which an entry counts 32 bytes and its text (RFC 7541 §4.1): at
/// most 124 entries, and each holds all the memory that its value is a part of.
pub(super) const SHARED_BYTES_MAX: usize = 1024;

/// Memory for the values of fields.
pub(super) struct FieldValues<'t> {
    text: &'t [u8],
    /// `None`: each value has its own memory.
    shared: Option<Bytes>,
}

impl<'t> FieldValues<'t> {
    /// Of the fields in the first `length` bytes of `text`. What follows them, as content does, is
    /// not held by their values.
    pub(super) fn new(text: &'t Bytes, length: usize) -> Self {
        let shared = || match text.get(..length) {
            Some(section) if length < text.len() => Bytes::copy_from_slice(section),
            _ => text.clone(),
        };
        Self {
            text,
            shared: (length <= SHARED_BYTES_MAX).then(shared),
        }
    }

    /// `value`, which is a part of the text.
    fn value(&self, value: &[u8]) -> Bytes {
        let begin = value.as_ptr().addr();
        if let Some(shared) = &self.shared
            && let Some(at) = begin.checked_sub(self.text.as_ptr().addr())
            && at + value.len() <= shared.len()
        {
            return shared.slice(at..at + value.len());
        }
        Bytes::copy_from_slice(value)
    }
}

/// The lines that are of no connection.
pub(super) fn fields_of(values: &FieldValues<'_>, lines: &[FieldLine<'_>]) -> Option<HeaderMap> {
    let mut fields = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        if !is_of_connection(name.as_str()) {
            let value = HeaderValue::from_maybe_shared(values.value(line.value)).ok()?;
            fields.append(name, value);
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    const GATEWAY: Http2Form = Http2Form::Origin(Scheme::Https);

    fn head_of(
        (method, uri): (&str, &str),
        fields: &[(&str, &str)],
        (form, ends): (Http2Form, bool),
    ) -> Result<String, Malformed> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            let value = HeaderValue::from_str(value).unwrap();
            // as `h2` reads it, which permits more
            let name = HeaderName::from_lowercase(name.as_bytes()).unwrap();
            request = request.header(name, value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let head = request_head(&parts, form, ends)?;
        Ok(String::from_utf8(head).unwrap())
    }

    #[test]
    fn head_is_that_of_http11() {
        let fields = [
            ("accept", "*/*"),
            ("cookie", "a=1"),
            ("te", "trailers"),
            ("cookie", "b=2"),
        ];
        let get = ("GET", "https://example.com/a?b");
        let head = head_of(get, &fields, (GATEWAY, true)).unwrap();
        let expected =
            "GET /a?b HTTP/1.1\r\nHost: example.com\r\naccept: */*\r\ncookie: a=1; b=2\r\n\r\n";
        assert_eq!(head, expected);
        let head = head_of(get, &[], (Http2Form::Absolute, true)).unwrap();
        let expected = "GET https://example.com/a?b HTTP/1.1\r\nHost: example.com\r\n\r\n";
        assert_eq!(head, expected);
    }

    #[test]
    fn other_scheme_is_said_to_a_gateway() {
        let get = ("GET", "http://example.com:8080/");
        let head = head_of(get, &[], (GATEWAY, true)).unwrap();
        assert!(
            head.starts_with("GET http://example.com:8080/ HTTP/1.1\r\n"),
            "{head}"
        );
    }

    #[test]
    fn content_is_framed_by_its_length_or_chunked() {
        let post = ("POST", "https://example.com/");
        let head = head_of(post, &[], (GATEWAY, false)).unwrap();
        assert!(
            head.ends_with("\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "{head}"
        );
        let lengths = [("content-length", "5"), ("content-length", "5")];
        let head = head_of(post, &lengths, (GATEWAY, false)).unwrap();
        assert!(
            head.ends_with("example.com\r\ncontent-length: 5\r\n\r\n"),
            "{head}"
        );
        let head = head_of(post, &[], (GATEWAY, true)).unwrap();
        assert!(!head.contains("chunked"), "{head}");
    }

    #[test]
    fn host_says_what_the_authority_does() {
        let get = ("GET", "https://example.com/");
        let same = head_of(get, &[("host", "Example.com")], (GATEWAY, true)).unwrap();
        assert_eq!(same, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
        let alone = head_of(("GET", "/"), &[("host", "a.example")], (GATEWAY, true));
        assert_eq!(alone.unwrap(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let fields: [&[(&str, &str)]; 3] = [
            &[("host", "other.example")],
            &[("host", "example.com"), ("host", "example.com")],
            &[("host", "")],
        ];
        for fields in fields {
            let head = head_of(get, fields, (GATEWAY, true));
            assert_eq!(head, Err(Malformed::Authority), "{fields:?}");
        }
        for uri in [
            "https://user@example.com/",
            "https://example.com@evil.example/",
        ] {
            let head = head_of(("GET", uri), &[], (GATEWAY, true));
            assert_eq!(head, Err(Malformed::Authority), "{uri}");
        }
    }

    #[test]
    fn asterisk_is_for_options_alone() {
        let fields = [("host", "a.example")];
        let head = head_of(("OPTIONS", "*"), &fields, (GATEWAY, true)).unwrap();
        assert!(head.starts_with("OPTIONS * HTTP/1.1\r\n"), "{head}");
        let head = head_of(("GET", "*"), &fields, (GATEWAY, true));
        assert_eq!(head, Err(Malformed::Path));
    }

    #[test]
    fn field_of_the_connection_or_with_outer_space_is_malformed() {
        let get = ("GET", "https://example.com/");
        let fields = [
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("a", " b"),
            ("a", "b\t"),
            ("content-length", " 5"),
            ("cookie", "a=1 "),
            ("a\"", "b"),
        ];
        for field in fields {
            let head = head_of(get, &[field], (GATEWAY, false));
            assert_eq!(head, Err(Malformed::Field), "{field:?}");
        }
    }

    #[test]
    fn connect_has_its_authority_for_a_target() {
        let connect = ("CONNECT", "example.com:443");
        let head = head_of(connect, &[], (Http2Form::Absolute, false)).unwrap();
        let expected = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";
        assert_eq!(head, expected);
    }

    #[test]
    fn extended_connect_is_the_request_that_opens_a_websocket() {
        let head_of = |protocol: &'static str, fields: &[(&str, &str)]| {
            let mut request = Request::builder()
                .method("CONNECT")
                .uri("https://example.com/chat?a");
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            parts.extensions.insert(Protocol::from_static(protocol));
            let head = request_head(&parts, GATEWAY, false)?;
            Ok(String::from_utf8(head).unwrap())
        };
        let fields = [
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "of the client"),
        ];
        let head = head_of("websocket", &fields).unwrap();
        let before = "GET /chat?a HTTP/1.1\r\nHost: example.com\r\nsec-websocket-version: 13\r\n\
                      Connection: Upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: ";
        let rest = head.strip_prefix(before).expect(&head);
        // 16 bytes, which are others each time
        assert_eq!(rest.len(), 24 + 4, "{rest}");
        assert_ne!(head_of("websocket", &fields).unwrap(), head);
        let length = [("content-length", "5")];
        assert_eq!(head_of("websocket", &length), Err(Malformed::Field));
        let upgrade = [("upgrade", "h2c")];
        assert_eq!(head_of("websocket", &upgrade), Err(Malformed::Field));
        for protocol in ["WebSocket", "connect-udp", ""] {
            assert_eq!(head_of(protocol, &[]), Err(Malformed::Protocol));
        }
    }

    #[test]
    fn response_has_no_field_of_the_connection() {
        let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nETag: \"a\"\r\nX-A: \xe9\r\nKeep-Alive: 1\r\nX-A: b\r\n\r\n";
        let (response, length) = response(&Bytes::from_static(head)).unwrap();
        assert_eq!(length, head.len());
        assert_eq!(response.status(), 200);
        let names: Vec<&str> = response.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["etag", "x-a"]);
        let values = response.headers().get_all("x-a").iter();
        assert!(values.map(HeaderValue::as_bytes).eq([&b"\xe9"[..], b"b"]));
    }

    #[test]
    fn value_of_a_field_holds_neither_content_nor_a_large_head() {
        let content = [0; 4096];
        for (padding, with_content) in [(0, true), (SHARED_BYTES_MAX, true), (4096, false)] {
            let head = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nEmpty:\r\nX: ";
            let text = format!("{head}{padding:padding$}\r\n\r\n");
            let length = text.len();
            let mut text = text.into_bytes();
            text.extend_from_slice(if with_content { &content } else { &[] });
            let text = Bytes::from(text);
            let (response, parsed) = response(&text).unwrap();
            assert_eq!(parsed, length);
            assert!(text.is_unique(), "{padding}");
            assert_eq!(response.headers()["etag"], "\"a\"");
            assert_eq!(response.headers()["empty"], "");
        }
    }

    #[test]
    fn trailers_pass_the_sieve_of_http11() {
        let mut fields = HeaderMap::new();
        fields.append("x-checksum", HeaderValue::from_static("1"));
        fields.append("content-length", HeaderValue::from_static("5"));
        fields.append("authorization", HeaderValue::from_static("Basic eDp5"));
        let named = &NamedFields::NONE;
        let kept = trailers(&fields, HeadLimits::default(), named).unwrap();
        assert_eq!(kept, b"x-checksum: 1\r\n");
        assert_eq!(trailer_fields(&kept).unwrap().len(), 1);
        for (name, value) in [("x-b", " b"), ("x\"", "b")] {
            let mut fields = fields.clone();
            let name = HeaderName::from_lowercase(name.as_bytes()).unwrap();
            fields.append(&name, HeaderValue::from_static(value));
            let kept = trailers(&fields, HeadLimits::default(), named);
            assert_eq!(kept, None, "{name}");
        }
    }
}
