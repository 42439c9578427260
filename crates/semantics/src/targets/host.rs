//! Hosts and authorities in one canonical spelling, RFC 9110 §4.2.3 and RFC 3986 §3.2.
//!
//! The host is part of every cache key, of every access rule and of what is resolved and forwarded,
//! so it has to have one spelling before any of these look at it. We accept less than RFC 3986
//! does:
//! * a registered name consists of letters, digits, `-`, `_` and `.`; no percent-encoding, no
//!   sub-delimiters;
//! * labels have 1 to 63 bytes; one final dot is kept, as `example.com.` may be another host than
//!   `example.com`;
//! * a name whose last label is a number must be an IPv4 address in canonical spelling (the "ends
//!   in a number" rule of the WHATWG URL standard): resolvers read `127.1`, `0x7f.1` and
//!   `2130706433` as addresses, rules would not.

use core::{
    fmt,
    hash::{Hash, Hasher},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Bytes a host may have at most: those of a name in the DNS (RFC 1035 §2.3.4).
const LENGTH_MAX: usize = 255;
/// Bytes a label may have at most (RFC 1035 §2.3.4).
const LABEL_LENGTH_MAX: usize = 63;

/// A host in canonical spelling: a name in lower case, an IPv4 address, or an IPv6 address in
/// brackets (RFC 5952). Held inline, nothing is allocated.
#[derive(Clone, Copy)]
pub struct HostName {
    ip: Option<IpAddr>,
    length: u8,
    bytes: [u8; LENGTH_MAX],
}

impl HostName {
    /// Reads and canonicalises a host, an IPv6 address in brackets.
    ///
    /// # Errors
    /// Says why it is none we accept; see the module's head.
    pub fn parse(text: &str) -> Result<Self, AuthorityError> {
        let mut host = Self::EMPTY;
        host.set(text.as_bytes())?;
        Ok(host)
    }

    /// The canonical spelling; brackets around an IPv6 address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The canonical spelling as bytes, all of them ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The address, if the host is one and not a name. An IPv4-mapped IPv6 address stays one: look
    /// at [`IpAddr::to_canonical`] before deciding about it.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// No host yet: what is read is written in its place, as a host that is returned would be
    /// copied, on the way of every request.
    pub const EMPTY: Self = Self {
        ip: None,
        length: 0,
        bytes: [0; LENGTH_MAX],
    };

    /// Becomes empty.
    pub(crate) const fn clear(&mut self) {
        (self.ip, self.length) = (None, 0);
    }

    /// Becomes the host that `text` spells; [empty](Self::EMPTY) before that.
    #[inline]
    fn set(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        match text {
            [] => Err(AuthorityError::EmptyHost),
            [b'[', address @ .., b']'] => self.set_ipv6(address),
            [b'[', ..] => Err(AuthorityError::Ipv6),
            _ => self.set_name(text),
        }
    }

    #[inline]
    fn set_name(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        self.length = u8::try_from(text.len()).map_err(|_| AuthorityError::HostTooLong)?;
        let mut label = 0..0;
        for (at, (&byte, out)) in text.iter().zip(&mut self.bytes).enumerate() {
            *out = LOWER[usize::from(byte)];
            match *out {
                0 => return Err(AuthorityError::HostByte),
                b'.' if at == label.start || at - label.start > LABEL_LENGTH_MAX => {
                    return Err(AuthorityError::Label);
                }
                // unless it is final: then the label before it is the last
                b'.' if at + 1 < text.len() => label.start = at + 1,
                b'.' => {}
                _ => label.end = at + 1,
            }
        }
        if label.len() > LABEL_LENGTH_MAX {
            return Err(AuthorityError::Label);
        }
        let last_label = &text[label];
        if last_label.first().is_some_and(u8::is_ascii_digit) && is_number(last_label) {
            let address: Ipv4Addr = self
                .as_str()
                .parse()
                .map_err(|_| AuthorityError::Ipv4Spelling)?;
            self.ip = Some(IpAddr::V4(address));
        }
        Ok(())
    }

    fn set_ipv6(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        let text = str::from_utf8(text).map_err(|_| AuthorityError::Ipv6)?;
        let address: Ipv6Addr = text.parse().map_err(|_| AuthorityError::Ipv6)?;
        self.ip = Some(IpAddr::V6(address));
        fmt::Write::write_fmt(&mut Appender(self), format_args!("[{address}]"))
            .map_err(|_| AuthorityError::HostTooLong)
    }
}

/// Lets an address be formatted into a host; private, so that no other code changes one.
struct Appender<'a>(&'a mut HostName);

impl fmt::Write for Appender<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.0.length);
        let end = start + text.len();
        self.0
            .bytes
            .get_mut(start..end)
            .ok_or(fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.0.length = u8::try_from(end).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

impl PartialEq for HostName {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for HostName {}

impl Hash for HostName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl PartialOrd for HostName {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HostName {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A host and perhaps a port, `uri-host [ ":" port ]` (RFC 9110 §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority {
    /// The host.
    pub host: HostName,
    /// The port, 1 to 65535; `None` if absent or empty (`example.com:`), which means the scheme's
    /// default.
    pub port: Option<u16>,
}

impl Authority {
    /// Reads `host` or `host:port`.
    ///
    /// # Errors
    /// Says why it is none we accept; see the module's head.
    pub fn parse(text: &str) -> Result<Self, AuthorityError> {
        let mut host = HostName::EMPTY;
        let port = Self::read(text.as_bytes(), &mut host)?;
        Ok(Self { host, port })
    }

    /// Reads `host` or `host:port` into an [empty](HostName::EMPTY) host; returns the port.
    #[inline]
    pub(crate) fn read(text: &[u8], host: &mut HostName) -> Result<Option<u16>, AuthorityError> {
        // a port is what follows the last colon if that is digits only: read from the end, it is
        // short
        let digits_start = text
            .iter()
            .rposition(|byte| !byte.is_ascii_digit())
            .map_or(0, |at| at + 1);
        let (rest, digits) = text.split_at(digits_start);
        let (name, port) = match rest {
            [name @ .., b':'] => (name, port(digits)?),
            _ => (text, None),
        };
        match host.set(name) {
            Ok(()) => Ok(port),
            Err(AuthorityError::HostByte) if name.contains(&b':') => Err(AuthorityError::Port),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.host.as_str())?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Why a host or an authority was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthorityError {
    /// There is nothing where the host should be.
    EmptyHost,
    /// The host has more than 255 bytes.
    HostTooLong,
    /// A byte that a host may not have: userinfo, percent-encoding and anything beyond ASCII
    /// included.
    HostByte,
    /// A label is empty or has more than 63 bytes.
    Label,
    /// It ends in a number but is no canonical IPv4 address.
    Ipv4Spelling,
    /// What is in brackets is no IPv6 address, or something other than a port follows it.
    Ipv6,
    /// The port is not a number from 1 to 65535 with at most five digits.
    Port,
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyHost => "the host is empty",
            Self::HostTooLong => "the host is longer than 255 bytes",
            Self::HostByte => "the host has a byte that is no letter, digit, `-`, `_` or `.`",
            Self::Label => "a label of the host is empty or longer than 63 bytes",
            Self::Ipv4Spelling => {
                "the host ends in a number but is no IPv4 address in its usual spelling"
            }
            Self::Ipv6 => "the host in brackets is no IPv6 address",
            Self::Port => "the port is no number from 1 to 65535",
        })
    }
}

impl core::error::Error for AuthorityError {}

/// `digits` are digits.
fn port(digits: &[u8]) -> Result<Option<u16>, AuthorityError> {
    if digits.is_empty() {
        return Ok(None);
    }
    if digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(AuthorityError::Port);
    }
    let number = digits.iter().fold(0, |number: u32, digit| {
        number * 10 + u32::from(digit - b'0')
    });
    match u16::try_from(number) {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(AuthorityError::Port),
    }
}

/// Would some resolver read this label as a number? WHATWG URL §3.5, "ends in a number".
fn is_number(label: &[u8]) -> bool {
    match label {
        [b'0', b'x' | b'X', hex @ ..] => hex.iter().all(u8::is_ascii_hexdigit),
        _ => label.iter().all(u8::is_ascii_digit),
    }
}

/// The lower case of a byte that a name may have, 0 for any other.
static LOWER: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<&str, AuthorityError>) {
        let authority = Authority::parse(text).map(|authority| authority.to_string());
        assert_eq!(authority.as_deref(), expected.as_ref().copied(), "{text:?}");
    }

    #[test]
    fn authority_is_normalized_to_one_spelling() {
        check("example.com", Ok("example.com"));
        check("EXAMPLE.Com:8080", Ok("example.com:8080"));
        check("example.com.", Ok("example.com."));
        check("example.com:", Ok("example.com"));
        check("a_b-c.x1", Ok("a_b-c.x1"));
        check("localhost:00080", Ok("localhost:80"));
        check("127.0.0.1:1", Ok("127.0.0.1:1"));
        check("[::1]", Ok("[::1]"));
        check("[0:0:0:0:0:0:0:1]:65535", Ok("[::1]:65535"));
        check("[2001:DB8::A]", Ok("[2001:db8::a]"));
        check("[::FFFF:102:304]", Ok("[::ffff:1.2.3.4]"));
        check("1.2.3.4.example", Ok("1.2.3.4.example"));
        check("0xg", Ok("0xg"));
        check("3com", Ok("3com"));
    }

    #[test]
    fn non_canonical_ip_address_spellings_are_refused() {
        for host in [
            "2130706433",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0X7F.0.0.1",
            "0177.0.0.1",
            "127.0.0.01",
            "127.0.0.1.",
            "1.2.3.4.5",
            "256.0.0.1",
            "127.0.0.0x1",
            "foo.1",
            "foo.0x",
            "foo.09",
            "1.",
            "999999999999",
        ] {
            check(host, Err(AuthorityError::Ipv4Spelling));
        }
        for host in [
            "[]",
            "[::1",
            "[1.2.3.4]",
            "[::1%25eth0]",
            "[::1%eth0]",
            "[v1.a]",
            "[::1]a",
            "[:::1]",
            "[::1]]",
            "[é]",
        ] {
            check(host, Err(AuthorityError::Ipv6));
        }
    }

    #[test]
    fn invalid_host_label_or_port_is_refused() {
        check("", Err(AuthorityError::EmptyHost));
        check(":80", Err(AuthorityError::EmptyHost));
        for host in [
            "user@a",
            "a b",
            "a%41",
            "a/b",
            "a,b",
            "bücher.de",
            "a\0",
            "a]",
            "a!",
            "a\\b",
            "a?b",
            "a#b",
        ] {
            check(host, Err(AuthorityError::HostByte));
        }
        for host in [".", ".a", "a..b", "a.."] {
            check(host, Err(AuthorityError::Label));
        }
        for host in [
            "a:0", "a:65536", "a:+80", "a:80a", "a:0x50", "a: 80", "::1", "a:80:80", "a:000080",
            "u:p@a",
        ] {
            check(host, Err(AuthorityError::Port));
        }
    }

    #[test]
    fn host_labels_and_names_are_limited_to_63_and_255_bytes() {
        let label = "a".repeat(63);
        check(&label, Ok(&label));
        check(&format!("{label}a"), Err(AuthorityError::Label));
        let name = [label.as_str(); 4].join(".");
        assert_eq!(name.len(), 255);
        check(&name, Ok(&name));
        check(&format!("{name}."), Err(AuthorityError::HostTooLong));
    }

    #[test]
    fn ip_addresses_are_distinguished_from_host_names() {
        let ip = |text| HostName::parse(text).unwrap().ip();
        assert_eq!(ip("127.0.0.1"), Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert_eq!(ip("[::1]"), Some(IpAddr::V6(Ipv6Addr::LOCALHOST)));
        assert_eq!(
            ip("[::ffff:127.0.0.1]").unwrap().to_canonical(),
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        );
        assert_eq!(ip("localhost"), None);
    }

    proptest! {
        #[test]
        fn canonical_authority_parses_to_itself(text in r"[A-Za-z0-9.:\[\]_-]{0,24}") {
            if let Ok(authority) = Authority::parse(&text) {
                let again = Authority::parse(&authority.to_string());
                prop_assert_eq!(again, Ok(authority));
            }
        }

        #[test]
        fn every_bracketed_ipv6_address_is_a_host(address: u128) {
            let address = Ipv6Addr::from(address);
            let host = HostName::parse(&format!("[{address}]")).unwrap();
            prop_assert_eq!(host.ip(), Some(IpAddr::V6(address)));
        }
    }
}
