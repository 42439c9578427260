//! The one place where the live proxy reads the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;

/// The source of `Now`: the machine's clocks, or one that a test turns by hand.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Wall clock and monotonic clock of the machine.
    System {
        /// What ticks are counted from.
        zero: Instant,
    },
    /// A clock that advances only by calls.
    Manual(Arc<ManualClock>),
}

impl Clock {
    /// The machine's clocks, ticks from now on.
    #[must_use]
    pub fn system() -> Self {
        Self::System {
            zero: Instant::now(),
        }
    }

    /// Whether reading the wall clock costs nothing.
    pub const fn is_manual(&self) -> bool {
        matches!(self, Self::Manual(_))
    }

    /// The monotonic part of the time alone.
    #[must_use]
    pub fn tick(&self) -> Tick {
        match self {
            Self::System { zero } => {
                Tick(u64::try_from(zero.elapsed().as_millis()).unwrap_or(u64::MAX))
            }
            Self::Manual(manual) => manual.now().tick,
        }
    }

    /// The tick of a `moment` that the caller has read from the machine's clock just now.
    #[must_use]
    pub fn tick_at(&self, moment: Instant) -> Tick {
        match self {
            Self::System { zero } => {
                let since = moment.saturating_duration_since(*zero);
                let ms = since.as_secs() * 1000 + u64::from(since.subsec_millis());
                Tick(ms)
            }
            Self::Manual(manual) => manual.now().tick,
        }
    }

    /// Microseconds, counted from what ticks are counted from.
    #[must_use]
    pub fn us(&self) -> u64 {
        match self {
            Self::System { zero } => u64::try_from(zero.elapsed().as_micros()).unwrap_or(u64::MAX),
            Self::Manual(manual) => manual.now().tick.0.saturating_mul(1000),
        }
    }

    /// Milliseconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub fn wall_ms(&self) -> u64 {
        match self {
            Self::System { .. } => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                let ms = since.map_or(0, |since| since.as_millis());
                u64::try_from(ms).unwrap_or(u64::MAX)
            }
            Self::Manual(manual) => {
                let Now { wall, tick } = manual.now();
                let seconds = u64::try_from(wall.0).unwrap_or(0);
                seconds * 1000 + tick.0 % 1000
            }
        }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Now {
        match self {
            Self::System { .. } => Now {
                wall: wall_clock(),
                tick: self.tick(),
            },
            Self::Manual(manual) => manual.now(),
        }
    }
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    Timestamp(i64::try_from(since).unwrap_or(i64::MAX))
}

/// A clock for tests: freshness can be tried without waiting for it.
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    elapsed_ms: AtomicU64,
    /// By how much the wall clock was set, seconds.
    stepped_s: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            elapsed_ms: AtomicU64::new(0),
            stepped_s: AtomicI64::new(0),
        }
    }

    /// Moves both clocks forward.
    pub fn advance_ms(&self, ms: u64) {
        self.elapsed_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the wall clock alone, forward or back by so many seconds.
    pub fn step_wall_s(&self, seconds: i64) {
        self.stepped_s.fetch_add(seconds, Ordering::SeqCst);
    }

    fn now(&self) -> Now {
        let elapsed_ms = self.elapsed_ms.load(Ordering::SeqCst);
        let elapsed_s = i64::try_from(elapsed_ms / 1000).unwrap_or(0);
        Now {
            wall: Timestamp(self.start.0 + elapsed_s + self.stepped_s.load(Ordering::SeqCst)),
            tick: Tick(elapsed_ms),
        }
    }
}
