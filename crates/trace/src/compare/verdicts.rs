//! Verdicts of pairs.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Different verdicts that are counted apart.
pub const VERDICTS_MAX: usize = 1000;

/// How the requests of pairs were handled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// Pairs with one verdict.
    pub equal: u64,
    /// Pairs with two.
    pub different: u64,
    /// Pairs of which not both rows say.
    pub unsaid: u64,
    /// All that say, by what they say; the most frequent first.
    pub pairs: Vec<VerdictPair>,
}

/// A verdict of each trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictPair {
    /// In the first.
    pub a: String,
    /// In the second.
    pub b: String,
    /// Pairs.
    pub requests: u64,
}

/// The number of a verdict among those that were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word(u16);

#[derive(Debug, Default)]
pub(super) struct Counter {
    numbers: BTreeMap<String, Word>,
    texts: Vec<String>,
    pairs: BTreeMap<(Word, Word), u64>,
    unsaid: u64,
}

impl Counter {
    /// The number of a verdict; `None` if there are [`VERDICTS_MAX`] others.
    pub(super) fn word(&mut self, text: &str) -> Option<Word> {
        if let Some(word) = self.numbers.get(text) {
            return Some(*word);
        }
        if self.texts.len() >= VERDICTS_MAX {
            return None;
        }
        let word = Word(u16::try_from(self.texts.len()).ok()?);
        self.numbers.insert(text.to_owned(), word);
        self.texts.push(text.to_owned());
        Some(word)
    }

    pub(super) fn text(&self, word: Word) -> &str {
        self.texts
            .get(usize::from(word.0))
            .map_or("", String::as_str)
    }

    /// Counts a pair; whether it differs.
    pub(super) fn pair(&mut self, a: Option<Word>, b: Option<Word>) -> bool {
        let (Some(a), Some(b)) = (a, b) else {
            self.unsaid += 1;
            return false;
        };
        *self.pairs.entry((a, b)).or_default() += 1;
        a != b
    }

    pub(super) fn finish(self) -> Verdicts {
        let sum = |is_wanted: fn(Word, Word) -> bool| {
            let pairs = self.pairs.iter();
            let wanted = pairs.filter(|((a, b), _)| is_wanted(*a, *b));
            wanted.map(|(_, count)| count).sum()
        };
        let pair = |(&(a, b), &requests): (&(Word, Word), &u64)| VerdictPair {
            a: self.text(a).to_owned(),
            b: self.text(b).to_owned(),
            requests,
        };
        let mut pairs: Vec<VerdictPair> = self.pairs.iter().map(pair).collect();
        pairs.sort_by(|x, y| {
            let key = |pair: &VerdictPair| Reverse(pair.requests);
            key(x)
                .cmp(&key(y))
                .then_with(|| (&x.a, &x.b).cmp(&(&y.a, &y.b)))
        });
        Verdicts {
            equal: sum(|a, b| a == b),
            different: sum(|a, b| a != b),
            unsaid: self.unsaid,
            pairs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_verdicts_are_accepted_up_to_the_limit() {
        let mut counter = Counter::default();
        for number in 0..VERDICTS_MAX {
            assert!(counter.word(&number.to_string()).is_some());
        }
        assert_eq!(counter.word("one more"), None);
        let known = counter.word("999").expect("it is known");
        assert_eq!(counter.text(known), "999");
    }
}
