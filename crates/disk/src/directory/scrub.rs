//! Reads the store, at a rate that does not disturb requests, so that damage is found before a
//! request finds it.

use crate::directory::Directory;
use crate::directory::reads::check::{Flaw, verify};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time a scrub rests, in milliseconds: how soon it notices that the store is closed.
const REST_MS_MAX: u64 = 100;

/// Turns bytes that were read into rests, so that no more than so many are read a second, however
/// small each read is.
#[derive(Debug)]
pub struct Pace {
    bytes_per_s: u64,
    /// Bytes times 1000 that no rest was taken for yet: less than a millisecond's.
    left: u64,
}

impl Pace {
    /// At most `bytes_per_s`, which is not 0.
    #[must_use]
    pub const fn new(bytes_per_s: u64) -> Self {
        Self {
            bytes_per_s,
            left: 0,
        }
    }

    /// Milliseconds to rest for `bytes` more.
    pub fn rest_ms(&mut self, bytes: u64) -> u64 {
        let owed = self.left.saturating_add(bytes.saturating_mul(1000));
        self.left = owed % self.bytes_per_s;
        owed / self.bytes_per_s
    }
}

/// Goes round and round.
pub(crate) fn run(directory: &Arc<Directory>, bytes_per_s: u64, is_closing: impl Fn() -> bool) {
    let mut pace = Pace::new(bytes_per_s);
    let rest = |mut owed_ms: u64| {
        while owed_ms > 0 {
            if is_closing() {
                return false;
            }
            let part_ms = owed_ms.min(REST_MS_MAX);
            std::thread::park_timeout(Duration::from_millis(part_ms));
            owed_ms -= part_ms;
        }
        !is_closing()
    };
    loop {
        for segment in directory.segments.all() {
            let scrubbed = scrub(directory, &segment, |bytes| rest(pace.rest_ms(bytes)));
            if !scrubbed {
                return;
            }
        }
        if !rest(REST_MS_MAX) {
            return;
        }
    }
}

/// Verifies every record of a segment; `rest` is called with how many bytes that took, and returns
/// whether to continue.
pub(crate) fn scrub(
    directory: &Directory,
    segment: &super::segment::Segment,
    mut rest: impl FnMut(u64) -> bool,
) -> bool {
    for resident in directory.index.residents(segment.slot) {
        if segment.is_retired() || !directory.is_usable() {
            break;
        }
        let mut read_bytes = 0;
        match verify(directory, segment, resident.place, &mut read_bytes) {
            Ok(_) | Err(Flaw::Unreadable) => {}
            Err(Flaw::Damaged(_)) => {
                // whose record it was is not known any more: after a restart it may be readable
                // again
                if directory.index.remove_resident(&resident) {
                    directory.is_incomplete.store(true, Ordering::Release);
                    directory.found_damage(segment, u64::from(resident.place.offset()));
                }
            }
        }
        directory.counters.scrubbed_bytes.add(read_bytes);
        if !rest(read_bytes) {
            return false;
        }
    }
    rest(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrub_rate_is_kept_for_reads_of_any_size() {
        for (bytes_per_s, bytes) in [(10 << 20, 700), (1000, 1), (3, 1000), (1 << 30, 80)] {
            let mut pace = Pace::new(bytes_per_s);
            let rested_ms: u64 = (0..10_000).map(|_| pace.rest_ms(bytes)).sum();
            assert_eq!(rested_ms, 10_000 * bytes * 1000 / bytes_per_s);
        }
    }
}
