//! Life cycles, as Web Polygraph has them: a target's cycle has a length L, drawn once, and begins
//! at a point uniform in [0, L) after the epoch; its n-th modification is at `birth + n L + v
//! U(-L/2, L/2)`. A version lasts from one modification to the next.
//!
//! Ours: times are whole seconds, so that Last-Modified and Expires say them exactly; a cycle is at
//! least so long that two modifications never fall into one second; the epoch is 1970's. Version
//! n + 2 begins with the n-th modification, which leaves a version for every second since 1970.

use crate::UnixSeconds;
use crate::chance::{Chance, mix, unit_of};
use crate::number::whole;
use crate::scenario::LifeCycle;

/// When the versions of one target begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    /// Seconds.
    length: f64,
    birth: f64,
    /// 0 to less than 1.
    variance: f64,
    hash: u64,
}

impl Life {
    pub(super) fn new(cycle: &LifeCycle, mut chance: Chance) -> Self {
        let least = GAP_MIN_S / (1.0 - cycle.variance);
        let length = cycle.length.draw(&mut chance).clamp(least, LENGTH_MAX_S);
        Self {
            length,
            birth: length * chance.unit(),
            variance: cycle.variance,
            hash: chance.word(),
        }
    }

    /// The version at this time; before 1970 the one of its first second.
    pub(super) fn version(&self, at: UnixSeconds) -> u64 {
        let at = UnixSeconds(at.0.max(0));
        let near: u64 = whole((at.0 as f64 - self.birth) / self.length + 2.0);
        // a modification is at most half a cycle from its place
        (near.saturating_sub(1)..=near + 1)
            .rev()
            .find(|version| self.begins(*version) <= at)
            .unwrap_or(0)
    }

    /// The first second of a version.
    pub(super) fn begins(&self, version: u64) -> UnixSeconds {
        let place = unit_of(mix(self.hash ^ mix(version))) - 0.5;
        let cycles = version as f64 - 2.0 + self.variance * place;
        UnixSeconds(whole((self.birth + cycles * self.length).floor()))
    }

    /// The first second after a version.
    pub(super) fn ends(&self, version: u64) -> UnixSeconds {
        self.begins(version.saturating_add(1))
    }
}

/// Two modifications are at least so far apart before they are rounded to seconds.
const GAP_MIN_S: f64 = 2.0;

/// A thousand years.
const LENGTH_MAX_S: f64 = 1000.0 * 365.0 * 86_400.0;
