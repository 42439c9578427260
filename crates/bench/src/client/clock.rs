//! The time of a run: microseconds since the start, and by the wall.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_semantics::Timestamp;

/// Counts from the agreed start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
    /// By the wall, since 1970. Read once: a wall clock that is set during the run does not move
    /// the run's.
    start_by_wall: Duration,
}

impl Clock {
    pub(super) fn new(start: Instant) -> Self {
        let (now, by_wall) = both();
        let start_by_wall = match start.checked_duration_since(now) {
            Some(ahead) => by_wall + ahead,
            None => by_wall.saturating_sub(now - start),
        };
        Self {
            start,
            start_by_wall,
        }
    }

    /// Microseconds since the start; 0 before it.
    pub(super) fn now_us(&self) -> u64 {
        let since = Instant::now().saturating_duration_since(self.start);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// How long it is to the start; `None` if it has begun.
    pub(super) fn until_start(&self) -> Option<Duration> {
        self.start
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
    }

    /// A time of the run by the wall clock, microseconds since 1970.
    pub(super) fn wall_us(&self, at_us: u64) -> u64 {
        let at = self.start_by_wall + Duration::from_micros(at_us);
        u64::try_from(at.as_micros()).unwrap_or(u64::MAX)
    }

    /// A time of the run by the wall clock.
    pub(super) fn by_wall(&self, at_us: u64) -> Timestamp {
        let at = self.start_by_wall + Duration::from_micros(at_us);
        Timestamp(i64::try_from(at.as_secs()).unwrap_or(i64::MAX))
    }
}

/// A reading of both clocks, with the wall clock since 1970. The thread can be interrupted between
/// two readings, so the closest of several is taken. The wall is read first: the run's wall clock
/// may be behind that of a proxy by as much, and is never ahead of it.
fn both() -> (Instant, Duration) {
    let reading = || {
        let before = Instant::now();
        let by_wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = Instant::now();
        (now - before, (now, by_wall.unwrap_or_default()))
    };
    let readings = (0..READINGS).map(|_| reading());
    let closest = readings.min_by_key(|(apart, _)| *apart);
    closest.unwrap_or_else(reading).1
}

/// Readings of both clocks: one is enough on an idle machine.
const READINGS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_time_zero_maps_to_the_wall_clock_time_of_the_start() {
        let clock = Clock::new(Instant::now() + Duration::from_secs(1000));
        assert_eq!(clock.now_us(), 0);
        assert!(clock.until_start().is_some());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ahead = clock.by_wall(0).0 - i64::try_from(now.as_secs()).unwrap();
        assert!((999..=1001).contains(&ahead), "{ahead}");
        assert_eq!(clock.by_wall(5_000_000).0 - clock.by_wall(0).0, 5);
    }
}
