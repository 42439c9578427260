//! The header by which a next hop is told for whom a connection is opened (the PROXY protocol of
//! HAProxy, versions 1 and 2). It is the first of the bytes, in front of TLS.

use ppp::v1;
use ppp::v2::{Addresses, Builder, Command, Protocol, Version};
use std::net::{IpAddr, SocketAddr};

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyHeaderVersion {
    /// A line of text.
    V1,
    /// In binary.
    V2,
}

/// The connection of the client for whose request a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEnds {
    /// Where the client is.
    pub client: SocketAddr,
    /// Where its connection was accepted.
    pub local: SocketAddr,
}

/// The bytes of the header; without a client those of a connection of the proxy's own (`UNKNOWN` of
/// version 1, `LOCAL` of version 2).
pub(in crate::next_hops) fn header(
    version: ProxyHeaderVersion,
    ends: Option<ClientEnds>,
) -> Vec<u8> {
    let ends = ends.map(ClientEnds::of_one_family);
    match version {
        ProxyHeaderVersion::V1 => {
            let addresses = ends.map_or(v1::Addresses::Unknown, v1::Addresses::from);
            addresses.to_string().into_bytes()
        }
        ProxyHeaderVersion::V2 => {
            let (command, protocol, addresses) = match ends {
                Some(ends) => (Command::Proxy, Protocol::Stream, Addresses::from(ends)),
                None => (
                    Command::Local,
                    Protocol::Unspecified,
                    Addresses::Unspecified,
                ),
            };
            // a buffer takes it
            Builder::with_addresses(Version::Two | command, protocol, addresses)
                .build()
                .unwrap_or_default()
        }
    }
}

impl ClientEnds {
    /// Both addresses as one family, as the protocol has them: IPv4 if both are, else IPv6.
    fn of_one_family(self) -> (SocketAddr, SocketAddr) {
        let (client, local) = (
            self.client.ip().to_canonical(),
            self.local.ip().to_canonical(),
        );
        let as_ipv6 = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => IpAddr::V6(ip.to_ipv6_mapped()),
            IpAddr::V6(_) => ip,
        };
        let (client, local) = match client.is_ipv4() == local.is_ipv4() {
            true => (client, local),
            false => (as_ipv6(client), as_ipv6(local)),
        };
        (
            SocketAddr::new(client, self.client.port()),
            SocketAddr::new(local, self.local.port()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(client: &str, local: &str) -> ClientEnds {
        ClientEnds {
            client: client.parse().unwrap(),
            local: local.parse().unwrap(),
        }
    }

    #[test]
    fn header_of_version_1_is_a_line_with_both_ends() {
        let check = |ends: Option<ClientEnds>, expected: &str| {
            let header = header(ProxyHeaderVersion::V1, ends);
            assert_eq!(String::from_utf8(header).unwrap(), expected);
        };
        check(
            Some(ends("192.0.2.1:1000", "198.51.100.1:443")),
            "PROXY TCP4 192.0.2.1 198.51.100.1 1000 443\r\n",
        );
        check(
            Some(ends("[2001:db8::1]:1000", "[2001:db8::2]:80")),
            "PROXY TCP6 2001:db8::1 2001:db8::2 1000 80\r\n",
        );
        check(
            Some(ends("[::ffff:192.0.2.1]:1", "198.51.100.1:2")),
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 2\r\n",
        );
        check(
            Some(ends("192.0.2.1:1", "[2001:db8::2]:2")),
            "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n",
        );
        check(None, "PROXY UNKNOWN\r\n");
    }

    #[test]
    fn header_of_version_2_has_both_ends_in_binary() {
        let signature = b"\r\n\r\n\0\r\nQUIT\n";
        let check = |ends: Option<ClientEnds>, rest: &[u8]| {
            let header = header(ProxyHeaderVersion::V2, ends);
            assert_eq!(header, [&signature[..], rest].concat());
        };
        // PROXY, TCP over IPv4, 12 bytes (section 2.2)
        let rest = [
            0x21, 0x11, 0, 12, 192, 0, 2, 1, 198, 51, 100, 1, 3, 232, 1, 187,
        ];
        check(Some(ends("192.0.2.1:1000", "198.51.100.1:443")), &rest);
        // TCP over IPv6, 36 bytes
        let header = header(
            ProxyHeaderVersion::V2,
            Some(ends("192.0.2.1:1", "[2001:db8::2]:2")),
        );
        assert_eq!(header[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!(header.len(), 16 + 36);
        // LOCAL, no addresses
        check(None, &[0x20, 0, 0, 0]);
    }
}
