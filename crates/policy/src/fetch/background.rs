//! The bytes a second that fetches may take while nobody reads.
//!
//! A token bucket one second deep: what was not taken in a second is not saved up for later, so that no burst of
//! fetches nobody waits for gets in the way of those somebody does.

use crate::now::{Now, Tick};

/// The budget of bytes fetched in the background, shared by all fetches of a proxy.
#[derive(Clone, Debug)]
pub struct Background {
    rate_bytes_s: u64,
    /// What can be taken at `since`, in thousandths of a byte: at a low rate a millisecond brings less than one.
    milli_bytes: u128,
    since: Tick,
}

impl Background {
    /// A full bucket of `rate_bytes_s` bytes that is filled at the same rate; 0: nothing goes on in the background.
    #[must_use]
    pub const fn new(rate_bytes_s: u64) -> Self {
        Self {
            rate_bytes_s,
            milli_bytes: rate_bytes_s as u128 * 1000,
            since: Tick(0),
        }
    }

    /// Takes up to `wanted` bytes; returns how many.
    pub fn take(&mut self, now: Now, wanted: u64) -> u64 {
        self.milli_bytes = self.milli_bytes_at(now.tick);
        self.since = self.since.max(now.tick);
        let taken = wanted.min(whole(self.milli_bytes));
        self.milli_bytes -= u128::from(taken) * 1000;
        taken
    }

    /// How many bytes could be taken now.
    #[must_use]
    pub fn free(&self, now: Now) -> u64 {
        whole(self.milli_bytes_at(now.tick))
    }

    /// When `bytes`, or what the bucket holds if that is less, can be taken, if nobody else takes them before; never
    /// ([`u64::MAX`]) if the rate is 0.
    #[must_use]
    pub fn ready_at(&self, now: Now, bytes: u64) -> Tick {
        let wanted = u128::from(bytes.min(self.rate_bytes_s).max(1)) * 1000;
        let lacking = wanted.saturating_sub(self.milli_bytes_at(now.tick));
        if lacking == 0 && self.rate_bytes_s > 0 {
            return now.tick;
        }
        // bytes a second are thousandths of a byte a millisecond
        match lacking.div_ceil(u128::from(self.rate_bytes_s.max(1))) {
            _ if self.rate_bytes_s == 0 => Tick(u64::MAX),
            wait_ms => now.tick.plus_ms(u64::try_from(wait_ms).unwrap_or(u64::MAX)),
        }
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
