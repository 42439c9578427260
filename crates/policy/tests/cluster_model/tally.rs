//! How often what happened in the clusters that were played.

/// How often what happened: to see that everything does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally([u64; NAMES.len()]);

const NAMES: [&str; 15] = [
    "hit",
    "followed",
    "lateral",
    "copied",
    "stored-only-hit",
    "stored-only-miss",
    "unreachable",
    "silent",
    "stranger",
    "report-lost",
    "released",
    "node-without-origin",
    "held-behind-choice",
    "purged-by-all",
    "no-origin",
];

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }

    pub(crate) fn never_happened(&self) -> Vec<&'static str> {
        let names = NAMES.iter().zip(self.0);
        names
            .filter(|&(_, count)| count == 0)
            .map(|(name, _)| *name)
            .collect()
    }

    pub(crate) fn count(&mut self, name: &str) {
        let place = NAMES.iter().position(|known| *known == name).unwrap();
        self.0[place] += 1;
    }
}
