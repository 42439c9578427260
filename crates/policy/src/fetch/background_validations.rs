//! Which stale responses are validated in the background now (RFC 5861 §3), and which not yet
//! again.
//!
//! Every hit on a stale response requires its validation. One for a target is enough, and one that
//! came to nothing (the next hop is down, answers with an error, or has a response that is not
//! stored) is not tried again at once: the stored response may be served on, and every hit would
//! cost the next hop a request and us its answer.

use crate::now::{Now, Tick};
use crate::verdict::{NotStored, Storing};
use crate::{catalog::Refusal, stored::StoredFacts};
use alloc::collections::BTreeMap;

/// The validations under way in the background, and the targets that rest after one. `K` names a
/// target.
#[derive(Clone, Debug, Default)]
pub struct BackgroundValidations<K> {
    /// When they began.
    under_way: BTreeMap<K, Tick>,
    /// When the last one began that came to nothing.
    failed: BTreeMap<K, Tick>,
}

/// Why a stale response is not validated in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBackgroundValidation {
    /// It is being validated.
    UnderWay,
    /// The last validation came to nothing, not long ago.
    Rests,
    /// As many as there may be are under way.
    TooMany,
}

impl<K: Copy + Ord> BackgroundValidations<K> {
    /// Validations under way at once; beyond it a stale response stays as it is until the next
    /// request for it.
    pub const UNDER_WAY_MAX: usize = 256;

    /// For how long a target rests from the begin of a validation that came to nothing,
    /// milliseconds. It is as long as nginx's `fail_timeout`: a next hop that comes back is noticed
    /// soon, and a popular target costs it six requests a minute.
    pub const REST_MS: u64 = 10_000;

    /// Targets that rest at once; for another one that which has rested longest is forgotten.
    pub const RESTING_MAX: usize = 1024;

    /// Begins the validation of `stored`, which was served stale.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn begin(
        &mut self,
        now: Now,
        target: K,
        stored: &StoredFacts,
    ) -> Result<(), NoBackgroundValidation> {
        if self.under_way.contains_key(&target) {
            return Err(NoBackgroundValidation::UnderWay);
        }
        if let Some(at) = self.failed.get(&target)
            // another one was stored since: this is its first validation
            && stored.response_tick <= *at
            && now.tick < at.plus_ms(Self::REST_MS)
        {
            return Err(NoBackgroundValidation::Rests);
        }
        if self.under_way.len() >= Self::UNDER_WAY_MAX {
            return Err(NoBackgroundValidation::TooMany);
        }
        self.failed.remove(&target);
        self.under_way.insert(target, now.tick);
        Ok(())
    }

    /// The validation is over, and the verdict says this of the response; nothing if there was
    /// none.
    pub fn end(&mut self, target: K, storing: Option<Storing>) {
        let Some(begun) = self.under_way.remove(&target) else {
            return;
        };
        let has_changed = matches!(
            storing,
            // purged meanwhile: there is nothing left to be served stale
            Some(Storing::Stored | Storing::NotStored(NotStored::Catalog(Refusal::NotResident)))
        );
        if has_changed {
            return;
        }
        if self.failed.len() >= Self::RESTING_MAX
            && let Some(longest) = self.longest_resting()
        {
            self.failed.remove(&longest);
        }
        self.failed.insert(target, begun);
    }

    fn longest_resting(&self) -> Option<K> {
        let by_time = self.failed.iter().min_by_key(|(_, at)| **at);
        by_time.map(|(target, _)| *target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::{Heuristic, ResponseFacts, Timestamp};

    type Few = BackgroundValidations<u16>;

    fn at(at_ms: u64) -> Now {
        Now {
            wall: Timestamp(0),
            tick: Tick(at_ms),
        }
    }

    fn received(at_ms: u64) -> StoredFacts {
        let now = at(at_ms);
        let facts = ResponseFacts::gather(200, &[], now.wall);
        StoredFacts::new(&facts, now.wall, now, &Heuristic::default())
    }

    #[test]
    fn at_most_one_validation_per_target_is_in_progress() {
        let mut refreshes = Few::default();
        let stored = received(0);
        assert_eq!(refreshes.begin(at(1), 1, &stored), Ok(()));
        let again = refreshes.begin(at(1), 1, &stored);
        assert_eq!(again, Err(NoBackgroundValidation::UnderWay));
        assert_eq!(refreshes.begin(at(1), 2, &stored), Ok(()));
        refreshes.end(1, Some(Storing::Stored));
        assert_eq!(refreshes.begin(at(2), 1, &stored), Ok(()));
    }

    #[test]
    fn failed_validation_is_retried_only_after_the_rest_period() {
        let nothing = [
            None,
            Some(Storing::NotStored(NotStored::Incomplete)),
            Some(Storing::NotStored(NotStored::Catalog(Refusal::NoSlot))),
        ];
        for storing in nothing {
            let mut refreshes = Few::default();
            assert_eq!(refreshes.begin(at(5), 1, &received(0)), Ok(()));
            refreshes.end(1, storing);
            let last = 5 + Few::REST_MS - 1;
            for now in [5, 7, last] {
                let rests = refreshes.begin(at(now), 1, &received(0));
                assert_eq!(
                    rests,
                    Err(NoBackgroundValidation::Rests),
                    "{storing:?} at {now}"
                );
            }
            assert_eq!(refreshes.begin(at(8), 2, &received(0)), Ok(()));
            assert_eq!(refreshes.begin(at(last + 1), 1, &received(0)), Ok(()));
        }
    }

    #[test]
    fn response_stored_after_failed_validation_is_validated_at_once() {
        let mut refreshes = Few::default();
        assert_eq!(refreshes.begin(at(5), 1, &received(0)), Ok(()));
        refreshes.end(1, None);
        let rests = refreshes.begin(at(9), 1, &received(5));
        assert_eq!(rests, Err(NoBackgroundValidation::Rests));
        assert_eq!(refreshes.begin(at(9), 1, &received(6)), Ok(()));
    }

    #[test]
    fn purge_during_validation_imposes_no_rest_period() {
        let mut refreshes = Few::default();
        assert_eq!(refreshes.begin(at(5), 1, &received(0)), Ok(()));
        let purged = NotStored::Catalog(Refusal::NotResident);
        refreshes.end(1, Some(Storing::NotStored(purged)));
        assert_eq!(refreshes.begin(at(5), 1, &received(5)), Ok(()));
    }

    #[test]
    fn tables_of_running_and_failed_validations_are_bounded() {
        let mut refreshes = Few::default();
        let stored = received(0);
        for target in 0..256 {
            assert_eq!(refreshes.begin(at(1), target, &stored), Ok(()));
        }
        let one_more = refreshes.begin(at(1), 256, &stored);
        assert_eq!(one_more, Err(NoBackgroundValidation::TooMany));
        for target in 0..2000_u16 {
            let now = at(2 + u64::from(target));
            // the first ones are under way
            assert_eq!(refreshes.begin(now, target, &stored).is_ok(), target >= 256);
            refreshes.end(target, None);
        }
        assert!(refreshes.under_way.is_empty());
        assert_eq!(refreshes.failed.len(), Few::RESTING_MAX);
        // those that rest for the shortest time are remembered
        let (first, last) = (refreshes.failed.first_key_value(), 2000 - 1024);
        assert_eq!(first, Some((&last, &Tick(2 + u64::from(last)))));
    }
}
