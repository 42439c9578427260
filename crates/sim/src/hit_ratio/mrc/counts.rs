//! Hits of an LRU cache at every size of a list, from one pass.
//!
//! With bytes instead of pages there is one thing that the stack alone does not know: what is
//! larger than the whole cache is not admitted, so it evicts no other there, but it does in a
//! larger cache. A key is a hit at a size if it fits, and it and the *other keys that fit* and were
//! asked for since come to no more than that. Those that do not fit into the smallest cache of the
//! list are therefore kept apart, in the order of their requests: there are never more of them than
//! the footprint divided by that size.

use super::stack::Stack;
use crate::hit_ratio::keys::NumberedRequest;

/// Hits by size.
#[derive(Debug)]
pub(super) struct LruCounts {
    /// Rising.
    capacities: Vec<u64>,
    stack: Stack,
    /// Keys larger than the smallest size, the one requested last at the end.
    large: Vec<NumberedRequest>,
    /// All requests.
    asked: Weight,
    /// Hits at this size and every larger one.
    hits_from: Vec<Weight>,
    /// Hits at this size.
    hits_at: Vec<Weight>,
}

/// Requests and bytes; those of a sample count for more than one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Weight {
    pub(super) requests: f64,
    pub(super) bytes: f64,
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

impl LruCounts {
    /// `capacities` rise.
    pub(super) fn new(capacities: Vec<u64>) -> Self {
        let none = vec![Weight::default(); capacities.len()];
        Self {
            capacities,
            stack: Stack::default(),
            large: Vec::new(),
            asked: Weight::default(),
            hits_from: none.clone(),
            hits_at: none,
        }
    }

    /// A request that stands for `times` requests, in a trace of which one key in `times_keys` is
    /// seen.
    pub(super) fn ask(&mut self, asked: NumberedRequest, times: f64, times_keys: f64) {
        let weight = Weight {
            requests: times,
            bytes: times * float(asked.size_bytes),
        };
        self.asked.add(weight);
        if let Some(place) = self.stack.place(asked.number) {
            self.count(asked, place, weight, times_keys);
        }
        let is_large = Some(&asked.size_bytes) > self.capacities.first();
        self.stack
            .touch(asked.number, if is_large { 0 } else { asked.size_bytes });
        if is_large {
            self.large.retain(|other| other.number != asked.number);
            self.large.push(asked);
        }
    }

    /// The key is not of the sample any more.
    pub(super) fn forget(&mut self, number: u32) {
        self.stack.remove(number);
        self.large.retain(|other| other.number != number);
    }

    /// What was asked for.
    pub(super) const fn asked(&self) -> Weight {
        self.asked
    }

    /// Hits by size.
    pub(super) fn hits(&self) -> Vec<Weight> {
        let mut below = Weight::default();
        let both = self.hits_from.iter().zip(&self.hits_at);
        both.map(|(from, at)| {
            below.add(*from);
            let mut hits = below;
            hits.add(*at);
            hits
        })
        .collect()
    }

    fn count(&mut self, asked: NumberedRequest, place: u32, weight: Weight, times_keys: f64) {
        let small = float(self.stack.bytes_above(place));
        let own = float(asked.size_bytes);
        let needed = own + times_keys * small;
        let first = self
            .capacities
            .partition_point(|capacity| float(*capacity) < needed);
        let since = self.large.iter().rev().take_while(|other| {
            other.number != asked.number && self.stack.place(other.number) > Some(place)
        });
        let mut large: Vec<u64> = since.map(|other| other.size_bytes).collect();
        if large.is_empty() {
            if let Some(hits) = self.hits_from.get_mut(first) {
                hits.add(weight);
            }
            return;
        }
        large.sort_unstable();
        let (mut fitting, mut next) = (0.0, 0);
        for (index, capacity) in self.capacities.iter().enumerate().skip(first) {
            while let Some(bytes) = large.get(next).filter(|bytes| *bytes <= capacity) {
                fitting += times_keys * float(*bytes);
                next += 1;
            }
            if needed + fitting > float(*capacity) {
                continue;
            }
            if next == large.len() {
                self.hits_from[index].add(weight);
                return;
            }
            self.hits_at[index].add(weight);
        }
    }
}

/// Counts and bytes are exact up to 2^53, nine petabytes.
#[expect(clippy::cast_precision_loss, reason = "said above")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}
