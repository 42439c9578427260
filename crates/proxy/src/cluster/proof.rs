//! What shows a member that another one knows the secret of the cluster.
//!
//! HMAC-SHA-256 (RFC 2104) of the names of both nodes, under the secret. It is made once for each
//! member, and sent with each request. The secret is never sent. A program that can read what is
//! between two nodes can use the proof for requests of the one to the other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::hint::black_box;
use weir_policy::Secret;

/// What is signed begins with this: no other use of the secret gives a proof.
const PURPOSE: &str = "weir peer 1";

/// The secret of a cluster, or that it has none.
pub(super) struct ClusterSecret<'a>(pub(super) Option<&'a str>);

/// What a node sends, or is to send: base64, empty without a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof(Box<str>);

impl ClusterSecret<'_> {
    /// What `from` sends to `to`.
    pub(super) fn proof(&self, from: &str, to: &str) -> Proof {
        let Some(mac) = self.mac(&[PURPOSE, from, to]) else {
            return Proof("".into());
        };
        Proof(BASE64.encode(mac).into())
    }

    /// The key under which targets are hashed, the same on every node: clients that do not know it
    /// cannot choose targets that one node has all of.
    pub(super) fn target_key(&self) -> Secret {
        let mut key = [0; 16];
        if let Some(mac) = self.mac(&["weir targets 1"]) {
            key.copy_from_slice(&mac[..16]);
        }
        Secret(key)
    }

    /// Names have no NUL, so that no two lists are signed alike.
    fn mac(&self, parts: &[&str]) -> Option<[u8; 32]> {
        let secret = self.0?;
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
            .expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part.as_bytes());
            mac.update(&[0]);
        }
        Some(mac.finalize().into_bytes().into())
    }
}

impl Proof {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this one. The time depends on its length alone.
    pub(super) fn is(&self, presented: &str) -> bool {
        let (own, presented) = (self.0.as_bytes(), presented.as_bytes());
        if own.len() != presented.len() {
            return false;
        }
        let pairs = own.iter().zip(presented);
        let difference = pairs.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
        difference == 0
    }
}
