//! One count for each variant of an enum.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use weir_measure::{Label, Merge};

/// More variants than any of our enums has.
const KINDS_MAX: usize = 20;

/// How often each variant was seen. Serialised as a map of words to counts, without those that are
/// zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Counts<K> {
    counts: [u64; KINDS_MAX],
    kind: PhantomData<K>,
}

impl<K: Label> Counts<K> {
    /// Counts one.
    pub fn add(&mut self, kind: K) {
        self.add_many(kind, 1);
    }

    /// Counts so many.
    pub fn add_many(&mut self, kind: K, count: u64) {
        self.counts[kind.index()] += count;
    }

    /// How many of this kind.
    #[must_use]
    pub fn of(&self, kind: K) -> u64 {
        self.counts[kind.index()]
    }

    /// How many in all.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The words and counts of those that were seen.
    pub fn seen(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        K::ALL
            .iter()
            .map(|kind| (kind.word(), self.of(*kind)))
            .filter(|(_, count)| *count > 0)
    }
}

impl<K> Merge for Counts<K> {
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self {
            counts: [0; KINDS_MAX],
            kind: PhantomData,
        }
    }
}

impl<K: Label> fmt::Debug for Counts<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.seen()).finish()
    }
}

impl<K: Label> Serialize for Counts<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.seen())
    }
}

impl<'de, K: Label> Deserialize<'de> for Counts<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (word, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            let kind = K::from_word(&word);
            let kind = kind.ok_or_else(|| D::Error::custom(format!("unknown kind `{word}`")))?;
            counts.add_many(kind, count);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::WrongKind;
    use crate::tally::{CrossCheck, ErrorKind};

    fn check<K: Label + fmt::Debug>() {
        assert!(K::ALL.len() <= KINDS_MAX);
        let mut counts = Counts::<K>::default();
        for (place, kind) in K::ALL.iter().enumerate() {
            assert_eq!(kind.index(), place);
            counts.add_many(*kind, place as u64 + 1);
        }
        let written = serde_json::to_string(&counts).unwrap();
        let read: Counts<K> = serde_json::from_str(&written).unwrap();
        assert_eq!(read.counts, counts.counts);
        assert_eq!(read.sum(), (1..=K::ALL.len() as u64).sum::<u64>());
    }

    #[test]
    fn counts_by_kind_survive_the_json_round_trip() {
        check::<ErrorKind>();
        check::<WrongKind>();
        check::<CrossCheck>();
    }

    #[test]
    fn unknown_kind_in_json_is_refused() {
        let error = serde_json::from_str::<Counts<ErrorKind>>("{\"tired\":1}").unwrap_err();
        assert!(error.to_string().contains("`tired`"));
    }
}
