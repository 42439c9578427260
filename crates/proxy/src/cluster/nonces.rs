//! Numbers that a node uses for one request each.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use weir_policy::{KeyHasher, Secret};

/// Nonces that no client can foretell: the digest of a count, under a random secret.
pub(crate) struct Nonces {
    secret: Secret,
    count: AtomicU64,
}

impl Default for Nonces {
    fn default() -> Self {
        let number = || RandomState::new().build_hasher().finish().to_le_bytes();
        let (first, second) = (number(), number());
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&first);
        secret[8..].copy_from_slice(&second);
        Self {
            secret: Secret(secret),
            count: AtomicU64::new(0),
        }
    }
}

impl Nonces {
    /// Another one, in base64.
    pub(crate) fn next(&self) -> String {
        let mut hasher = KeyHasher::new(&self.secret);
        hasher.number(self.count.fetch_add(1, Ordering::Relaxed));
        let digest = hasher.finish();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&digest.0.to_le_bytes());
        bytes[8..].copy_from_slice(&digest.1.to_le_bytes());
        BASE64.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_nonce_comes_twice_and_no_other_process_has_the_same() {
        let (one, other) = (Nonces::default(), Nonces::default());
        let all: BTreeSet<String> = (0..1000).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(all.len(), 2000);
    }
}
