//! The host part of a next hop or of a route, in one canonical spelling.

use crate::config::values::text::BadValue;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// A host name in lower case, or an IP address. `Display` puts brackets round IPv6 (RFC 3986
/// §3.2.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    text: String,
    address: Option<IpAddr>,
}

impl Host {
    /// The canonical text, an IPv6 address without its brackets.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address, if the host is not a name.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        self.address
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self {
            text: address.to_string(),
            address: Some(address),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(IpAddr::V6(address)) => write!(f, "[{address}]"),
            _ => f.write_str(&self.text),
        }
    }
}

impl std::str::FromStr for Host {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if let Some(inner) = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            return inner
                .parse::<Ipv6Addr>()
                .map(|address| Self::from(IpAddr::V6(address)))
                .map_err(|_| BadValue::new(format!("`{text}` is not an IPv6 address")));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return match address {
                IpAddr::V4(_) => Ok(Self::from(address)),
                IpAddr::V6(_) => Err(BadValue::new(format!("`{text}` needs brackets round it"))
                    .suggesting(format!("[{address}]"))),
            };
        }
        check_name(text)?;
        Ok(Self {
            text: text.to_ascii_lowercase(),
            address: None,
        })
    }
}

/// The longest host name in bytes (RFC 1035 §2.3.4, as text without the final dot).
const NAME_BYTES_MAX: usize = 253;

/// The longest label in bytes (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

fn check_name(text: &str) -> Result<(), BadValue> {
    let refuse = |reason: &str| Err(BadValue::new(format!("host `{text}` {reason}")));
    if text.is_empty() {
        return refuse("is empty");
    }
    if text.len() > NAME_BYTES_MAX {
        return refuse("is longer than 253 bytes");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(odd) = text.chars().find(|&c| !allowed(c)) {
        return Err(BadValue::new(format!(
            "host `{text}` holds {odd:?}; letters, digits, `-`, `_` and `.` are expected"
        )));
    }
    let mut labels = text.split('.');
    if labels
        .clone()
        .any(|label| label.is_empty() || label.len() > LABEL_BYTES_MAX)
    {
        return refuse("has a part between dots that is empty or longer than 63 bytes");
    }
    // A name whose last label is a number is an odd spelling of an IPv4 address (WHATWG URL §3.5).
    if labels.next_back().is_some_and(is_number) {
        return refuse("ends in a number and is not an IPv4 address");
    }
    Ok(())
}

fn is_number(label: &str) -> bool {
    let hexadecimal = label
        .strip_prefix("0x")
        .or_else(|| label.strip_prefix("0X"))
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || label.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let found = text.parse::<Host>().ok().map(|host| host.to_string());
        assert_eq!(found.as_deref(), expected, "{text}");
    }

    #[test]
    fn host_is_normalized_to_one_canonical_spelling() {
        check("Origin.Example", Some("origin.example"));
        check("10.0.0.1", Some("10.0.0.1"));
        check("[::1]", Some("[::1]"));
        check("[0:0::1]", Some("[::1]"));
        check("my_service", Some("my_service"));
        check("1password.example", Some("1password.example"));
    }

    #[test]
    fn odd_numeric_address_or_malformed_name_is_refused() {
        for text in [
            "",
            ".",
            "a..b",
            "a.",
            "2130706433",
            "0x7f.1",
            "127.1",
            "0x7f000001",
            "1.2.3.256",
            "::1",
            "[10.0.0.1]",
            "[::1",
            "user@host",
            "a b",
            "ex%61mple",
            "exämple",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn label_beyond_63_or_name_beyond_253_bytes_is_refused() {
        let longest = "a".repeat(63);
        check(&longest, Some(&longest));
        check(&"a".repeat(64), None);
        let name = [&longest[..], &longest, &longest, &longest[..61]].join(".");
        assert_eq!(name.len(), 253);
        check(&name, Some(&name));
        check(&format!("{name}a"), None);
    }
}
