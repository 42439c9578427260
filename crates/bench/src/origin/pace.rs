//! A cap on the speed of one response, which cannot be saved up: a response that was held back for
//! a while is not sent faster later.

use std::time::Duration;

use tokio::time::Instant;

/// Handed over at once at most: a fiftieth of a second's worth, but enough that slow responses are
/// not made of crumbs.
const TURNS_PER_SECOND: u64 = 50;
const TURN_BYTES_MIN: u64 = 64;

/// How much may be sent when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    turn_bytes: u64,
    turn: Duration,
    left_bytes: u64,
    next_turn: Instant,
}

impl Pace {
    /// `rate_bytes_per_s`, at least 1, from `now` on.
    pub(super) fn new(rate_bytes_per_s: u64, now: Instant) -> Self {
        let rate = rate_bytes_per_s.max(1);
        let turn_bytes = (rate / TURNS_PER_SECOND).max(TURN_BYTES_MIN);
        let turn_ns = u128::from(turn_bytes) * 1_000_000_000 / u128::from(rate);
        Self {
            turn_bytes,
            // at most a minute: 64 bytes at one a second
            turn: Duration::from_nanos(u64::try_from(turn_ns).unwrap_or(u64::MAX)),
            left_bytes: 0,
            next_turn: now,
        }
    }

    /// Bytes that may be sent now.
    pub(super) fn allowed(&mut self, now: Instant) -> u64 {
        if now >= self.next_turn {
            self.left_bytes = self.turn_bytes;
            // a little late is made good; a whole turn late is lost
            let kept = self.next_turn + self.turn;
            self.next_turn = if kept > now { kept } else { now + self.turn };
        }
        self.left_bytes
    }

    /// So many were sent.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }

    /// When there will be more.
    pub(super) const fn next_turn(&self) -> Instant {
        self.next_turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that can be sent when it is polled after each of these milliseconds.
    fn sent(rate_bytes_per_s: u64, looks_ms: impl Iterator<Item = u64>) -> u64 {
        let start = Instant::now();
        let mut pace = Pace::new(rate_bytes_per_s, start);
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
        assert_eq!(sent(1_000_000, (0..1000).step_by(10)), 1_000_000);
        assert_eq!(sent(3_600, 0..10_000), 36_000);
    }

    #[test]
    fn unused_sending_time_is_lost() {
        let looks = (0..100).chain(900..1000);
        assert_eq!(sent(1_000_000, looks), 200_000);
    }

    #[test]
    fn rate_of_zero_paces_as_one_byte_per_second() {
        assert_eq!(sent(0, 0..120_000), 128);
        assert_eq!(sent(1, 0..120_000), 128);
    }
}
