//! The keyed digest that stands for a cache key.
//!
//! `SipHash` 1-3 with a secret drawn at start: a client cannot choose keys that collide (hash
//! flooding). 128 bits, so that two targets never share one by accident: at 10^9 stored responses
//! the chance is below 10^-20.

use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher13};

/// 128-bit keyed digest of a cache key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64, pub u64);

/// The secret of a process (or of a store on disk): sixteen random bytes.
#[derive(Clone, Copy, Debug)]
pub struct Secret(pub [u8; 16]);

/// Bytes of a key that wait to be hashed with one call; most keys have fewer.
const WAITING_BYTES: usize = 128;

/// Takes the parts of a key one after the other; each part is closed by its length, so that
/// `("ab", "c")` and `("a", "bc")` differ.
///
/// The parts are hashed together: the hash takes words of eight bytes, and a part that ends within
/// a word would have it taken in two steps.
#[derive(Clone, Debug)]
pub struct KeyHasher {
    hasher: SipHasher13,
    waiting: [u8; WAITING_BYTES],
    length: usize,
}

impl KeyHasher {
    /// A hasher under `secret`.
    #[must_use]
    #[inline]
    pub fn new(secret: &Secret) -> Self {
        Self {
            hasher: SipHasher13::new_with_key(&secret.0),
            waiting: [0; WAITING_BYTES],
            length: 0,
        }
    }

    /// A hasher that continues from `base`: for variants of one target.
    #[must_use]
    pub fn from_digest(secret: &Secret, base: Digest) -> Self {
        let mut hasher = Self::new(secret);
        hasher.number(base.0);
        hasher.number(base.1);
        hasher
    }

    /// Adds one part.
    #[inline]
    pub fn part(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.number(bytes.len() as u64);
    }

    /// Adds a number.
    #[inline]
    pub fn number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    /// The digest of what was added.
    #[must_use]
    #[inline]
    pub fn finish(&self) -> Digest {
        let mut hasher = self.hasher;
        hasher.write(self.waiting.get(..self.length).unwrap_or_default());
        let hash = hasher.finish128();
        Digest(hash.h1, hash.h2)
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.waiting.get_mut(self.length..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length = end;
            }
            None => self.add_long(bytes),
        }
    }

    #[cold]
    fn add_long(&mut self, bytes: &[u8]) {
        let waiting = self.waiting.get(..self.length).unwrap_or_default();
        self.hasher.write(waiting);
        self.hasher.write(bytes);
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[&[u8]]) -> Digest {
        let mut hasher = KeyHasher::new(&Secret([7; 16]));
        for part in parts {
            hasher.part(part);
        }
        hasher.finish()
    }

    #[test]
    fn parts_with_equal_concatenation_give_different_digests() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_eq!(digest(&[b"ab", b"c"]), digest(&[b"ab", b"c"]));
    }

    #[test]
    fn digest_is_that_of_all_bytes_at_once() {
        for lengths in [
            [0, 0, 0],
            [1, 7, 20],
            [120, 1, 130],
            [300, 0, 9],
            [128, 127, 129],
        ] {
            let parts = lengths.map(|length| vec![b'p'; length]);
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend_from_slice(part);
                bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            }
            let mut at_once = SipHasher13::new_with_key(&[7; 16]);
            at_once.write(&bytes);
            let at_once = at_once.finish128();
            let parts = parts.each_ref().map(Vec::as_slice);
            let digest = digest(&parts);
            assert_eq!(digest, Digest(at_once.h1, at_once.h2), "{lengths:?}");
        }
    }

    #[test]
    fn another_secret_gives_another_digest() {
        let mut other = KeyHasher::new(&Secret([8; 16]));
        other.part(b"ab");
        assert_ne!(digest(&[b"ab"]), other.finish());
    }
}
