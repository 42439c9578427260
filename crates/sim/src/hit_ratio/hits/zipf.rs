//! A trace made on the way: independent draws, Zipf-like popularity, sizes by a law.

use super::source::{AccessIterator, Accesses, Trace, TraceError};
use crate::hashing::mix;
use crate::hit_ratio::keys::Access;
use weir_workload::{Chance, Law, Zipf};

/// Requests for `keys` different responses, the popularity of rank `k` falling as `1 / k^exponent`;
/// each draw independent of all others. The same for the same seed.
#[derive(Clone, Debug, PartialEq)]
pub struct ZipfTrace {
    /// How many requests.
    pub requests: u64,
    /// Ranks; not all of them need to be drawn.
    pub keys: u64,
    /// Of the popularity.
    pub exponent: f64,
    /// Of the sizes, bytes; what it draws below 1 is 1.
    pub size: Law,
    /// Of everything.
    pub seed: u64,
}

/// Streams of the seed: ranks, and the first of the sizes'.
const RANKS: u64 = 0;
const SIZES: u64 = 1;

impl ZipfTrace {
    /// The requests in order.
    pub fn accesses(&self) -> impl Iterator<Item = Access> + '_ {
        let law = Zipf::new(self.keys, self.exponent);
        let mut chance = Chance::new(self.seed, RANKS);
        (0..self.requests).map(move |_| {
            let rank = law.draw(&mut chance);
            Access {
                // ranks in order of popularity would lie better in a table than any real key
                key: mix(rank ^ mix(self.seed)),
                size_bytes: self.size_bytes(rank),
            }
        })
    }

    fn size_bytes(&self, rank: u64) -> u64 {
        if self.size.maximum() == Some(self.size.minimum()) {
            return whole(self.size.minimum());
        }
        whole(self.size.draw(&mut Chance::new(self.seed, SIZES + rank)))
    }
}

impl Trace for ZipfTrace {
    fn name(&self) -> String {
        format!(
            "zipf({}) over {} keys, {} requests, size {}, seed {}",
            self.exponent, self.keys, self.requests, self.size, self.seed
        )
    }

    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
        Ok(Box::new(AccessIterator(self.accesses())))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size in bytes, at least 1; what is beyond 2^64 saturates"
)]
fn whole(size: f64) -> u64 {
    (size as u64).max(1)
}
