//! The target of a request, without its spelling.

use crate::chance::mix;

/// One resource of one server of a site. What the number means is the site's business: see
/// [`crate::Site`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// From 0 to the site's [`servers`](crate::Site::servers) - 1.
    pub server: u32,
    /// Which of the server's resources.
    pub number: u64,
}

impl Target {
    /// A hash of seed and target: what every property of the target is derived from, and the first
    /// half of its entity tag.
    #[must_use]
    pub fn digest(self, seed: u64) -> u64 {
        mix(mix(mix(seed) ^ u64::from(self.server)) ^ self.number)
    }
}
