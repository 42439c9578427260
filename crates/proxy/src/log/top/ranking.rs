//! The sketches of one kind of name, and the names of their keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use weir_measure::Label as _;
use weir_measure::live::TopBy;
use weir_measure::sketch::{Added, SpaceSaving};

/// What a request, or several, count by each measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weights {
    /// Requests of clients.
    pub(crate) requests: u64,
    /// Bytes to clients.
    pub(crate) to_clients: u64,
    /// Bytes from next hops.
    pub(crate) from_next_hops: u64,
    /// Content bytes among them that no client received.
    pub(crate) wasted: u64,
    /// Requests that were forwarded.
    pub(crate) misses: u64,
    /// Those of them that went wrong at the next hop.
    pub(crate) errors: u64,
}

impl Weights {
    /// Adds `other`, measure by measure.
    #[inline]
    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.to_clients += other.to_clients;
        self.from_next_hops += other.from_next_hops;
        self.wasted += other.wasted;
        self.misses += other.misses;
        self.errors += other.errors;
    }

    fn by(&self, measure: TopBy) -> u64 {
        match measure {
            TopBy::Requests => self.requests,
            TopBy::ToClients => self.to_clients,
            TopBy::FromNextHops => self.from_next_hops,
            TopBy::Wasted => self.wasted,
            TopBy::Misses => self.misses,
            TopBy::Errors => self.errors,
        }
    }
}

/// A name, and how many sketches have its key.
#[derive(Debug)]
struct Name {
    uses: u8,
    text: Box<str>,
}

/// Sketches by all measures.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    by: [SpaceSaving; TopBy::COUNT],
    /// Of the keys that a sketch has: at most 6 000. Keys are digests under a secret.
    names: HashMap<u64, Name, BuildHasherDefault<DigestHasher>>,
}

/// Takes a digest as it is: it is spread by a secret already.
#[derive(Debug, Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Ranking {
    /// Adds what `key` has by each measure. `name` makes its name if no sketch had the key.
    pub(super) fn add(&mut self, key: u64, weights: &Weights, name: impl Fn() -> Box<str>) {
        for measure in TopBy::ALL {
            let weight = weights.by(*measure);
            if weight == 0 {
                continue;
            }
            match self.by[measure.index()].add(key, weight) {
                Added::Known => continue,
                Added::New => {}
                Added::Replaced { key } => self.release(key),
            }
            let known = self.names.entry(key).or_insert_with(|| Name {
                uses: 0,
                text: name(),
            });
            known.uses += 1;
        }
    }

    /// A sketch has `key` no more.
    fn release(&mut self, key: u64) {
        let Entry::Occupied(mut known) = self.names.entry(key) else {
            return;
        };
        known.get_mut().uses -= 1;
        if known.get().uses == 0 {
            known.remove();
        }
    }

    /// Halves all counts.
    pub(super) fn halve(&mut self) {
        self.by.iter_mut().for_each(SpaceSaving::halve);
    }

    /// The sketch by one measure.
    pub(super) fn sketch(&self, measure: TopBy) -> &SpaceSaving {
        &self.by[measure.index()]
    }

    /// The name of a key, while a sketch has it.
    pub(super) fn name(&self, key: u64) -> Option<&str> {
        self.names.get(&key).map(|name| &*name.text)
    }

    /// How many names there are.
    #[cfg(test)]
    pub(super) fn names_count(&self) -> usize {
        self.names.len()
    }
}
