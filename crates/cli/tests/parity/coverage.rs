//! What occurred in all traces together: a parity of nothing is easily had.

use crate::log::text_of;
use crate::script::Script;
use std::collections::BTreeMap;
use weir_sim::journal::{Question, What};

/// How often everything occurred.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    counts: BTreeMap<String, u64>,
    requests: u64,
}

impl Coverage {
    /// Something happened, in both.
    pub(crate) fn happened(&mut self, what: What) {
        let word = match what {
            What::Asked {
                question, is_new, ..
            } => {
                let kept = if is_new { "new" } else { "kept" };
                self.count(format!("connection {kept}"));
                match question {
                    Question::AsSent => "asked as sent".to_owned(),
                    Question::Validation => "asked to validate".to_owned(),
                    Question::Refresh => "asked in the background".to_owned(),
                    Question::Part(_) => "asked for a part".to_owned(),
                }
            }
            What::Follows { .. } => "waits for another's".to_owned(),
            What::Judged { word, .. } => format!("judged {word}"),
            What::Left { is_early: true, .. } => "client left".to_owned(),
            What::Broken { .. } => "server broke off".to_owned(),
            _ => return,
        };
        self.count(word);
    }

    /// A trace was the same in both.
    pub(crate) fn ran(&mut self, script: &Script) {
        for (_, _, verdict) in script.verdicts() {
            self.requests += 1;
            let text = text_of(&verdict);
            let parts = text
                .split(';')
                .skip(1)
                .filter(|part| !part.starts_with("ttl="));
            self.count(parts.collect::<Vec<_>>().join(";"));
        }
        for _ in 0..script.outcome.evictions {
            self.count("evicted".to_owned());
        }
    }

    /// And what occurred elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        for (word, count) in other.counts {
            *self.counts.entry(word).or_insert(0) += count;
        }
    }

    fn count(&mut self, word: String) {
        *self.counts.entry(word).or_insert(0) += 1;
    }

    /// How often something occurred that is called so, or whose verdict has all of these parts.
    pub(crate) fn of(&self, words: &str) -> u64 {
        let is_it = |known: &str| {
            words
                .split(';')
                .all(|word| known.split(';').any(|part| part == word))
        };
        let found = self.counts.iter().filter(|(known, _)| is_it(known));
        found.map(|(_, count)| count).sum()
    }

    /// All of it, a line each.
    pub(crate) fn told(&self) -> String {
        let lines = self
            .counts
            .iter()
            .map(|(word, count)| format!("{count:>7}  {word}"));
        let requests = format!("{:>7}  requests", self.requests);
        std::iter::once(requests)
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
