//! May this stored response be used for this request without validation (RFC 9111 §4, §4.2,
//! §5.2.1)?
//!
//! Where the text is silent: a request directive that the stored response does not satisfy forwards
//! for `request` (RFC 9211 §2.2), a response that is too old by its own directives for `stale`.
//! `no-cache` on the response counts as stale, as it always needs validation.

use crate::now::Now;
use crate::stored::StoredFacts;
use crate::verdict::Hit;
use weir_semantics::{Fwd, RequestDirectives, words};

/// Use it, or forward the request, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may be served at once.
    Use(Hit),
    /// The request must be forwarded.
    Forward(Fwd),
}

words! {
    /// What a judgement looks at, in this order; the last one that it looks at decides.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Test {
        /// The request says `no-cache` (RFC 9111 §5.2.1.4).
        RequestNoCache = "request-no-cache",
        /// The response says `no-cache` (§5.2.2.4), or may have been purged.
        ResponseNoCache = "response-no-cache",
        /// Its age is above `max-age` of the request (§5.2.1.1).
        RequestMaxAge = "request-max-age",
        /// It is fresh for less than `min-fresh` of the request (§5.2.1.3).
        RequestMinFresh = "request-min-fresh",
        /// It is fresh (§4.2).
        Freshness = "freshness",
        /// `max-stale` of the request covers how stale it is (§5.2.1.2), and nothing forbids that.
        RequestMaxStale = "request-max-stale",
        /// It is in its window of `stale-while-revalidate` (RFC 5861 §3).
        WhileRevalidate = "stale-while-revalidate",
        /// Nothing permits to serve it stale (§4.2.4).
        Stale = "stale",
    }
}

impl Test {
    /// The section that it is of.
    #[must_use]
    pub const fn section(self) -> &'static str {
        match self {
            Self::RequestNoCache => "RFC 9111 section 5.2.1.4",
            Self::ResponseNoCache => "RFC 9111 section 5.2.2.4",
            Self::RequestMaxAge => "RFC 9111 section 5.2.1.1",
            Self::RequestMinFresh => "RFC 9111 section 5.2.1.3",
            Self::Freshness => "RFC 9111 section 4.2",
            Self::RequestMaxStale => "RFC 9111 section 5.2.1.2",
            Self::WhileRevalidate => "RFC 5861 section 3",
            Self::Stale => "RFC 9111 section 4.2.4",
        }
    }
}

/// Judges `stored` for a request with `directives`.
#[must_use]
pub fn judge(now: Now, directives: &RequestDirectives, stored: &StoredFacts) -> Judgement {
    judge_noting(now, directives, stored, |_| {})
}

/// The same; `note` gets each test before it is made. The last one has decided, and of those before
/// it none.
#[inline(always)]
pub fn judge_noting(
    now: Now,
    directives: &RequestDirectives,
    stored: &StoredFacts,
    mut note: impl FnMut(Test),
) -> Judgement {
    note(Test::RequestNoCache);
    if directives.no_cache {
        return Judgement::Forward(Fwd::Request);
    }
    note(Test::ResponseNoCache);
    if stored.no_cache {
        return Judgement::Forward(Fwd::Stale);
    }
    let age = stored.current_age(now);
    let ttl = stored.ttl(now);
    // also beside `max-stale`: that allows staleness, and an older response must not pass where a
    // younger does not
    note(Test::RequestMaxAge);
    if directives.max_age.is_some_and(|max_age| age > max_age) {
        return Judgement::Forward(if ttl > 0 { Fwd::Request } else { Fwd::Stale });
    }
    note(Test::RequestMinFresh);
    if let Some(min_fresh) = directives.min_fresh
        && ttl > 0
        && ttl < i64::from(min_fresh.0)
    {
        return Judgement::Forward(Fwd::Request);
    }
    note(Test::Freshness);
    if ttl > 0 {
        return Judgement::Use(Hit::Fresh);
    }
    judge_stale(directives, stored, ttl, note)
}

fn judge_stale(
    directives: &RequestDirectives,
    stored: &StoredFacts,
    ttl: i64,
    mut note: impl FnMut(Test),
) -> Judgement {
    if directives.min_fresh.is_some() {
        // what is stale is fresh for less than any time
        note(Test::RequestMinFresh);
        return Judgement::Forward(Fwd::Stale);
    }
    note(Test::RequestMaxStale);
    if !stored.must_revalidate && stale_is_welcome(directives, ttl) {
        return Judgement::Use(Hit::MaxStale);
    }
    // RFC 5861 §3: within the window it may be served while it is validated
    note(Test::WhileRevalidate);
    if let Some(window) = stored.stale_while_revalidate
        && -ttl <= i64::from(window.0)
        && directives.max_age.is_none()
    {
        return Judgement::Use(Hit::WhileRevalidate);
    }
    note(Test::Stale);
    Judgement::Forward(Fwd::Stale)
}

/// `max-stale` covers how stale it is (RFC 9111 §5.2.1.2).
fn stale_is_welcome(directives: &RequestDirectives, ttl: i64) -> bool {
    ttl <= 0
        && directives
            .max_stale
            .is_some_and(|max_stale| -ttl <= i64::from(max_stale.0))
}

#[cfg(test)]
mod tests;
