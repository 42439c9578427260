//! How long to wait before a new instance of a module that failed.
//!
//! The specification (*Plugin crashes*) requires a limit of the rate, so that a module that fails
//! at once does not keep its host busy. No clock here: the caller tells how long an instance ran.

use std::time::Duration;

/// The pause after the first failure.
pub const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause. An instance that ran for this long counts as healthy again.
pub const PAUSE_MAX: Duration = Duration::from_secs(64);

/// The pauses of one module on one worker: 1 s, doubling to 64 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    /// The pause before, if an instance failed since the last healthy one.
    last_pause: Option<Duration>,
}

impl Restart {
    /// No failure so far.
    #[must_use]
    pub const fn new() -> Self {
        Self { last_pause: None }
    }

    /// An instance failed that had run for `ran` (zero if it failed to start). Gives the pause
    /// before the next start.
    #[must_use]
    pub fn pause_after(&mut self, ran: Duration) -> Duration {
        let pause = match self.last_pause {
            Some(last) if ran < PAUSE_MAX => (last * 2).min(PAUSE_MAX),
            _ => PAUSE_MIN,
        };
        self.last_pause = Some(pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_one_second_to_64() {
        let mut restart = Restart::new();
        let pauses: Vec<u64> = (0..9)
            .map(|_| restart.pause_after(Duration::ZERO).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn instance_that_ran_for_64_seconds_starts_over() {
        let mut restart = Restart::new();
        let _ = restart.pause_after(Duration::ZERO);
        let shorter = PAUSE_MAX - Duration::from_nanos(1);
        assert_eq!(restart.pause_after(shorter), Duration::from_secs(2));
        assert_eq!(restart.pause_after(PAUSE_MAX), PAUSE_MIN);
        assert_eq!(restart.pause_after(shorter), Duration::from_secs(2));
    }
}
