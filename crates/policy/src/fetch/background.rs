//! The bytes a second that fetches without readers may take.
//!
//! A token bucket one second deep: what was not taken in a second is not saved up for later, so
//! that no burst of fetches without readers delays those that have readers.

use crate::now::{Now, Tick};

/// The budget of bytes fetched in the background, shared by all fetches of a proxy.
#[derive(Clone, Debug)]
pub struct Background {
    rate_bytes_s: u64,
    /// What can be taken at `since`, in thousandths of a byte: at a low rate a millisecond brings
    /// less than one.
    milli_bytes: u128,
    since: Tick,
}

impl Background {
    /// A full bucket of `rate_bytes_s` bytes that is filled at the same rate; 0: no transfer in the
    /// background.
    #[must_use]
    pub const fn new(rate_bytes_s: u64) -> Self {
        Self {
            rate_bytes_s,
            milli_bytes: rate_bytes_s as u128 * 1000,
            since: Tick(0),
        }
    }

    /// The rate.
    #[must_use]
    pub const fn rate_bytes_s(&self) -> u64 {
        self.rate_bytes_s
    }

    /// Takes up to `wanted` bytes; returns how many.
    pub fn take(&mut self, now: Now, wanted: u64) -> u64 {
        self.milli_bytes = self.milli_bytes_at(now.tick);
        self.since = self.since.max(now.tick);
        let taken = wanted.min(whole(self.milli_bytes));
        self.milli_bytes -= u128::from(taken) * 1000;
        taken
    }

    /// Bytes that were taken and are not used after all.
    pub fn give_back(&mut self, bytes: u64) {
        let most = u128::from(self.rate_bytes_s) * 1000;
        self.milli_bytes = most.min(self.milli_bytes + u128::from(bytes) * 1000);
    }

    /// How many bytes could be taken now.
    #[must_use]
    pub fn free(&self, now: Now) -> u64 {
        whole(self.milli_bytes_at(now.tick))
    }

    /// When `bytes`, or what the bucket holds if that is less, can be taken, if no other fetch
    /// takes them before; never ([`u64::MAX`]) if the rate is 0.
    #[must_use]
    pub fn ready_at(&self, now: Now, bytes: u64) -> Tick {
        let wanted = u128::from(bytes.min(self.rate_bytes_s).max(1)) * 1000;
        let lacking = wanted.saturating_sub(self.milli_bytes_at(now.tick));
        // bytes a second are thousandths of a byte a millisecond
        let wait_ms = match self.rate_bytes_s {
            0 => u64::MAX,
            rate => u64::try_from(lacking.div_ceil(u128::from(rate))).unwrap_or(u64::MAX),
        };
        now.tick.plus_ms(wait_ms)
    }

    fn milli_bytes_at(&self, tick: Tick) -> u128 {
        let rate = u128::from(self.rate_bytes_s);
        let filled = self.milli_bytes + rate * u128::from(tick.ms_since(self.since));
        filled.min(rate * 1000)
    }
}

fn whole(milli_bytes: u128) -> u64 {
    u64::try_from(milli_bytes / 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::Timestamp;

    fn at(at_ms: u64) -> Now {
        Now {
            wall: Timestamp(0),
            tick: Tick(at_ms),
        }
    }

    #[test]
    fn budget_refills_at_its_rate_up_to_one_second_of_it() {
        let mut background = Background::new(1000);
        assert_eq!(background.take(at(0), 1001), 1000);
        assert_eq!(background.take(at(0), 1), 0);
        assert_eq!(background.take(at(1), 5), 1);
        assert_eq!(background.free(at(500)), 499);
        assert_eq!(background.free(at(60_000)), 1000);
        assert_eq!(background.take(at(60_000), 400), 400);
        assert_eq!(background.free(at(60_000)), 600);
    }

    #[test]
    fn returned_bytes_refill_budget_up_to_one_second_of_it() {
        let mut background = Background::new(1000);
        assert_eq!(background.take(at(0), 700), 700);
        background.give_back(200);
        assert_eq!(background.free(at(0)), 500);
        background.give_back(5000);
        assert_eq!(background.free(at(0)), 1000);
    }

    #[test]
    fn low_rate_accrues_without_rounding_loss() {
        let mut background = Background::new(3);
        assert_eq!(background.take(at(0), 9), 3);
        let taken: u64 = (1..=10_000)
            .map(|at_ms| background.take(at(at_ms), 1))
            .sum();
        assert_eq!(taken, 30);
    }

    #[test]
    fn ready_at_is_the_tick_at_which_the_bytes_can_be_taken() {
        let mut background = Background::new(2000);
        assert_eq!(background.ready_at(at(7), 2000), Tick(7));
        background.take(at(7), 2000);
        for (bytes, ready_ms) in [(1, 8), (2, 8), (3, 9), (2000, 1007), (u64::MAX, 1007)] {
            let ready = background.ready_at(at(7), bytes);
            assert_eq!(ready, Tick(ready_ms), "{bytes}");
            let mut then = background.clone();
            let wanted = bytes.min(2000);
            assert_eq!(then.take(at(ready_ms), wanted), wanted);
        }
    }

    #[test]
    fn zero_budget_never_yields_a_byte() {
        let mut background = Background::new(0);
        assert_eq!(background.take(at(1_000_000), 1), 0);
        assert_eq!(background.ready_at(at(5), 1), Tick(u64::MAX));
    }

    #[test]
    fn clock_going_back_does_not_refill_budget() {
        let mut background = Background::new(1000);
        background.take(at(1000), 1000);
        assert_eq!(background.free(at(0)), 0);
        assert_eq!(background.take(at(0), 1), 0);
        assert_eq!(background.free(at(1001)), 1);
    }
}
