//! The least that a fetch without readers brings: one whose next hop trickles would hold the place
//! of others for as long as that likes.

use crate::now::Tick;

/// Bytes that such a fetch brings at least in [`PROGRESS_EACH_MS`]: 546 a second, of which a part
/// of 1 MiB takes half an hour.
pub const PROGRESS_BYTES_MIN: u64 = 16 * 1024;

/// What the progress is measured over, milliseconds of waiting for the next hop.
pub const PROGRESS_EACH_MS: u64 = 30_000;

/// How much a fetch has brought lately.
///
/// An interval ends once [`PROGRESS_BYTES_MIN`] have come. The time in which the fetch waits for
/// what is ours, the rate of its link or that of the background, is no part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastProgress {
    /// When the interval began, moved on by what is no part of it.
    since: Tick,
    bytes: u64,
    /// Since when it waits for what is ours.
    held_back: Option<Tick>,
}

impl LeastProgress {
    /// An interval begins at `now`.
    #[must_use]
    pub const fn new(now: Tick) -> Self {
        Self {
            since: now,
            bytes: 0,
            held_back: None,
        }
    }

    /// From now on it waits for what is ours.
    pub fn hold_back(&mut self, now: Tick) {
        self.held_back.get_or_insert(now);
    }

    /// From now on it waits for its next hop.
    pub fn go_on(&mut self, now: Tick) {
        if let Some(since) = self.held_back.take() {
            self.since = self.since.plus_ms(now.ms_since(since));
        }
    }

    /// It has brought `bytes` more.
    pub fn add(&mut self, now: Tick, bytes: u64) {
        self.go_on(now);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= PROGRESS_BYTES_MIN {
            *self = Self::new(now);
        }
    }

    /// Whether it brings less than it has to. The answer changes with time alone.
    #[must_use]
    pub fn is_too_slow(&self, now: Tick) -> bool {
        // what it waits for now is no part of the interval
        let until = self.held_back.unwrap_or(now);
        until.ms_since(self.since) >= PROGRESS_EACH_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetch_that_trickles_is_too_slow_after_an_interval() {
        let mut progress = LeastProgress::new(Tick(0));
        for second in 1..30 {
            progress.add(Tick(second * 1000), 1);
            assert!(!progress.is_too_slow(Tick(second * 1000)), "{second}");
        }
        assert!(!progress.is_too_slow(Tick(PROGRESS_EACH_MS - 1)));
        assert!(progress.is_too_slow(Tick(PROGRESS_EACH_MS)));
    }

    #[test]
    fn interval_begins_anew_once_enough_has_come() {
        let mut progress = LeastProgress::new(Tick(0));
        progress.add(Tick(29_000), PROGRESS_BYTES_MIN - 1);
        progress.add(Tick(29_999), 1);
        assert!(!progress.is_too_slow(Tick(29_998 + PROGRESS_EACH_MS)));
        assert!(progress.is_too_slow(Tick(29_999 + PROGRESS_EACH_MS)));
    }

    #[test]
    fn wait_for_the_link_is_no_part_of_the_interval() {
        let mut progress = LeastProgress::new(Tick(0));
        progress.hold_back(Tick(10_000));
        progress.hold_back(Tick(20_000));
        assert!(!progress.is_too_slow(Tick(1_000_000)));
        progress.go_on(Tick(110_000));
        progress.go_on(Tick(115_000));
        assert!(!progress.is_too_slow(Tick(129_999)));
        assert!(progress.is_too_slow(Tick(130_000)));
        progress.hold_back(Tick(129_999));
        progress.add(Tick(200_000), 1);
        assert!(!progress.is_too_slow(Tick(200_000)));
        assert!(progress.is_too_slow(Tick(200_001)));
    }
}
