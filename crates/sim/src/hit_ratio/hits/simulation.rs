//! One cache on paper.

use crate::hashing::mix;
use crate::hit_ratio::keys::NumberedRequest;
use crate::results::outcome::ratio;
use std::hint::black_box;
use weir_policy::Digest;
use weir_policy::admission::{Admission, Admissions, Rule};
use weir_policy::catalog::{Catalog, Refusal, Slot};
use weir_policy::eviction::EvictionKind;

/// What a cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Bytes of content that it may hold.
    pub capacity_bytes: u64,
    /// The eviction algorithm.
    pub eviction: EvictionKind,
    /// The rule of admission. The table of what was requested once is that of the proxy, with its
    /// limit.
    pub admission: Rule,
}

/// What came of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All of them.
    pub requests: u64,
    /// Those whose response was in the cache.
    pub hits: u64,
    /// The requested bytes.
    pub bytes: u64,
    /// What of it was in the cache, bytes.
    pub hit_bytes: u64,
    /// Responses that left for others.
    pub evictions: u64,
    /// Misses that the rule of admission did not let in.
    pub refused: u64,
    /// Misses that are larger than the cache.
    pub too_large: u64,
    /// Misses that fit into the cache and not into its small queue.
    pub too_large_for_small_queue: u64,
    /// Responses in the cache at the end.
    pub residents: u64,
    /// What they come to, bytes.
    pub resident_bytes: u64,
}

impl Totals {
    /// Hits of requests; 0 without requests.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.requests)
    }

    /// Hit bytes of bytes; 0 without bytes.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.bytes)
    }
}

/// A cache, stepped request by request. Takes four bytes a key, and of a resident what the
/// algorithm takes and four bytes.
#[derive(Debug)]
pub struct Simulation {
    catalog: Catalog,
    admissions: Admissions,
    /// By number of key; [`ABSENT`] where it is not resident.
    slot_of: Vec<u32>,
    /// By slot.
    number_of: Vec<u32>,
    victims: Vec<Slot>,
    totals: Totals,
}

/// How a response is stored.
type Admit = fn(&mut Catalog, Digest, u64, &mut Vec<Slot>) -> Result<Slot, Refusal>;

const ABSENT: u32 = u32::MAX;

/// Keys whose places are read together, see [`Keys`](crate::hit_ratio::keys::Keys).
const AHEAD: usize = 16;

impl Simulation {
    /// An empty cache.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self {
            catalog: Catalog::content_only(setting.capacity_bytes, setting.eviction),
            admissions: Admissions::new(setting.admission),
            slot_of: Vec::new(),
            number_of: Vec::new(),
            victims: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// The same as a model of a larger cache, of `capacity_bytes`, that is asked for a sample of
    /// its keys.
    #[must_use]
    pub fn sampled_from(self, capacity_bytes: u64) -> Self {
        Self {
            catalog: self.catalog.sampled_from(capacity_bytes),
            ..self
        }
    }

    /// A request for what is in the cache alone; whether it is a hit. A miss is no request.
    pub fn find(&mut self, asked: NumberedRequest) -> bool {
        let is_there = self.slot(asked.number).is_some();
        is_there && self.ask(asked)
    }

    /// A request; whether it is a hit.
    pub fn ask(&mut self, asked: NumberedRequest) -> bool {
        let NumberedRequest { number, size_bytes } = asked;
        self.totals.requests += 1;
        self.totals.bytes += size_bytes;
        if let Some(slot) = self.slot(number) {
            self.totals.hits += 1;
            self.totals.hit_bytes += size_bytes;
            self.catalog.touch(slot);
            return true;
        }
        self.miss(asked, Catalog::admit);
        false
    }

    /// The same; what is not in the cache comes from another node, and is stored as a copy.
    pub(crate) fn ask_for_copy(&mut self, asked: NumberedRequest) {
        self.totals.requests += 1;
        self.totals.bytes += asked.size_bytes;
        self.miss(asked, Catalog::admit_copy);
    }

    /// A response that has come after a request for what was not there; it is no request.
    pub(crate) fn store(&mut self, asked: NumberedRequest) {
        if self.slot(asked.number).is_none() {
            self.miss(asked, Catalog::admit);
        }
    }

    /// Requests one after the other, in less time than one by one.
    pub fn ask_all(&mut self, asked: &[NumberedRequest]) {
        for chunk in asked.chunks(AHEAD) {
            let read = |sum: u32, asked: &NumberedRequest| {
                let slot = self.slot_of.get(asked.number as usize);
                sum ^ slot.copied().unwrap_or(0)
            };
            black_box(chunk.iter().fold(0, read));
            for asked in chunk {
                self.ask(*asked);
            }
        }
    }

    /// What came of the requests so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            residents: self.catalog.len() as u64,
            resident_bytes: self.catalog.used_bytes(),
            ..self.totals
        }
    }

    /// The catalog, for tests of its invariants.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn slot(&self, number: u32) -> Option<Slot> {
        let slot = *self.slot_of.get(number as usize)?;
        (slot != ABSENT).then_some(Slot(slot))
    }

    fn miss(&mut self, asked: NumberedRequest, admit: Admit) {
        let NumberedRequest { number, size_bytes } = asked;
        let key = digest(number);
        if self.admissions.judge(key, Some(size_bytes)) != Admission::Admitted {
            self.totals.refused += 1;
            return;
        }
        let admitted = match self.catalog.check_newcomer(key, size_bytes) {
            Ok(()) => admit(&mut self.catalog, key, size_bytes, &mut self.victims),
            Err(refusal) => Err(refusal),
        };
        for victim in self.victims.drain(..) {
            self.totals.evictions += 1;
            self.slot_of[self.number_of[victim.index()] as usize] = ABSENT;
        }
        let slot = match admitted {
            Ok(slot) => slot,
            Err(Refusal::TooLargeForSmallQueue { .. }) => {
                self.totals.too_large_for_small_queue += 1;
                return;
            }
            Err(_) => {
                self.totals.too_large += 1;
                return;
            }
        };
        lengthen(&mut self.slot_of, number as usize);
        self.slot_of[number as usize] = slot.0;
        lengthen(&mut self.number_of, slot.index());
        self.number_of[slot.index()] = number;
    }
}

/// Makes room for `index`, by doubling.
fn lengthen(array: &mut Vec<u32>, index: usize) {
    if index >= array.len() {
        array.resize(index + 1, ABSENT);
    }
}

/// What the policies know a key by: they pick bits of it, and two keys must never share one.
pub(crate) fn digest(number: u32) -> Digest {
    let mixed = mix(u64::from(number));
    Digest(mixed, mix(mixed))
}

#[cfg(test)]
mod tests;
