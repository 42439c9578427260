//! What lines do not show of clients.

use super::entry::{Entry, RequestLine};
use crate::log::top::hashed_client;
use std::hash::RandomState;
use std::net::{IpAddr, SocketAddr};
use weir_log::escape;

/// What is left out of lines.
#[derive(Debug, Default)]
pub(crate) struct Privacy {
    /// Makes the names by which clients are shown; `None` if their addresses are.
    pub(crate) client_keys: Option<RandomState>,
    /// Queries of targets and of `Referer` are left out.
    pub(crate) cuts_queries: bool,
}

/// The client of a request, as a line shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoggedClient {
    /// By its address and port.
    At(SocketAddr),
    /// By this name.
    Hashed([u8; CLIENT_NAME_BYTES]),
}

/// What each such name begins with.
const PREFIX: &str = "client-";

/// Bytes of the name of a client.
const CLIENT_NAME_BYTES: usize = 19;

impl LoggedClient {
    /// Writes it, with its port if that is known.
    pub(super) fn write(&self, line: &mut Vec<u8>) {
        match self {
            Self::At(address) => escape::socket(*address, line),
            Self::Hashed(name) => line.extend_from_slice(name),
        }
    }

    /// Writes it without a port.
    pub(super) fn write_host(&self, line: &mut Vec<u8>) {
        match self {
            Self::At(address) => escape::ip(address.ip(), line),
            Self::Hashed(name) => line.extend_from_slice(name),
        }
    }

    /// The same in few columns, for people: of a name what tells it from others. An IPv4 address is
    /// one in whichever form it came.
    pub(super) fn readable(&self) -> String {
        match self {
            Self::At(address) => address.ip().to_canonical().to_string(),
            Self::Hashed(name) => String::from_utf8_lossy(&name[PREFIX.len()..]).into_owned(),
        }
    }
}

impl Privacy {
    /// What of `entry` is shown.
    pub(super) fn shown<'a>(&self, entry: &Entry<'a>) -> Entry<'a> {
        let mut shown = *entry;
        if let (Some(keys), LoggedClient::At(address)) = (&self.client_keys, entry.client) {
            shown.client = LoggedClient::Hashed(name_of(keys, address.ip()));
        }
        if self.cuts_queries {
            let request = &entry.request;
            let referer = request.referer;
            let end = referer.iter().position(|byte| *byte == b'?');
            shown.request = RequestLine {
                target: request.target.split('?').next().unwrap_or_default(),
                referer: &referer[..end.unwrap_or(referer.len())],
                ..*request
            };
        }
        shown
    }
}

fn name_of(keys: &RandomState, address: IpAddr) -> [u8; CLIENT_NAME_BYTES] {
    let name = hashed_client(keys, address);
    let mut bytes = [b'-'; CLIENT_NAME_BYTES];
    let length = name.len().min(CLIENT_NAME_BYTES);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_has_one_name_whatever_its_port_and_no_other_client_has_it() {
        let keys = RandomState::new();
        let name = |address: &str| {
            let address: SocketAddr = address.parse().expect("an address");
            name_of(&keys, address.ip())
        };
        assert_eq!(name("192.0.2.1:1"), name("192.0.2.1:2"));
        assert_ne!(name("192.0.2.1:1"), name("192.0.2.2:1"));
        let shown = name("[2001:db8::1]:1");
        assert!(
            shown.starts_with(b"client-") && !shown.ends_with(b"-"),
            "{shown:?}"
        );
    }
}
