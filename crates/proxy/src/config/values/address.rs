//! IP addresses with a port: where listeners, admin and resolvers are.
//!
//! Names are refused here. `localhost` may be one address or two, and a listener must be known
//! exactly.

use crate::config::values::text::{BadValue, Form, text_value};
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Reads `address:port`.
///
/// # Errors
///
/// When the text is a name, has no port, or is neither form of address.
pub fn parse_address(text: &str) -> Result<SocketAddr, BadValue> {
    parse_with_port(text, LISTENER_PORT)
}

/// The usual port of a forward proxy, and of the admin interface: for suggestions.
const LISTENER_PORT: u16 = 3128;
const ADMIN_PORT: u16 = 3129;

/// Suggests `port` where the text has an address alone.
fn parse_with_port(text: &str, port: u16) -> Result<SocketAddr, BadValue> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let refusal = BadValue::new(format!(
        "`{text}` is not an IP address and a port, such as 127.0.0.1:3128 or [::1]:3128"
    ));
    // the last part of another IPv6 address may be meant as the port
    if let Ok(address) = text.parse::<IpAddr>()
        && (address.is_ipv4() || address.is_unspecified())
    {
        return Err(refusal.suggesting(SocketAddr::new(address, port).to_string()));
    }
    if text.parse::<u16>().is_ok() {
        return Err(refusal.suggesting(format!("127.0.0.1:{text}")));
    }
    Err(match text.rsplit_once(':') {
        Some(("localhost", port)) => refusal.suggesting(format!("127.0.0.1:{port}")),
        Some(("" | "*", port)) => refusal.suggesting(format!("0.0.0.0:{port}")),
        _ => refusal,
    })
}

/// The address of the admin interface, or none: `"off"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// There is no admin interface.
    Off,
    /// It listens here; port 0 takes any free one.
    At(SocketAddr),
    /// It listens on a Unix socket: `"unix:"` and a path.
    Unix(PathBuf),
}

impl AdminAddress {
    /// Address and port, if it has them.
    #[must_use]
    pub const fn socket(&self) -> Option<SocketAddr> {
        match self {
            Self::Off | Self::Unix(_) => None,
            Self::At(address) => Some(*address),
        }
    }

    /// Whether other machines can reach it.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.socket()
            .is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX_PREFIX}{}", path.display()),
        }
    }
}

impl std::str::FromStr for AdminAddress {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match (text, text.strip_prefix(UNIX_PREFIX)) {
            ("off", _) => Ok(Self::Off),
            (_, Some(path)) => parse_path(path).map(Self::Unix),
            _ => parse_with_port(text, ADMIN_PORT).map(Self::At),
        }
    }
}

impl Form for AdminAddress {
    const FORM: &'static str = "an address and port, such as \"127.0.0.1:3129\", a Unix socket, such as \"unix:/run/weir/admin.sock\", or \"off\"";
}

text_value!(AdminAddress);

/// What is before the path of a Unix socket.
const UNIX_PREFIX: &str = "unix:";

/// Bytes of a Unix socket's path: what `sockaddr_un` holds, less the NUL at its end (unix(7)).
const UNIX_PATH_BYTES_MAX: usize = 107;

fn parse_path(path: &str) -> Result<PathBuf, BadValue> {
    if !path.starts_with('/') {
        return Err(BadValue::new(format!(
            "`{UNIX_PREFIX}{path}` is not a Unix socket: a path from `/` on is expected, such as unix:/run/weir/admin.sock"
        )));
    }
    if path.len() > UNIX_PATH_BYTES_MAX || path.contains('\0') {
        return Err(BadValue::new(format!(
            "the path in `{UNIX_PREFIX}{path}` cannot be that of a Unix socket: it has more than {UNIX_PATH_BYTES_MAX} bytes, or a NUL"
        )));
    }
    Ok(PathBuf::from(path))
}

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
pub(in crate::config) fn deserialize<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<SocketAddr, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
    parse_address(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listener_without_ip_address_is_refused_with_a_suggestion() {
        let check = |text: &str, suggestion: Option<&str>| {
            let refusal = parse_address(text).unwrap_err();
            assert_eq!(refusal.suggestion.as_deref(), suggestion, "{text}");
        };
        check("localhost:3128", Some("127.0.0.1:3128"));
        check(":3128", Some("0.0.0.0:3128"));
        check("*:3128", Some("0.0.0.0:3128"));
        check("127.0.0.1", Some("127.0.0.1:3128"));
        check("::", Some("[::]:3128"));
        check("3128", Some("127.0.0.1:3128"));
        let admin = "0.0.0.0".parse::<AdminAddress>().unwrap_err();
        assert_eq!(admin.suggestion.as_deref(), Some("0.0.0.0:3129"));
        check("::1:3128", None);
        check("127.0.0.1:65536", None);
        check("", None);
    }

    #[test]
    fn admin_address_reachable_from_other_machines_is_public() {
        for (text, expected) in [
            ("off", false),
            ("unix:/run/admin.sock", false),
            ("127.0.0.1:1", false),
            ("127.9.9.9:1", false),
            ("[::1]:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("10.0.0.1:1", true),
            ("[2001:db8::1]:1", true),
        ] {
            let address: AdminAddress = text.parse().unwrap();
            assert_eq!(address.is_public(), expected, "{text}");
        }
    }

    #[test]
    fn admin_and_dns_addresses_are_normalized_and_bad_ones_refused() {
        let admin = |text: &str| {
            text.parse()
                .map(|address: AdminAddress| address.to_string())
        };
        assert_eq!(admin("off"), Ok("off".to_owned()));
        assert_eq!(admin("[::1]:0"), Ok("[::1]:0".to_owned()));
        let socket = "unix:/run/weir/admin.sock";
        assert_eq!(admin(socket), Ok(socket.to_owned()));
        let long = format!("unix:/{}", "x".repeat(UNIX_PATH_BYTES_MAX));
        for bad in ["Off", "unix:", "unix:admin.sock", &long] {
            assert!(admin(bad).is_err(), "{bad}");
        }
        assert!(admin(&long[..long.len() - 1]).is_ok());
        let dns = |text: &str| text.parse().map(|server: DnsServer| server.to_string());
        assert_eq!(dns("192.0.2.53"), Ok("192.0.2.53:53".to_owned()));
        assert_eq!(dns("::1"), Ok("[::1]:53".to_owned()));
        assert_eq!(dns("127.0.0.1:5353"), Ok("127.0.0.1:5353".to_owned()));
    }
}
