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
                let refusal = BadValue::new(format!(
                    "`{text}` is not a network: an address and the length of its prefix are expected, such as 10.0.0.0/8"
                ));
                match with_stars(text).or_else(|| with_mask(text)) {
                    Some(net) => refusal.suggesting(net.trunc().to_string()),
                    None => refusal,
                }
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

/// What `192.168.1.*`, `10.*.*.*` or `10.*` means.
fn with_stars(text: &str) -> Option<IpNet> {
    let known = text.trim_end_matches(".*");
    let stars = (text.len() - known.len()) / 2;
    let bytes = known.split('.').count();
    let free = 4_usize.checked_sub(bytes)?;
    if !(1..=free).contains(&stars) {
        return None;
    }
    format!("{known}{}/{}", ".0".repeat(free), 8 * bytes)
        .parse()
        .ok()
}

/// What `192.168.1.0/255.255.255.0` means.
fn with_mask(text: &str) -> Option<IpNet> {
    let (address, mask) = text.split_once('/')?;
    let mask = mask.parse().ok()?;
    IpNet::with_netmask(address.parse().ok()?, mask).ok()
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
    fn network_by_stars_or_by_its_mask_is_refused_with_its_prefix() {
        for (text, suggested) in [
            ("192.168.1.*", Some("192.168.1.0/24")),
            ("10.*.*.*", Some("10.0.0.0/8")),
            ("10.*", Some("10.0.0.0/8")),
            ("192.168.*", Some("192.168.0.0/16")),
            ("10.1.2.3.*", None),
            ("10.*.*.*.*", None),
            ("300.1.2.*", None),
            ("*", None),
            ("192.168.1.0/255.255.255.0", Some("192.168.1.0/24")),
            ("192.168.1.7/255.255.255.0", Some("192.168.1.0/24")),
            ("192.168.1.0/255.0.255.0", None),
        ] {
            let refusal = text.parse::<Cidr>().expect_err(text);
            assert_eq!(refusal.suggestion.as_deref(), suggested, "{text}");
        }
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
