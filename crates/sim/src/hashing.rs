//! Maps whose keys are hashes already: they are mixed once more and not hashed again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use weir_workload::MixHasher;
pub(crate) use weir_workload::mix;

/// A map by a number of 64 bits.
pub(crate) type ByNumber<V> = HashMap<u64, V, BuildHasherDefault<MixHasher>>;
