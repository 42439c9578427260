//! The request as the origin needs it, apart from its conditions: owned values, read from its head.

use weir_semantics::{FieldLine, Method, list_elements};
use weir_wire::{BodyLength, FramingError, RequestHead, Version, request_body};

use crate::mark::{self, Id};

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestFacts {
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) id: Option<Id>,
    /// Is it the request before a run that shows whether the origin can be reached?
    pub(super) is_probe: bool,
    /// Does the peer keep the connection (RFC 9112 §9.3)? In HTTP/1.0 only if it says so.
    pub(super) keeps: bool,
    /// Does it wait for a 100 before it sends content (RFC 9110 §10.1.1)?
    pub(super) expects_continue: bool,
    pub(super) content: BodyLength,
}

impl RequestFacts {
    /// Reads a head.
    ///
    /// # Errors
    ///
    /// It is in doubt where the request ends.
    pub(super) fn read(head: &RequestHead<'_, '_>) -> Result<Self, FramingError> {
        let mut request = Self {
            method: Method::parse(head.method),
            version: head.version,
            id: None,
            is_probe: false,
            keeps: head.version == Version::Http11,
            expects_continue: false,
            content: request_body(head.version, head.fields)?,
        };
        for line in head.fields {
            request.note(line);
        }
        Ok(request)
    }

    fn note(&mut self, line: &FieldLine<'_>) {
        let is = |name: &str| line.name.eq_ignore_ascii_case(name);
        if is(mark::FIELD) {
            self.id = Id::parse(line.value);
            self.is_probe = line.value == mark::PROBE.as_bytes();
        } else if is("connection") {
            for option in list_elements(line.value) {
                if option.eq_ignore_ascii_case(b"close") {
                    self.keeps = false;
                } else if option.eq_ignore_ascii_case(b"keep-alive")
                    && self.version == Version::Http10
                {
                    self.keeps = true;
                }
            }
        } else if is("expect") {
            self.expects_continue =
                self.version == Version::Http11 && line.value.eq_ignore_ascii_case(b"100-continue");
        }
    }
}

/// The path and query of a request-target in origin-form or absolute-form, which a server must
/// accept as well (RFC 9112 §3.2.2); `None` for the other forms. The authority is not looked at:
/// the server is known by where it was reached.
pub(super) fn path(target: &str) -> Option<&[u8]> {
    if target.starts_with('/') {
        return Some(target.as_bytes());
    }
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    Some(rest.find('/').map_or(b"/", |at| &rest.as_bytes()[at..]))
}

#[cfg(test)]
mod tests {
    use weir_wire::{HeadLimits, LineBuffer, Progress, parse_request};

    use super::*;

    fn check(text: &str, expected: impl FnOnce(RequestFacts) -> bool) {
        let mut lines = LineBuffer::new();
        let text = text.replace('\n', "\r\n") + "\r\n\r\n";
        let parsed = parse_request(text.as_bytes(), &HeadLimits::default(), &mut lines);
        let Ok(Progress::Complete { head, .. }) = parsed else {
            panic!("{text:?}: {parsed:?}");
        };
        let request = RequestFacts::read(&head).expect("framed");
        assert!(expected(request), "{text:?}: {request:?}");
    }

    #[test]
    fn connection_persists_only_if_version_and_connection_field_allow() {
        check("GET / HTTP/1.1", |request| request.keeps);
        check("GET / HTTP/1.1\nConnection: close", |request| {
            !request.keeps
        });
        check("GET / HTTP/1.1\nConnection: te, Close", |request| {
            !request.keeps
        });
        check("GET / HTTP/1.0", |request| !request.keeps);
        check("GET / HTTP/1.0\nConnection: Keep-Alive", |request| {
            request.keeps
        });
    }

    #[test]
    fn request_id_and_expectation_are_read_from_the_header_section() {
        let id = Id {
            phase: 1,
            share: 2,
            number: 10,
        };
        check("GET / HTTP/1.1\nweir-bench: 1-2-a", |request| {
            request.id == Some(id)
        });
        check("GET / HTTP/1.1\nWeir-Bench: 1-2", |request| {
            request.id.is_none()
        });
        let post = "POST / HTTP/1.1\nContent-Length: 5\nExpect: 100-continue";
        check(post, |request| {
            request.expects_continue
                && request.content == BodyLength::Exact(5)
                && request.method == Method::Post
        });
        check(&post.replace("1.1", "1.0"), |request| {
            !request.expects_continue
        });
    }

    #[test]
    fn path_is_taken_from_origin_form_and_absolute_http_targets() {
        for (target, expected) in [
            ("/a?b", Some("/a?b")),
            ("http://127.0.0.1:80/a", Some("/a")),
            ("HTTP://a/b://c/d", Some("/b://c/d")),
            ("http://a", Some("/")),
            ("https://a/b", None),
            ("a:80", None),
            ("*", None),
        ] {
            assert_eq!(path(target), expected.map(str::as_bytes), "{target}");
        }
    }
}
