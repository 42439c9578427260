//! The most hits that a cache of so many responses can have.
//!
//! Belady's MIN, with the liberty not to keep what has just come: the one requested again the
//! latest leaves, be it the newcomer. (Where the newcomer must stay there are fewer hits; a cache
//! with a rule of admission could then beat the optimum.)
//!
//! A resident is nothing but the place of its next request in the trace: no two residents have the
//! same. So the cache is a set of numbers, of which the largest is taken out when there are too
//! many, and a request is a hit if its own place is in the set.

use crate::hit_ratio::hits::Listener;
use crate::hit_ratio::keys::NumberedRequest;
use std::fmt;

/// The requests of a trace, as places of their next ones; eight bytes a request while it is made,
/// four later. This is the one part of hits-only simulation whose memory grows with requests: the
/// future must be known.
#[derive(Clone, Debug, Default)]
pub struct Optimum {
    numbers: Vec<u32>,
    is_too_long: bool,
}

/// Requests of a trace whose optimum can be known.
pub const REQUESTS_MAX: usize = (u32::MAX - 1) as usize;

/// The trace has more than [`REQUESTS_MAX`] requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRequests;

impl fmt::Display for TooManyRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the optimum needs the whole trace in memory, at most {REQUESTS_MAX} requests"
        )
    }
}

impl std::error::Error for TooManyRequests {}

/// There is no next request.
const NEVER: u32 = u32::MAX;

impl Optimum {
    /// Takes note of requests.
    pub fn ask_all(&mut self, asked: &[NumberedRequest]) {
        if self.numbers.len() + asked.len() > REQUESTS_MAX {
            self.is_too_long = true;
            self.numbers = Vec::new();
        }
        if !self.is_too_long {
            self.numbers.extend(asked.iter().map(|asked| asked.number));
        }
    }

    /// The hits of a cache for so many responses, by such numbers.
    ///
    /// # Errors
    /// The trace was too long.
    pub fn hits(&self, capacities: &[u64]) -> Result<Vec<u64>, TooManyRequests> {
        if self.is_too_long {
            return Err(TooManyRequests);
        }
        let next = next_places(&self.numbers);
        Ok(capacities
            .iter()
            .map(|capacity| hits(&next, *capacity))
            .collect())
    }
}

impl Listener for Optimum {
    fn hear(&mut self, asked: &[NumberedRequest]) {
        self.ask_all(asked);
    }
}

fn next_places(numbers: &[u32]) -> Vec<u32> {
    let keys = numbers.iter().max().map_or(0, |most| *most as usize + 1);
    let mut seen = vec![NEVER; keys];
    let mut next = vec![NEVER; numbers.len()];
    for (place, number) in numbers.iter().enumerate().rev() {
        let this = u32::try_from(place).unwrap_or(NEVER);
        next[place] = std::mem::replace(&mut seen[*number as usize], this);
    }
    next
}

fn hits(next: &[u32], capacity: u64) -> u64 {
    let mut residents = Places::new(next.len());
    let mut count = 0_u64;
    let mut hits = 0;
    for (place, next) in next.iter().enumerate() {
        if residents.remove(place) {
            hits += 1;
            count -= 1;
        }
        if *next == NEVER {
            continue;
        }
        residents.insert(*next as usize);
        count += 1;
        if count > capacity {
            residents.remove_last();
            count -= 1;
        }
    }
    hits
}

/// A set of places, as bits, with bits above that say in which word some are.
#[derive(Debug)]
struct Places {
    /// The places themselves first; the last level has one word.
    levels: Vec<Vec<u64>>,
}

impl Places {
    fn new(places: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = places;
        loop {
            words = words.div_ceil(64).max(1);
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
        }
    }

    fn insert(&mut self, place: usize) {
        let mut at = place;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Whether it was there.
    fn remove(&mut self, place: usize) -> bool {
        let mut at = place;
        if self.levels[0][at / 64] & (1 << (at % 64)) == 0 {
            return false;
        }
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        true
    }

    fn remove_last(&mut self) {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            match level[at] {
                0 => return,
                word => at = at * 64 + 63 - word.leading_zeros() as usize,
            }
        }
        self.remove(at);
    }
}
