//! Whether a response goes to disk at all.
//!
//! A disk is written in sequence and wears out; most responses that are requested once are never
//! requested again. Writing only at the second request halves the writes of a usual mix and costs
//! one hit each. In nginx it is `proxy_cache_min_uses`; TinyLFU calls such a table a doorkeeper.
//!
//! What was seen is kept in two generations of a Bloom-like table of fingerprints, so that it takes
//! a fixed amount of memory and forgets what was seen long ago.

use crate::Digest;
use alloc::boxed::Box;
use alloc::vec;
use weir_semantics::words;

/// What an operator chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Everything that may be stored.
    #[default]
    Always,
    /// Responses that are requested a second time.
    SecondRequest,
    /// What has at most so many bytes of content; of unknown length counts as larger.
    Small {
        /// Bytes of content.
        largest: u64,
    },
}

words! {
    /// What becomes of a response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Admission {
        /// It is written.
        Admitted = "admitted",
        /// It was requested for the first time.
        FirstRequest = "first-request",
        /// It is too large.
        TooLarge = "too-large",
        /// Its length is not known.
        LengthUnknown = "length-unknown",
    }
}

/// Maximum number of keys that are remembered as requested once; at any time there are between half
/// of it and all. Two bytes each.
pub const SEEN_MAX: usize = 1 << 18;

/// Places that a key may stand at.
const WAYS: usize = 4;

/// Decides, and remembers what it needs for that.
#[derive(Clone, Debug)]
pub struct Admissions {
    rule: Rule,
    /// Fingerprints of keys seen in this generation and in the last one; 0 is an empty place.
    young: Box<[u16]>,
    old: Box<[u16]>,
    young_count: usize,
}

impl Admissions {
    /// Nothing was seen yet. Only [`Rule::SecondRequest`] takes memory.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        let places = match rule {
            Rule::SecondRequest => SEEN_MAX / 2,
            Rule::Always | Rule::Small { .. } => 0,
        };
        Self {
            rule,
            young: vec![0; places].into(),
            old: vec![0; places].into(),
            young_count: 0,
        }
    }

    /// Judges a response of `content_bytes`, if that is known.
    pub fn judge(&mut self, key: Digest, content_bytes: Option<u64>) -> Admission {
        let rule = self.rule;
        match rule {
            Rule::Always => Admission::Admitted,
            Rule::SecondRequest => {
                if self.saw(key) {
                    Admission::Admitted
                } else {
                    Admission::FirstRequest
                }
            }
            Rule::Small { largest } => match content_bytes {
                Some(bytes) if bytes <= largest => Admission::Admitted,
                Some(_) => Admission::TooLarge,
                None => Admission::LengthUnknown,
            },
        }
    }

    /// Whether a key was seen before; it is from now on.
    fn saw(&mut self, key: Digest) -> bool {
        let print = fingerprint(key);
        let group = group(key, self.young.len());
        let is_in = |table: &[u16]| {
            table
                .get(group.clone())
                .is_some_and(|it| it.contains(&print))
        };
        if is_in(&self.young) {
            return true;
        }
        let was_seen = is_in(&self.old);
        if self.young_count >= self.young.len() / 2 {
            core::mem::swap(&mut self.young, &mut self.old);
            self.young.fill(0);
            self.young_count = 0;
        }
        if let Some(places) = self.young.get_mut(group) {
            let free = places.iter().position(|place| *place == 0);
            self.young_count += usize::from(free.is_some());
            // a full group forgets the key that its fingerprint picks
            places[free.unwrap_or(usize::from(print) % WAYS)] = print;
        }
        was_seen
    }
}

fn fingerprint(key: Digest) -> u16 {
    let print = (key.1 >> 48) as u16;
    print.max(1)
}

fn group(key: Digest, places: usize) -> core::ops::Range<usize> {
    let groups = (places / WAYS) as u64;
    #[expect(clippy::cast_possible_truncation, reason = "below a length in memory")]
    let group = (key.0 % groups.max(1)) as usize;
    group * WAYS..(group + 1) * WAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Digest {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let other = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Digest(other ^ (other >> 32), other.wrapping_mul(mixed | 1))
    }

    #[test]
    fn second_request_rule_admits_from_the_second_request_on() {
        let mut admissions = Admissions::new(Rule::SecondRequest);
        for number in 0..1000 {
            let first = admissions.judge(key(number), Some(1));
            assert_eq!(first, Admission::FirstRequest, "{number}");
        }
        for number in 0..1000 {
            let second = admissions.judge(key(number), None);
            assert_eq!(second, Admission::Admitted, "{number}");
        }
    }

    #[test]
    fn seen_key_is_remembered_for_an_eighth_of_the_limit_and_forgotten_later() {
        let mut admissions = Admissions::new(Rule::SecondRequest);
        let saw = |admissions: &mut Admissions, number| {
            admissions.judge(key(number), None) == Admission::Admitted
        };
        assert!(!saw(&mut admissions, 0));
        let others = SEEN_MAX as u64 / 8;
        let false_ones = (1..others).filter(|it| saw(&mut admissions, *it)).count();
        assert!(false_ones < 40, "{false_ones}");
        assert!(saw(&mut admissions, 0), "an eighth of the limit later");
        for number in others..others + 2 * SEEN_MAX as u64 {
            saw(&mut admissions, number);
        }
        assert!(!saw(&mut admissions, 0), "long ago");
    }

    #[test]
    fn small_rule_admits_known_lengths_up_to_its_limit() {
        let mut admissions = Admissions::new(Rule::Small { largest: 100 });
        let judge = |admissions: &mut Admissions, bytes| admissions.judge(key(1), bytes);
        assert_eq!(judge(&mut admissions, Some(100)), Admission::Admitted);
        assert_eq!(judge(&mut admissions, Some(101)), Admission::TooLarge);
        assert_eq!(judge(&mut admissions, None), Admission::LengthUnknown);
        let mut always = Admissions::new(Rule::Always);
        assert_eq!(judge(&mut always, None), Admission::Admitted);
    }
}
