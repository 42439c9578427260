//! IP addresses with a port: where listeners, admin and resolvers are.
//!
//! Names are refused here. `localhost` may be one address or two, and a listener must be known exactly.

use super::value::{BadValue, Form, text_value};
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Reads `address:port`.
///
/// # Errors
///
/// When the text is a name, has no port, or is neither form of address.
pub fn parse_address(text: &str) -> Result<SocketAddr, BadValue> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let refusal = BadValue::new(format!(
        "`{text}` is not an IP address and a port, such as 127.0.0.1:3128 or [::1]:3128"
    ));
    Err(match text.rsplit_once(':') {
        Some(("localhost", port)) => refusal.suggesting(format!("127.0.0.1:{port}")),
        Some(("" | "*", port)) => refusal.suggesting(format!("0.0.0.0:{port}")),
        _ => refusal,
    })
}

/// The address of the admin interface, or none: `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// There is no admin interface.
    Off,
    /// It listens here; port 0 takes any free one.
    At(SocketAddr),
}

impl AdminAddress {
    /// The address, unless it is off.
    #[must_use]
    pub const fn socket(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl std::str::FromStr for AdminAddress {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "off" => Ok(Self::Off),
            _ => parse_address(text).map(Self::At),
        }
    }
}

impl Form for AdminAddress {
    const FORM: &'static str = "an address and port, such as \"127.0.0.1:3129\", or \"off\"";
}

text_value!(AdminAddress);

/// The address of a DNS server; port 53 (RFC 1035 §4.2) when the text has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsServer(pub SocketAddr);

impl fmt::Display for DnsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for DnsServer {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self(SocketAddr::new(address, DNS_PORT))),
            Err(_) => parse_address(text).map(Self),
        }
    }
}

impl Form for DnsServer {
    const FORM: &'static str = "an address, such as \"192.0.2.53\" or \"127.0.0.1:5353\"";
}

impl Form for Vec<DnsServer> {
    const FORM: &'static str = "a list of addresses, such as [\"192.0.2.53\", \"127.0.0.1:5353\"]";
}

text_value!(DnsServer);

const DNS_PORT: u16 = 53;

/// The serde form of a `SocketAddr` field, with messages of ours.
pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<SocketAddr, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
    parse_address(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_a_listener_is_guessed() {
        let check = |text: &str, suggestion: Option<&str>| {
            let refusal = parse_address(text).unwrap_err();
            assert_eq!(refusal.suggestion.as_deref(), suggestion, "{text}");
        };
        check("localhost:3128", Some("127.0.0.1:3128"));
        check(":3128", Some("0.0.0.0:3128"));
        check("*:3128", Some("0.0.0.0:3128"));
        check("127.0.0.1", None);
        check("::1:3128", None);
        check("127.0.0.1:65536", None);
        check("", None);
    }

    #[test]
    fn admin_or_dns_address_is_written_back_differently() {
        let admin = |text: &str| {
            text.parse()
                .map(|address: AdminAddress| address.to_string())
        };
        assert_eq!(admin("off"), Ok("off".to_owned()));
        assert_eq!(admin("[::1]:0"), Ok("[::1]:0".to_owned()));
        assert!(admin("Off").is_err());
        let dns = |text: &str| text.parse().map(|server: DnsServer| server.to_string());
        assert_eq!(dns("192.0.2.53"), Ok("192.0.2.53:53".to_owned()));
        assert_eq!(dns("::1"), Ok("[::1]:53".to_owned()));
        assert_eq!(dns("127.0.0.1:5353"), Ok("127.0.0.1:5353".to_owned()));
    }
}
