//! Reads what is stored, at a rate that nobody notices, so that damage is found before somebody asks.

use super::Directory;
use super::check::{Flaw, verify};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time a scrub rests, in milliseconds: how soon it notices that the store is closed.
const REST_MS_MAX: u64 = 100;

/// Goes round and round.
pub(crate) fn run(directory: &Arc<Directory>, bytes_per_s: u64, is_closing: impl Fn() -> bool) {
    let mut owed_ms = 0;
    let mut rest = |ms: u64| {
        owed_ms += ms;
        while owed_ms > 0 {
            if is_closing() {
                return false;
            }
            let part_ms = owed_ms.min(REST_MS_MAX);
            std::thread::park_timeout(Duration::from_millis(part_ms));
            owed_ms -= part_ms;
        }
        true
    };
    loop {
        for segment in directory.segments.all() {
            let scrubbed = scrub(directory, &segment, |bytes| {
                rest(bytes * 1000 / bytes_per_s)
            });
            if !scrubbed {
                return;
            }
        }
        if !rest(REST_MS_MAX) {
            return;
        }
    }
}

/// Verifies every record of a segment; `rest` is told how many bytes that took, and says whether to go on.
pub(crate) fn scrub(
    directory: &Directory,
    segment: &super::segment::Segment,
    mut rest: impl FnMut(u64) -> bool,
) -> bool {
    for resident in directory.index.residents(segment.slot) {
        if segment.is_retired() || !directory.is_usable() {
            break;
        }
        match verify(directory, segment, resident.place) {
            Ok(verified) => {
                directory.counters.scrubbed_bytes.add(verified.read_bytes);
                if !rest(verified.read_bytes) {
                    return false;
                }
            }
            Err(Flaw::Damaged(_)) => {
                // whose record it was is not known any more: after a restart it may be readable again
                if directory.index.remove_resident(&resident) {
                    directory.is_incomplete.store(true, Ordering::Release);
                    directory.found_damage(segment, u64::from(resident.place.offset()));
                }
            }
            Err(Flaw::Unread) => {}
        }
    }
    rest(0)
}
