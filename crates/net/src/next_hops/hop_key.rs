//! The name of a next hop.

mod proxy_header;

pub(super) use proxy_header::header as proxy_header;
pub use proxy_header::{ClientEnds, ProxyHeaderVersion};

use crate::tls::Trust;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

/// A next hop by host, port, and how it is spoken to: connections are pooled and counted by it.
/// Those in clear, those with another trust, and those that name a client are never used for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopKey {
    /// Canonical host: lower case, an IPv6 address without brackets.
    pub host: Arc<str>,
    /// TCP port.
    pub port: u16,
    /// TLS, and whom the next hop's certificate must be from; `None`: in clear.
    pub tls: Option<Arc<Trust>>,
    /// HTTP/2 may be spoken: by TLS if the next hop chooses it (ALPN); in clear without asking
    /// (prior knowledge, RFC 9113 §3.3).
    pub http2: bool,
    /// The version of the PROXY protocol by which it is told for whom each connection is; `None`:
    /// it is not told.
    pub proxy_header: Option<ProxyHeaderVersion>,
    /// Hash of the parts above, which is made with them: a forwarded request looks its next hop up
    /// in several tables. Half of one, as it finds room between the others.
    hash: u32,
}

/// A table by next hop.
pub(crate) type ByHop<V> = HashMap<HopKey, V, BuildHasherDefault<MadeHash>>;

/// Clients choose hosts, so they must not know which ones have the same hash.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Hash for HopKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

/// Gives the hash that a key was made with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MadeHash(u64);

impl Hasher for MadeHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u32(&mut self, hash: u32) {
        // a table looks at the bits of both ends
        self.0 = u64::from(hash) << u32::BITS | u64::from(hash);
    }

    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(false, "keys have one word: {bytes:?}");
    }
}

impl HopKey {
    /// The next hop at a canonical host, which is written as in a URI or, of an IPv6 address,
    /// without its brackets.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Self {
        let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let key = Self {
            host: inner.unwrap_or(host).into(),
            port,
            tls: None,
            http2: false,
            proxy_header: None,
            hash: 0,
        };
        key.hashed()
    }

    /// The same with its hash.
    fn hashed(self) -> Self {
        let flags = (self.http2, self.proxy_header);
        let hash = HASHES.hash_one((&self.host, self.port, &self.tls, flags));
        Self {
            hash: half(hash),
            ..self
        }
    }

    /// Its hash, of which each bit is as good as another.
    pub(super) const fn made_hash(&self) -> u32 {
        self.hash
    }

    /// The same next hop, spoken to by TLS.
    #[must_use]
    pub fn over_tls(self, trust: Trust) -> Self {
        let key = Self {
            tls: Some(Arc::new(trust)),
            ..self
        };
        key.hashed()
    }

    /// The same next hop, spoken to by HTTP/2 where that is possible.
    #[must_use]
    pub fn by_http2(self) -> Self {
        let key = Self {
            http2: true,
            ..self
        };
        key.hashed()
    }

    /// The same next hop, which is told for whom each connection is.
    #[must_use]
    pub fn told_by(self, proxy_header: Option<ProxyHeaderVersion>) -> Self {
        let key = Self {
            proxy_header,
            ..self
        };
        key.hashed()
    }

    /// The same next hop, spoken to by HTTP/1.1.
    #[must_use]
    pub fn by_http1(self) -> Self {
        let key = Self {
            http2: false,
            ..self
        };
        key.hashed()
    }

    /// Whether a connection to it is for one request: for the client that it was told.
    #[must_use]
    pub const fn is_for_one_request(&self) -> bool {
        self.proxy_header.is_some()
    }

    /// Its URL, as messages have it.
    #[must_use]
    pub fn url(&self) -> String {
        match self.tls {
            None => format!("http://{self}"),
            Some(_) => format!("https://{self}"),
        }
    }
}

/// Half of a hash.
pub(super) fn half(hash: u64) -> u32 {
    let [first, second, third, fourth, ..] = hash.to_le_bytes();
    u32::from_le_bytes([first, second, third, fourth])
}

const _: () = assert!(size_of::<HopKey>() == 4 * size_of::<usize>());

impl fmt::Display for HopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_have_one_hash_in_whatever_order_they_were_made() {
        let key = || HopKey::new("a.example", 80);
        assert_eq!(key().made_hash(), key().made_hash());
        assert_eq!(key().by_http2().by_http1().made_hash(), key().made_hash());
        let told = key().told_by(Some(ProxyHeaderVersion::V1));
        assert_eq!(told.clone().told_by(None).made_hash(), key().made_hash());
        let others = [
            key().by_http2(),
            told,
            HopKey::new("a.example", 81),
            HopKey::new("b.example", 80),
        ];
        for other in others {
            assert_ne!(other.made_hash(), key().made_hash(), "{other:?}");
        }
    }

    #[test]
    fn address_in_brackets_and_without_is_one_next_hop() {
        for (host, expected) in [
            ("[::1]", "[::1]:80"),
            ("::1", "[::1]:80"),
            ("127.0.0.1", "127.0.0.1:80"),
            ("a.example", "a.example:80"),
        ] {
            let hop = HopKey::new(host, 80);
            assert_eq!(hop.to_string(), expected);
            assert!(!hop.host.contains('['), "{host}");
        }
    }
}
