//! Networks by prefix (RFC 4632), for clients and destinations.

use crate::config::values::text::{BadValue, Form, text_value};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// An address prefix such as `10.0.0.0/8`; a plain address stands for itself alone.
///
/// Bits after the prefix must be zero, since `10.1.2.3/8` may mean the network or the host; and an
/// IPv4 address that ends in zero needs its prefix, since it is rarely that of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr(IpNet);

impl Cidr {
    /// Does the prefix have no bits at all, so that every address of its family is inside?
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.prefix_len() == 0
    }

    /// The network.
    #[must_use]
    pub const fn net(&self) -> IpNet {
        self.0
    }
}

impl From<IpNet> for Cidr {
    fn from(net: IpNet) -> Self {
        Self(net.trunc())
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Cidr {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let net = match text.parse::<IpAddr>() {
            Ok(address) => match prefix_of_zeros(address) {
                Some(prefix) => {
                    return Err(BadValue::new(format!(
                        "`{text}` looks like a network, but has no prefix: with `/32` it is that address alone"
                    ))
                    .suggesting(format!("{address}/{prefix}")));
                }
                None => IpNet::from(address),
            },
            Err(_) => text.parse::<IpNet>().map_err(|_| {
                BadValue::new(format!(
                    "`{text}` is not a network: an address and the length of its prefix are expected, such as 10.0.0.0/8"
                ))
            })?,
        };
        if net.addr() != net.trunc().addr() {
            return Err(
                BadValue::new(format!("`{text}` has bits set after its prefix"))
                    .suggesting(net.trunc().to_string()),
            );
        }
        if let IpAddr::V6(address) = net.addr()
            && let Some(mapped) = address.to_ipv4_mapped()
        {
            let prefix = net.prefix_len().saturating_sub(96);
            return Err(BadValue::new(format!(
                "`{text}` is an IPv4-mapped network, which would never be looked at"
            ))
            .suggesting(format!("{mapped}/{prefix}")));
        }
        Ok(Self(net))
    }
}

/// The length of the prefix that an IPv4 address probably has that ends in zero bytes.
fn prefix_of_zeros(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(address) => match address.octets() {
            [0, ..] | [127, ..] => None,
            [_, 0, 0, 0] => Some(8),
            [_, _, 0, 0] => Some(16),
            [_, _, _, 0] => Some(24),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

impl Form for Cidr {
    const FORM: &'static str = "a network, such as \"10.0.0.0/8\"";
}

impl Form for Vec<Cidr> {
    const FORM: &'static str = "a list of networks, such as [\"10.0.0.0/8\", \"fd00::/8\"]";
}

text_value!(Cidr);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = text
            .parse::<Cidr>()
            .map(|cidr| cidr.to_string())
            .map_err(|refusal| refusal.to_string());
        assert_eq!(
            found,
            expected.map(str::to_owned).map_err(str::to_owned),
            "{text}"
        );
    }

    #[test]
    fn network_is_displayed_in_canonical_form() {
        check("10.0.0.0/8", Ok("10.0.0.0/8"));
        check("0.0.0.0/0", Ok("0.0.0.0/0"));
        check("10.1.2.3", Ok("10.1.2.3/32"));
        check("::1", Ok("::1/128"));
        check("FD00::/8", Ok("fd00::/8"));
    }

    #[test]
    fn ambiguous_or_malformed_network_is_refused() {
        let shape = "is not a network: an address and the length of its prefix are expected, such as 10.0.0.0/8";
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "localhost",
            "10.0.0.0/-1",
            "::/129",
        ] {
            check(text, Err(&format!("`{text}` {shape}")));
        }
        check(
            "10.1.2.3/8",
            Err("`10.1.2.3/8` has bits set after its prefix; did you mean `10.0.0.0/8`?"),
        );
        for (text, meant) in [
            ("192.168.1.0", "192.168.1.0/24"),
            ("172.16.0.0", "172.16.0.0/16"),
            ("10.0.0.0", "10.0.0.0/8"),
        ] {
            let why =
                "looks like a network, but has no prefix: with `/32` it is that address alone";
            check(
                text,
                Err(&format!("`{text}` {why}; did you mean `{meant}`?")),
            );
        }
        check("192.168.1.0/32", Ok("192.168.1.0/32"));
        check(
            "::ffff:10.0.0.0/104",
            Err(
                "`::ffff:10.0.0.0/104` is an IPv4-mapped network, which would never be looked at; did you mean `10.0.0.0/8`?",
            ),
        );
    }
}
