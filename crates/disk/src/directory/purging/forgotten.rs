//! Keys whose records were removed from the index and are still on the device: after a restart they
//! may be found again. Only a purge removes them for good, so they count as held.

use crate::lock::lock;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_policy::Digest;

/// Keys remembered; beyond, every key counts as held.
pub(crate) const FORGOTTEN_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct ForgottenKeys {
    keys: Mutex<HashSet<Digest>>,
    overflowed: AtomicBool,
}

impl ForgottenKeys {
    pub(crate) fn remember(&self, key: Digest) {
        let mut keys = lock(&self.keys);
        if keys.len() >= FORGOTTEN_MAX && !keys.contains(&key) {
            self.overflowed.store(true, Ordering::Release);
        } else {
            keys.insert(key);
        }
    }

    pub(crate) fn may_hold(&self, key: Digest) -> bool {
        let keys = lock(&self.keys);
        self.has_overflowed() || keys.contains(&key)
    }

    pub(crate) fn has_overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Acquire)
    }

    /// Nothing of before can come back.
    pub(crate) fn clear(&self) {
        let mut keys = lock(&self.keys);
        keys.clear();
        self.overflowed.store(false, Ordering::Release);
    }

    /// A key was purged, durably.
    pub(crate) fn purged(&self, key: Digest) {
        let mut keys = lock(&self.keys);
        keys.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_counts_as_held_after_the_forgotten_key_limit_is_exceeded() {
        let forgotten = ForgottenKeys::default();
        for number in 0..FORGOTTEN_MAX as u64 {
            forgotten.remember(Digest(number, 0));
        }
        assert!(forgotten.may_hold(Digest(3, 0)) && !forgotten.may_hold(Digest(3, 1)));
        forgotten.remember(Digest(3, 0));
        assert!(!forgotten.has_overflowed());
        forgotten.remember(Digest(3, 1));
        assert!(forgotten.may_hold(Digest(3, 1)) && forgotten.may_hold(Digest(3, 2)));
        forgotten.clear();
        assert!(!forgotten.may_hold(Digest(3, 0)));
    }
}
