//! What was moved lately in ranges of one target for one client.
//!
//! A client that asks for a large response range by range has each range be as small as a page. So
//! the bytes of its ranges of one target are added up, and halved at intervals: a download that
//! goes on stays large, and one that was an hour ago does not count. The table is bounded. When it
//! is full, a new target takes the place of the one with the fewest bytes, with none of its own: a
//! target whose bytes are forgotten so had fewer than all others.

use crate::digest::Digest;
use crate::now::Tick;
use alloc::collections::BTreeMap;

/// Targets of clients of which it is known, at most: 64 KiB of memory a link.
pub const RECENT_TARGETS_MAX: usize = 1024;

/// How often the bytes are halved, milliseconds. At a steady rate the sum is up to twice what is
/// moved in such a time.
pub const RECENT_HALVED_MS: u64 = 300_000;

/// Fewer bytes are forgotten when they are halved: less than the head of a response.
const BYTES_MIN: u64 = 256;

/// The bytes of ranges by target and client.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentRanges {
    bytes: BTreeMap<Digest, u64>,
    /// When they were halved last.
    halved: Tick,
}

impl RecentRanges {
    /// Bytes that were moved lately.
    pub(super) fn bytes(&mut self, now: Tick, of: Digest) -> u64 {
        self.halve(now);
        self.bytes.get(&of).copied().unwrap_or(0)
    }

    /// So many bytes were moved.
    pub(super) fn add(&mut self, now: Tick, of: Digest, bytes: u64) {
        self.halve(now);
        if let Some(known) = self.bytes.get_mut(&of) {
            *known = known.saturating_add(bytes);
            return;
        }
        if self.bytes.len() >= RECENT_TARGETS_MAX {
            let fewest = self.bytes.iter().min_by_key(|(_, bytes)| **bytes);
            if let Some(fewest) = fewest.map(|(of, _)| *of) {
                self.bytes.remove(&fewest);
            }
        }
        self.bytes.insert(of, bytes);
    }

    fn halve(&mut self, now: Tick) {
        let times = now.ms_since(self.halved) / RECENT_HALVED_MS;
        if times == 0 {
            return;
        }
        self.halved = self.halved.plus_ms(times.saturating_mul(RECENT_HALVED_MS));
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        self.bytes.retain(|_, bytes| {
            *bytes = bytes.checked_shr(times).unwrap_or(0);
            *bytes >= BYTES_MIN
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn target(number: u64) -> Digest {
        Digest(number, 0)
    }

    #[test]
    fn bytes_of_ranges_of_one_target_add_up_and_are_halved_at_intervals() {
        let mut ranges = RecentRanges::default();
        ranges.add(Tick(0), target(1), 1000);
        ranges.add(Tick(10), target(1), 1000);
        assert_eq!(ranges.bytes(Tick(10), target(2)), 0);
        assert_eq!(ranges.bytes(Tick(RECENT_HALVED_MS - 1), target(1)), 2000);
        assert_eq!(ranges.bytes(Tick(RECENT_HALVED_MS), target(1)), 1000);
        assert_eq!(ranges.bytes(Tick(3 * RECENT_HALVED_MS - 1), target(1)), 500);
        assert_eq!(ranges.bytes(Tick(4 * RECENT_HALVED_MS), target(1)), 0);
        assert!(ranges.bytes.is_empty(), "it is forgotten");
        ranges.add(Tick(u64::MAX), target(1), u64::MAX);
        ranges.add(Tick(0), target(1), 1);
        assert_eq!(ranges.bytes(Tick(0), target(1)), u64::MAX);
    }

    #[test]
    fn full_table_forgets_the_target_with_the_fewest_bytes() {
        let mut ranges = RecentRanges::default();
        ranges.add(Tick(0), target(0), 5000);
        for number in 1..10 * RECENT_TARGETS_MAX as u64 {
            ranges.add(Tick(0), target(number), 1000);
            assert!(ranges.bytes.len() <= RECENT_TARGETS_MAX);
        }
        assert_eq!(ranges.bytes(Tick(0), target(0)), 5000);
        let last = 10 * RECENT_TARGETS_MAX as u64 - 1;
        assert_eq!(ranges.bytes(Tick(0), target(last)), 1000);
    }
}
