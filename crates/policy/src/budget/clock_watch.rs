//! Steps of the wall clock: it and the monotonic clock must advance together.
//!
//! A machine that was asleep shows the same as one whose clock was set forward: its monotonic clock
//! stood. So each jump costs the same: for an hour no period begins.

use crate::now::Now;
use crate::now::Tick;

/// A difference between the two clocks that is a step, seconds. Clocks that are corrected slowly
/// differ by less in an hour: the kernel slews by 0.05 % at most (adjtimex(2)), and a leap second
/// is one.
pub const CLOCK_STEP_S: i64 = 120;

/// How long both clocks have to agree after a step, until the wall clock is used again,
/// milliseconds of the monotonic clock: corrections by the network come within minutes of a wrong
/// start.
pub const CLOCK_STEP_CONFIRM_MS: u64 = 3_600_000;

/// What the wall clock is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockWatch {
    /// When both were last set side by side.
    anchor: Now,
    /// When it was stepped, until both have agreed for [`CLOCK_STEP_CONFIRM_MS`].
    stepped: Option<Tick>,
}

impl ClockWatch {
    /// No step before `now` matters.
    pub(super) const fn new(now: Now) -> Self {
        Self {
            anchor: now,
            stepped: None,
        }
    }

    /// The wall clock was stepped just before `now`.
    pub(super) const fn after_step(now: Now) -> Self {
        Self {
            anchor: now,
            stepped: Some(now.tick),
        }
    }

    /// Compares the clocks; whether a step of the wall clock is not confirmed yet.
    pub(super) fn look(&mut self, now: Now) -> bool {
        let elapsed_ms = now.tick.ms_since(self.anchor.tick);
        let elapsed_s = i64::try_from(elapsed_ms / 1000).unwrap_or(i64::MAX);
        let expected = self.anchor.wall.0.saturating_add(elapsed_s);
        if expected.abs_diff(now.wall.0) > CLOCK_STEP_S.unsigned_abs() {
            *self = Self::after_step(now);
        } else if elapsed_ms >= CLOCK_STEP_CONFIRM_MS {
            self.anchor = now;
        }
        if let Some(since) = self.stepped
            && now.tick.ms_since(since) >= CLOCK_STEP_CONFIRM_MS
        {
            self.stepped = None;
        }
        self.is_after_step()
    }

    /// Whether a step of the wall clock was not confirmed yet at the last look.
    pub(super) const fn is_after_step(&self) -> bool {
        self.stepped.is_some()
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
    fn clock_that_is_corrected_slowly_is_not_stepped() {
        let mut watch = ClockWatch::new(at(0, 1_000_000));
        // two seconds an hour
        for hour in 1..1000 {
            let now = at(hour * HOUR, 1_000_000 + hour * (HOUR + 2));
            assert!(!watch.look(now), "{hour}");
        }
        assert!(!watch.look(at(
            1000 * HOUR,
            1_000_000 + 1000 * (HOUR + 2) + CLOCK_STEP_S - 2
        )));
    }

    #[test]
    fn step_in_either_direction_is_confirmed_after_an_hour() {
        for jump in [
            CLOCK_STEP_S + 1,
            -CLOCK_STEP_S - 1,
            30 * 24 * HOUR,
            -30 * 24 * HOUR,
        ] {
            let mut watch = ClockWatch::new(at(0, 0));
            assert!(!watch.look(at(10, 10)));
            assert!(watch.look(at(20, 20 + jump)), "{jump}");
            assert!(
                watch.look(at(20 + HOUR - 1, 20 + HOUR - 1 + jump)),
                "{jump}"
            );
            assert!(!watch.look(at(20 + HOUR, 20 + HOUR + jump)), "{jump}");
        }
    }

    #[test]
    fn each_step_begins_the_hour_anew() {
        let mut watch = ClockWatch::new(at(0, 0));
        assert!(watch.look(at(1, 1000)));
        assert!(watch.look(at(HOUR, HOUR)), "the jump back");
        assert!(watch.look(at(HOUR + 1800, HOUR + 1800)));
        assert!(!watch.look(at(2 * HOUR, 2 * HOUR)));
    }
}
