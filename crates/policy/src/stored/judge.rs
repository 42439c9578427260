//! May this stored response be used for this request without validation (RFC 9111 §4, §4.2,
//! §5.2.1)?
//!
//! Where the text is silent: a request directive that the stored response does not satisfy forwards
//! for `request` (RFC 9211 §2.2), a response that is too old by its own directives for `stale`.
//! `no-cache` on the response counts as stale, as it always needs validation.

use crate::now::Now;
use crate::stored::StoredFacts;
use crate::verdict::Hit;
use weir_semantics::{Fwd, RequestDirectives};

/// Use it, or forward the request, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may be served at once.
    Use(Hit),
    /// The request must be forwarded.
    Forward(Fwd),
}

/// Judges `stored` for a request with `directives`.
#[must_use]
pub fn judge(now: Now, directives: &RequestDirectives, stored: &StoredFacts) -> Judgement {
    if directives.no_cache {
        return Judgement::Forward(Fwd::Request);
    }
    if stored.no_cache {
        return Judgement::Forward(Fwd::Stale);
    }
    let age = stored.current_age(now);
    let ttl = stored.ttl(now);
    // also beside `max-stale`: that allows staleness, and an older response must not pass where a
    // younger does not
    if directives.max_age.is_some_and(|max_age| age > max_age) {
        return Judgement::Forward(if ttl > 0 { Fwd::Request } else { Fwd::Stale });
    }
    if let Some(min_fresh) = directives.min_fresh
        && ttl > 0
        && ttl < i64::from(min_fresh.0)
    {
        return Judgement::Forward(Fwd::Request);
    }
    if ttl > 0 {
        return Judgement::Use(Hit::Fresh);
    }
    judge_stale(directives, stored, ttl)
}

fn judge_stale(directives: &RequestDirectives, stored: &StoredFacts, ttl: i64) -> Judgement {
    if directives.min_fresh.is_some() {
        return Judgement::Forward(Fwd::Stale);
    }
    if !stored.must_revalidate && stale_is_welcome(directives, ttl) {
        return Judgement::Use(Hit::MaxStale);
    }
    // RFC 5861 §3: within the window it may be served while it is validated
    if let Some(window) = stored.stale_while_revalidate
        && -ttl <= i64::from(window.0)
        && directives.max_age.is_none()
    {
        return Judgement::Use(Hit::WhileRevalidate);
    }
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
