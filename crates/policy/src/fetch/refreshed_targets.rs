//! Which popular stored responses are validated in a time window of a link, so that they are fresh
//! when clients ask for them.

use crate::digest::Digest;
use crate::now::{Now, Tick};
use crate::stored::StoredFacts;
use alloc::collections::BTreeMap;

/// A response that is fresh for longer is not validated, seconds.
pub const REFRESH_AHEAD_S: i64 = 3600;

/// A target is not validated again for so long, milliseconds: a response with a short lifetime
/// would be all the time.
pub const REFRESH_EACH_MS: u64 = 3_600_000;

/// Targets of which it is known when they were validated.
pub const REFRESHED_MAX: usize = 1000;

/// When targets were validated last.
#[derive(Clone, Debug, Default)]
pub struct RefreshedTargets(BTreeMap<Digest, Tick>);

impl RefreshedTargets {
    /// Forgets those that may be validated again. To be called once for each look at many.
    pub fn forget_old(&mut self, now: Tick) {
        self.0.retain(|_, at| now.ms_since(*at) < REFRESH_EACH_MS);
    }

    /// Whether a target is to be looked at.
    #[must_use]
    pub fn is_due(&self, target: Digest) -> bool {
        self.0.len() < REFRESHED_MAX && !self.0.contains_key(&target)
    }

    /// A target was looked at; where its link had no room for it that does not count.
    pub fn note(&mut self, now: Tick, target: Digest) {
        if self.0.len() < REFRESHED_MAX {
            self.0.insert(target, now);
        }
    }
}

/// Whether a response is to be validated before a client asks for it: it can be, and it is stale or
/// will be soon.
#[must_use]
pub fn is_to_refresh(now: Now, stored: &StoredFacts) -> bool {
    stored.has_validator && (stored.no_cache || stored.ttl(now) < REFRESH_AHEAD_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use weir_semantics::{FieldLine, Heuristic, ResponseFacts, Timestamp};

    #[test]
    fn target_is_looked_at_once_in_a_while_and_few_are_known() {
        let mut targets = RefreshedTargets::default();
        let target = |number: usize| Digest(number as u64, 0);
        let mut is_due = |ms: u64, number: usize, is_noted: bool| {
            targets.forget_old(Tick(ms));
            let is_due = targets.is_due(target(number));
            if is_noted {
                targets.note(Tick(ms), target(number));
            }
            is_due
        };
        assert!(is_due(0, 0, false));
        assert!(is_due(1, 0, true), "the link had no room");
        assert!(!is_due(REFRESH_EACH_MS, 0, false));
        assert!(is_due(1 + REFRESH_EACH_MS, 0, true));
        for number in 1..REFRESHED_MAX {
            assert!(is_due(1 + REFRESH_EACH_MS, number, true));
        }
        assert!(!is_due(1 + REFRESH_EACH_MS, REFRESHED_MAX, true));
        assert!(is_due(1 + 2 * REFRESH_EACH_MS, REFRESHED_MAX, true));
    }

    #[test]
    fn response_with_a_validator_is_validated_within_an_hour_of_its_end() {
        let now = Now {
            wall: Timestamp(0),
            tick: Tick(0),
        };
        let is_to_refresh = |lines: &[(&'static str, &'static str)]| {
            let line = |(name, value): &(&'static str, &'static str)| {
                FieldLine::new(name, value.as_bytes())
            };
            let lines: Vec<FieldLine<'_>> = lines.iter().map(line).collect();
            let facts = ResponseFacts::gather(200, &lines, now.wall);
            let stored = StoredFacts::new(&facts, now.wall, now, &Heuristic::default());
            is_to_refresh(now, &stored)
        };
        let tag = ("ETag", "\"a\"");
        assert!(is_to_refresh(&[("Cache-Control", "max-age=3599"), tag]));
        assert!(!is_to_refresh(&[("Cache-Control", "max-age=3600"), tag]));
        let no_cache = ("Cache-Control", "max-age=9999, no-cache");
        assert!(is_to_refresh(&[no_cache, tag]));
        assert!(!is_to_refresh(&[("Cache-Control", "max-age=60")]));
        assert!(!is_to_refresh(&[no_cache]));
    }
}
