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
    /// The target with this number on one of so many servers, drawn uniformly by number and salt.
    pub(crate) fn spread(number: u64, salt: u64, servers: u32) -> Self {
        let place = u128::from(mix(number ^ salt)) * u128::from(servers);
        Self {
            server: u32::try_from(place >> 64).unwrap_or(0),
            number,
        }
    }

    /// A hash of seed and target: what every property of the target is derived from, and the first
    /// half of its entity tag.
    #[must_use]
    pub fn digest(self, seed: u64) -> u64 {
        mix(mix(mix(seed) ^ u64::from(self.server)) ^ self.number)
    }
}
