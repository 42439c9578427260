//! The rules for the targets that were requested of late, so that popular ones are matched once.

use super::bits::Bits;
use crate::Digest;
use alloc::vec;
use alloc::vec::Vec;

/// Targets that are remembered, each in the place that its digest gives it. 48 bytes each.
pub const RECENT_TARGETS: usize = 512;

/// Which rules are for a target, by the digest of its cache key; made of rules that do not change.
#[derive(Debug, Default)]
pub struct RecentTargets {
    /// Empty until the first one.
    places: Vec<(Digest, Bits)>,
}

impl RecentTargets {
    /// Those for the target with this `key`; `find` says which these are if it is not known. A
    /// client cannot choose targets with the same digest: it is keyed.
    #[inline]
    pub fn rules(&mut self, key: Digest, find: impl FnOnce() -> Bits) -> Bits {
        // as many as the lower bits of the digest say
        let place = usize::try_from(key.0).unwrap_or(usize::MAX) % RECENT_TARGETS;
        match self.places.get(place) {
            Some((known, rules)) if *known == key => *rules,
            _ => self.remember(place, key, find()),
        }
    }

    #[inline(never)]
    fn remember(&mut self, place: usize, key: Digest, rules: Bits) -> Bits {
        if self.places.is_empty() {
            // no rule is for what has the digest of nothing
            self.places = vec![(Digest::default(), Bits::NONE); RECENT_TARGETS];
        }
        self.places[place] = (key, rules);
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn remembered_rules_are_those_of_the_target(
            requests in prop::collection::vec((0..3_u64, 0..2_u64), 0..200)
        ) {
            // three places, with two targets each
            let all: BTreeMap<_, _> = (0..3_u64)
                .flat_map(|low| (0..2).map(move |high| (low, high)))
                .enumerate()
                .map(|(rule, target)| (target, [rule].into_iter().collect::<Bits>()))
                .collect();
            let mut recent = RecentTargets::default();
            for target in requests {
                let key = Digest(target.0 + 1, target.1);
                prop_assert_eq!(recent.rules(key, || all[&target]), all[&target]);
            }
        }
    }

    #[test]
    fn target_that_is_known_is_not_matched_again() {
        let mut recent = RecentTargets::default();
        let rules: Bits = [7].into_iter().collect();
        assert_eq!(recent.rules(Digest(5, 6), || rules), rules);
        assert_eq!(recent.rules(Digest(5, 6), || unreachable!()), rules);
    }
}
