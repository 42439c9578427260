//! The two heads of a transaction, as bytes, as the live proxy has them.
//!
//! All columns that heads decide are set as the importers set them, so that a recording and a
//! capture of the same traffic agree.

use std::fmt;

use weir_semantics::TargetedFields;
use weir_wire::{HeadLimits, LineBuffer, Progress, Version, parse_request, parse_response};

use super::Hide;
use super::facts::{RequestTarget, TargetForm, request_facts, response_facts};
use crate::{Row, TraceScheme, TraceVersion};

/// The heads, from their first byte to the empty line that ends them.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// The request's.
    pub request: &'a [u8],
    /// The final response's; empty if there was none.
    pub response: &'a [u8],
    /// Host and port where the request says none: those of the listener.
    pub default_authority: &'a str,
    /// The targeted fields that decided in place of Cache-Control where the heads were seen (RFC
    /// 9213).
    pub targeted: &'a TargetedFields,
    /// The time of the response, seconds since 1970.
    pub time_s: i64,
}

/// What is there is no request that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRequest;

impl fmt::Display for NoRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the head of the request cannot be read")
    }
}

impl std::error::Error for NoRequest {}

/// No limit on bytes: the proxy had its own.
const LIMITS: HeadLimits = HeadLimits {
    bytes_max: usize::MAX,
    fields_max: usize::MAX,
};

impl Heads<'_> {
    /// Sets what they say: target, server, method, scheme, version, status and all columns about
    /// fields. The columns of a response that cannot be read stay as they are.
    ///
    /// # Errors
    /// The request cannot be read; nothing is set then.
    pub fn fill(&self, row: &mut Row, hide: &dyn Hide) -> Result<(), NoRequest> {
        let mut lines = LineBuffer::new();
        let Ok(Progress::Complete { head, .. }) = parse_request(self.request, &LIMITS, &mut lines)
        else {
            return Err(NoRequest);
        };
        row.version = Some(match head.version {
            Version::Http10 => TraceVersion::Http10,
            Version::Http11 => TraceVersion::Http11,
        });
        let asked = RequestTarget {
            method: head.method,
            target: TargetForm::Line(head.target),
            scheme: TraceScheme::Http,
            default_authority: self.default_authority,
        };
        request_facts(row, &asked, head.fields, hide);
        let mut lines = LineBuffer::new();
        if let Ok(Progress::Complete { head: response, .. }) =
            parse_response(self.response, &LIMITS, &mut lines)
        {
            response_facts(
                row,
                response.status,
                response.fields,
                self.targeted,
                head.fields,
                self.time_s,
                hide,
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anonymiser, RequestBit, TraceMethod};

    const HIDE: Anonymiser = Anonymiser::none();

    fn fill(request: &str, response: &str) -> Result<Row, NoRequest> {
        let heads = Heads {
            request: request.as_bytes(),
            response: response.as_bytes(),
            default_authority: "192.0.2.1:8080",
            targeted: &TargetedFields::new(["CDN-Cache-Control"]),
            time_s: 1_000_000_000,
        };
        let mut row = Row::default();
        heads.fill(&mut row, &HIDE).map(|()| row)
    }

    #[test]
    fn captured_header_sections_fill_the_columns_they_state() {
        let row = fill(
            "\r\nGET /a?b HTTP/1.1\r\nHost: A.example\r\nCookie: c\r\nPragma: no-cache\r\n\r\n",
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nETag: \"x\"\r\nContent-Length: 7\r\n\r\n",
        )
        .expect("a request");
        assert_eq!(row.target_text.as_deref(), Some("http://a.example/a?b"));
        assert_eq!(row.server, Some(HIDE.server("http", "a.example:80")));
        assert_eq!(row.version, Some(TraceVersion::Http11));
        assert_eq!(
            (row.has_cookie, row.has_query, row.has_set_cookie),
            (Some(true), Some(true), Some(false))
        );
        assert_eq!(
            row.request_directives,
            Some(RequestBit::PragmaNoCache.bit())
        );
        assert_eq!((row.status, row.max_age_s), (Some(200), Some(9)));
        assert!(row.etag.is_some());
        assert_eq!(row.declared_bytes, Some(7));
    }

    #[test]
    fn request_without_host_uses_the_default_authority() {
        let row = fill("GET /a HTTP/1.0\r\n\r\n", "").expect("a request");
        let expected = "http://192.0.2.1:8080/a";
        assert_eq!(row.target_text.as_deref(), Some(expected));
        assert_eq!(row.version, Some(TraceVersion::Http10));
    }

    #[test]
    fn connect_request_has_an_authority_and_no_scheme() {
        let row = fill(
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
            "HTTP/1.1 200 Connection established\r\n\r\n",
        )
        .expect("a request");
        assert_eq!(row.method, Some(TraceMethod::Connect));
        assert_eq!(row.scheme, None);
        assert_eq!(row.target_text.as_deref(), Some("a.example:443"));
        assert_eq!(row.status, Some(200));
    }

    #[test]
    fn absent_response_leaves_its_columns_empty_and_a_bad_request_is_none() {
        let row = fill("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "").expect("a request");
        assert_eq!((row.status, row.response_directives), (None, None));
        assert_eq!(row.has_cookie, Some(false));
        assert_eq!(fill("GET\r\n\r\n", ""), Err(NoRequest));
        assert_eq!(fill("GET / HTTP/1.1\r\nHost: a", ""), Err(NoRequest));
    }
}
