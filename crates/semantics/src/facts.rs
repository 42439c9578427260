//! What the field lines of one message say about caching, gathered in one pass and without
//! allocation.

use crate::caching::cache_control::{RequestDirectives, ResponseDirectives};
use crate::caching::targeted::DecidedBy;
use crate::caching::vary::VaryKind;
use crate::date::parse_http_date;
use crate::fields::field::{FieldLine, list_elements};
use crate::fields::known::{Known, identify};
use crate::method::Method;
use crate::ranges::content_range::ContentRange;
use crate::ranges::range::RangeKind;
use crate::time::{DeltaSeconds, Timestamp};
use crate::validation::entity_tag::{EntityTag, Strength};

/// Fields one response may vary on; a longer list is read as `*`. Each is hashed at every look-up,
/// and responses name a handful at most.
pub const NOMINATED_FIELDS_MAX: usize = 64;

/// What a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    /// The method.
    pub method: Method,
    /// `Cache-Control`; a `Pragma: no-cache` counts as its `no-cache` where there is no such field
    /// (RFC 9111 §5.4).
    pub directives: RequestDirectives,
    /// Is there an `Authorization` field (RFC 9111 §3.5)?
    pub has_authorization: bool,
    /// Is there a `Cookie` field?
    pub has_cookie: bool,
    /// Is there a `Range` field?
    pub has_range: bool,
    /// How many ranges it has.
    pub range: RangeKind,
    /// Is there an `If-Range` field?
    pub has_if_range: bool,
    /// Has the target a query?
    pub has_query: bool,
    /// Has the path `cgi-bin` in it, which some caches took for a sign of dynamic content?
    pub has_cgi_bin: bool,
    /// Is there a `Pragma` field, whatever it says?
    pub has_pragma: bool,
    /// Is there a precondition: `If-Match`, `If-None-Match`, `If-Modified-Since` or
    /// `If-Unmodified-Since`?
    pub preconditions: bool,
    /// Does the client wait for `100 Continue` (RFC 9110 §10.1.1)?
    pub expects_continue: bool,
}

impl RequestFacts {
    /// Reads the target and the field lines once.
    #[must_use]
    pub fn gather(method: Method, path_and_query: &str, fields: &[FieldLine<'_>]) -> Self {
        let (has_query, has_cgi_bin) = read_target(path_and_query.as_bytes());
        let mut facts = Self {
            method,
            directives: RequestDirectives::default(),
            has_authorization: false,
            has_cookie: false,
            has_range: false,
            range: RangeKind::None,
            has_if_range: false,
            has_query,
            has_cgi_bin,
            has_pragma: false,
            preconditions: false,
            expects_continue: false,
        };
        let mut pragma_no_cache = false;
        for line in fields {
            match identify(line.name) {
                Some(Known::CacheControl) => facts.directives.add_line(line.value),
                Some(Known::Authorization) => facts.has_authorization = true,
                Some(Known::Cookie) => facts.has_cookie = true,
                Some(Known::Range) => facts.add_range(line.value),
                Some(Known::IfRange) => facts.has_if_range = true,
                Some(
                    Known::IfMatch
                    | Known::IfNoneMatch
                    | Known::IfModifiedSince
                    | Known::IfUnmodifiedSince,
                ) => {
                    facts.preconditions = true;
                }
                Some(Known::Pragma) => {
                    facts.has_pragma = true;
                    pragma_no_cache |= has_member(line.value, b"no-cache");
                }
                Some(Known::Expect) => {
                    facts.expects_continue |= has_member(line.value, b"100-continue")
                }
                _ => {}
            }
        }
        if pragma_no_cache && !facts.directives.any {
            facts.directives.no_cache = true;
        }
        facts
    }

    /// The same request without its `Range` and `If-Range`: a request for the whole.
    #[must_use]
    pub const fn for_whole(self) -> Self {
        Self {
            has_range: false,
            range: RangeKind::None,
            has_if_range: false,
            ..self
        }
    }

    /// The same request with one `Range` in place of whatever it had, and without `If-Range`.
    #[must_use]
    pub const fn for_part(self) -> Self {
        Self {
            has_range: true,
            range: RangeKind::One,
            has_if_range: false,
            ..self
        }
    }

    fn add_range(&mut self, value: &[u8]) {
        if matches!(self.method, Method::Get) {
            self.range = if self.has_range {
                RangeKind::Many
            } else {
                RangeKind::of(value)
            };
        }
        self.has_range = true;
    }
}

/// `Expires`, RFC 9111 §5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expires {
    /// A date.
    At(Timestamp),
    /// No valid HTTP-date, `0` for one: already stale.
    Invalid,
}

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseFacts {
    /// The status code.
    pub status: u16,
    /// `Cache-Control`, or what [`targeted`](Self::targeted) found in its place.
    pub directives: ResponseDirectives,
    /// Where the directives come from.
    pub decided_by: DecidedBy,
    /// `Date`; `None` if absent or invalid: use the time of receipt (RFC 9110 §6.6.1).
    pub date: Option<Timestamp>,
    /// `Expires`; of several lines the earliest, and [`Expires::Invalid`] if one is (RFC 9111
    /// §4.2.1).
    pub expires: Option<Expires>,
    /// `Last-Modified`; `None` if absent or invalid.
    pub last_modified: Option<Timestamp>,
    /// `Age`; the first member of the first line, `None` if that is not `1*DIGIT` (RFC 9111 §5.1).
    pub age: Option<DeltaSeconds>,
    /// How strong the `ETag` is; `None` if absent or invalid.
    pub entity_tag: Option<Strength>,
    /// What kind of `Vary` it has.
    pub vary: VaryKind,
    /// Is there a `Set-Cookie` field, or its predecessor `Set-Cookie2`?
    pub has_set_cookie: bool,
    /// Is there a `Content-Range` that names a part? Where it does not parse as one it means
    /// nothing: it is no sign of a part in a response that is no 206 (RFC 9110 §14.4).
    pub has_content_range: bool,
    /// That `Content-Range`; `None` as well if there are several lines, which contradict each
    /// other.
    pub content_range: Option<ContentRange>,
    /// Is there a `Pragma` field? It means nothing in a response (RFC 9111 §5.4).
    pub has_pragma: bool,
    /// Do some lines of its head end in LF and some in CRLF? The fields do not tell: the reader
    /// of the head sets it.
    pub has_mixed_line_ends: bool,
}

impl ResponseFacts {
    /// Reads the field lines once. Of a singleton field that is repeated the first line counts, if
    /// nothing else is said; `now` is for two-digit years only.
    #[must_use]
    pub fn gather(status: u16, fields: &[FieldLine<'_>], now: Timestamp) -> Self {
        let mut facts = Self {
            status,
            directives: ResponseDirectives::default(),
            decided_by: DecidedBy::CacheControl,
            date: None,
            expires: None,
            last_modified: None,
            age: None,
            entity_tag: None,
            vary: VaryKind::None,
            has_set_cookie: false,
            has_content_range: false,
            content_range: None,
            has_pragma: false,
            has_mixed_line_ends: false,
        };
        let mut seen_age = false;
        let mut seen_content_range = false;
        let mut nominated_fields = 0;
        for line in fields {
            match identify(line.name) {
                Some(Known::CacheControl) => facts.directives.add_line(line.value),
                Some(Known::Date) => {
                    facts.date = facts.date.or_else(|| parse_http_date(line.value, now))
                }
                Some(Known::Expires) => facts.add_expires(parse_http_date(line.value, now)),
                Some(Known::LastModified) => {
                    facts.last_modified = facts
                        .last_modified
                        .or_else(|| parse_http_date(line.value, now));
                }
                Some(Known::Age) if !seen_age => {
                    seen_age = true;
                    facts.age = list_elements(line.value)
                        .next()
                        .and_then(DeltaSeconds::parse);
                }
                Some(Known::ETag) => {
                    let tag = EntityTag::parse(line.value).map(|tag| tag.strength());
                    facts.entity_tag = facts.entity_tag.or(tag);
                }
                Some(Known::Vary) => {
                    facts.vary.add_line(line.value);
                    nominated_fields += list_elements(line.value).count();
                }
                Some(Known::SetCookie | Known::SetCookie2) => facts.has_set_cookie = true,
                Some(Known::ContentRange) => {
                    let range = ContentRange::parse(line.value);
                    let is_part = matches!(range, Some(ContentRange::Part { .. }));
                    facts.has_content_range |= is_part;
                    facts.content_range = range.filter(|_| is_part && !seen_content_range);
                    seen_content_range = true;
                }
                Some(Known::Pragma) => facts.has_pragma = true,
                _ => {}
            }
        }
        if nominated_fields > NOMINATED_FIELDS_MAX {
            facts.vary = VaryKind::Star;
        }
        facts
    }

    /// Does it say itself how long it is fresh (RFC 9111 §4.2.1), an invalid way included?
    #[must_use]
    pub const fn has_explicit_lifetime(&self) -> bool {
        self.directives.s_maxage.is_some()
            || self.directives.max_age.is_some()
            || self.expires.is_some()
    }

    /// Has it something a 304 can confirm (RFC 9111 §4.3.1): an entity tag or a `Last-Modified`
    /// date?
    #[must_use]
    pub const fn has_validator(&self) -> bool {
        self.entity_tag.is_some() || self.last_modified.is_some()
    }

    fn add_expires(&mut self, date: Option<Timestamp>) {
        self.expires = Some(match (self.expires, date) {
            (None, Some(at)) => Expires::At(at),
            (Some(Expires::At(first)), Some(at)) => Expires::At(first.min(at)),
            (Some(Expires::Invalid), _) | (_, None) => Expires::Invalid,
        });
    }
}

/// Has the target a query, and has its path `cgi-bin` in it?
fn read_target(target: &[u8]) -> (bool, bool) {
    const CGI_BIN: &[u8] = b"cgi-bin";
    // `contains` looks at many bytes at once; the walk over single bytes is for the few targets
    // that need it
    let has_query = target.contains(&b'?');
    if !target.contains(&b'-') {
        return (has_query, false);
    }
    let end = target
        .iter()
        .position(|&byte| byte == b'?')
        .unwrap_or(target.len());
    (
        has_query,
        target[..end]
            .windows(CGI_BIN.len())
            .any(|window| window == CGI_BIN),
    )
}

fn has_member(value: &[u8], token: &[u8]) -> bool {
    list_elements(value).any(|element| element.eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests;
