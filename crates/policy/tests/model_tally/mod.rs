//! How often each kind of event occurred in the runs of a model: one that never does is not tested.

use std::fmt;

/// A count for each of some names.
#[derive(Clone)]
pub(crate) struct Tally {
    names: &'static [&'static str],
    counts: Vec<u64>,
}

impl Tally {
    /// Nothing has happened.
    pub(crate) fn new(names: &'static [&'static str]) -> Self {
        let counts = vec![0; names.len()];
        Self { names, counts }
    }

    /// `name` happened once more.
    ///
    /// # Panics
    /// It is not one of the names.
    pub(crate) fn count(&mut self, name: &str) {
        let place = self.names.iter().position(|known| *known == name);
        self.counts[place.unwrap()] += 1;
    }

    /// What another run has counted happened, too.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    pub(crate) fn never_happened(&self) -> Vec<&'static str> {
        let names = self.names.iter().zip(&self.counts);
        let never = names.filter(|(_, count)| **count == 0);
        never.map(|(name, _)| *name).collect()
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.names.iter().zip(&self.counts))
            .finish()
    }
}
