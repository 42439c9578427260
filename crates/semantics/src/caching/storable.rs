//! May a response be stored by a shared cache? RFC 9111 §3 and §3.5.
//!
//! This says what the RFC allows, each "no" with its reason. What we choose beyond that, for
//! instance about `Set-Cookie`, sizes, or errors without an explicit lifetime, is the policy's to
//! admit or refuse.

use core::fmt;

use crate::caching::vary::VaryKind;
use crate::facts::{RequestFacts, ResponseFacts};
use crate::method::Method;
use crate::ranges::content_range::ContentRange;
use crate::ranges::range::RangeKind;
use crate::status::{is_final, is_heuristically_cacheable, is_understood};
use crate::validation::entity_tag::Strength;
use crate::words;

words! {
    /// Why a response is not storable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum NotStorable {
        /// The method is not `GET`. A response to `HEAD` has nothing to store; it may freshen (RFC
        /// 9111 §4.3.5).
        Method = "method",
        /// The request says `no-store`.
        RequestNoStore = "request-no-store",
        /// The status is interim or none at all.
        StatusNotFinal = "status-not-final",
        /// A part of a representation that cannot be joined with another part later: no strong
        /// entity tag, no complete length, or not requested as one range.
        PartialContent = "partial-content",
        /// Some lines of the head end in LF and some in CRLF. A user of the origin may have put a
        /// LF into a value (response splitting, RFC 9112 §11.1): what follows it must not reach
        /// other users.
        LineEnds = "line-ends",
        /// The status needs understanding, by itself (304, 407) or by `must-understand`, and we
        /// have none of it.
        StatusNotUnderstood = "status-not-understood",
        /// The response says `no-store`.
        ResponseNoStore = "response-no-store",
        /// The response says `private`.
        Private = "private",
        /// The request has `Authorization` and the response does not permit to share it (§3.5).
        Authorization = "authorization",
        /// `Vary: *`: no other request would match (§4.1).
        VaryStar = "vary-star",
        /// No explicit lifetime, no `public`, and the status is not heuristically cacheable.
        NoExplicitLifetime = "no-explicit-lifetime",
    }
}

impl fmt::Display for NotStorable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl core::error::Error for NotStorable {}

/// May a shared cache store this response to this request?
///
/// A 206 may be stored as a part (RFC 9111 §3.3) if that part can be of use later. The RFC leaves
/// open which; ours are:
/// * its `Content-Range` names one range and the complete length, so that we know what is missing;
/// * it has a strong entity tag, without which no other part may ever join it (RFC 9110 §15.3.7.3);
/// * the request had one range, so that the content is not `multipart/byteranges`;
/// * the request had no `If-Range`: its response leaves out fields that the client has (RFC 9110
///   §15.3.7), and we have not.
///
/// # Errors
/// The first reason against it, in the order of [`NotStorable::ALL`].
pub const fn storable(req: &RequestFacts, res: &ResponseFacts) -> Result<(), NotStorable> {
    let directives = &res.directives;
    let understood = is_understood(res.status);
    // a 407 is for the connection to one proxy (RFC 9110 §11.7.1)
    let needs_understanding = directives.must_understand || matches!(res.status, 304 | 407);
    // RFC 9111 §5.2.2.3: a cache that understands the status disregards the no-store that is there
    // for all others
    let no_store = directives.no_store && !(directives.must_understand && understood);
    let shared_after_all =
        directives.public || directives.must_revalidate || directives.s_maxage.is_some();
    let cacheable =
        res.has_explicit_lifetime() || directives.public || is_heuristically_cacheable(res.status);
    Err(if !matches!(req.method, Method::Get) {
        NotStorable::Method
    } else if req.directives.no_store {
        NotStorable::RequestNoStore
    } else if !is_final(res.status) {
        NotStorable::StatusNotFinal
    } else if res.status == 206 && !is_useful_part(req, res)
        || res.status != 206 && res.has_content_range
    {
        NotStorable::PartialContent
    } else if res.has_mixed_line_ends {
        NotStorable::LineEnds
    } else if needs_understanding && !understood {
        NotStorable::StatusNotUnderstood
    } else if no_store {
        NotStorable::ResponseNoStore
    } else if directives.private {
        NotStorable::Private
    } else if req.has_authorization && !shared_after_all {
        NotStorable::Authorization
    } else if matches!(res.vary, VaryKind::Star) {
        NotStorable::VaryStar
    } else if !cacheable {
        NotStorable::NoExplicitLifetime
    } else {
        return Ok(());
    })
}

const fn is_useful_part(req: &RequestFacts, res: &ResponseFacts) -> bool {
    let is_known = matches!(
        res.content_range,
        Some(ContentRange::Part {
            complete_length: Some(_),
            ..
        })
    );
    let is_strong = matches!(res.entity_tag, Some(Strength::Strong));
    is_known && is_strong && matches!(req.range, RangeKind::One) && !req.has_if_range
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::field::FieldLine;
    use crate::time::Timestamp;

    fn lines<'a>(lines: &[(&'a str, &'a str)]) -> Vec<FieldLine<'a>> {
        lines
            .iter()
            .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
            .collect()
    }

    fn verdict(
        method: Method,
        request: &[(&str, &str)],
        status: u16,
        response: &[(&str, &str)],
    ) -> &'static str {
        let request = RequestFacts::gather(method, "/", &lines(request));
        let response = ResponseFacts::gather(status, &lines(response), Timestamp(0));
        storable(&request, &response).map_or_else(NotStorable::as_str, |()| "ok")
    }

    fn check(status: u16, response: &[(&str, &str)], expected: &str) {
        assert_eq!(
            verdict(Method::Get, &[], status, response),
            expected,
            "{status} {response:?}"
        );
    }

    const FRESH: (&str, &str) = ("Cache-Control", "max-age=60");

    #[test]
    fn only_responses_to_get_are_storable() {
        assert_eq!(verdict(Method::Get, &[], 200, &[FRESH]), "ok");
        for method in [
            Method::Head,
            Method::Post,
            Method::Put,
            Method::Connect,
            Method::Options,
            Method::Other,
        ] {
            assert_eq!(verdict(method, &[], 200, &[FRESH]), "method");
        }
    }

    #[test]
    fn response_with_mixed_line_ends_is_not_storable() {
        let request = RequestFacts::gather(Method::Get, "/", &[]);
        let mut response = ResponseFacts::gather(200, &lines(&[FRESH]), Timestamp(0));
        assert_eq!(storable(&request, &response), Ok(()));
        response.has_mixed_line_ends = true;
        assert_eq!(storable(&request, &response), Err(NotStorable::LineEnds));
    }

    #[test]
    fn no_store_and_private_responses_are_not_storable() {
        check(200, &[("Cache-Control", "No-StOrE")], "response-no-store");
        check(
            200,
            &[FRESH, ("Cache-Control", "no-store")],
            "response-no-store",
        );
        check(200, &[("Cache-Control", "private, max-age=60")], "private");
        check(
            200,
            &[("Cache-Control", "public, private=\"x\"")],
            "private",
        );
        check(200, &[("Cache-Control", "no-cache")], "ok");
        assert_eq!(
            verdict(Method::Get, &[("Cache-Control", "no-store")], 200, &[FRESH]),
            "request-no-store"
        );
        assert_eq!(
            verdict(Method::Get, &[("Pragma", "no-cache")], 200, &[FRESH]),
            "ok"
        );
    }

    #[test]
    fn response_to_authorization_requires_explicit_permission() {
        let check = |directives, expected| {
            let request = [("Authorization", "Basic x")];
            assert_eq!(
                verdict(Method::Get, &request, 200, &[("Cache-Control", directives)]),
                expected
            );
        };
        check("max-age=60", "authorization");
        check("max-age=60, proxy-revalidate, immutable", "authorization");
        check("max-age=60, public", "ok");
        check("max-age=60, must-revalidate", "ok");
        check("s-maxage=60", "ok");
        check("s-maxage=60, private", "private");
        check("s-maxage=60, no-store", "response-no-store");
    }

    #[test]
    fn must_understand_overrides_no_store_only_for_an_understood_status() {
        let directives = ("Cache-Control", "max-age=60, no-store, must-understand");
        check(200, &[directives], "ok");
        check(599, &[directives], "status-not-understood");
        check(
            599,
            &[("Cache-Control", "max-age=60, must-understand")],
            "status-not-understood",
        );
        check(599, &[FRESH], "ok");
        check(
            200,
            &[("Cache-Control", "max-age=60, no-store, must-understand=1")],
            "response-no-store",
        );
    }

    #[test]
    fn unrequested_parts_and_interim_responses_are_not_storable() {
        check(
            206,
            &[FRESH, ("Content-Range", "bytes 0-1/3")],
            "partial-content",
        );
        check(206, &[FRESH], "partial-content");
        check(
            200,
            &[FRESH, ("Content-Range", "bytes 0-1/3")],
            "partial-content",
        );
        // means nothing there (RFC 9110 §14.4), and is no range
        check(200, &[FRESH, ("Content-Range", "whatever")], "ok");
        check(304, &[FRESH], "status-not-understood");
        for status in [100, 101, 103, 199, 600, 999] {
            check(status, &[FRESH], "status-not-final");
        }
    }

    #[test]
    fn part_is_storable_only_if_it_can_be_joined_later() {
        const RANGE: (&str, &str) = ("Range", "bytes=0-1");
        const PART: (&str, &str) = ("Content-Range", "bytes 0-1/3");
        const TAG: (&str, &str) = ("ETag", "\"a\"");
        let check = |request: &[(&str, &str)], response: &[(&str, &str)], expected| {
            let found = verdict(Method::Get, request, 206, response);
            assert_eq!(found, expected, "{request:?} {response:?}");
        };
        check(&[RANGE], &[FRESH, PART, TAG], "ok");
        check(&[RANGE], &[PART, TAG], "ok");
        let no_store = ("Cache-Control", "no-store");
        check(&[RANGE], &[no_store, PART, TAG], "response-no-store");
        let must_understand = ("Cache-Control", "no-store, must-understand");
        check(&[RANGE], &[must_understand, PART, TAG], "ok");
        // the validator
        check(&[RANGE], &[PART], "partial-content");
        check(&[RANGE], &[PART, ("ETag", "W/\"a\"")], "partial-content");
        check(&[RANGE], &[PART, ("ETag", "a")], "partial-content");
        let modified = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        check(&[RANGE], &[PART, modified], "partial-content");
        // the place
        for range in ["bytes 0-1/*", "bytes */3", "bytes 2-1/3", "lines 0-1/3"] {
            check(
                &[RANGE],
                &[("Content-Range", range), TAG],
                "partial-content",
            );
        }
        check(&[RANGE], &[TAG], "partial-content");
        check(&[RANGE], &[PART, PART, TAG], "partial-content");
        // the question
        check(&[], &[PART, TAG], "partial-content");
        check(
            &[("Range", "bytes=0-0,1-1")],
            &[PART, TAG],
            "partial-content",
        );
        check(&[RANGE, RANGE], &[PART, TAG], "partial-content");
        check(&[("Range", "lines=0-1")], &[PART, TAG], "partial-content");
        let if_range = ("If-Range", "\"a\"");
        check(&[RANGE, if_range], &[PART, TAG], "partial-content");
    }

    #[test]
    fn response_without_lifetime_is_storable_by_status_or_public() {
        check(200, &[], "ok");
        check(404, &[], "ok");
        check(302, &[], "no-explicit-lifetime");
        check(
            500,
            &[("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")],
            "no-explicit-lifetime",
        );
        check(302, &[("Cache-Control", "public")], "ok");
        check(302, &[("Cache-Control", "s-maxage=1")], "ok");
        check(302, &[("Expires", "0")], "ok");
        check(500, &[FRESH], "ok");
    }

    #[test]
    fn response_with_star_anywhere_in_vary_is_not_storable() {
        for value in ["*", "*, *", ", *", "*, Foo", "Foo, *", "a b"] {
            check(200, &[FRESH, ("Vary", value)], "vary-star");
        }
        check(200, &[FRESH, ("Vary", ""), ("Vary", "*")], "vary-star");
        check(200, &[FRESH, ("Vary", "Foo, Bar")], "ok");
    }

    #[test]
    fn not_storable_reason_words_are_unique() {
        let words: std::collections::BTreeSet<_> = NotStorable::ALL
            .iter()
            .map(|reason| reason.as_str())
            .collect();
        assert_eq!(words.len(), NotStorable::ALL.len());
        assert!(words.iter().all(|word| {
            word.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        }));
    }
}
