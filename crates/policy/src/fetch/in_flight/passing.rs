//! Content that passes by: it is kept only for the readers that are about to read it.
//!
//! Its memory is no store's, so it has a bound of its own: what is here lies between the slowest
//! reader that is not left behind and the fastest, and at most [`PASSING_AHEAD_BYTES_MAX`] ahead of
//! that one.

use super::InFlightState;
use super::fetch::Fetch;

/// Bytes of content that passes by and that the fastest reader has not taken: two reads of a
/// worker, where the readers take turns with the fetch.
pub const PASSING_AHEAD_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of content that passes by and is kept for readers behind the fastest, where room for so
/// much was taken.
pub const PASSING_BEHIND_BYTES: u64 = 1024 * 1024;

/// The same without such room, for each reader: half of what a connection may hold.
pub const PASSING_BEHIND_READER_BYTES: u64 = 128 * 1024;

impl InFlightState {
    /// From now on what comes is not kept: however large the read-ahead, a fetch stays near its
    /// fastest reader.
    pub fn pass(&mut self) {
        self.is_passing = true;
        self.take_changed = true;
    }

    /// Content before this byte is not needed any more where it passes by; readers before it are
    /// left behind. `has_room`: room for [`PASSING_BEHIND_BYTES`] was taken. Never falls while no
    /// reader is attached or detached.
    #[must_use]
    pub fn passed(&self, has_room: bool) -> u64 {
        let Some((slowest, fastest)) = self.places() else {
            return u64::MAX;
        };
        let behind = match self.readers.len() {
            1 => return slowest,
            readers => PASSING_BEHIND_READER_BYTES.saturating_mul(readers as u64),
        };
        let behind = if has_room {
            behind.max(PASSING_BEHIND_BYTES)
        } else {
            behind
        };
        slowest.max(fastest.saturating_sub(behind))
    }

    /// How many bytes the fetch may be ahead of its fastest reader.
    pub(super) fn ahead(&self, fetch: &Fetch) -> u64 {
        let ahead = fetch.pace.ahead();
        if self.is_passing {
            ahead.min(PASSING_AHEAD_BYTES_MAX)
        } else {
            ahead
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::{ByteSpan, ByteSpans, InFlightRules, READERS_MAX, ReaderId};
    use crate::now::{Now, Tick};
    use std::time::{Duration, Instant};
    use weir_semantics::Timestamp;

    const NOW: Now = Now {
        wall: Timestamp(0),
        tick: Tick(0),
    };
    const WHOLE: ByteSpan = ByteSpan {
        from: 0,
        to: 1 << 40,
    };

    /// A response that passes by so many readers.
    fn crowd(readers: usize) -> (InFlightState, Vec<ReaderId>) {
        let mut fill = InFlightState::new(
            InFlightRules::default(),
            NOW,
            Some(WHOLE.to),
            ByteSpans::new(),
        );
        let fetch = fill.begin(NOW, WHOLE);
        let attached = (0..readers).map(|_| fill.attach(WHOLE).expect("room"));
        let attached = attached.collect();
        fill.received(NOW, fetch, 100);
        fill.pass();
        (fill, attached)
    }

    #[test]
    fn content_is_released_behind_the_slowest_reader() {
        let (mut fill, readers) = crowd(3);
        for (reader, at) in readers.iter().zip([70, 90, 20]) {
            fill.moved(NOW, *reader, at);
        }
        assert_eq!(fill.places(), Some((20, 90)));
        assert_eq!(fill.passed(false), 20);
        fill.leave(readers[2]);
        assert_eq!(fill.places(), Some((70, 90)));
        fill.leave(readers[1]);
        assert_eq!((fill.places(), fill.passed(false)), (Some((70, 70)), 70));
        fill.leave(readers[0]);
        assert_eq!((fill.places(), fill.passed(false)), (None, u64::MAX));
    }

    #[test]
    fn cost_per_write_does_not_grow_with_the_number_of_readers() {
        let shortest = |readers| {
            let (fill, _) = crowd(readers);
            let turns = (0..20).map(|_| {
                let begun = Instant::now();
                for _ in 0..100 {
                    assert_eq!(fill.passed(true), 0);
                }
                begun.elapsed()
            });
            turns.min().unwrap_or(Duration::MAX)
        };
        let (small, large) = (shortest(64), shortest(READERS_MAX));
        // they differ by a factor of a thousand
        assert!(large < 30 * small, "{small:?}, {large:?}");
    }
}
