//! Decisions from a seed: `SplitMix64`.

/// A number that depends on all of these.
pub(crate) fn mix(seed: u64, of: u64, at: u64) -> u64 {
    let mut mixed = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(of.wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add(at.wrapping_add(1).wrapping_mul(0x8cb9_2ba7_2f3d_8dd7));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Numbers one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    seed: u64,
    of: u64,
    at: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64, of: u64) -> Self {
        Self { seed, of, at: 0 }
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.at += 1;
        mix(self.seed, self.of, self.at) % end
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What is known of a user: `u00017-89abcdef`.
pub(crate) fn user(seed: u64, number: u64) -> String {
    let secret = mix(seed, 0x0075_7365_7273, number) & 0xffff_ffff;
    format!("u{number:05}-{secret:08x}")
}

/// Length of that.
pub(crate) const USER_BYTES: usize = 15;

/// In front of it in what is for one user alone: no other user sees it, and it is on no disk.
pub(crate) const PRIVATE: &str = "tok-";

/// In front of it in what is for those who send the same field (`Vary`): it may be stored.
pub(crate) const VARYING: &str = "var-";
