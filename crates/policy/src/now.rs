//! The time of a decision: an argument, never read from a clock.
//!
//! `Now` is made in the driver only (`net/src/clock.rs`, `sim/src/world.rs`), so that one
//! decision runs the same live, simulated and under test. RFC 9111 arithmetic uses the wall clock,
//! intervals use the tick: a wall clock that steps can then change no time-out.

use weir_semantics::Timestamp;

/// Milliseconds since the driver's own zero; never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// The tick `ms` milliseconds later; saturates.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this tick; zero if `earlier` is in the future.
    #[must_use]
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The two clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Wall clock, whole seconds: for HTTP-dates and ages.
    pub wall: Timestamp,
    /// Monotonic clock, milliseconds: for intervals and limits.
    pub tick: Tick,
}
