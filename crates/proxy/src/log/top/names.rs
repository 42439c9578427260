//! Names of URLs, hosts, clients and next hops, and the keys that sketches know them by.

use crate::config::TopClients;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hash as _, Hasher as _, RandomState};
use std::net::IpAddr;
use weir_measure::live::NAME_BYTES_MAX;
use weir_semantics::{Scheme, Target, without_query};

/// Most bytes of the name of a host. Names of the DNS have at most 253, and few have more than 64.
pub(super) const HOST_BYTES_MAX: usize = 128;

/// Room for what is around host and path in the name of a URL: scheme, port, and a mark.
const AROUND_BYTES: usize = "https://:65535…".len();

/// What follows a name that was cut.
const CUT: &str = "…";

/// A target as its name is made of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetName<'a> {
    /// ASCII. It is read as text where that is needed: most targets came before.
    host: &'a [u8],
    port: u16,
    scheme: Scheme,
    /// Path and query; `None` of a tunnel.
    path: Option<&'a str>,
}

impl<'a> TargetName<'a> {
    /// The name of the target of a request.
    pub(crate) fn of(target: &'a Target<'_>) -> Self {
        Self {
            host: target.host.as_bytes(),
            port: target.port,
            scheme: target.scheme,
            path: Some(target.path_and_query),
        }
    }

    /// The same from its parts; without a path it is the target of a tunnel.
    pub(crate) fn new(scheme: Scheme, host: &'a [u8], port: u16, path: Option<&'a str>) -> Self {
        Self {
            host,
            port,
            scheme,
            path,
        }
    }

    fn host(&self) -> &'a str {
        str::from_utf8(self.host).unwrap_or_default()
    }

    /// Without its query, if queries are cut.
    fn path(&self, cuts_query: bool) -> Option<&'a str> {
        let path = self.path?;
        Some(if cuts_query {
            without_query(path)
        } else {
            path
        })
    }

    /// Keys of the URL and of the host: of all of their characters, also where names are cut.
    pub(super) fn keys(&self, by: &RandomState, cuts_query: bool) -> TargetKeys {
        let mut hasher = by.build_hasher();
        (self.host, self.port).hash(&mut hasher);
        let host = hasher.finish();
        self.path(cuts_query).hash(&mut hasher);
        TargetKeys {
            url: hasher.finish(),
            host,
        }
    }

    /// Writes the name of the host.
    pub(super) fn write_host(&self, name: &mut String) {
        name.push_str(self.host());
        if self.path.is_none() || self.port != self.scheme.default_port() {
            // a string takes all
            let _infallible = write!(name, ":{}", self.port);
        }
        cut(name, HOST_BYTES_MAX);
    }

    /// Writes the name of the URL.
    pub(crate) fn write_url(&self, cuts_query: bool, name: &mut String) {
        // at once: it would grow with each part
        let path_bytes = self.path.map_or(0, str::len).min(NAME_BYTES_MAX);
        name.reserve(self.host.len() + path_bytes + AROUND_BYTES);
        if self.path.is_some() {
            name.push_str(self.scheme.as_str());
            name.push_str("://");
        }
        name.push_str(self.host());
        if self.path.is_none() || self.port != self.scheme.default_port() {
            let _infallible = write!(name, ":{}", self.port);
        }
        let path = self.path(cuts_query).unwrap_or_default();
        // of a long path no more is copied than may be kept
        let mut end = path.len().min(NAME_BYTES_MAX + 1);
        while !path.is_char_boundary(end) {
            end += 1;
        }
        name.push_str(&path[..end]);
        cut(name, NAME_BYTES_MAX);
    }
}

/// The keys of a target.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TargetKeys {
    pub(super) url: u64,
    pub(super) host: u64,
}

/// Cuts `name` to `bytes_max` bytes, its mark included.
pub(super) fn cut(name: &mut String, bytes_max: usize) {
    if name.len() <= bytes_max {
        return;
    }
    let mut end = bytes_max - CUT.len();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name.push_str(CUT);
}

/// The key of an address.
pub(super) fn key_of(by: &RandomState, address: impl std::hash::Hash) -> u64 {
    by.hash_one(address)
}

/// The name of a client that does not tell its address.
pub(crate) fn hashed_client(by: &RandomState, address: IpAddr) -> String {
    format!("client-{:012x}", key_of(by, ("name", address)) >> 16)
}

/// How a client is shown: its address, or a name that is the same for all its requests to this
/// process, and from which the address cannot be computed.
pub(super) fn client(by: &RandomState, shown: TopClients, address: IpAddr) -> String {
    match shown {
        TopClients::Addresses => address.to_string(),
        TopClients::Hashed => hashed_client(by, address),
    }
}
