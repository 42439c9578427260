//! A sample of the keys, and how far what it says may be off.
//!
//! C. Waldspurger, N. Park, A. Garthwaite, I. Ahmad, "Efficient MRC construction with SHARDS", FAST
//! 2015: a key is in the sample if its hash is below a threshold, with all its requests; distances
//! and counts are scaled up. Other policies are simulated with the sample in a cache that is
//! smaller by as much (the same authors, "Cache modeling and optimization using miniature
//! simulations", USENIX ATC 2017).
//!
//! Our reading where there is a choice:
//! * Misses are estimated, not hits, over the number of all requests, which is counted: a key that
//!   is asked for very often is in the sample or not, but it misses seldom, so that matters little.
//!   (SHARDS-adj corrects the same. A regression on the requests of the groups was tried, and was
//!   further off: one group with the most popular key decides its slope.)
//! * A key's own bytes are known and not scaled; only what lies above it is.
//! * **The error** is measured, by the method of random groups (K. Wolter, "Introduction to
//!   variance estimation", 2007, chapter 2): the sample is dealt into [`GROUPS`] groups of keys,
//!   each of which gives a curve of its own. Their spread says how much the choice of keys matters;
//!   how far their mean is from the curve of the whole sample says how much the size of a sample
//!   matters, since a group is a smaller one. Stated is the sum of both: the spread's 95 %
//!   interval, and that distance.

use super::counts::{LruCounts, Weight, float};
use crate::hashing::mix;
use crate::hit_ratio::hits::Listener;
use crate::hit_ratio::hits::{Accesses, Simulation, Trace, TraceError};
use crate::hit_ratio::keys::{Access, NumberedRequest};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which keys are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// This share of them, more than 0 and at most 1.
    Rate {
        /// Of the keys.
        share: f64,
        /// Picks which.
        seed: u64,
    },
    /// As many as there is room for; LRU only.
    Keys {
        /// At most so many.
        max: u32,
        /// Picks which.
        seed: u64,
    },
}

/// Groups that the error is measured from.
pub const GROUPS: u32 = 10;

/// Student's t for [`GROUPS`] - 1 degrees of freedom, two-sided 95 %.
pub(crate) const STUDENT_T: f64 = 2.262;

/// What the sample says of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// Half of the interval that should hold the truth 19 times out of 20.
    pub(super) error: f64,
}

/// From the value of the whole sample and those of its groups.
pub(super) fn estimate(whole: f64, groups: &[f64]) -> Estimate {
    let count = groups.iter().map(|_| 1.0).sum::<f64>();
    let mean = groups.iter().sum::<f64>() / count;
    let squares: f64 = groups.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    Estimate {
        value: whole.clamp(0.0, 1.0),
        error: (STUDENT_T * deviation / count.sqrt() + (mean - whole).abs()).min(1.0),
    }
}

/// The group of a key.
pub(crate) fn group(number: u32) -> u32 {
    let mixed = mix(u64::from(number) ^ GROUP_SALT) >> 32;
    u32::try_from((mixed * u64::from(GROUPS)) >> 32).unwrap_or(0)
}

/// What a simulation knows a key by must say nothing about its group.
const GROUP_SALT: u64 = 0x6772_6f75_7073;

/// Where a key stands between 0 and 2^64: below the threshold it is taken.
pub(crate) fn rank(key: u64, seed: u64) -> u64 {
    mix(key ^ mix(seed ^ SAMPLE_SALT))
}

/// A made trace may have drawn from the same seed.
const SAMPLE_SALT: u64 = 0x7368_6172_6473;

/// The requests of a trace whose keys are in the sample; all of them are counted.
pub(super) struct SampledTrace<'t> {
    trace: &'t dyn Trace,
    seed: u64,
    /// 2^64 is not a number of 64 bits: ranks up to this one are taken.
    last: u64,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl<'t> SampledTrace<'t> {
    pub(super) fn new(trace: &'t dyn Trace, share: f64, seed: u64) -> Self {
        Self {
            trace,
            seed,
            last: threshold(share),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Requests and bytes of the whole trace, as far as it was read since it was opened last.
    pub(super) fn all(&self) -> (u64, u64) {
        (
            self.requests.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        )
    }
}

/// Ranks up to this one are of this share of all keys.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 2^64; all of it saturates"
)]
pub(crate) fn threshold(share: f64) -> u64 {
    (share * TWO_TO_64) as u64
}

pub(super) const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

impl Trace for SampledTrace<'_> {
    fn name(&self) -> String {
        self.trace.name()
    }

    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
        self.requests.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        Ok(Box::new(Sampling {
            from: self.trace.open()?,
            sampled: self,
            batch: Vec::new(),
        }))
    }
}

struct Sampling<'t> {
    from: Box<dyn Accesses + 't>,
    sampled: &'t SampledTrace<'t>,
    batch: Vec<Access>,
}

impl Accesses for Sampling<'_> {
    fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError> {
        let before = batch.len();
        let SampledTrace { seed, last, .. } = *self.sampled;
        // a batch of which nothing is taken is not the end
        while batch.len() == before {
            self.batch.clear();
            self.from.read(&mut self.batch)?;
            if self.batch.is_empty() {
                return Ok(());
            }
            let bytes = self.batch.iter().map(|access| access.size_bytes).sum();
            let requests = self.batch.len() as u64;
            self.sampled.requests.fetch_add(requests, Ordering::Relaxed);
            self.sampled.bytes.fetch_add(bytes, Ordering::Relaxed);
            let taken = |access: &&Access| rank(access.key, seed) <= last;
            batch.extend(self.batch.iter().filter(taken).copied());
        }
        Ok(())
    }
}

/// Misses of an LRU cache by size, of a sample or of one of its groups.
#[derive(Debug)]
pub(super) struct LruPart {
    pub(super) counts: LruCounts,
    pub(super) group: Option<u32>,
    /// Keys that one stands for.
    pub(super) times: f64,
}

impl Listener for LruPart {
    fn hear(&mut self, asked: &[NumberedRequest]) {
        for asked in asked {
            if self
                .group
                .is_none_or(|wanted| group(asked.number) == wanted)
            {
                self.counts.ask(*asked, self.times, self.times);
            }
        }
    }
}

/// A small cache that hears a sample or one of its groups.
#[derive(Debug)]
pub(super) struct CachePart {
    pub(super) cache: Simulation,
    pub(super) group: Option<u32>,
    pub(super) times: f64,
}

impl CachePart {
    /// Misses and missed bytes that it stands for.
    pub(super) fn misses(&self) -> Weight {
        let totals = self.cache.totals();
        Weight {
            requests: self.times * float(totals.requests - totals.hits),
            bytes: self.times * float(totals.bytes - totals.hit_bytes),
        }
    }
}

impl Listener for CachePart {
    fn hear(&mut self, asked: &[NumberedRequest]) {
        match self.group {
            None => self.cache.ask_all(asked),
            Some(wanted) => {
                for asked in asked.iter().filter(|asked| group(asked.number) == wanted) {
                    self.cache.ask(*asked);
                }
            }
        }
    }
}
