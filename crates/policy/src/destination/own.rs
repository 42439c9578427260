//! The sockets on which this proxy itself listens: never a destination.
//!
//! A request that leads back to a listener goes round. One that leads to the admin interface is
//! worse: to that the proxy is an operator on the same machine. So no rule opens these: neither
//! `allow`, nor that an operator configured the next hop.

use super::{Denial, DenialReason, special};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses and ports on which this process listens, as bound. A wildcard address stands for all
/// of its own family: `[::]` is bound for IPv6 alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAddresses(Vec<SocketAddr>);

impl OwnAddresses {
    /// What listens at `bound`. Port 0 is none yet, and is left out.
    pub fn new(bound: impl IntoIterator<Item = SocketAddr>) -> Self {
        let bound = bound.into_iter().filter(|address| address.port() != 0);
        Self(
            bound
                .map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()))
                .collect(),
        )
    }

    /// These and `others`.
    #[must_use]
    pub fn and(&self, others: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self::new(self.0.iter().copied().chain(others))
    }

    /// Whether `address`, as resolved and about to be connected to, is another's. `is_local`
    /// decides whether an address is one of this machine; it is called only if a listener with that
    /// port listens on all addresses.
    ///
    /// # Errors
    /// [`Denial`] with [`DenialReason::Own`] if it is ours.
    pub fn check(
        &self,
        address: SocketAddr,
        is_local: impl Fn(IpAddr) -> bool,
    ) -> Result<(), Denial> {
        let port = address.port();
        let mut same_port = self.0.iter().filter(|own| own.port() == port).peekable();
        if same_port.peek().is_none() {
            return Ok(());
        }
        let spelled = core::iter::once(address.ip());
        let carried = special::inside(address.ip()).into_iter().flatten();
        for ip in spelled.chain(carried).map(reached) {
            let is_own = |own: IpAddr| {
                own == ip
                    || (own.is_unspecified()
                        && own.is_ipv4() == ip.is_ipv4()
                        && (ip.is_loopback() || is_local(ip)))
            };
            if same_port.clone().any(|own| is_own(own.ip())) {
                return Err(Denial {
                    address: ip,
                    why: DenialReason::Own,
                });
            }
        }
        Ok(())
    }
}

/// The address at which a connection to `ip` arrives: to the unspecified address, at the loopback.
fn reached(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands for an interface's address.
    const INTERFACES: [&str; 2] = ["192.0.2.7", "2001:db8::7"];

    fn check(own: &[&str], own_ones: &[&str], others: &[&str]) {
        let own = OwnAddresses::new(own.iter().map(|text| text.parse().unwrap()));
        let is_local = |ip: IpAddr| INTERFACES.contains(&ip.to_string().as_str());
        for text in own_ones {
            let denied = own.check(text.parse().unwrap(), is_local).unwrap_err();
            assert_eq!(denied.why, DenialReason::Own, "{text}");
        }
        for text in others {
            assert_eq!(own.check(text.parse().unwrap(), is_local), Ok(()), "{text}");
        }
    }

    #[test]
    fn socket_bound_to_one_address_is_own_in_every_spelling() {
        check(
            &["127.0.0.1:3129", "[::1]:3129"],
            &[
                "127.0.0.1:3129",
                "0.0.0.0:3129",
                "[::1]:3129",
                "[::]:3129",
                "[::ffff:127.0.0.1]:3129",
                "[::ffff:0.0.0.0]:3129",
                "[::127.0.0.1]:3129",
                "[64:ff9b::127.0.0.1]:3129",
                "[2002:7f00:1::]:3129",
            ],
            &["127.0.0.1:3128", "127.0.0.2:3129", "192.0.2.7:3129"],
        );
    }

    #[test]
    fn wildcard_socket_is_own_at_every_local_address_of_its_family() {
        check(
            &["0.0.0.0:80"],
            &[
                "127.0.0.1:80",
                "127.9.9.9:80",
                "0.0.0.0:80",
                "192.0.2.7:80",
                "[::ffff:192.0.2.7]:80",
            ],
            &[
                "192.0.2.8:80",
                "192.0.2.7:81",
                "[::1]:80",
                "[2001:db8::7]:80",
            ],
        );
        check(
            &["[::]:80"],
            &["[::1]:80", "[::]:80", "[2001:db8::7]:80"],
            &["[2001:db8::8]:80", "127.0.0.1:80", "192.0.2.7:80"],
        );
    }

    #[test]
    fn unbound_port_zero_matches_no_destination() {
        check(&["0.0.0.0:0"], &[], &["127.0.0.1:0", "127.0.0.1:1"]);
    }
}
