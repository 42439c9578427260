//! Shares that are met closely.
//!
//! A share drawn by independent chance is missed by luck, and by much where one popular page has a
//! hundredth of all requests. So the chance is raised while the share is too low and lowered while
//! it is too high: the deficit stays bounded while the trace grows.

use weir_workload::Chance;

/// The target and the actual amount of something; the unit (requests, bytes) is the caller's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deficit {
    share: f64,
    asked: f64,
    given: f64,
}

impl Deficit {
    pub(super) const fn new(share: f64) -> Self {
        Self {
            share,
            asked: 0.0,
            given: 0.0,
        }
    }

    /// The chance of the next one, where `usual` is the chance without a deficit.
    pub(super) fn chance(&self, usual: f64) -> f64 {
        (usual + self.deficit() / SPAN).clamp(0.0, 1.0)
    }

    /// What is missing; negative where too much was given.
    pub(super) fn deficit(&self) -> f64 {
        self.share * self.asked - self.given
    }

    /// So much more was due, and so much of it given.
    pub(super) fn count(&mut self, asked: f64, given: f64) {
        self.asked += asked;
        self.given += given;
    }
}

/// One of several, each with its share.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    parts: Vec<Deficit>,
}

impl Mix {
    /// `shares` add up to 1.
    pub(super) fn new(shares: impl IntoIterator<Item = f64>) -> Self {
        Self {
            parts: shares.into_iter().map(Deficit::new).collect(),
        }
    }

    /// The place of one of them.
    pub(super) fn draw(&self, chance: &mut Chance) -> usize {
        let weights = self.parts.iter().map(|part| part.chance(part.share));
        let whole: f64 = weights.clone().sum();
        let mut left = chance.unit() * whole;
        for (place, weight) in weights.enumerate() {
            if left < weight {
                return place;
            }
            left -= weight;
        }
        // rounding, or nothing to draw from
        self.parts.len().saturating_sub(1)
    }

    /// So many were given to the one at `place`.
    pub(super) fn count(&mut self, place: usize, given: f64) {
        for (other, part) in self.parts.iter_mut().enumerate() {
            part.count(given, if other == place { given } else { 0.0 });
        }
    }
}

/// A debt of so many requests makes the chance certain: some hundred pages, so that bursts of one
/// kind stay as they are.
const SPAN: f64 = 2000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_weight_are_met_with_uneven_weights() {
        let mut mix = Mix::new([0.7, 0.2, 0.1]);
        let mut chance = Chance::new(1, 0);
        let mut given = [0.0; 3];
        for number in 0..20_000_u32 {
            let place = mix.draw(&mut chance);
            // one of the three is ten times as heavy as it should be
            let weight = if place == 1 {
                40.0
            } else {
                4.0 + f64::from(number % 3)
            };
            mix.count(place, weight);
            given[place] += weight;
        }
        let whole: f64 = given.iter().sum();
        for (given, share) in given.iter().zip([0.7, 0.2, 0.1]) {
            assert!((given / whole - share).abs() < 0.02, "{given} of {whole}");
        }
    }

    #[test]
    fn share_of_1_is_always_drawn_and_a_large_deficit_or_surplus_decides() {
        let mut chance = Chance::new(2, 0);
        let mix = Mix::new([0.0, 1.0, 0.0]);
        assert!((0..1000).all(|_| mix.draw(&mut chance) == 1));
        let mut deficit = Deficit::new(0.5);
        deficit.count(10_000.0, 0.0);
        assert_eq!(deficit.chance(0.5), 1.0);
        deficit.count(0.0, 10_000.0);
        assert_eq!(deficit.chance(0.5), 0.0);
    }
}
