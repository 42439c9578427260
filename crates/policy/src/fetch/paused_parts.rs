//! Fetches that were paused for want of room on their link: parts of responses that are to be
//! completed later.
//!
//! Each is remembered by its cache key with what a driver needs to request the rest. What is
//! remembered is bounded in number and in time, the oldest is forgotten first. A part that is
//! forgotten stays stored: the next request for it fetches what is missing.

use crate::digest::Digest;
use crate::now::Tick;
use alloc::vec::Vec;
use weir_semantics::DeltaSeconds;

/// Parts that are remembered at once.
pub const PAUSED_PARTS_MAX: usize = 64;

/// For how long one is remembered, milliseconds: a week, in which each time window has come.
pub const PAUSED_KEPT_MS: u64 = 7 * 24 * 3_600_000;

/// A part that could not be completed is not tried again for so long, milliseconds; after each
/// further attempt that failed for twice as long.
pub const PAUSED_REST_MS: u64 = 60_000;

/// A part is forgotten after so many attempts that failed: within 9 hours.
pub const PAUSED_ATTEMPTS_MAX: u32 = 10;

/// A fetch over a link that goes on without a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadOverLink {
    /// The link has had nothing for it for a while (`budget::BackgroundRoom::Scarce`).
    pub is_link_scarce: bool,
    /// It has had its place for its turn, and another one waits for that.
    pub gives_way: bool,
    /// What has come is stored as a part if no more comes.
    pub keeps_part: bool,
    /// A request is about to read it.
    pub is_awaited: bool,
}

impl UnreadOverLink {
    /// Whether it is better completed later.
    #[must_use]
    pub const fn is_to_pause(self) -> bool {
        (self.is_link_scarce || self.gives_way) && self.keeps_part && !self.is_awaited
    }
}

/// The parts that are to be completed; `T` is what requests one.
#[derive(Clone, Debug)]
pub struct PausedParts<T> {
    /// The oldest first.
    parts: Vec<Paused<T>>,
}

#[derive(Clone, Debug)]
struct Paused<T> {
    key: Digest,
    target: T,
    since: Tick,
    state: PartState,
    /// Attempts that failed.
    failed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartState {
    /// It is not tried before.
    RestsUntil(Tick),
    /// It is being completed.
    UnderWay,
}

impl<T> Default for PausedParts<T> {
    fn default() -> Self {
        Self { parts: Vec::new() }
    }
}

impl<T: Clone> PausedParts<T> {
    /// The fetch of `key` was paused. One of the same key takes its place; if there are too many,
    /// the oldest is forgotten. Attempts that failed count on if it was being completed.
    pub fn pause(&mut self, now: Tick, key: Digest, target: T) {
        let before = self.find(key);
        let under_way = before.filter(|part| part.state == PartState::UnderWay);
        let failed = under_way.map_or(0, |part| part.failed);
        self.forget(key);
        if self.parts.len() >= PAUSED_PARTS_MAX {
            self.parts.remove(0);
        }
        self.parts.push(Paused {
            key,
            target,
            since: now,
            state: PartState::RestsUntil(now),
            failed,
        });
    }

    /// The parts that may be completed now, the oldest first. Those that are too old are forgotten.
    pub fn due(&mut self, now: Tick) -> Vec<(Digest, T)> {
        self.parts.retain(|part| {
            part.state == PartState::UnderWay || now.ms_since(part.since) < PAUSED_KEPT_MS
        });
        let is_due = |part: &&Paused<T>| match part.state {
            PartState::RestsUntil(until) => until <= now,
            PartState::UnderWay => false,
        };
        let due = self.parts.iter().filter(is_due);
        due.map(|part| (part.key, part.target.clone())).collect()
    }

    /// The part of `key` is being completed from now on: until [`Self::pause`], [`Self::fail`],
    /// [`Self::rest`] or [`Self::forget`] it is not due.
    pub fn begin(&mut self, key: Digest) {
        if let Some(part) = self.find(key) {
            part.state = PartState::UnderWay;
        }
    }

    /// The next hop of the part of `key` did not send its rest, or not all of it. It is not asked
    /// again before `wait` is over.
    pub fn fail(&mut self, now: Tick, key: Digest, wait: DeltaSeconds) {
        let Some(part) = self.find(key) else {
            return;
        };
        let wait_ms = u64::from(wait.as_secs()) * 1000;
        let rest_ms = (PAUSED_REST_MS << part.failed).max(wait_ms);
        part.failed += 1;
        part.state = PartState::RestsUntil(now.plus_ms(rest_ms));
        if part.failed >= PAUSED_ATTEMPTS_MAX {
            self.forget(key);
        }
    }

    /// There was no room for the part of `key`: nothing was sent.
    pub fn rest(&mut self, now: Tick, key: Digest) {
        if let Some(part) = self.find(key) {
            part.state = PartState::RestsUntil(now.plus_ms(PAUSED_REST_MS));
        }
    }

    /// The part of `key` is completed, or cannot be.
    pub fn forget(&mut self, key: Digest) {
        self.parts.retain(|part| part.key != key);
    }

    fn find(&mut self, key: Digest) -> Option<&mut Paused<T>> {
        self.parts.iter_mut().find(|part| part.key == key)
    }

    /// How many are remembered.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(number: usize) -> Digest {
        Digest(number as u64, 0)
    }

    fn due(parts: &mut PausedParts<usize>, at: u64) -> Vec<usize> {
        let due = parts.due(Tick(at)).into_iter();
        due.map(|(_, target)| target).collect()
    }

    #[test]
    fn fetch_is_paused_for_its_link_or_its_place_if_nothing_is_lost_by_it() {
        let check = |fetch: [bool; 4], expected| {
            let [is_link_scarce, gives_way, keeps_part, is_awaited] = fetch;
            let fetch = UnreadOverLink {
                is_link_scarce,
                gives_way,
                keeps_part,
                is_awaited,
            };
            assert_eq!(fetch.is_to_pause(), expected, "{fetch:?}");
        };
        check([true, false, true, false], true);
        check([false, true, true, false], true);
        check([false, false, true, false], false);
        check([true, true, false, false], false);
        check([true, true, true, true], false);
    }

    #[test]
    fn parts_are_due_until_they_are_completed_or_too_old() {
        let mut parts = PausedParts::default();
        parts.pause(Tick(0), key(1), 1);
        parts.pause(Tick(10), key(2), 2);
        parts.pause(Tick(20), key(1), 3);
        assert_eq!(due(&mut parts, 20), [2, 3], "one of a key");
        parts.rest(Tick(20), key(2));
        assert_eq!(due(&mut parts, 19 + PAUSED_REST_MS), [3]);
        assert_eq!(due(&mut parts, 20 + PAUSED_REST_MS), [2, 3]);
        parts.forget(key(2));
        assert_eq!(due(&mut parts, 19 + PAUSED_KEPT_MS), [3]);
        assert_eq!(due(&mut parts, 20 + PAUSED_KEPT_MS), []);
        assert!(parts.is_empty());
    }

    #[test]
    fn part_whose_attempts_fail_rests_longer_each_time_and_is_forgotten() {
        let mut parts = PausedParts::default();
        parts.pause(Tick(0), key(1), 1);
        let mut now = 0;
        for attempt in 0..PAUSED_ATTEMPTS_MAX - 1 {
            // one that waits for room is no failure
            parts.rest(Tick(now), key(1));
            parts.fail(Tick(now), key(1), DeltaSeconds::ZERO);
            let rest_ms = PAUSED_REST_MS << attempt;
            assert_eq!(due(&mut parts, now + rest_ms - 1), []);
            now += rest_ms;
            assert_eq!(due(&mut parts, now), [1]);
        }
        parts.fail(Tick(now), key(1), DeltaSeconds::ZERO);
        assert!(parts.is_empty());
        assert!(now < 9 * 3_600_000);
    }

    #[test]
    fn part_rests_as_long_as_its_next_hop_asks_for() {
        let mut parts = PausedParts::default();
        parts.pause(Tick(0), key(1), 1);
        parts.fail(Tick(0), key(1), DeltaSeconds(3600));
        assert_eq!(due(&mut parts, 3_599_999), []);
        assert_eq!(due(&mut parts, 3_600_000), [1]);
        // and not less than without
        parts.fail(Tick(0), key(1), DeltaSeconds(1));
        assert_eq!(due(&mut parts, 2 * PAUSED_REST_MS - 1), []);
        assert_eq!(due(&mut parts, 2 * PAUSED_REST_MS), [1]);
    }

    #[test]
    fn part_that_is_being_completed_is_not_due_and_its_failures_count_on() {
        let mut parts = PausedParts::default();
        parts.pause(Tick(0), key(1), 1);
        parts.begin(key(1));
        assert_eq!(due(&mut parts, 2 * PAUSED_KEPT_MS), []);
        assert_eq!(parts.len(), 1);
        parts.fail(Tick(0), key(1), DeltaSeconds::ZERO);
        assert_eq!(due(&mut parts, PAUSED_REST_MS), [1]);
        parts.begin(key(1));
        // its link has nothing for it: it goes on as soon as there is room
        parts.pause(Tick(PAUSED_REST_MS), key(1), 2);
        assert_eq!(due(&mut parts, PAUSED_REST_MS), [2]);
        parts.begin(key(1));
        parts.fail(Tick(0), key(1), DeltaSeconds::ZERO);
        assert_eq!(due(&mut parts, 2 * PAUSED_REST_MS - 1), []);
        assert_eq!(due(&mut parts, 2 * PAUSED_REST_MS), [2]);
    }

    #[test]
    fn few_parts_are_remembered_and_the_oldest_is_forgotten() {
        let mut parts = PausedParts::default();
        for number in 0..=PAUSED_PARTS_MAX {
            parts.pause(Tick(0), key(number), number);
        }
        assert_eq!(parts.len(), PAUSED_PARTS_MAX);
        assert_eq!(due(&mut parts, 0).first(), Some(&1));
    }
}
