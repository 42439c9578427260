//! Which clients are served.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weir_semantics::words;

/// Which clients are served: those in `allow` and not in `deny`. By default the loopback only, so
/// that an open proxy has to be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRules {
    /// Served.
    pub allow: Vec<IpNet>,
    /// Not served, even if `allow` names them.
    pub deny: Vec<IpNet>,
}

impl Default for ClientRules {
    fn default() -> Self {
        const LOOPBACK_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
        const LOOPBACK_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128);
        Self {
            allow: vec![IpNet::V4(LOOPBACK_V4), IpNet::V6(LOOPBACK_V6)],
            deny: Vec::new(),
        }
    }
}

words! {
    /// A client that is not served.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ClientDenial {
        /// A `deny` rule names it.
        Rule = "denied-by-rule",
        /// No `allow` rule names it.
        NotAllowed = "not-allowed",
    }
}

impl fmt::Display for ClientDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for ClientDenial {}

impl ClientRules {
    /// Whether a client at `address` is served. An IPv4 client that a dual-stack socket shows as
    /// `::ffff:a.b.c.d` is judged as IPv4.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, address: IpAddr) -> Result<(), ClientDenial> {
        let address = address.to_canonical();
        let names = |rules: &[IpNet]| rules.iter().any(|net| net.contains(&address));
        if names(&self.deny) {
            Err(ClientDenial::Rule)
        } else if names(&self.allow) {
            Ok(())
        } else {
            Err(ClientDenial::NotAllowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &ClientRules, address: &str, expected: Result<(), ClientDenial>) {
        assert_eq!(rules.check(address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn only_loopback_clients_are_allowed_by_default() {
        let rules = ClientRules::default();
        for address in ["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"] {
            check(&rules, address, Ok(()));
        }
        for address in [
            "126.255.255.255",
            "128.0.0.0",
            "::",
            "::2",
            "::ffff:10.0.0.1",
            "0.0.0.0",
            "::127.0.0.1",
        ] {
            check(&rules, address, Err(ClientDenial::NotAllowed));
        }
    }

    #[test]
    fn client_deny_rule_overrides_allow_rule() {
        let rules = ClientRules {
            allow: vec!["10.0.0.0/8".parse().unwrap()],
            deny: vec!["10.1.0.0/16".parse().unwrap()],
        };
        check(&rules, "10.0.255.255", Ok(()));
        check(&rules, "10.1.0.0", Err(ClientDenial::Rule));
        check(&rules, "::ffff:10.1.255.255", Err(ClientDenial::Rule));
        check(&rules, "10.2.0.0", Ok(()));
        check(&rules, "127.0.0.1", Err(ClientDenial::NotAllowed));
    }
}
