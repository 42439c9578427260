//! How much of the memory for stored responses is held by readers that a rate holds back.
//!
//! A response with readers is not evicted, and one that is sent slowly is read for long: without a
//! bound, a few clients that each ask for something large would keep all others from being stored.

use crate::digest::Digest;
use alloc::collections::BTreeMap;

/// Percent of the memory for stored responses that may be held so. A response beyond that is sent
/// as fast as its client takes it, which frees its memory soonest.
pub const HELD_BACK_PERCENT_MAX: u64 = 25;

/// The responses that are held back, each counted once however many read it.
#[derive(Clone, Debug, Default)]
pub struct HeldBack {
    responses: BTreeMap<Digest, Response>,
    /// Bytes of all of them.
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Response {
    bytes: u64,
    readers: u32,
}

impl HeldBack {
    /// A reader of `response` is to be held back; whether it may be, where responses may have
    /// `budget_bytes` in memory. If so, [`Self::end`] follows.
    pub fn begin(&mut self, response: Digest, bytes: u64, budget_bytes: u64) -> bool {
        if let Some(known) = self.responses.get_mut(&response) {
            known.readers += 1;
            return true;
        }
        let all_bytes = self.bytes.saturating_add(bytes);
        if all_bytes > budget_bytes / 100 * HELD_BACK_PERCENT_MAX {
            return false;
        }
        self.bytes = all_bytes;
        let new = Response { bytes, readers: 1 };
        self.responses.insert(response, new);
        true
    }

    /// A reader of `response` has ended.
    pub fn end(&mut self, response: Digest) {
        let Some(known) = self.responses.get_mut(&response) else {
            return;
        };
        known.readers -= 1;
        if known.readers == 0 {
            self.bytes -= known.bytes;
            self.responses.remove(&response);
        }
    }

    /// Bytes of the responses that are held back.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn response(number: u64) -> Digest {
        Digest(number, 0)
    }

    #[test]
    fn responses_are_held_back_up_to_their_share_of_memory() {
        let mut held = HeldBack::default();
        assert!(held.begin(response(1), 150, 1000));
        assert!(!held.begin(response(2), 101, 1000));
        assert!(held.begin(response(2), 100, 1000));
        assert!(!held.begin(response(3), 1, 1000));
        held.end(response(1));
        assert_eq!(held.bytes(), 100);
        assert!(held.begin(response(3), 150, 1000));
        // of one that was not begun nothing is given back
        held.end(response(4));
        assert_eq!(held.bytes(), 250);
    }

    #[test]
    fn response_counts_once_until_its_last_reader_ends() {
        let mut held = HeldBack::default();
        for _ in 0..3 {
            assert!(held.begin(response(1), 250, 1000));
        }
        for left in [250, 250, 0] {
            held.end(response(1));
            assert_eq!(held.bytes(), left);
        }
    }
}
