//! Maps whose keys are hashes already: they are mixed once more and not hashed again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
pub(crate) use weir_workload::mix;

/// A map by a number of 64 bits.
pub(crate) type ByNumber<V> = HashMap<u64, V, BuildHasherDefault<Mixer>>;

/// Mixes one number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}
