//! Requests for a forward proxy itself on a stream of HTTP/2.
//!
//! By HTTP/1.1 their target is in origin-form, as of an origin. A stream has its authority in each
//! request, which therefore has to be compared with the proxy's own (RFC 9113 §8.3.1).

use crate::config::Mode;
use crate::log::client::{ForPeers, ListenerFacts};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_net::tls::server::ClientName;
use weir_semantics::{Authority, HostName};

/// By what the clients of a connection call the proxy.
pub(super) enum OwnAuthority {
    /// Under TLS: `https` and the host that the client has called in the handshake, one of the
    /// certificate, or the address that it has connected to. The port is as the client sees it,
    /// which may be another one than here; nothing of `https` is forwarded but tunnels.
    Tls(Arc<ClientName>, IpAddr),
    /// In clear: `http`, and the address and port that it has connected to. Whether another name is
    /// the proxy's cannot be known: it is forwarded, and its address refused as an own one.
    Clear(SocketAddr),
}

impl OwnAuthority {
    /// That of a connection to `listener`, accepted at `local()`; `None` if the listener has
    /// targets in origin-form in any case, or is not for clients.
    pub(super) fn of(
        listener: &ListenerFacts,
        local: impl FnOnce() -> Option<SocketAddr>,
    ) -> Option<Self> {
        if listener.mode != Mode::Forward || listener.peers != ForPeers::No {
            return None;
        }
        let local = local()?;
        let local = SocketAddr::new(local.ip().to_canonical(), local.port());
        match (&listener.tls, listener.is_tls()) {
            (Some(name), true) => Some(Self::Tls(Arc::clone(name), local.ip())),
            (None, true) => None,
            (_, false) => Some(Self::Clear(local)),
        }
    }

    /// Takes scheme and authority off the target of `head`, the text of a request, if they are
    /// these.
    pub(super) fn take_off(&self, head: &mut Vec<u8>) {
        if let Some((from, to)) = self.find(head) {
            head.drain(from..to);
        }
    }

    /// Where they stand.
    fn find(&self, head: &[u8]) -> Option<(usize, usize)> {
        let from = head.iter().position(|&byte| byte == b' ')? + 1;
        let scheme: &[u8] = match self {
            Self::Tls(..) => b"https://",
            Self::Clear(_) => b"http://",
        };
        let rest = head.get(from..)?.strip_prefix(scheme)?;
        let length = rest.iter().position(|byte| matches!(byte, b'/' | b' '))?;
        // without a path it stays a whole URL
        (rest[length] == b'/').then_some(())?;
        let authority = Authority::parse(str::from_utf8(&rest[..length]).ok()?).ok()?;
        let is_own = match self {
            Self::Tls(name, local) => {
                is_at(&authority.host, *local) || name.is_for(authority.host.as_str())
            }
            Self::Clear(local) => {
                is_at(&authority.host, local.ip()) && authority.port.unwrap_or(80) == local.port()
            }
        };
        is_own.then_some((from, from + scheme.len() + length))
    }
}

/// Whether `host` is this address, by which the proxy was reached.
fn is_at(host: &HostName, address: IpAddr) -> bool {
    match host.ip() {
        Some(ip) => ip.to_canonical() == address,
        None => address.is_loopback() && host.as_str() == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_of_the_address_that_was_connected_to_is_the_proxys_own() {
        let check = |local: &str, target: &str, expected: &str| {
            let local = local.parse().expect("an address");
            let mut head = format!("GET {target} HTTP/1.1\r\n\r\n").into_bytes();
            OwnAuthority::Clear(local).take_off(&mut head);
            let expected = format!("GET {expected} HTTP/1.1\r\n\r\n");
            assert_eq!(String::from_utf8_lossy(&head), expected, "{target}");
        };
        for own in [
            "http://127.0.0.1:3128/proxy.pac?a",
            "http://localhost:3128/proxy.pac?a",
            "http://LOCALHOST:3128/proxy.pac?a",
        ] {
            check("127.0.0.1:3128", own, "/proxy.pac?a");
        }
        check("192.0.2.1:80", "http://192.0.2.1/", "/");
        check("[2001:db8::1]:3128", "http://[2001:db8::1]:3128/", "/");
        for other in [
            "http://127.0.0.1/proxy.pac",
            "http://127.0.0.1:3129/proxy.pac",
            "http://127.0.0.2:3128/proxy.pac",
            "http://127.0.0.1:3128@192.0.2.1/proxy.pac",
            "http://127.0.0.1:3128.example/proxy.pac",
            "http://192.0.2.1/http://127.0.0.1:3128/proxy.pac",
            "https://127.0.0.1:3128/proxy.pac",
            "http://127.0.0.1:3128",
            "http://proxy.example:3128/proxy.pac",
            "127.0.0.1:3128",
            "*",
            "",
        ] {
            check("127.0.0.1:3128", other, other);
        }
        check(
            "192.0.2.1:3128",
            "http://localhost:3128/",
            "http://localhost:3128/",
        );
    }
}
