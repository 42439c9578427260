//! What the bytes of a representation are: all of them follow from its target, its variant and its
//! validators, so that a mixture of two shows.

use weir_workload::mix;

/// Content repeats after so many bytes: a prime, and more than most responses have.
const PERIOD: usize = 65_521;

/// What tells one representation from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) target: u64,
    pub(crate) variant: u64,
    /// The entity tag, else the time of the last modification, else 0.
    pub(crate) version: u64,
}

impl Identity {
    /// Its bytes from `from` up to `to`.
    pub(crate) fn bytes(self, from: u64, to: u64) -> Vec<u8> {
        let seed = mix(self.target ^ mix(self.variant ^ mix(self.version)));
        let mut at = place(seed.wrapping_add(from));
        let mut left = usize::try_from(to - from).expect("a length in memory");
        let table = table();
        let mut bytes = Vec::with_capacity(left);
        while left > 0 {
            let count = left.min(PERIOD - at);
            bytes.extend_from_slice(&table[at..at + count]);
            left -= count;
            at = 0;
        }
        bytes
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number % PERIOD as u64).expect("below the period")
}

fn table() -> &'static [u8] {
    static TABLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| {
        let words = (0..PERIOD as u64 / 8 + 1).flat_map(|number| mix(number).to_le_bytes());
        words.take(PERIOD).collect()
    })
}
