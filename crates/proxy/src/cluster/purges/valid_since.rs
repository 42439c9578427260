//! Since when what is stored is known to be purged as it should.
//!
//! A node that has lost touch with the log of purges may have missed some. What it had stored
//! before is validated at each use, until it has caught up; if it can never know what it has
//! missed, until each response was validated or replaced. That is one number beside each hit:
//! nothing stored is looked at.

use crate::cluster::purges::valid_since_file::ValidSinceFile;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weir_policy::now::Tick;

/// What was received before must be validated.
#[derive(Debug, Default)]
pub(crate) struct ValidSince {
    since: AtomicU64,
    times: Mutex<Times>,
    /// Where that is kept for the next process, if there is a store on disk.
    pub(crate) file: OnceLock<Arc<ValidSinceFile>>,
}

#[derive(Debug, Default)]
struct Times {
    /// Purges of before are not known.
    missed: u64,
    /// Touch with the log was lost.
    lost: Option<u64>,
}

impl ValidSince {
    /// Whether a response that was received at `received` must be validated.
    #[inline]
    pub(crate) fn must_validate(&self, received: Tick) -> bool {
        received.0 < self.since.load(Ordering::Relaxed)
    }

    /// The same of a response in flight: it was in no record, and its time is exact.
    pub(crate) fn must_validate_in_flight(&self, received: Tick) -> bool {
        self.must_validate(Tick(received.0.saturating_add(RECORD_MS)))
    }

    /// Whether there is something that must be validated, if it is still stored.
    pub(crate) fn is_behind(&self) -> bool {
        self.since.load(Ordering::Relaxed) > 0
    }

    /// Purges up to now may be missed for good.
    pub(crate) fn missed(&self, now: Tick) {
        self.change(|times| times.missed = behind(now));
    }

    /// Touch with the log was lost then; `None`: there is touch, and nothing is missed.
    pub(crate) fn lost(&self, when: Option<Tick>) {
        self.change(|times| times.lost = when.map(behind));
    }

    fn change(&self, change: impl FnOnce(&mut Times)) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut times);
        let since = times.missed.max(times.lost.unwrap_or(0));
        self.since.store(since, Ordering::Relaxed);
    }
}

/// The first tick behind `when`, for all that was received by then: records on disk have seconds.
fn behind(when: Tick) -> u64 {
    when.0.saturating_add(RECORD_MS + 1)
}

/// How exactly records on disk say when a response was received, milliseconds.
const RECORD_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_received_before_touch_was_lost_is_validated_until_there_is_touch() {
        let valid = ValidSince::default();
        assert!(!valid.must_validate(Tick(0)) && !valid.is_behind());
        valid.lost(Some(Tick(10)));
        assert!(valid.is_behind());
        assert!(valid.must_validate(Tick(10 + RECORD_MS)));
        assert!(!valid.must_validate(Tick(11 + RECORD_MS)));
        assert!(valid.must_validate_in_flight(Tick(10)));
        assert!(!valid.must_validate_in_flight(Tick(11)));
        valid.lost(None);
        assert!(!valid.must_validate(Tick(0)) && !valid.is_behind());
        assert!(!valid.must_validate_in_flight(Tick(0)));
    }

    #[test]
    fn what_was_received_before_purges_were_missed_is_validated_for_good() {
        let valid = ValidSince::default();
        valid.lost(Some(Tick(20)));
        valid.missed(Tick(10));
        assert!(valid.must_validate(Tick(20 + RECORD_MS)));
        valid.lost(None);
        assert!(valid.must_validate(Tick(10 + RECORD_MS)));
        assert!(!valid.must_validate(Tick(11 + RECORD_MS)));
    }
}
