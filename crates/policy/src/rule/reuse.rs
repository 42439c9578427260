//! How long a stored response may be used by the rules of the operator, beside what it says itself.
//!
//! What is stored are the facts of the response as the origin gave them. A rule is applied each
//! time that a response is looked at: a reload is in force at once, and what is stored says nothing
//! that its origin has not said.

use crate::stored::StoredFacts;
use crate::stored::ignored::StoringIgnored;
use weir_semantics::DeltaSeconds;

/// The longest forced lifetime of an error that one odd request can provoke, seconds: a client that
/// provokes it must not spoil a target for long, and an origin that recovers is asked again soon.
pub const ERROR_LIFETIME_MAX: DeltaSeconds = DeltaSeconds(60);

/// Whether a response with this status is an error that one odd request can provoke, or that may be
/// over soon; that there is nothing (any more) is no such error.
const fn is_brief(status: u16) -> bool {
    status >= 400 && !matches!(status, 404 | 410)
}

/// The lifetime of a response with this status, of those that a rule gives: an error that may be
/// over soon, or that one odd request has provoked, is not kept for long.
pub(super) fn most_for(status: u16, lifetime: DeltaSeconds) -> DeltaSeconds {
    match is_brief(status) {
        true => lifetime.min(ERROR_LIFETIME_MAX),
        false => lifetime,
    }
}

/// What rules say of the use of a stored response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reuse {
    /// Its freshness lifetime, whatever it says itself.
    pub forced: Option<DeltaSeconds>,
    /// How long past that it may be served while it is validated, if the next hop fails, and if it
    /// cannot be reached, unless the response itself permits more.
    pub stale_for: Option<DeltaSeconds>,
    /// What is ignored when it is stored. What was stored by that is used as long as it is.
    pub ignored: StoringIgnored,
}

impl Reuse {
    /// Nothing.
    pub const NONE: Self = Self {
        forced: None,
        stale_for: None,
        ignored: StoringIgnored::NONE,
    };

    /// Whether they say nothing.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.forced.is_none() && self.stale_for.is_none() && self.ignored.is_empty()
    }

    /// The lifetime that is forced on a response with this status.
    #[must_use]
    pub fn forced_for(&self, status: u16) -> Option<DeltaSeconds> {
        self.forced.map(|forced| most_for(status, forced))
    }

    /// The facts of a stored response for a use under these rules.
    ///
    /// What must be validated before each use still must, and what must not be served stale is not:
    /// `no-cache`, `must-revalidate`, `proxy-revalidate` and `s-maxage` stay in force. An error is
    /// not served stale by a rule. What is shared only because its own lifetime makes that safe
    /// keeps that lifetime.
    #[must_use]
    pub fn of(&self, facts: &StoredFacts) -> StoredFacts {
        let mut used = *facts;
        used.is_permitted = facts.ignored.without(self.ignored).is_empty();
        if facts.keeps_lifetime {
            return used;
        }
        if let Some(forced) = self.forced_for(facts.status) {
            used.freshness_lifetime = forced;
        }
        // an error that may be over is not kept longer than it says
        if !facts.forbids_stale() && facts.status < 400 {
            used.stale_while_revalidate = used.stale_while_revalidate.max(self.stale_for);
            used.stale_if_error = used.stale_if_error.max(self.stale_for);
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::now::Tick;

    const SOME: Option<DeltaSeconds> = Some(DeltaSeconds(30));

    fn facts(status: u16) -> StoredFacts {
        StoredFacts {
            status,
            has_validator: true,
            strong_tag: false,
            is_transformed: false,
            keeps_lifetime: false,
            ignored: StoringIgnored::NONE,
            is_permitted: true,
            no_cache: false,
            must_revalidate: false,
            freshness_lifetime: DeltaSeconds(10),
            corrected_initial_age: DeltaSeconds::ZERO,
            response_tick: Tick(0),
            stale_while_revalidate: None,
            stale_if_error: Some(DeltaSeconds(40)),
        }
    }

    #[test]
    fn no_rule_leaves_the_facts_as_they_are() {
        assert!(Reuse::NONE.is_none());
        assert_eq!(Reuse::NONE.of(&facts(200)), facts(200));
    }

    #[test]
    fn forced_lifetime_takes_the_place_of_any_and_is_short_for_errors() {
        let check = |status: u16, forced: u32, expected: u32| {
            let rule = Reuse {
                forced: Some(DeltaSeconds(forced)),
                ..Reuse::NONE
            };
            let lifetime = rule.of(&facts(status)).freshness_lifetime;
            assert_eq!(lifetime, DeltaSeconds(expected), "{status} {forced}");
        };
        check(200, 3, 3);
        check(200, 3600, 3600);
        check(404, 3600, 3600);
        check(500, 3600, 60);
        check(500, 5, 5);
    }

    #[test]
    fn stale_windows_grow_to_what_a_rule_says_where_nothing_forbids_it() {
        let rule = Reuse {
            stale_for: SOME,
            ..Reuse::NONE
        };
        let used = rule.of(&facts(200));
        assert_eq!(used.stale_while_revalidate, SOME);
        assert_eq!(used.stale_if_error, Some(DeltaSeconds(40)));
        let strict = [
            StoredFacts {
                no_cache: true,
                ..facts(200)
            },
            StoredFacts {
                must_revalidate: true,
                ..facts(200)
            },
        ];
        for facts in strict {
            assert_eq!(rule.of(&facts), facts);
        }
    }
}
