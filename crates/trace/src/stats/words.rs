//! Methods, status codes and other words, and how often each is there.

use super::super::Row;
use crate::row::words::{TraceMethod, TraceScheme, TraceVersion};
use serde::Serialize;
use std::collections::BTreeMap;

/// Different words of one kind that are counted apart; all further ones are `others`.
pub const WORDS_MAX: usize = 1000;

/// A word and how many rows have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// The word.
    pub word: String,
    /// Rows.
    pub requests: u64,
}

/// Each kind with its most frequent words first; empty if no row says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Words {
    /// Methods.
    pub methods: Vec<Word>,
    /// Status codes.
    pub statuses: Vec<Word>,
    /// Schemes.
    pub schemes: Vec<Word>,
    /// Versions of HTTP.
    pub versions: Vec<Word>,
    /// Media types.
    pub content_types: Vec<Word>,
    /// What the traced cache said.
    pub verdicts: Vec<Word>,
}

#[derive(Debug)]
struct Counts<K> {
    counts: BTreeMap<K, u64>,
    others: u64,
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self {
            counts: BTreeMap::new(),
            others: 0,
        }
    }
}

impl<K: Ord> Counts<K> {
    fn add<Q>(&mut self, key: Option<&Q>)
    where
        K: std::borrow::Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let Some(key) = key else { return };
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
        } else if self.counts.len() < WORDS_MAX {
            self.counts.insert(key.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    fn finish(self, write: impl Fn(&K) -> String) -> Vec<Word> {
        let word = |(key, requests): (&K, &u64)| Word {
            word: write(key),
            requests: *requests,
        };
        let mut words: Vec<Word> = self.counts.iter().map(word).collect();
        // what is equally frequent stays in order
        words.sort_by_key(|word| std::cmp::Reverse(word.requests));
        if self.others > 0 {
            words.push(Word {
                word: "others".into(),
                requests: self.others,
            });
        }
        words
    }
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    methods: Counts<TraceMethod>,
    statuses: Counts<u16>,
    schemes: Counts<TraceScheme>,
    versions: Counts<TraceVersion>,
    content_types: Counts<String>,
    verdicts: Counts<String>,
}

impl Counter {
    pub(super) fn add(&mut self, row: &Row) {
        self.methods.add(row.method.as_ref());
        self.statuses.add(row.status.as_ref());
        self.schemes.add(row.scheme.as_ref());
        self.versions.add(row.version.as_ref());
        self.content_types.add(row.content_type.as_deref());
        self.verdicts.add(row.verdict.as_deref());
    }

    pub(super) fn finish(self) -> Words {
        Words {
            methods: self.methods.finish(|word| word.as_str().into()),
            statuses: self.statuses.finish(u16::to_string),
            schemes: self.schemes.finish(|word| word.as_str().into()),
            versions: self.versions.finish(|word| word.as_str().into()),
            content_types: self.content_types.finish(String::clone),
            verdicts: self.verdicts.finish(String::clone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beyond_the_limit_are_counted_together() {
        let mut counts: Counts<String> = Counts::default();
        for index in 0..WORDS_MAX + 5 {
            counts.add(Some(format!("{index:04}").as_str()));
        }
        counts.add(Some("0003"));
        counts.add(None::<&str>);
        let words = counts.finish(String::clone);
        assert_eq!(words.len(), WORDS_MAX + 1);
        assert_eq!((words[0].word.as_str(), words[0].requests), ("0003", 2));
        assert_eq!(words[1].word, "0000");
        assert_eq!(words.last().map(|word| word.requests), Some(5));
    }
}
