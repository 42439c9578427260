//! A cap on the speed of one response, which cannot be saved up: whoever is held back for a while
//! is not given more later.

use std::time::{Duration, Instant};

/// Handed over at once at most: a hundredth of a second's worth, but enough that slow responses are
/// not made of crumbs.
const TURNS_PER_SECOND: u64 = 100;
const TURN_BYTES_MIN: u64 = 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    turn_bytes: u64,
    turn: Duration,
    left_bytes: u64,
    next_turn: Instant,
}

impl Pace {
    pub(crate) fn new(rate_bytes_s: u64, now: Instant) -> Self {
        let turn_bytes = (rate_bytes_s / TURNS_PER_SECOND).max(TURN_BYTES_MIN);
        Self {
            turn_bytes,
            turn: Duration::from_nanos(turn_bytes * 1_000_000_000 / rate_bytes_s.max(1)),
            left_bytes: 0,
            next_turn: now,
        }
    }

    /// What may be sent now.
    pub(crate) fn allowed(&mut self, now: Instant) -> u64 {
        if now >= self.next_turn {
            self.left_bytes = self.turn_bytes;
            // a little late is made good; a whole turn late is lost
            let kept = self.next_turn + self.turn;
            self.next_turn = if kept > now { kept } else { now + self.turn };
        }
        self.left_bytes
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }

    /// When there will be more.
    pub(crate) fn next_turn(&self) -> Instant {
        self.next_turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that can be sent when somebody looks after each of these milliseconds.
    fn sent(rate_bytes_s: u64, looks_ms: impl Iterator<Item = u64>) -> u64 {
        let start = Instant::now();
        let mut pace = Pace::new(rate_bytes_s, start);
        let mut total = 0;
        for look in looks_ms {
            let bytes = pace.allowed(start + Duration::from_millis(look));
            pace.sent(bytes);
            total += bytes;
        }
        total
    }

    #[test]
    fn configured_rate_is_reached_with_frequent_polling() {
        assert_eq!(sent(1_000_000, 0..1000), 1_000_000);
        // late by half a turn each time
        assert_eq!(
            sent(1_000_000, (0..100).map(|turn| turn * 10 + 5)),
            1_000_000
        );
    }

    #[test]
    fn unused_sending_time_is_lost() {
        assert_eq!(sent(1_000_000, [0, 900, 901, 902].into_iter()), 20_000);
    }

    #[test]
    fn slow_response_is_sent_in_pieces_of_1024_bytes() {
        assert_eq!(sent(1024, 0..=999), 1024);
        assert_eq!(sent(1024, 0..=1000), 2048);
    }
}
