//! What shows a member that another one knows the secret of the cluster.
//!
//! HMAC-SHA-256 (RFC 2104) under the secret, which is never sent. A request has one of the names of
//! both nodes, made once for each member. A response has one of both names and of the nonce of the
//! request: only a program that knows the secret can answer for a node. A program that can read
//! what is between two nodes can use the proof of a request for requests of the one to the other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::hint::black_box;
use weir_policy::Secret;
use weir_policy::route::SealedKey;

/// What is signed begins with its purpose: no proof is of use for another one.
const OF_REQUEST: &str = "weir peer 1";
const OF_RESPONSE: &str = "weir peer response 1";
const OF_PURGES: &str = "weir purges 1";
const OF_PURGE_ANSWER: &str = "weir purge answer 1";
const OF_TARGETS: &str = "weir targets 1";
const OF_DIGESTS: &str = "weir digests 1";
const OF_DIGEST_MASK: &str = "weir digest mask 1";
const OF_DIGEST_CHECK: &str = "weir digest check 1";
const OF_ROUTES: &str = "weir route targets 1";

/// The secret of a cluster, or that it has none.
#[derive(Clone)]
pub(crate) struct ClusterSecret(Option<Hmac<Sha256>>);

/// What a node sends, or is to send: base64, empty without a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof(Box<str>);

impl ClusterSecret {
    pub(crate) fn new(secret: Option<&str>) -> Self {
        Self(secret.map(|secret| {
            Hmac::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length")
        }))
    }

    /// Whether there is one.
    pub(super) const fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// What `from` sends to `to`.
    pub(super) fn proof(&self, from: &str, to: &str) -> Proof {
        self.base64(&[OF_REQUEST, from, to])
    }

    /// What `from` answers `to` to a request with `nonce`.
    pub(super) fn response_proof(&self, from: &str, to: &str, nonce: &str) -> Proof {
        self.base64(&[OF_RESPONSE, from, to, nonce])
    }

    /// What `from` sends to `to` with purges: of what they are, so that no other ones can be sent
    /// with it.
    pub(super) fn purges_proof(&self, from: &str, to: &str, content: &str) -> Proof {
        self.base64(&[OF_PURGES, from, to, content])
    }

    /// What `from` sends with its answer to purges of `to` with `nonce`.
    pub(super) fn purge_answer_proof(
        &self,
        from: &str,
        to: &str,
        nonce: &str,
        content: &str,
    ) -> Proof {
        self.base64(&[OF_PURGE_ANSWER, from, to, nonce, content])
    }

    /// The key under which targets are hashed, the same on every node: clients that do not know it
    /// cannot choose targets that one node has all of.
    pub(super) fn target_key(&self) -> Secret {
        Secret(self.first_half(&[OF_TARGETS]))
    }

    /// The key under which tags in digests of nodes are hashed, the same on every node.
    pub(super) fn digest_key(&self) -> Secret {
        Secret(self.first_half(&[OF_DIGESTS]))
    }

    /// The secret of `node`'s store for its digest of `epoch`, as the other nodes alone can read
    /// it; as it is without a secret of the cluster.
    pub(super) fn seal(&self, node: &str, epoch: u64, secret: Secret) -> SealedKey {
        let epoch = epoch.to_string();
        let mask = self.first_half(&[OF_DIGEST_MASK, node, &epoch]);
        SealedKey {
            masked: xor(secret.0, mask),
            check: self.first_half(&[OF_DIGEST_CHECK, node, &epoch, &BASE64.encode(secret.0)]),
        }
    }

    /// What `node` has sealed for its digest of `epoch`; `None` if it was sealed otherwise.
    pub(super) fn open(&self, node: &str, epoch: u64, key: &SealedKey) -> Option<Secret> {
        let mask = self.first_half(&[OF_DIGEST_MASK, node, &epoch.to_string()]);
        let secret = Secret(xor(key.masked, mask));
        (self.seal(node, epoch, secret).check == key.check).then_some(secret)
    }

    /// Zeros without a secret.
    fn first_half(&self, parts: &[&str]) -> [u8; 16] {
        let mut half = [0; 16];
        if let Some(mac) = self.mac(parts) {
            half.copy_from_slice(&mac[..16]);
        }
        half
    }

    /// The same for next hops of routes, which are no nodes; `None` without a secret.
    pub(crate) fn route_key(&self) -> Option<Secret> {
        let mac = self.mac(&[OF_ROUTES])?;
        mac.first_chunk().copied().map(Secret)
    }

    fn base64(&self, parts: &[&str]) -> Proof {
        let mac = self.mac(parts);
        Proof(
            mac.map_or_else(String::new, |mac| BASE64.encode(mac))
                .into(),
        )
    }

    /// Names, nonces and lines of words have no NUL, so that no two lists are signed alike.
    fn mac(&self, parts: &[&str]) -> Option<[u8; 32]> {
        let mut mac = self.0.clone()?;
        for part in parts {
            mac.update(part.as_bytes());
            mac.update(&[0]);
        }
        Some(mac.finalize().into_bytes().into())
    }
}

fn xor(bytes: [u8; 16], mask: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|at| bytes[at] ^ mask[at])
}

impl Proof {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this one. The time depends on its length alone.
    pub(crate) fn is(&self, presented: &str) -> bool {
        let (own, presented) = (self.0.as_bytes(), presented.as_bytes());
        if own.len() != presented.len() {
            return false;
        }
        let pairs = own.iter().zip(presented);
        let difference = pairs.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
        difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_holds_for_one_secret_one_direction_one_nonce_and_one_purpose() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let other = ClusterSecret::new(Some("another-secret-of-nodes"));
        let proof = secret.response_proof("a", "b", "AAAA");
        assert!(proof.is(secret.response_proof("a", "b", "AAAA").as_str()));
        for wrong in [
            other.response_proof("a", "b", "AAAA"),
            secret.response_proof("b", "a", "AAAA"),
            secret.response_proof("a", "b", "AAAB"),
            secret.response_proof("ab", "", "AAAA"),
            secret.proof("a", "b"),
            secret.purges_proof("a", "b", "AAAA"),
            secret.purge_answer_proof("a", "b", "AAAA", ""),
        ] {
            assert!(!proof.is(wrong.as_str()), "{wrong:?}");
        }
        assert!(!proof.is(""));
        assert!(!proof.is(&proof.as_str()[1..]));
    }

    #[test]
    fn sealed_key_is_opened_with_the_same_secret_for_the_same_node_and_epoch_alone() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let sealed = secret.seal("a", 7, Secret([5; 16]));
        assert_ne!(sealed.masked, [5; 16]);
        let open = |secret: &ClusterSecret, node, epoch, key| {
            secret.open(node, epoch, key).map(|secret| secret.0)
        };
        assert_eq!(open(&secret, "a", 7, &sealed), Some([5; 16]));
        assert_eq!(open(&secret, "b", 7, &sealed), None);
        assert_eq!(open(&secret, "a", 8, &sealed), None);
        let other = ClusterSecret::new(Some("another-secret-of-nodes"));
        let none = ClusterSecret::new(None);
        assert_eq!(open(&other, "a", 7, &sealed), None);
        assert_eq!(open(&none, "a", 7, &sealed), None);
        let plain = none.seal("a", 7, Secret([5; 16]));
        assert_eq!(open(&none, "a", 7, &plain), Some([5; 16]));
        assert_eq!(open(&secret, "a", 7, &plain), None);
    }

    #[test]
    fn without_a_secret_proofs_are_empty() {
        let none = ClusterSecret::new(None);
        assert_eq!(none.proof("a", "b").as_str(), "");
        assert!(none.response_proof("a", "b", "").is(""));
        assert!(!none.response_proof("a", "b", "").is("AAAA"));
    }
}
