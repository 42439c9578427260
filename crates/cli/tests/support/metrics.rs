//! The numbers of `/metrics`.

use std::collections::BTreeMap;

/// One reading of all numbers.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    values: BTreeMap<String, f64>,
}

impl Metrics {
    /// Takes the text apart, in whichever format.
    pub(crate) fn parse(text: &str) -> Self {
        let values = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect("`name value`");
                let number = value.parse::<f64>().expect("a number");
                (name.to_owned(), number)
            })
            .collect();
        Self { values }
    }

    /// A count, by its whole name with labels.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of a test are small whole numbers"
    )]
    pub(crate) fn count(&self, name: &str) -> u64 {
        match self.values.get(name) {
            Some(value) => *value as u64,
            None => panic!("no `{name}` in {:?}", self.values.keys()),
        }
    }

    /// Finished requests of a verdict.
    pub(crate) fn requests(&self, verdict: &str) -> u64 {
        self.count(&format!("weir_requests_total{{verdict=\"{verdict}\"}}"))
    }

    /// Finished requests in all.
    pub(crate) fn all_requests(&self) -> u64 {
        let names = self.values.keys();
        names
            .filter(|name| name.starts_with("weir_requests_total{"))
            .map(|name| self.count(name))
            .sum()
    }

    /// Responses that were not put on disk, for whatever reason.
    pub(crate) fn disk_refusals(&self) -> u64 {
        let names = self.values.keys();
        names
            .filter(|name| name.starts_with("weir_disk_refused_total{"))
            .map(|name| self.count(name))
            .sum()
    }
}
