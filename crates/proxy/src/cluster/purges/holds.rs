//! Targets that were purged a moment ago: until all members have heard of that, they are fetched
//! from the origin alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use weir_policy::Digest;

/// Targets that are held at once, each 40 bytes or so. If more are purged at once, all are held.
const HOLDS_MAX: usize = 16 * 1024;

/// Targets that are not fetched from other nodes, until a time each.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// How many there may be: while that is 0 nothing is locked.
    count: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    until: HashMap<Digest, Instant>,
    /// All targets are held until then.
    all: Option<Instant>,
}

impl Table {
    fn extend_all(&mut self, until: Instant) {
        self.all = self.all.max(Some(until));
    }

    fn forget_passed(&mut self, now: Instant) {
        self.until.retain(|_, until| *until > now);
        self.all = self.all.filter(|until| *until > now);
    }

    fn count(&self) -> usize {
        self.until.len() + usize::from(self.all.is_some())
    }
}

impl Holds {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds `key` until then; to be called before it is purged.
    pub(crate) fn hold(&self, now: Instant, key: Digest, until: Instant) {
        let mut table = self.table();
        // while all are held, nothing is looked through: there may be thousands of purges a second
        if table.until.len() >= HOLDS_MAX && table.all.is_none_or(|until| until <= now) {
            table.forget_passed(now);
        }
        if table.until.len() >= HOLDS_MAX && !table.until.contains_key(&key) {
            table.extend_all(until);
        } else {
            let held = table.until.entry(key).or_insert(until);
            *held = until.max(*held);
        }
        self.count.store(table.count(), Ordering::SeqCst);
    }

    /// Holds every target until then; to be called before all are purged.
    pub(crate) fn hold_all(&self, until: Instant) {
        let mut table = self.table();
        table.extend_all(until);
        self.count.store(table.count(), Ordering::SeqCst);
    }

    /// Whether `key` is held now.
    pub(crate) fn is_held(&self, key: Digest) -> bool {
        if self.count.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let now = Instant::now();
        let mut table = self.table();
        let is_held = table.all.is_some_and(|until| until > now)
            || table.until.get(&key).is_some_and(|until| *until > now);
        if !is_held && (table.until.remove(&key).is_some() || table.all.is_some()) {
            table.all = table.all.filter(|until| *until > now);
            self.count.store(table.count(), Ordering::SeqCst);
        }
        is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const KEY: Digest = Digest(1, 2);
    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn target_is_held_until_the_latest_of_its_times() {
        let (holds, now) = (Holds::default(), Instant::now());
        assert!(!holds.is_held(KEY));
        holds.hold(now, KEY, now + HOUR);
        holds.hold(now, KEY, now);
        assert!(holds.is_held(KEY));
        assert!(!holds.is_held(Digest(2, 1)));
        let past = Holds::default();
        past.hold(now, KEY, now);
        assert!(!past.is_held(KEY));
        assert_eq!(past.count.load(Ordering::SeqCst), 0, "it is forgotten");
    }

    #[test]
    fn all_targets_are_held_for_a_purge_of_everything_and_beyond_the_bound() {
        let (holds, now) = (Holds::default(), Instant::now());
        holds.hold_all(now + HOUR);
        assert!(holds.is_held(KEY));
        let holds = Holds::default();
        let keys = (0..=HOLDS_MAX as u64).map(|number| Digest(number, 0));
        for key in keys.clone().take(HOLDS_MAX) {
            holds.hold(now, key, now + HOUR);
        }
        assert!(!holds.is_held(KEY));
        holds.hold(now, Digest(HOLDS_MAX as u64, 0), now + HOUR);
        assert!(holds.is_held(KEY), "one more than there is room for");
        assert_eq!(holds.table().until.len(), HOLDS_MAX);
    }

    #[test]
    fn targets_whose_time_has_passed_give_way() {
        let (holds, now) = (Holds::default(), Instant::now());
        for number in 0..2 * HOLDS_MAX as u64 {
            holds.hold(now, Digest(number, 0), now);
        }
        assert!(!holds.is_held(KEY));
        assert!(holds.table().until.len() <= HOLDS_MAX);
        assert_eq!(holds.table().all, None);
    }
}
