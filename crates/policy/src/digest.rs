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

/// Takes the parts of a key one after the other; each part is closed by its length, so that
/// `("ab", "c")` and `("a", "bc")` differ.
#[derive(Clone, Debug)]
pub struct KeyHasher(SipHasher13);

impl KeyHasher {
    /// A hasher under `secret`.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        Self(SipHasher13::new_with_key(&secret.0))
    }

    /// A hasher that continues from `base`: for variants of one target.
    #[must_use]
    pub fn from_digest(secret: &Secret, base: Digest) -> Self {
        let mut hasher = Self::new(secret);
        hasher.0.write_u64(base.0);
        hasher.0.write_u64(base.1);
        hasher
    }

    /// Adds one part.
    pub fn part(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.0.write_u64(bytes.len() as u64);
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    /// The digest of what was added.
    #[must_use]
    pub fn finish(&self) -> Digest {
        let hash = self.0.finish128();
        Digest(hash.h1, hash.h2)
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
    fn another_secret_gives_another_digest() {
        let mut other = KeyHasher::new(&Secret([8; 16]));
        other.part(b"ab");
        assert_ne!(digest(&[b"ab"]), other.finish());
    }
}
