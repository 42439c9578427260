//! A device that fails again and again is left alone for a while: every try costs a time-out
//! somewhere, and the responses reach their clients without it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Errors in a row, of reads or of writes, until a directory is fenced.
pub(crate) const ERRORS_MAX: u32 = 8;

/// First rest in milliseconds; doubled each time the device fails again at once.
pub(crate) const REST_MS_MIN: u64 = 1_000;

/// Longest rest in milliseconds.
pub(crate) const REST_MS_MAX: u64 = 60_000;

#[derive(Debug, Default)]
pub(crate) struct Fence {
    reads: AtomicU32,
    writes: AtomicU32,
    /// When it may be tried again; 0: there is no fence.
    until_ms: AtomicU64,
    rest_ms: AtomicU64,
}

impl Fence {
    pub(crate) fn is_up(&self) -> bool {
        self.until_ms.load(Ordering::Acquire) != 0
    }

    /// When the device may be tried again, if there is a fence.
    pub(crate) fn until_ms(&self) -> Option<u64> {
        Some(self.until_ms.load(Ordering::Acquire)).filter(|until_ms| *until_ms != 0)
    }

    /// Counts an error; the rest that begins with it.
    pub(crate) fn failed(&self, is_read: bool, now_ms: u64) -> Option<u64> {
        let errors = if is_read { &self.reads } else { &self.writes };
        if errors.fetch_add(1, Ordering::Relaxed) + 1 < ERRORS_MAX || self.is_up() {
            return None;
        }
        Some(self.raise(now_ms))
    }

    /// The rest that begins now.
    pub(crate) fn raise(&self, now_ms: u64) -> u64 {
        let rest_ms = self.rest_ms.load(Ordering::Relaxed);
        let rest_ms = (rest_ms * 2).clamp(REST_MS_MIN, REST_MS_MAX);
        self.rest_ms.store(rest_ms, Ordering::Relaxed);
        self.until_ms.store(now_ms + rest_ms, Ordering::Release);
        rest_ms
    }

    /// The device carried out the operation.
    pub(crate) fn succeeded(&self, is_read: bool) {
        let errors = if is_read { &self.reads } else { &self.writes };
        if errors.load(Ordering::Relaxed) != 0 {
            errors.store(0, Ordering::Relaxed);
        }
        if !is_read && !self.is_up() && self.rest_ms.load(Ordering::Relaxed) != 0 {
            self.rest_ms.store(0, Ordering::Relaxed);
        }
    }

    /// It was tried, and works.
    pub(crate) fn lift(&self) {
        self.reads.store(0, Ordering::Relaxed);
        self.writes.store(0, Ordering::Relaxed);
        self.until_ms.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_fenced_only_after_consecutive_errors() {
        let fence = Fence::default();
        for _ in 0..3 * ERRORS_MAX {
            assert_eq!(fence.failed(true, 0), None);
            fence.succeeded(true);
        }
        for _ in 1..ERRORS_MAX {
            assert_eq!(fence.failed(false, 7), None);
        }
        assert!(!fence.is_up());
        assert_eq!(fence.failed(false, 7), Some(REST_MS_MIN));
        assert_eq!(fence.until_ms(), Some(7 + REST_MS_MIN));
    }

    #[test]
    fn fence_duration_doubles_up_to_its_maximum_and_resets_after_success() {
        let fence = Fence::default();
        let rests: Vec<u64> = (0..8).map(|_| fence.raise(0)).collect();
        assert_eq!(rests[..3], [1_000, 2_000, 4_000]);
        assert_eq!(rests[7], REST_MS_MAX);
        fence.lift();
        fence.succeeded(false);
        assert_eq!(fence.raise(0), REST_MS_MIN);
    }
}
