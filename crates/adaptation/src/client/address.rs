//! Where an ICAP server is.

use std::fmt;
use std::path::PathBuf;
use weir_extend::LoadError;
use weir_icap::ServiceUri;

/// The port of a service whose URI has none (RFC 3507 §4.2).
const PORT_DEFAULT: u16 = 1344;

/// Where an ICAP server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A name or an address, and a port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// That of a service, or `socket` if that is given.
    pub(crate) fn of(uri: &ServiceUri, socket: Option<String>) -> Result<Self, LoadError> {
        if let Some(path) = socket {
            if !path.starts_with('/') {
                return Err(LoadError::new(
                    "socket",
                    format!("`{path}` is no absolute path"),
                    "write the whole path of the socket",
                ));
            }
            return Ok(Self::Unix(path.into()));
        }
        let authority = uri.authority();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().unwrap_or(PORT_DEFAULT))
            }
            _ => (authority, PORT_DEFAULT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Self::Tcp(host.to_owned(), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(uri: &str, socket: Option<&str>) -> Result<Address, LoadError> {
        let uri = ServiceUri::parse(uri.as_bytes()).expect("a URI");
        Address::of(&uri, socket.map(str::to_owned))
    }

    #[test]
    fn service_without_a_port_is_at_1344() {
        let tcp = |host: &str, port| Ok(Address::Tcp(host.to_owned(), port));
        assert_eq!(address("icap://a.example/x", None), tcp("a.example", 1344));
        assert_eq!(address("icap://127.0.0.1:99", None), tcp("127.0.0.1", 99));
        assert_eq!(address("icap://[::1]/x", None), tcp("::1", 1344));
        assert_eq!(address("icap://[::1]:99/x", None), tcp("::1", 99));
    }

    #[test]
    fn socket_is_named_by_an_absolute_path() {
        let unix = Ok(Address::Unix("/run/icap".into()));
        assert_eq!(address("icap://a/x", Some("/run/icap")), unix);
        assert!(address("icap://a/x", Some("run/icap")).is_err());
    }
}
