//! What is measured of a next hop, in a few bytes: how long things take, and how far to believe it.

/// A mean that follows: each value moves it by an eighth of the difference, as RFC 6298 §2 does for
/// round trips.
///
/// Values are whole milliseconds of the driver's tick; their mean is finer than that, since an
/// interval that is a fraction of a millisecond spans a tick just that often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    us: u64,
    is_known: bool,
}

/// What a new value has to say: one part in so many.
const SHARE: u64 = 8;

/// Longer than this is entered as this, milliseconds: one download over night must not fill the
/// mean for a week.
const VALUE_MS_MAX: u64 = 60_000;

impl Mean {
    /// Enters a value, milliseconds.
    pub fn note_ms(&mut self, ms: u64) {
        let value = ms.min(VALUE_MS_MAX) * 1000;
        self.us = if self.is_known {
            (self.us * (SHARE - 1) + value) / SHARE
        } else {
            value
        };
        self.is_known = true;
    }

    /// The mean, microseconds; none before the first value.
    #[must_use]
    pub const fn us(self) -> Option<u64> {
        if self.is_known { Some(self.us) } else { None }
    }
}

/// How often a wait that was expected to pay has paid, lately: the check on everything the
/// expectation leaves out.
///
/// A connection that closes after its exchange serves no waiting request, exchanges may be anything
/// but alike, a next hop may hang. All of that shows as waits in vain, and each makes the next wait
/// less likely. Every wait skipped makes it a little more likely again, so that a next hop that has
/// changed is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitConfidence(u32);

impl WaitConfidence {
    /// Always.
    const FULL: u32 = 1 << 16;

    /// A wait paid.
    pub fn succeeded(&mut self) {
        self.0 += (Self::FULL - self.0) / 8;
    }

    /// A wait was in vain.
    pub fn failed(&mut self) {
        self.0 -= self.0 / 4;
    }

    /// A wait was skipped that would have been expected to pay with more confidence. One wait in
    /// vain is made up for by about sixty of these, so that trying again and again costs a sixtieth
    /// of a set-up a request.
    pub fn skipped(&mut self) {
        self.0 += (Self::FULL - self.0) / 256;
    }

    /// The expected time with a margin for this confidence, microseconds.
    #[must_use]
    pub fn expected_us(self, us: u64) -> u64 {
        us.saturating_mul(u64::from(Self::FULL)) / u64::from(self.0.max(1))
    }
}

impl Default for WaitConfidence {
    /// Nothing went wrong yet.
    fn default() -> Self {
        Self(Self::FULL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_starts_at_first_sample_and_converges_to_later_ones() {
        let mut mean = Mean::default();
        assert_eq!(mean.us(), None);
        mean.note_ms(40);
        assert_eq!(mean.us(), Some(40_000));
        mean.note_ms(120);
        assert_eq!(mean.us(), Some(50_000));
        for _ in 0..200 {
            mean.note_ms(2);
        }
        let us = mean.us().expect("known");
        assert!(us.abs_diff(2000) < 10, "{us}");
    }

    #[test]
    fn mean_resolves_intervals_shorter_than_a_tick() {
        let mut mean = Mean::default();
        for at in 0..1000 {
            mean.note_ms(u64::from(at % 4 == 0));
        }
        let us = mean.us().expect("known");
        assert!(us.abs_diff(250) < 100, "{us}");
    }

    #[test]
    fn mean_sample_is_capped_at_one_minute() {
        let mut mean = Mean::default();
        mean.note_ms(u64::MAX);
        assert_eq!(mean.us(), Some(60_000_000));
    }

    #[test]
    fn stretch_grows_with_waits_in_vain_and_decays_gradually() {
        let mut wait_confidence = WaitConfidence::default();
        assert_eq!(wait_confidence.expected_us(1000), 1000);
        for _ in 0..4 {
            wait_confidence.failed();
        }
        let stretched = wait_confidence.expected_us(1000);
        assert!((3000..3300).contains(&stretched), "{stretched}");
        wait_confidence.skipped();
        assert!(wait_confidence.expected_us(1000) > 3000);
        for _ in 0..2000 {
            wait_confidence.skipped();
        }
        assert!(wait_confidence.expected_us(1000) < 1010);
        for _ in 0..1000 {
            wait_confidence.failed();
        }
        assert!(wait_confidence.expected_us(1000) > 1_000_000);
        for _ in 0..1000 {
            wait_confidence.succeeded();
        }
        assert!(wait_confidence.expected_us(1000) < 1010);
    }
}
