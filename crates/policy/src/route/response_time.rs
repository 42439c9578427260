//! A node's response time as a mean that follows peaks at once and forgets them slowly.
//!
//! The peak-EWMA of Finagle and Linkerd: a response that takes longer than the mean becomes the
//! mean, a shorter one moves it by how long ago the last one was. So a node that begins to hang is
//! avoided after one response.

use crate::now::Tick;
use core::num::NonZeroU32;

/// The mean, and when it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeakMean {
    us: Option<NonZeroU32>,
    at: Tick,
}

impl PeakMean {
    /// How long until a value has half its weight, milliseconds. Linkerd's default decay, 10 s, is
    /// the time to 1/e; this is its half-life.
    pub const HALF_LIFE_MS: u64 = 6_931;

    /// None, before the first response.
    pub(super) const NONE: Self = Self {
        us: None,
        at: Tick(0),
    };

    /// A response began `us` microseconds after its request was sent.
    pub fn note_us(&mut self, now: Tick, us: u64) {
        let us = u32::try_from(us).unwrap_or(u32::MAX).max(1);
        let mean = match self.us {
            Some(mean) if us < mean.get() => {
                let above = u64::from(mean.get() - us);
                let rest = halved(above, now.ms_since(self.at));
                us.saturating_add(u32::try_from(rest).unwrap_or(u32::MAX))
            }
            _ => us,
        };
        *self = Self {
            us: NonZeroU32::new(mean),
            at: now,
        };
    }

    /// The mean as it was after the last response, microseconds, if that is no older than
    /// `age_ms_max`.
    pub(super) fn last(&self, now: Tick, age_ms_max: u64) -> Option<NonZeroU32> {
        self.us.filter(|_| now.ms_since(self.at) <= age_ms_max)
    }

    /// The mean, microseconds; none before the first response. It decays without responses, too: a
    /// node that was avoided is tried again.
    #[must_use]
    pub fn us(&self, now: Tick) -> Option<NonZeroU32> {
        let mean = self.us?.get();
        let rest = halved(u64::from(mean), now.ms_since(self.at));
        NonZeroU32::new(u32::try_from(rest).unwrap_or(mean).max(1))
    }
}

/// `value` halved for each half-life of `ms`; between them on straight lines, at most 6 % above the
/// exponential.
fn halved(value: u64, ms: u64) -> u64 {
    let shift = u32::try_from(ms / PeakMean::HALF_LIFE_MS).unwrap_or(u32::MAX);
    let value = value.checked_shr(shift).unwrap_or(0);
    let rest_ms = ms % PeakMean::HALF_LIFE_MS;
    value - value * rest_ms / (2 * PeakMean::HALF_LIFE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(mean: &PeakMean, ms: u64) -> Option<u32> {
        mean.us(Tick(ms)).map(NonZeroU32::get)
    }

    #[test]
    fn slower_response_is_the_mean_at_once() {
        let mut mean = PeakMean::default();
        assert_eq!(us(&mean, 0), None);
        mean.note_us(Tick(0), 1000);
        assert_eq!(us(&mean, 0), Some(1000));
        mean.note_us(Tick(1), 90_000);
        assert_eq!(us(&mean, 1), Some(90_000));
    }

    #[test]
    fn faster_responses_move_the_mean_by_the_time_that_passed() {
        let mut mean = PeakMean::default();
        mean.note_us(Tick(0), 9000);
        for _ in 0..1000 {
            mean.note_us(Tick(0), 1000);
        }
        assert_eq!(us(&mean, 0), Some(9000), "however many at one time");
        mean.note_us(Tick(PeakMean::HALF_LIFE_MS), 1000);
        assert_eq!(us(&mean, PeakMean::HALF_LIFE_MS), Some(5000));
    }

    #[test]
    fn mean_decays_without_responses_and_never_to_nothing() {
        let mut mean = PeakMean::default();
        mean.note_us(Tick(0), 8000);
        assert_eq!(us(&mean, PeakMean::HALF_LIFE_MS), Some(4000));
        assert_eq!(us(&mean, 3 * PeakMean::HALF_LIFE_MS), Some(1000));
        assert_eq!(us(&mean, u64::MAX), Some(1));
        mean.note_us(Tick(u64::MAX), u64::MAX);
        assert_eq!(us(&mean, u64::MAX), Some(u32::MAX));
    }
}
