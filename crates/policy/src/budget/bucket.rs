//! The bytes a second of a link, and which transfers get them first.
//!
//! A token bucket that holds a tenth of a second of the rate. Small transfers may overdraw it by as
//! much, so they do not wait for large ones; large ones wait until it is filled again, and have a
//! second bucket, filled at their share of the rate, so that the rest of the link is free when a
//! small transfer comes. Each grant is a fiftieth of a second at most, and each transfer that waits
//! has a turn of its own, a grant behind the one before: so transfers of one class get about the
//! same share. A turn that is not used is lost, and its bytes are not.
//!
//! However much small transfers take, large and background ones get a share of the rate each
//! ([`Class::share_percent_min`]): they never wait without a bound.

use crate::now::Tick;
use weir_semantics::words;

/// Most bytes of one grant.
pub const GRANT_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of the smallest grant at any rate: a segment of Ethernet.
const GRANT_BYTES_MIN: u64 = 1460;

/// Grants that a transfer needs for a second of the rate, at least.
const GRANTS_A_SECOND: u64 = 50;

/// The part of a second that a bucket holds.
const DEPTHS_A_SECOND: u64 = 10;

/// What a bucket holds at a low rate, bytes: the first window of a connection.
const DEPTH_BYTES_MIN: u64 = 64 * 1024;

/// How long a background transfer lets a large one go first after that has waited, milliseconds.
const BULK_WAITED_MS: u64 = 100;

/// Longest time until a transfer asks again, milliseconds: the rate may have been changed.
const WAIT_MS_MAX: u64 = 1000;

/// A link that had nothing for background transfers beyond their least share for so long is scarce,
/// milliseconds: longer than a page takes to load.
pub const SCARCE_AFTER_MS: u64 = 30_000;

words! {
    /// What a transfer over a link is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Class {
        /// A head, or content up to the size of a large response: a person waits for it.
        Interactive = "interactive",
        /// What follows of a large response.
        Bulk = "bulk",
        /// What no client waits for.
        Background = "background",
    }
}

impl Class {
    /// What transfers of this class get of the rate at least, percent, whatever those that go first
    /// take. Interactive ones wait for no others.
    #[must_use]
    pub const fn share_percent_min(self) -> u64 {
        match self {
            Self::Interactive => 100,
            Self::Bulk => 5,
            Self::Background => 1,
        }
    }
}

/// The bucket of a link.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    rate: u64,
    /// What transfers other than interactive ones may use of the rate, bytes a second.
    bulk_rate: u64,
    /// What is in it, thousandths of a byte; negative when it is overdrawn.
    level: i64,
    /// The same of the bucket for large transfers.
    bulk_level: i64,
    since: Tick,
    bulk_waited: Option<Tick>,
    /// What each class has not had of its least share, thousandths of a byte, at most a grant;
    /// negative after a grant beyond it.
    owed: [i64; Class::ALL.len()],
    /// When there was something for background transfers beyond their least share.
    had_room: Tick,
    /// When the next transfer that waits has its turn, by class.
    turns: [Tick; Class::ALL.len()],
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(now: Tick, rate: u64, reserve_percent: u8) -> Self {
        let mut bucket = Self {
            rate: 0,
            bulk_rate: 0,
            level: i64::MAX,
            bulk_level: i64::MAX,
            since: now,
            bulk_waited: None,
            owed: [0; Class::ALL.len()],
            had_room: now,
            turns: [now; Class::ALL.len()],
        };
        bucket.set_rate(rate, reserve_percent);
        bucket
    }

    /// Sets the rate, bytes a second, and the part of it that is kept for interactive transfers.
    pub(super) fn set_rate(&mut self, rate: u64, reserve_percent: u8) {
        let rate = rate.max(1);
        let bulk_rate = rate - rate / 100 * u64::from(reserve_percent.min(99));
        if (self.rate, self.bulk_rate) == (rate, bulk_rate) {
            return;
        }
        (self.rate, self.bulk_rate) = (rate, bulk_rate);
        let depth = self.depth();
        self.level = self.level.clamp(-depth, depth);
        self.bulk_level = self.bulk_level.clamp(-depth, self.bulk_depth());
    }

    /// The rate, bytes a second.
    pub(super) const fn rate(&self) -> u64 {
        self.rate
    }

    /// Takes up to `wanted` bytes.
    ///
    /// # Errors
    ///
    /// There are none for this class: milliseconds until there may be.
    pub(super) fn take(&mut self, now: Tick, class: Class, wanted: u64) -> Result<u64, u64> {
        // also what other transfers find says whether there was room
        self.has_room(now);
        let mut wait_ms = self.wait_ms(now, class);
        if class != Class::Interactive {
            let share = self.share(class);
            wait_ms = wait_ms.min(self::wait_ms(0, self.owed[class as usize], share));
        }
        if wait_ms > 0 {
            if class == Class::Bulk {
                self.bulk_waited = Some(now);
            }
            return Err(self.turn(now, class, wait_ms));
        }
        let grant = wanted.min(self.grant_max());
        self.level = self.level.saturating_sub(milli(grant));
        if class != Class::Interactive {
            self.bulk_level = self.bulk_level.saturating_sub(milli(grant));
        }
        let owed_min = -milli(self.grant_max());
        let owed = &mut self.owed[class as usize];
        *owed = owed.saturating_sub(milli(grant)).max(owed_min);
        Ok(grant)
    }

    /// Whether there is something for a background transfer beyond its least share.
    pub(super) fn has_room(&mut self, now: Tick) -> bool {
        self.fill(now);
        let has_room = self.wait_ms(now, Class::Background) == 0;
        if has_room {
            self.had_room = now;
        }
        has_room
    }

    /// Whether there was nothing for background transfers beyond their least share for
    /// [`SCARCE_AFTER_MS`], as far as [`Self::has_room`] and [`Self::take`] have looked.
    pub(super) fn is_scarce(&self, now: Tick) -> bool {
        now.ms_since(self.had_room) >= SCARCE_AFTER_MS
    }

    /// Milliseconds until there is something for a transfer of `class`, if no other one takes it; 0
    /// if there is.
    fn wait_ms(&self, now: Tick, class: Class) -> u64 {
        let depth = self.depth();
        let at_least = match class {
            Class::Interactive => -depth,
            Class::Bulk => 0,
            Class::Background => depth / 2,
        };
        let mut wait_ms = wait_ms(at_least, self.level, self.rate);
        if class != Class::Interactive {
            wait_ms = wait_ms.max(self::wait_ms(0, self.bulk_level, self.bulk_rate));
        }
        if class == Class::Background
            && let Some(waited) = self.bulk_waited
            && now.ms_since(waited) < BULK_WAITED_MS
        {
            wait_ms = wait_ms.max(BULK_WAITED_MS);
        }
        wait_ms
    }

    /// The least share of `class`, bytes a second.
    fn share(&self, class: Class) -> u64 {
        (self.rate.saturating_mul(class.share_percent_min()) / 100).max(1)
    }

    /// So many bytes were moved that were not taken.
    pub(super) fn overdraw(&mut self, bytes: u64) {
        self.level = self.level.saturating_sub(milli(bytes));
    }

    /// Bytes that were taken and are not used after all.
    pub(super) fn give_back(&mut self, class: Class, bytes: u64) {
        self.level = self.level.saturating_add(milli(bytes)).min(self.depth());
        if class != Class::Interactive {
            let level = self.bulk_level.saturating_add(milli(bytes));
            self.bulk_level = level.min(self.bulk_depth());
        }
    }

    /// Most bytes of one grant at this rate.
    pub(super) fn grant_max(&self) -> u64 {
        (self.rate / GRANTS_A_SECOND).clamp(GRANT_BYTES_MIN, GRANT_BYTES_MAX)
    }

    /// Milliseconds until a transfer has its turn, if there is something for it in `wait_ms`.
    fn turn(&mut self, now: Tick, class: Class, wait_ms: u64) -> u64 {
        let rate = match class {
            Class::Interactive => self.rate,
            Class::Bulk | Class::Background => self.bulk_rate,
        };
        let grant_ms = self.grant_max().saturating_mul(1000).div_ceil(rate);
        let next = &mut self.turns[class as usize];
        let at = now.plus_ms(wait_ms).max(*next);
        let wait_ms = at.ms_since(now);
        if wait_ms > WAIT_MS_MAX {
            return WAIT_MS_MAX;
        }
        *next = at.plus_ms(grant_ms);
        wait_ms
    }

    fn fill(&mut self, now: Tick) {
        let elapsed_ms = now.ms_since(self.since);
        self.since = self.since.max(now);
        // bytes a second are thousandths of a byte a millisecond
        let filled = |rate: u64| i64::try_from(rate.saturating_mul(elapsed_ms)).unwrap_or(i64::MAX);
        let level = self.level.saturating_add(filled(self.rate));
        self.level = level.min(self.depth());
        let level = self.bulk_level.saturating_add(filled(self.bulk_rate));
        self.bulk_level = level.min(self.bulk_depth());
        let owed_max = milli(self.grant_max());
        for class in Class::ALL {
            let owed = self.owed[class as usize].saturating_add(filled(self.share(class)));
            self.owed[class as usize] = owed.min(owed_max);
        }
    }

    fn depth(&self) -> i64 {
        milli((self.rate / DEPTHS_A_SECOND).max(DEPTH_BYTES_MIN))
    }

    fn bulk_depth(&self) -> i64 {
        milli((self.bulk_rate / DEPTHS_A_SECOND).max(DEPTH_BYTES_MIN))
    }
}

/// Milliseconds until `level` is above `at_least`, both in thousandths of a byte.
fn wait_ms(at_least: i64, level: i64, rate: u64) -> u64 {
    if level > at_least {
        return 0;
    }
    let lacking = at_least.abs_diff(level) + 1;
    lacking.div_ceil(rate)
}

fn milli(bytes: u64) -> i64 {
    i64::try_from(bytes.saturating_mul(1000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;

    /// What each of `takers` gets in ten seconds, if each takes whenever it may.
    fn shares(bucket: &mut Bucket, takers: &[Class]) -> Vec<u64> {
        let mut shares = vec![0; takers.len()];
        let mut next = vec![Tick(0); takers.len()];
        for at_ms in 0..10_000 {
            for (taker, class) in takers.iter().enumerate() {
                while next[taker] <= Tick(at_ms) {
                    match bucket.take(Tick(at_ms), *class, u64::MAX) {
                        Ok(bytes) => shares[taker] += bytes,
                        Err(ms) => next[taker] = Tick(at_ms + ms),
                    }
                }
            }
        }
        shares
    }

    #[test]
    fn transfers_get_the_rate_and_what_the_bucket_held() {
        let mut bucket = Bucket::new(Tick(0), RATE, 0);
        let all: u64 = shares(&mut bucket, &[Class::Bulk]).iter().sum();
        let (least, most) = (10 * RATE, 10 * RATE + RATE / 10 + bucket.grant_max());
        assert!((least..=most).contains(&all), "{all}");
    }

    #[test]
    fn large_transfers_leave_the_reserve_and_small_ones_use_all() {
        let bulk = shares(&mut Bucket::new(Tick(0), RATE, 20), &[Class::Bulk]);
        assert!((7_990_000..8_150_000).contains(&bulk[0]), "{bulk:?}");
        let small = shares(&mut Bucket::new(Tick(0), RATE, 20), &[Class::Interactive]);
        assert!((10_000_000..10_300_000).contains(&small[0]), "{small:?}");
    }

    #[test]
    fn small_transfer_does_not_wait_for_large_ones() {
        let mut bucket = Bucket::new(Tick(0), RATE, 20);
        for at_ms in 0..2000 {
            while bucket.take(Tick(at_ms), Class::Bulk, u64::MAX).is_ok() {}
            if at_ms % 100 == 99 {
                let small = bucket.take(Tick(at_ms), Class::Interactive, 10_000);
                assert_eq!(small, Ok(10_000), "at {at_ms}");
            }
        }
    }

    #[test]
    fn background_has_its_least_share_while_large_transfers_wait() {
        let mut bucket = Bucket::new(Tick(0), RATE, 0);
        let got = shares(&mut bucket, &[Class::Bulk, Class::Background]);
        let share = 10 * RATE / 100;
        let most = share + RATE / 10 + bucket.grant_max();
        assert!((share * 8 / 10..=most).contains(&got[1]), "{got:?}");
        let mut bucket = Bucket::new(Tick(0), RATE, 0);
        let alone = shares(&mut bucket, &[Class::Background]);
        assert!(alone[0] >= 9 * RATE, "{alone:?}");
    }

    #[test]
    fn large_and_background_transfers_have_their_least_shares_beside_small_ones_that_take_all() {
        let mut bucket = Bucket::new(Tick(0), RATE, 20);
        let all = [Class::Interactive, Class::Bulk, Class::Background];
        let got = shares(&mut bucket, &all);
        for (class, bytes) in all.into_iter().zip(&got).skip(1) {
            let share = 10 * RATE * class.share_percent_min() / 100;
            let most = share + RATE / 10 + 2 * bucket.grant_max();
            assert!((share * 8 / 10..=most).contains(bytes), "{class:?} {got:?}");
        }
        let sum: u64 = got.iter().sum();
        assert!(sum <= 10 * RATE + 3 * RATE / 10, "the rate holds: {got:?}");
        assert!(got[0] >= 9 * RATE, "{got:?}");
    }

    #[test]
    fn least_share_is_not_saved_up() {
        let mut bucket = Bucket::new(Tick(0), RATE, 20);
        let hour = Tick(3_600_000);
        while bucket.take(hour, Class::Interactive, u64::MAX).is_ok() {}
        let mut got = 0;
        while let Ok(bytes) = bucket.take(hour, Class::Bulk, u64::MAX) {
            got += bytes;
        }
        assert!(got <= bucket.grant_max(), "{got}");
    }

    #[test]
    fn link_is_scarce_once_background_had_nothing_but_its_least_share_for_a_while() {
        let mut bucket = Bucket::new(Tick(0), RATE, 20);
        let mut scarce = None;
        for at_ms in 0..60_000 {
            let now = Tick(at_ms);
            while bucket.take(now, Class::Interactive, u64::MAX).is_ok() {}
            let _ = bucket.take(now, Class::Background, u64::MAX);
            if scarce.is_none() && !bucket.has_room(now) && bucket.is_scarce(now) {
                scarce = Some(at_ms);
            }
        }
        let after = scarce.unwrap();
        assert!(
            (SCARCE_AFTER_MS..SCARCE_AFTER_MS + 100).contains(&after),
            "{after}"
        );
        assert!(!bucket.has_room(Tick(60_000)));
        assert!(bucket.has_room(Tick(61_000)));
        assert!(!bucket.is_scarce(Tick(61_000)));
        let mut idle = Bucket::new(Tick(0), RATE, 20);
        let later = Tick(1_000_000);
        while idle.take(later, Class::Interactive, u64::MAX).is_ok() {}
        assert!(!idle.is_scarce(later), "it had room until now");
    }

    #[test]
    fn large_transfers_that_wait_get_about_the_same_share() {
        let mut bucket = Bucket::new(Tick(0), RATE, 0);
        let got = shares(&mut bucket, &[Class::Bulk; 4]);
        let (least, most) = (got.iter().min().unwrap(), got.iter().max().unwrap());
        assert!(*least * 2 >= *most, "{got:?}");
    }

    #[test]
    fn low_rate_accrues_without_rounding_loss_and_waits_are_bounded() {
        let mut bucket = Bucket::new(Tick(0), 3, 0);
        while bucket.take(Tick(0), Class::Bulk, u64::MAX).is_ok() {}
        assert_eq!(bucket.take(Tick(0), Class::Bulk, 1), Err(WAIT_MS_MAX));
        let mut taken = 0;
        for at_ms in (1..=2_000_000).step_by(7) {
            taken += bucket.take(Tick(at_ms), Class::Bulk, 1).unwrap_or(0);
        }
        let debt = GRANT_BYTES_MIN;
        assert!((6000 - debt - 100..=6000).contains(&taken), "{taken}");
    }

    #[test]
    fn returned_bytes_can_be_taken_again_up_to_what_the_bucket_holds() {
        let mut bucket = Bucket::new(Tick(0), RATE, 20);
        let full = bucket.clone();
        let taken = bucket.take(Tick(0), Class::Bulk, 5000).unwrap();
        bucket.give_back(Class::Bulk, taken);
        assert_eq!(
            (bucket.level, bucket.bulk_level),
            (full.level, full.bulk_level)
        );
        bucket.give_back(Class::Bulk, 1 << 40);
        assert_eq!(
            (bucket.level, bucket.bulk_level),
            (full.level, full.bulk_level)
        );
    }

    #[test]
    fn lower_rate_leaves_at_most_one_bucket_of_debt() {
        let mut bucket = Bucket::new(Tick(0), 100 * RATE, 0);
        while bucket.take(Tick(0), Class::Interactive, u64::MAX).is_ok() {}
        bucket.set_rate(RATE, 0);
        let wait = bucket.take(Tick(0), Class::Bulk, 1).unwrap_err();
        assert!(wait <= 101, "{wait}");
    }

    #[test]
    fn clock_that_goes_back_fills_nothing() {
        let mut bucket = Bucket::new(Tick(1000), RATE, 0);
        while bucket.take(Tick(1000), Class::Bulk, u64::MAX).is_ok() {}
        assert!(bucket.take(Tick(0), Class::Bulk, 1).is_err());
        assert!(bucket.take(Tick(1000), Class::Bulk, 1).is_err());
    }
}
