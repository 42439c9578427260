//! Which destinations are connected to, which clients may connect, and what destinations are told
//! of clients: judged by address, never by name.
//!
//! A proxy sits where its clients do not: its loopback, its private networks and its provider's
//! metadata service answer it as one of their own. So a destination is checked after resolution, on
//! the very address that is then connected to (a name can resolve differently the next time: DNS
//! rebinding).

mod client;
mod client_network;
pub mod forwarded;
mod own;
mod port;
mod special;

use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use ipnet::IpNet;
use weir_semantics::words;

pub use client::{ClientDenial, ClientRules};
pub use client_network::ClientNetwork;
pub use own::OwnAddresses;
pub use port::{ConnectPorts, PortDenial};

/// Which addresses may be connected to.
///
/// The order is: `deny`, then `allow`, then the default; so a hole can be made in a range opened by
/// `allow`, and the order of the entries does not matter. An IPv6 address that carries an IPv4
/// address (mapped, compatible, translated, NAT64, 6to4, Teredo) is judged by the one inside:
/// `deny` finds it in either form, while `allow` and the default look only inside, so that `allow =
/// ["::/0"]` does not open `::ffff:127.0.0.1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationRules {
    /// Opened although the default denies them.
    pub allow: Vec<IpNet>,
    /// Closed, whatever else holds.
    pub deny: Vec<IpNet>,
    /// What holds for addresses in neither list.
    pub deny_default: DenyDefault,
}

/// What is denied of the addresses that no rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DenyDefault {
    /// Every address that is not a public unicast address; see [`DenialReason`].
    #[default]
    Special,
    /// All: only what `allow` names is open.
    All,
}

/// A destination that may not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The address that was judged: that inside, if it was inside another.
    pub address: IpAddr,
    /// Why.
    pub why: DenialReason,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is denied: {}", self.address, self.why.as_str())
    }
}

impl core::error::Error for Denial {}

words! {
    /// Why a destination is denied; but for the first three, the kind of address it is (the IANA
    /// special-purpose address registries of RFC 6890).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum DenialReason {
        /// A `deny` rule names it.
        Rule = "denied-by-rule",
        /// No `allow` rule names it, and the default is [`DenyDefault::All`].
        NotAllowed = "not-allowed",
        /// This proxy itself listens there; see [`OwnAddresses`]. No rule opens it.
        Own = "own-address",
        /// `0.0.0.0/8`, `::`: "this host", which connects to the loopback on many systems.
        Unspecified = "unspecified",
        /// `127.0.0.0/8`, `::1`.
        Loopback = "loopback",
        /// A cloud provider's metadata or host service, which gives credentials to any request.
        Metadata = "metadata",
        /// `169.254.0.0/16`, `fe80::/10`.
        LinkLocal = "link-local",
        /// `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16` (RFC 1918).
        Private = "private",
        /// `fc00::/7` (RFC 4193).
        UniqueLocal = "unique-local",
        /// `fec0::/10` (RFC 3879, deprecated but still routed by some).
        SiteLocal = "site-local",
        /// `100.64.0.0/10`: behind a carrier's address translator (RFC 6598).
        Shared = "shared-address-space",
        /// `198.18.0.0/15`, `2001:2::/48` (RFC 2544, RFC 5180).
        Benchmarking = "benchmarking",
        /// `192.0.2.0/24`, `198.51.100.0/24`, `203.0.113.0/24`, `2001:db8::/32`, `3fff::/20`.
        Documentation = "documentation",
        /// `192.0.0.0/24`, `192.88.99.0/24`, the rest of `2001::/23`: used by protocols, not by
        /// servers.
        Protocol = "protocol-assignment",
        /// `224.0.0.0/4`, `ff00::/8`.
        Multicast = "multicast",
        /// `255.255.255.255`.
        Broadcast = "broadcast",
        /// `240.0.0.0/4`, and IPv6 outside `2000::/3`.
        Reserved = "reserved",
    }
}

impl DestinationRules {
    /// Whether `address`, as resolved and about to be connected to, is open.
    ///
    /// # Errors
    /// [`Denial`] with the address judged and the reason.
    pub fn check(&self, address: IpAddr) -> Result<(), Denial> {
        let inside = special::inside(address);
        let rule = self.deny.iter().find(|net| net.contains(&address));
        if rule.is_some() {
            let why = DenialReason::Rule;
            return Err(Denial { address, why });
        }
        inside
            .into_iter()
            .flatten()
            .try_for_each(|address| self.check_inner(address))
    }

    /// [`Self::check`] for an address that carries no other.
    fn check_inner(&self, address: IpAddr) -> Result<(), Denial> {
        let names = |rules: &[IpNet]| rules.iter().any(|net| net.contains(&address));
        let why = if names(&self.deny) {
            Some(DenialReason::Rule)
        } else if names(&self.allow) {
            None
        } else {
            match self.deny_default {
                DenyDefault::Special => special::kind(address),
                DenyDefault::All => Some(DenialReason::NotAllowed),
            }
        };
        why.map_or(Ok(()), |why| Err(Denial { address, why }))
    }
}

#[cfg(test)]
mod tests;
