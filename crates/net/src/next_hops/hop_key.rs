//! The name of a next hop.

mod proxy_header;

pub(super) use proxy_header::header as proxy_header;
pub use proxy_header::{ClientEnds, ProxyHeaderVersion};

use crate::tls::Trust;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

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
}

impl Hash for HopKey {
    /// A forwarded request hashes it several times: what is short goes in one word, as each part
    /// that is written takes as long as the host.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.host.hash(state);
        let version = self.proxy_header.map_or(0, |version| 1 + version as u64);
        let flags = u64::from(self.tls.is_some()) | u64::from(self.http2) << 1 | version << 2;
        state.write_u64(u64::from(self.port) | flags << u16::BITS);
        if let Some(trust) = &self.tls {
            trust.hash(state);
        }
    }
}

impl HopKey {
    /// The next hop at a canonical host, which is written as in a URI or, of an IPv6 address,
    /// without its brackets.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Self {
        let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        Self {
            host: inner.unwrap_or(host).into(),
            port,
            tls: None,
            http2: false,
            proxy_header: None,
        }
    }

    /// The same next hop, spoken to by TLS.
    #[must_use]
    pub fn over_tls(self, trust: Trust) -> Self {
        Self {
            tls: Some(Arc::new(trust)),
            ..self
        }
    }

    /// The same next hop, spoken to by HTTP/2 where that is possible.
    #[must_use]
    pub fn by_http2(self) -> Self {
        Self {
            http2: true,
            ..self
        }
    }

    /// The same next hop, which is told for whom each connection is.
    #[must_use]
    pub fn told_by(self, proxy_header: Option<ProxyHeaderVersion>) -> Self {
        Self {
            proxy_header,
            ..self
        }
    }

    /// The same next hop, spoken to by HTTP/1.1.
    #[must_use]
    pub fn by_http1(self) -> Self {
        Self {
            http2: false,
            ..self
        }
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
