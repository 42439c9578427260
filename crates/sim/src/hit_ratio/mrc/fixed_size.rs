//! A sample of so many keys, whatever the trace: SHARDS with a threshold that falls.
//!
//! When there are too many keys, those of the highest rank leave, and no key of their rank comes in
//! any more. What was counted until then keeps the weight that it had: at any time a request stands
//! for as many as its sample was a share of.

use super::counts::{LruCounts, float};
use super::sample::{GROUPS, TWO_TO_64, group, rank};
use crate::hit_ratio::hits::TraceError;
use crate::hit_ratio::hits::{Trace, walk};
use crate::hit_ratio::keys::{Access, KeyRule, Keys, NumberedRequest};
use std::collections::BinaryHeap;

/// The sample and its groups.
#[derive(Debug)]
pub(super) struct FixedSize {
    seed: u64,
    keys_max: usize,
    keys: Keys,
    /// Ranks and numbers of the keys in the sample, the highest first.
    highest: BinaryHeap<(u64, u32)>,
    /// Ranks below are taken; `None` while all are.
    below: Option<u64>,
    pub(super) whole: LruCounts,
    pub(super) groups: Vec<LruCounts>,
    pub(super) requests: u64,
    pub(super) bytes: u64,
    footprint_bytes: f64,
}

impl FixedSize {
    pub(super) fn new(rule: KeyRule, keys_max: u32, seed: u64, capacities: &[u64]) -> Self {
        let counts = || LruCounts::new(capacities.to_vec());
        Self {
            seed,
            keys_max: keys_max as usize,
            keys: Keys::new(rule),
            highest: BinaryHeap::new(),
            below: None,
            whole: counts(),
            groups: (0..GROUPS).map(|_| counts()).collect(),
            requests: 0,
            bytes: 0,
            footprint_bytes: 0.0,
        }
    }

    /// Reads a whole trace.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(&mut self, trace: &dyn Trace) -> Result<(), TraceError> {
        walk(trace, |batch| {
            for access in batch {
                self.ask(*access);
            }
            Ok(())
        })
    }

    /// Keys in the sample now.
    pub(super) fn keys(&self) -> u64 {
        self.highest.len() as u64
    }

    /// What the keys of the trace come to, bytes: estimated from those that were in the sample
    /// until now, each with the weight of its time.
    pub(super) const fn footprint_bytes(&self) -> f64 {
        self.footprint_bytes
    }

    /// The share of keys that the sample is now.
    pub(super) fn share(&self) -> f64 {
        self.below.map_or(1.0, |below| {
            let ((high, low), two_to_32) = ((below >> 32, below & 0xffff_ffff), 4_294_967_296.0);
            let halves = (float(high), float(low));
            (halves.0 * two_to_32 + halves.1).max(1.0) / TWO_TO_64
        })
    }

    fn ask(&mut self, access: Access) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(access.size_bytes);
        let rank = rank(access.key, self.seed);
        if self.below.is_some_and(|below| rank >= below) {
            return;
        }
        let known = self.keys.count();
        // the sample is bounded, and so are the keys that were ever in it: far below what can be
        // numbered
        let Ok(asked) = self.keys.number(access) else {
            return;
        };
        if asked.number >= known {
            self.highest.push((rank, asked.number));
            self.footprint_bytes += float(asked.size_bytes) / self.share();
        }
        self.count(asked);
        while self.highest.len() > self.keys_max {
            self.lower();
        }
    }

    fn count(&mut self, asked: NumberedRequest) {
        let times = self.share().recip();
        self.whole.ask(asked, times, times);
        let times = times * f64::from(GROUPS);
        if let Some(counts) = self.groups.get_mut(group(asked.number) as usize) {
            counts.ask(asked, times, times);
        }
    }

    /// Those of the highest rank leave.
    fn lower(&mut self) {
        let Some((rank, _)) = self.highest.peek().copied() else {
            return;
        };
        self.below = Some(rank);
        while let Some((other, number)) = self.highest.peek().copied() {
            if other < rank {
                return;
            }
            self.highest.pop();
            self.whole.forget(number);
            if let Some(counts) = self.groups.get_mut(group(number) as usize) {
                counts.forget(number);
            }
        }
    }
}
