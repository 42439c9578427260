//! What a decision needs to know of a stored response: a few numbers, computed once when it is
//! stored.
//!
//! RFC 9111 §4.2. `resident_time` is measured by the monotonic tick, so that a wall clock that
//! steps neither keeps a response alive nor kills it.

pub mod ignored;
pub mod judge;

use crate::now::{Now, Tick};
use ignored::{IgnoredDirective, StoringIgnored};
use weir_semantics::{
    DeltaSeconds, Heuristic, Lifetime, RequestFacts, ResponseDirectives, ResponseFacts, Strength,
    Timestamp, corrected_initial_age, freshness_lifetime, is_understood,
};

/// The facts of one stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFacts {
    /// Status code, 200..=599; never 206: a stored part of a representation is an incomplete 200
    /// (RFC 9111 §3.3), and its body has the present ranges.
    pub status: u16,
    /// Whether an entity tag or a Last-Modified allows validation (RFC 9111 §4.3.1).
    pub has_validator: bool,
    /// Whether that entity tag is a strong one, so that parts with the same can be joined (RFC 9110
    /// §15.3.7.3).
    pub strong_tag: bool,
    /// Whether modules have changed its content. Validators are those of the next hop, which has
    /// other content: parts of the two cannot be joined.
    pub is_transformed: bool,
    /// Whether it may be shared only as it says itself when it may be used: the request had
    /// credentials (RFC 9111 §3.5), or the response sets a cookie. No rule of the operator changes
    /// how long it may.
    pub keeps_lifetime: bool,
    /// What a rule of the operator had ignored when it was stored. It answers a request only where
    /// a rule has these ignored still.
    pub ignored: StoringIgnored,
    /// Whether a rule has them ignored still, for the use that these facts are for
    /// ([`Reuse`](crate::rule::Reuse)); `false` of what is stored.
    pub is_permitted: bool,
    /// Whether it must be validated before each use (`no-cache`, RFC 9111 §5.2.2.4).
    pub no_cache: bool,
    /// Whether it must not be served stale (`must-revalidate`, `proxy-revalidate`, `s-maxage`:
    /// RFC 9111 §5.2.2.2, §5.2.2.8, §5.2.2.10), but within the two windows below.
    pub must_revalidate: bool,
    /// Seconds it is fresh, from its generation at the origin.
    pub freshness_lifetime: DeltaSeconds,
    /// Age when it was received (RFC 9111 §4.2.3).
    pub corrected_initial_age: DeltaSeconds,
    /// When it was received.
    pub response_tick: Tick,
    /// RFC 5861 §3. A window that counts: `None` where `no-cache`, `must-revalidate` or
    /// `proxy-revalidate` forbids it. `s-maxage` does not: it forbids to serve stale by what it
    /// implies, and an origin that writes `stale-*` beside it permits that explicitly.
    pub stale_while_revalidate: Option<DeltaSeconds>,
    /// RFC 5861 §4; as above.
    pub stale_if_error: Option<DeltaSeconds>,
}

impl StoredFacts {
    /// Whether a cache may do less with this response than with `before`, which it updates.
    #[must_use]
    pub fn is_stricter_than(&self, before: &Self) -> bool {
        // the end of its freshness, milliseconds
        let end = |facts: &Self| {
            let left = facts
                .freshness_lifetime
                .0
                .saturating_sub(facts.corrected_initial_age.0);
            facts.response_tick.plus_ms(u64::from(left) * 1000)
        };
        self.no_cache && !before.no_cache
            || self.must_revalidate && !before.must_revalidate
            || self.stale_while_revalidate < before.stale_while_revalidate
            || self.stale_if_error < before.stale_if_error
            || end(self) < end(before)
    }

    /// The facts of `response`, requested at `request_time` and received `now`.
    ///
    /// A response without a Date is taken as generated when it was received (RFC 9110 §6.6.1).
    #[must_use]
    pub fn new(
        response: &ResponseFacts,
        request_time: Timestamp,
        now: Now,
        heuristic: &Heuristic,
    ) -> Self {
        let date_value = response.date.unwrap_or(now.wall);
        let directives = &response.directives;
        let no_cache = directives.no_cache || directives.no_cache_fields;
        let forbids = no_cache || directives.must_revalidate || directives.proxy_revalidate;
        let window = |stale: Option<DeltaSeconds>| stale.filter(|_| !forbids);
        let lifetime = match freshness_lifetime(response, date_value, heuristic) {
            Lifetime::Explicit(seconds) | Lifetime::Heuristic(seconds) => seconds,
            Lifetime::None => DeltaSeconds::ZERO,
        };
        Self {
            status: if response.status == 206 {
                200
            } else {
                response.status
            },
            has_validator: response.entity_tag.is_some() || response.last_modified.is_some(),
            strong_tag: response.entity_tag == Some(Strength::Strong),
            is_transformed: false,
            keeps_lifetime: response.has_set_cookie,
            ignored: StoringIgnored::NONE,
            is_permitted: false,
            no_cache,
            must_revalidate: directives.must_revalidate
                || directives.proxy_revalidate
                || directives.s_maxage.is_some(),
            freshness_lifetime: lifetime,
            corrected_initial_age: corrected_initial_age(
                response.age,
                date_value,
                request_time,
                now.wall,
            ),
            response_tick: now.tick,
            stale_while_revalidate: window(directives.stale_while_revalidate),
            stale_if_error: window(directives.stale_if_error),
        }
    }

    /// The same facts of a response whose content modules have changed, if it `is_transformed`.
    #[must_use]
    pub const fn transformed(self, is_transformed: bool) -> Self {
        Self {
            is_transformed,
            ..self
        }
    }

    /// The same facts, if no rule may change its lifetime for this reason either.
    #[must_use]
    pub const fn keeping_lifetime(self, keeps_lifetime: bool) -> Self {
        Self {
            keeps_lifetime: self.keeps_lifetime || keeps_lifetime,
            ..self
        }
    }

    /// The same facts of a response that is stored because a rule had these `ignored`, too.
    #[must_use]
    pub const fn ignoring(self, ignored: StoringIgnored) -> Self {
        // its own lifetime is not what permits to share its cookie
        let keeps_lifetime =
            self.keeps_lifetime && !ignored.has(IgnoredDirective::ResponseSetCookie);
        Self {
            keeps_lifetime,
            ignored: self.ignored.and(ignored),
            ..self
        }
    }

    /// Whether no rule permits any more what it was stored by.
    #[must_use]
    pub const fn lacks_rule(&self) -> bool {
        !self.ignored.is_empty() && !self.is_permitted
    }

    /// Whether it answers no request of this kind. One that has its lifetime by a rule alone
    /// answers none of a user: without the rule its origin would have seen who asks, and may send
    /// users elsewhere than others (`302` to a login).
    #[must_use]
    pub const fn is_withheld_from(&self, request: &RequestFacts) -> bool {
        let is_of_user = request.has_cookie || request.has_authorization;
        self.lacks_rule() || self.ignored.gives_lifetime() && is_of_user
    }

    /// The same facts of a response that may be outdated for a reason that it does not know itself:
    /// it must be validated before each use, and is never served stale.
    #[must_use]
    pub const fn to_be_validated(self) -> Self {
        Self {
            no_cache: true,
            must_revalidate: true,
            stale_while_revalidate: None,
            stale_if_error: None,
            ..self
        }
    }

    /// When it was received, by the wall clock as it is now: for records, as ticks mean nothing to
    /// another process. In doubt a second earlier.
    #[must_use]
    pub fn received(&self, now: Now) -> Timestamp {
        let resident_s = now.tick.ms_since(self.response_tick).div_ceil(1000);
        let resident_s = i64::try_from(resident_s).unwrap_or(i64::MAX);
        Timestamp(now.wall.0.saturating_sub(resident_s))
    }

    /// The same facts in another process, of a response received at `received`. If the wall clock
    /// stands before that, it was set back, and the age of the response is not known: it counts as
    /// older than any fresh response.
    #[must_use]
    pub fn read_from_disk(self, received: Timestamp, now: Now) -> Self {
        if now.wall < received {
            return Self {
                corrected_initial_age: DeltaSeconds::MAX,
                response_tick: now.tick,
                ..self
            };
        }
        let resident_s = now.wall.since(received);
        // as far back as ticks go, so that the more recent of two responses is known; the rest is
        // age
        let ticks_s = (now.tick.0 / 1000).min(u64::from(resident_s.0));
        let rest = u64::from(resident_s.0) - ticks_s;
        Self {
            corrected_initial_age: self
                .corrected_initial_age
                .saturating_add(DeltaSeconds::from_secs(rest)),
            response_tick: Tick(now.tick.0 - ticks_s * 1000),
            ..self
        }
    }

    /// Whether it could never answer a request: not fresh, not to be validated, not allowed stale.
    #[must_use]
    pub fn is_useless(&self) -> bool {
        self.freshness_lifetime <= self.corrected_initial_age
            && !self.has_validator
            && self.stale_while_revalidate.is_none()
            && self.stale_if_error.is_none()
    }

    /// Whether these facts, made by another reading of the response, keep to `directives`: it may
    /// be stored, and is served no longer than they allow.
    #[must_use]
    pub fn keep_to(&self, directives: &ResponseDirectives) -> bool {
        let directives = &self.ignored.left_of(directives);
        // RFC 9111 §5.2.2.3
        let disregarded = directives.must_understand && is_understood(self.status);
        let forbidden = directives.private || directives.no_store && !disregarded;
        let no_cache = directives.no_cache || directives.no_cache_fields;
        let must_revalidate = directives.must_revalidate
            || directives.proxy_revalidate
            || directives.s_maxage.is_some();
        let lifetime = directives.s_maxage.or(directives.max_age);
        !forbidden
            && (self.no_cache || !no_cache)
            && (self.must_revalidate || !must_revalidate)
            && lifetime.is_none_or(|seconds| self.freshness_lifetime <= seconds)
            && self.stale_while_revalidate <= directives.stale_while_revalidate
            && self.stale_if_error <= directives.stale_if_error
    }

    /// `current_age` (RFC 9111 §4.2.3).
    #[must_use]
    pub fn current_age(&self, now: Now) -> DeltaSeconds {
        let resident_s = now.tick.ms_since(self.response_tick) / 1000;
        let age = u64::from(self.corrected_initial_age.0) + resident_s;
        DeltaSeconds(
            u32::try_from(age).map_or(DeltaSeconds::MAX.0, |age| age.min(DeltaSeconds::MAX.0)),
        )
    }

    /// Seconds of freshness left; zero or negative when stale: fresh means
    /// `freshness_lifetime > current_age` (RFC 9111 §4.2).
    #[must_use]
    pub fn ttl(&self, now: Now) -> i64 {
        i64::from(self.freshness_lifetime.0) - i64::from(self.current_age(now).0)
    }

    /// Whether a part of it is worth keeping (RFC 9111 §3.3): the missing range can be requested
    /// and joined later. The RFC lets only an incomplete 200 be stored; that it needs a strong
    /// entity tag is ours, as without one it could never become whole. What modules have changed is
    /// whole or nothing: no module can begin again in the middle.
    #[must_use]
    pub const fn can_be_part(&self) -> bool {
        self.status == 200 && self.can_be_joined()
    }

    /// Whether a range that the next hop sends can be joined with this content (RFC 9110
    /// §15.3.7.3).
    #[must_use]
    pub const fn can_be_joined(&self) -> bool {
        self.strong_tag && !self.is_transformed
    }

    /// Whether it may never be served without a successful validation once stale, but within its
    /// windows.
    #[must_use]
    pub const fn forbids_stale(&self) -> bool {
        self.no_cache || self.must_revalidate
    }
}

#[cfg(test)]
mod tests;
