//! The URI of a service (RFC 3507 §4.2).

use alloc::string::String;
use core::error::Error;
use core::fmt;

use crate::limits::SERVICE_URI_BYTES_MAX;

/// `icap://authority[/path][?query]`, without user information and fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceUri {
    text: String,
    /// Where the path begins in the text.
    path_at: usize,
}

/// Why a URI is refused. `Display` is a fragment that fits "failed to read the service URI: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceUriError {
    /// It does not begin with `icap://`.
    Scheme,
    /// Its host is empty or not a name or address, or its port is not 1 to 5 digits.
    Authority,
    /// It holds white space, `#` or a byte that is not visible ASCII.
    Octet,
    /// It has more than [`SERVICE_URI_BYTES_MAX`] bytes.
    TooLong,
}

impl fmt::Display for ServiceUriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("the URI does not begin with `icap://`"),
            Self::Authority => {
                f.write_str("the URI has no host, or one with characters or a port that cannot be")
            }
            Self::Octet => {
                f.write_str("the URI holds white space, `#` or a byte that is not ASCII")
            }
            Self::TooLong => write!(f, "the URI has more than {SERVICE_URI_BYTES_MAX} bytes"),
        }
    }
}

impl Error for ServiceUriError {}

const SCHEME: &str = "icap://";

impl ServiceUri {
    /// Reads a URI. The scheme is compared without regard to case.
    ///
    /// # Errors
    ///
    /// The text is not such a URI.
    pub fn parse(text: &[u8]) -> Result<Self, ServiceUriError> {
        if text.len() > SERVICE_URI_BYTES_MAX {
            return Err(ServiceUriError::TooLong);
        }
        let is_plain = |&byte: &u8| byte.is_ascii_graphic() && byte != b'#';
        let text = core::str::from_utf8(text).map_err(|_| ServiceUriError::Octet)?;
        if !text.as_bytes().iter().all(is_plain) {
            return Err(ServiceUriError::Octet);
        }
        let has_scheme = text
            .get(..SCHEME.len())
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
        if !has_scheme {
            return Err(ServiceUriError::Scheme);
        }
        let rest = &text[SCHEME.len()..];
        let authority_bytes = rest.find(['/', '?']).unwrap_or(rest.len());
        if !is_authority(&rest[..authority_bytes]) {
            return Err(ServiceUriError::Authority);
        }
        Ok(Self {
            text: text.into(),
            path_at: SCHEME.len() + authority_bytes,
        })
    }

    /// The whole URI as received.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host, and the port if there is one.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.text[SCHEME.len()..self.path_at]
    }

    /// Path and query as received; empty if there are none.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path_at..]
    }
}

/// A name, an IPv4 address or a bracketed IPv6 address, and a port or none.
fn is_authority(text: &str) -> bool {
    let (host, port) = if let Some(inner) = text.strip_prefix('[') {
        let Some((address, port)) = inner.split_once(']') else {
            return false;
        };
        if address.parse::<core::net::Ipv6Addr>().is_err() {
            return false;
        }
        (address, port)
    } else {
        let end = text.find(':').unwrap_or(text.len());
        let (host, port) = text.split_at(end);
        let is_of_name =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !host.bytes().all(is_of_name) {
            return false;
        }
        (host, port)
    };
    let is_port = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let port_is_good = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(digits) => is_port(digits) && digits.parse::<u16>().is_ok_and(|port| port > 0),
    };
    !host.is_empty() && port_is_good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_is_split_into_authority_and_path() {
        for (text, authority, path) in [
            (
                "icap://icap-server.net/server?arg=87",
                "icap-server.net",
                "/server?arg=87",
            ),
            ("icap://e", "e", ""),
            ("ICAP://e:1344/", "e:1344", "/"),
            ("icap://[::1]:1344/a", "[::1]:1344", "/a"),
            ("icap://127.0.0.1?q", "127.0.0.1", "?q"),
        ] {
            let uri = ServiceUri::parse(text.as_bytes()).unwrap();
            assert_eq!((uri.authority(), uri.path_and_query()), (authority, path));
            assert_eq!(uri.as_str(), text);
        }
    }

    #[test]
    fn uri_without_scheme_host_or_with_odd_bytes_is_refused() {
        use ServiceUriError::{Authority, Octet, Scheme, TooLong};
        let long = format!("icap://e/{}", "x".repeat(SERVICE_URI_BYTES_MAX));
        for (text, expected) in [
            ("", Scheme),
            ("/echo", Scheme),
            ("http://e/", Scheme),
            ("icaps://e/", Scheme),
            ("icap:///echo", Authority),
            ("icap://", Authority),
            ("icap://:1344/", Authority),
            ("icap://e:/", Authority),
            ("icap://e:0/", Authority),
            ("icap://e:+1/", Authority),
            ("icap://e:65536/", Authority),
            ("icap://a@e/", Authority),
            ("icap://[::1/", Authority),
            ("icap://[::g]/", Authority),
            ("icap://e\\f/", Authority),
            ("icap://e/a b", Octet),
            ("icap://e/a#b", Octet),
            ("icap://e/\u{e9}", Octet),
            (&long, TooLong),
        ] {
            assert_eq!(ServiceUri::parse(text.as_bytes()), Err(expected), "{text}");
        }
    }
}
