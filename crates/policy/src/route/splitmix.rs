//! Random numbers for choices.

use crate::route::policy;

/// `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators. OOPSLA 2014).
#[derive(Debug)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    /// The next one.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        policy::mix(self.0)
    }
}
