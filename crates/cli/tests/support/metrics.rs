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
        self.all("weir_requests_total")
    }

    /// The sum of a family with labels.
    pub(crate) fn all(&self, family: &str) -> u64 {
        let of_family = |name: &&String| {
            let labels = name.strip_prefix(family);
            labels.is_some_and(|labels| labels.starts_with('{'))
        };
        let names = self.values.keys().filter(of_family);
        names.map(|name| self.count(name)).sum()
    }

    /// Responses that were not put on disk, for whatever reason.
    pub(crate) fn disk_refusals(&self) -> u64 {
        self.all("weir_disk_refused_total")
    }
}
