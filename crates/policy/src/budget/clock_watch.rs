//! Whether the wall clock is believed: it and the monotonic clock must advance together.
//!
//! A machine that was asleep shows the same as one whose clock was set forward: its monotonic clock
//! stood. So each jump costs the same: for an hour no period begins.

use crate::now::Now;
use crate::now::Tick;

/// A difference between the two clocks that is a jump, seconds. Clocks that are corrected slowly
/// differ by less in an hour: the kernel slews by 0.05 % at most (adjtimex(2)), and a leap second
/// is one.
pub const JUMP_S: i64 = 120;

/// How long both clocks have to agree after a jump, until the wall clock is believed again,
/// milliseconds of the monotonic clock: corrections by the network come within minutes of a wrong
/// start.
pub const JUMP_CONFIRM_MS: u64 = 3_600_000;

/// What the wall clock is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockWatch {
    /// When both were last set side by side.
    anchor: Now,
    /// Since when the wall clock is doubted.
    doubted: Option<Tick>,
}

impl ClockWatch {
    /// The wall clock is believed from `now` on.
    pub(super) const fn new(now: Now) -> Self {
        Self {
            anchor: now,
            doubted: None,
        }
    }

    /// The wall clock is doubted from `now` on.
    pub(super) const fn doubting(now: Now) -> Self {
        Self {
            anchor: now,
            doubted: Some(now.tick),
        }
    }

    /// Compares the clocks; whether the wall clock is believed.
    pub(super) fn look(&mut self, now: Now) -> bool {
        let elapsed_ms = now.tick.ms_since(self.anchor.tick);
        let elapsed_s = i64::try_from(elapsed_ms / 1000).unwrap_or(i64::MAX);
        let expected = self.anchor.wall.0.saturating_add(elapsed_s);
        if expected.abs_diff(now.wall.0) > JUMP_S.unsigned_abs() {
            *self = Self::doubting(now);
        } else if elapsed_ms >= JUMP_CONFIRM_MS {
            self.anchor = now;
        }
        if let Some(since) = self.doubted
            && now.tick.ms_since(since) >= JUMP_CONFIRM_MS
        {
            self.doubted = None;
        }
        self.is_believed()
    }

    /// Whether the wall clock was believed at the last look.
    pub(super) const fn is_believed(&self) -> bool {
        self.doubted.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::Timestamp;

    const HOUR: i64 = 3600;

    fn at(tick_s: i64, wall: i64) -> Now {
        Now {
            wall: Timestamp(wall),
            tick: Tick(tick_s.unsigned_abs() * 1000),
        }
    }

    #[test]
    fn clock_that_is_corrected_slowly_is_believed() {
        let mut watch = ClockWatch::new(at(0, 1_000_000));
        // two seconds an hour
        for hour in 1..1000 {
            let now = at(hour * HOUR, 1_000_000 + hour * (HOUR + 2));
            assert!(watch.look(now), "{hour}");
        }
        assert!(watch.look(at(1000 * HOUR, 1_000_000 + 1000 * (HOUR + 2) + JUMP_S - 2)));
    }

    #[test]
    fn clock_is_doubted_for_an_hour_after_a_jump_in_either_direction() {
        for jump in [JUMP_S + 1, -JUMP_S - 1, 30 * 24 * HOUR, -30 * 24 * HOUR] {
            let mut watch = ClockWatch::new(at(0, 0));
            assert!(watch.look(at(10, 10)));
            assert!(!watch.look(at(20, 20 + jump)), "{jump}");
            assert!(
                !watch.look(at(20 + HOUR - 1, 20 + HOUR - 1 + jump)),
                "{jump}"
            );
            assert!(watch.look(at(20 + HOUR, 20 + HOUR + jump)), "{jump}");
        }
    }

    #[test]
    fn each_jump_begins_the_hour_anew() {
        let mut watch = ClockWatch::new(at(0, 0));
        assert!(!watch.look(at(1, 1000)));
        assert!(!watch.look(at(HOUR, HOUR)), "the jump back");
        assert!(!watch.look(at(HOUR + 1800, HOUR + 1800)));
        assert!(watch.look(at(2 * HOUR, 2 * HOUR)));
    }
}
