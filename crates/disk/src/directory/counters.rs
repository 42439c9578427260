//! What happened since the store was opened.

use crate::lock::lock;
use crate::{DiskUse, NOTICE_INTERVAL_MS, Refused};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Lets one notice through in [`NOTICE_INTERVAL_MS`].
#[derive(Debug, Default)]
pub(crate) struct NoticeLimiter(Mutex<Option<(u64, u64)>>);

impl NoticeLimiter {
    /// Whether to report it, with the number of those that were not reported.
    pub(crate) fn allow(&self, now_ms: u64) -> Option<u64> {
        let mut last = lock(&self.0);
        match &mut *last {
            Some((at_ms, more)) if now_ms < *at_ms + NOTICE_INTERVAL_MS => {
                *more += 1;
                None
            }
            other => {
                let more = other.map_or(0, |(_, more)| more);
                *other = Some((now_ms, 0));
                Some(more)
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) stored: Counter,
    pub(crate) stored_bytes: Counter,
    pub(crate) written_bytes: Counter,
    pub(crate) carried_bytes: Counter,
    pub(crate) read_bytes: Counter,
    /// Read from the device into the page cache.
    pub(crate) brought_bytes: Counter,
    pub(crate) waited_reads: Counter,
    pub(crate) refused_busy: Counter,
    pub(crate) refused_other: Counter,
    pub(crate) lost: Counter,
    pub(crate) evicted: Counter,
    pub(crate) purged: Counter,
    pub(crate) purges_recovered: Counter,
    pub(crate) damaged: Counter,
    pub(crate) read_errors: Counter,
    pub(crate) write_errors: Counter,
    pub(crate) set_aside: Counter,
    pub(crate) scrubbed_bytes: Counter,
    pub(crate) damage_notices: NoticeLimiter,
    pub(crate) failure_notices: NoticeLimiter,
    pub(crate) full_notices: NoticeLimiter,
}

impl Counters {
    pub(crate) fn refused(&self, why: Refused) {
        match why {
            Refused::Busy => self.refused_busy.add(1),
            _ => self.refused_other.add(1),
        }
    }

    /// What went through the page cache.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.written_bytes.get() + self.brought_bytes.get()
    }

    pub(crate) fn add_to(&self, sum: &mut DiskUse) {
        sum.stored += self.stored.get();
        sum.stored_bytes += self.stored_bytes.get();
        sum.written_bytes += self.written_bytes.get();
        sum.carried_bytes += self.carried_bytes.get();
        sum.read_bytes += self.read_bytes.get();
        sum.waited_reads += self.waited_reads.get();
        sum.refused_busy += self.refused_busy.get();
        sum.refused_other += self.refused_other.get();
        sum.lost += self.lost.get();
        sum.evicted += self.evicted.get();
        sum.purged += self.purged.get();
        sum.purges_recovered += self.purges_recovered.get();
        sum.damaged += self.damaged.get();
        sum.read_errors += self.read_errors.get();
        sum.write_errors += self.write_errors.get();
        sum.set_aside += self.set_aside.get();
        sum.scrubbed_bytes += self.scrubbed_bytes.get();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_notice_per_interval_passes_and_the_suppressed_are_counted() {
        let limiter = NoticeLimiter::default();
        assert_eq!(limiter.allow(5), Some(0));
        assert_eq!(limiter.allow(5), None);
        assert_eq!(limiter.allow(4 + NOTICE_INTERVAL_MS), None);
        assert_eq!(limiter.allow(5 + NOTICE_INTERVAL_MS), Some(2));
        assert_eq!(limiter.allow(6 + NOTICE_INTERVAL_MS), None);
    }
}
