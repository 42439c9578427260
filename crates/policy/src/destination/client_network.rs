//! What counts as one client where each has a share of something.

use crate::digest::KeyHasher;
use core::net::{IpAddr, Ipv6Addr};

/// An address of IPv4, or the network of 64 bits that one of IPv6 is in: there a machine can have
/// any address (RFC 4291 §2.5.4, RFC 8981).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// The one that an address is of.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                Ipv6Addr::from_bits(network).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }

    /// Adds it to a digest.
    pub fn hash_into(self, hasher: &mut KeyHasher) {
        match self.0 {
            IpAddr::V4(address) => hasher.part(&address.octets()),
            IpAddr::V6(address) => hasher.part(&address.octets()[..8]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client_and_mapped_ones_are_ipv4() {
        let of = |text: &str| ClientNetwork::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
