//! Which of the known words was meant by one that is unknown.

use std::collections::BTreeSet;
use strsim::damerau_levenshtein;

/// The most words that are offered; more alike than these say nothing of what was meant.
const OFFERED_MAX: usize = 3;

/// The word most like `word`, if one is.
#[must_use]
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    all_nearest(word, known).first().copied()
}

/// The words most like `word`, each as much as the others. All other measures of likeness have
/// `idle` mean `idle_per_next_hop_max`, since it begins in the same way.
pub(super) fn all_nearest<'k>(word: &str, known: &[&'k str]) -> Vec<&'k str> {
    let rated = known.iter().filter_map(|&candidate| {
        let likeness = Likeness::of(word, candidate)?;
        Some((likeness, candidate))
    });
    let rated: BTreeSet<(Likeness, &str)> = rated.collect();
    let best = rated.first().map(|(likeness, _)| *likeness);
    let as_good = rated.iter().filter(|(likeness, _)| Some(*likeness) == best);
    let as_good: Vec<&str> = as_good.map(|(_, candidate)| *candidate).collect();
    match as_good.len() {
        0..=OFFERED_MAX => as_good,
        _ => Vec::new(),
    }
}

/// How two words are alike, the most alike first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// So many letters are mistyped.
    Mistyped(usize),
    /// Their parts are the same, but for so many that one alone has: `next_hop_idle` and `idle`.
    Parts(usize),
}

impl Likeness {
    fn of(one: &str, other: &str) -> Option<Self> {
        let (one, other) = (one.to_lowercase(), other.to_lowercase());
        if let Some(letters) = mistyped(&one, &other) {
            return Some(Self::Mistyped(letters));
        }
        let parts = |word: &str| -> Vec<String> {
            let parts = word.split(['_', '-', '.', ' ']);
            parts.map(ToOwned::to_owned).collect()
        };
        let (one, other) = (parts(&one), parts(&other));
        let (fewer, more) = match one.len() <= other.len() {
            true => (&one, &other),
            false => (&other, &one),
        };
        let is_part = |part: &String| more.iter().any(|it| mistyped(part, it).is_some());
        let is_within = fewer.iter().all(is_part);
        is_within.then_some(Self::Parts(more.len() - fewer.len()))
    }
}

/// The letters to change, if they are few for words of this length.
fn mistyped(one: &str, other: &str) -> Option<usize> {
    let length = one.chars().count().min(other.chars().count());
    let letters = damerau_levenshtein(one, other);
    (letters <= (length / 3).min(LETTERS_MAX)).then_some(letters)
}

/// The most letters that are taken for mistyped, as two are of `acess_lgo`.
const LETTERS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_is_meant_that_is_mistyped_or_has_the_same_parts() {
        const LIMITS: [&str; 6] = [
            "client_idle",
            "next_hop_idle",
            "tunnel_idle",
            "idle_per_next_hop_max",
            "connect",
            "clients_max",
        ];
        const ACCESS: [&str; 4] = ["clients", "deny_clients", "allow_destinations", "log"];
        for (word, known, expected) in [
            ("idle", &LIMITS[..], &["client_idle", "tunnel_idle"][..]),
            ("idle_next_hop", &LIMITS, &["next_hop_idle"]),
            ("connect_timeout", &LIMITS, &["connect"]),
            ("max_clients", &LIMITS, &["clients_max"]),
            ("allow_clients", &ACCESS, &["clients"]),
            ("allowed_destination", &ACCESS, &["allow_destinations"]),
            ("client", &ACCESS, &["clients"]),
            ("allow", &ACCESS, &["allow_destinations"]),
            ("timeout", &LIMITS, &[]),
            ("upstream", &ACCESS, &[]),
            ("memroy", &["memory", "mode"], &["memory"]),
            ("s3fifo", &["s3-fifo", "sieve"], &["s3-fifo"]),
            ("hop", &["a_hop", "b_hop", "c_hop", "d_hop"], &[]),
        ] {
            assert_eq!(all_nearest(word, known), expected, "{word}");
        }
    }
}
