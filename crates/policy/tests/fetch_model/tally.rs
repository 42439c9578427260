//! How often what happened in the worlds played.

/// How often what happened: to see that everything does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally([u64; NAMES.len()]);

const NAMES: [&str; 17] = [
    "done",
    "cut-next-hop",
    "cut-changed",
    "cut-stopped",
    "left",
    "seek",
    "refused",
    "gap-fetched",
    "read-ahead-of-front",
    "waited-for-reader",
    "background",
    "returned",
    "gave-way",
    "complete",
    "twice",
    "resumed-after-cut",
    "whole",
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
