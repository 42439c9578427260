//! What clients request: targets of equal size below a path of their own, and how one is drawn.

use weir_bench::origin::ResponseSpec;
use weir_workload::{Chance, Zipf};

/// Targets by number, from 0, and the hot one.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// A path that no other measurement has: the origin counts by it.
    pub(super) path: String,
    pub(super) targets: u64,
    pub(super) size_bytes: u64,
}

/// How a target is drawn.
#[derive(Clone, Debug)]
pub(super) enum Pick {
    /// By popularity.
    Zipf(Zipf),
    /// All alike.
    Uniform(u64),
    /// One of these.
    Listed(Vec<u64>),
    /// One after the other.
    InTurn,
    /// With this chance the hot one, else by popularity.
    Hot(f64, Zipf),
}

/// The exponent of the issue: that of many traces of caches near clients (Breslau and others 1999).
const EXPONENT: f64 = 0.8;

impl Site {
    pub(super) fn new(path: String, targets: u64, size_bytes: u64) -> Self {
        Self {
            path,
            targets,
            size_bytes,
        }
    }

    /// A target by number; the hot one for none.
    pub(super) fn target(&self, number: Option<u64>) -> String {
        let path = match number {
            Some(number) => format!("{}/{number}", self.path),
            None => format!("{}/hot", self.path),
        };
        ResponseSpec::new(&path, self.size_bytes).to_string()
    }

    /// Popularities by a law of Zipf.
    pub(super) fn zipf(&self) -> Zipf {
        Zipf::new(self.targets, EXPONENT)
    }
}

impl Pick {
    /// The number of a target, none for the hot one; `step` counts the requests of all clients.
    pub(super) fn draw(&self, chance: &mut Chance, step: u64) -> Option<u64> {
        match self {
            Self::Zipf(zipf) => Some(zipf.draw(chance) - 1),
            Self::Uniform(count) => Some(chance.below(*count)),
            Self::Listed(numbers) => {
                let count = u64::try_from(numbers.len()).unwrap_or_default();
                let place = usize::try_from(chance.below(count)).unwrap_or_default();
                numbers.get(place).copied()
            }
            Self::InTurn => Some(step),
            Self::Hot(share, zipf) if !chance.is(*share) => Some(zipf.draw(chance) - 1),
            Self::Hot(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_target_is_drawn_with_its_share_and_all_others_are_below_their_number() {
        let site = Site::new("/a".to_owned(), 100, 10);
        let mut chance = Chance::new(1, 1);
        let pick = Pick::Hot(0.3, site.zipf());
        let drawn: Vec<_> = (0..10_000)
            .map(|step| pick.draw(&mut chance, step))
            .collect();
        let hot = drawn.iter().filter(|drawn| drawn.is_none()).count();
        assert!((2800..3200).contains(&hot), "{hot}");
        assert!(drawn.iter().flatten().all(|number| *number < 100));
        assert_eq!(site.target(None), "/a/hot?size=10");
        assert_eq!(site.target(Some(7)), "/a/7?size=10");
    }
}
