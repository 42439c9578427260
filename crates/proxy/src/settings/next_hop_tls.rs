//! TLS toward next hops: whom each route trusts, and the certificates of authorities from their
//! files.

use super::tls::{read_file, unreadable_hint};
use crate::config::{Config, Invalid, NextHopUrl, Route, SendProxyProtocol};
use std::collections::HashMap;
use weir_net::next_hops::HopKey;
use weir_net::tls::client::Authorities;
use weir_net::tls::{TlsClients, Trust};

/// Bytes of a file with certificates of authorities: those of all that browsers trust have 250 KiB.
pub(super) const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What to do about such a file that cannot be read.
pub(super) const PEM_OF_AUTHORITIES: &str = "use a file in PEM with the certificates of \
     authorities, each from `-----BEGIN CERTIFICATE-----` on";

/// A next hop of a route.
pub(crate) fn hop_key(route: &Route, url: &NextHopUrl) -> HopKey {
    let told_by = route.send_proxy_protocol.map(SendProxyProtocol::version);
    let key = HopKey::new(url.host.as_str(), url.port).told_by(told_by);
    let key = match url.tls {
        false => key,
        true => key.over_tls(trust_of(route)),
    };
    // a connection of HTTP/2 is for the requests of all clients
    match route.has_http2(url) && told_by.is_none() {
        false => key,
        true => key.by_http2(),
    }
}

/// The first route of each next hop, as host and path, and how many more it has.
pub(crate) fn names_of_routes(config: &Config) -> HashMap<HopKey, String> {
    let mut firsts: HashMap<HopKey, (&Route, usize)> = HashMap::new();
    for route in &config.routes {
        for url in &route.next_hops {
            let first = firsts.entry(hop_key(route, url));
            first
                .and_modify(|(_, more)| *more += 1)
                .or_insert((route, 0));
        }
    }
    let name = |(route, more): (&Route, usize)| {
        let host = route.host.as_ref();
        let host = host.map_or_else(|| "*".to_owned(), ToString::to_string);
        let path = route.path.as_str();
        match more {
            0 => format!("{host} {path}"),
            more => format!("{host} {path} and {more} more"),
        }
    };
    let names = firsts.into_iter().map(|(key, of)| (key, name(of)));
    names.collect()
}

/// A next hop as each route with it has it, and as a parent.
pub(crate) fn hop_keys(config: &Config, url: &NextHopUrl) -> Vec<HopKey> {
    let with_it = |route: &&Route| route.next_hops.contains(url);
    let routes = config.routes.iter().filter(with_it);
    let mut keys: Vec<HopKey> = routes.map(|route| hop_key(route, url)).collect();
    keys.push(url.into());
    keys
}

fn trust_of(route: &Route) -> Trust {
    match &route.tls {
        Some(tls) if !tls.verify => Trust::Unverified,
        Some(tls) => tls.ca.clone().map_or(Trust::System, Trust::File),
        None => Trust::System,
    }
}

/// A line for the log for each route whose next hops prove nothing.
pub(crate) fn unverified_lines(config: &Config) -> Vec<String> {
    let unverified = config.routes.iter().filter(|route| {
        trust_of(route) == Trust::Unverified && route.next_hops.iter().any(|hop| hop.tls)
    });
    let lines = unverified.map(|route| {
        let hops: Vec<String> = route.next_hops.iter().map(ToString::to_string).collect();
        format!(
            "WARNING: certificates of {} are NOT VERIFIED (route[].tls.verify = false)",
            hops.join(", ")
        )
    });
    lines.collect()
}

/// What connections to the next hops of a valid configuration are opened with; what trusts the same
/// as `before` goes on.
///
/// # Errors
///
/// There is no certificate of an authority for a route, and why.
pub(crate) fn read(config: &Config, before: Option<&TlsClients>) -> Result<TlsClients, Invalid> {
    let mut clients = TlsClients::default();
    for (index, route) in config.routes.iter().enumerate() {
        let Some(place) = route.next_hops.iter().position(|hop| hop.tls) else {
            continue;
        };
        let trust = trust_of(route);
        if clients.has(&trust) {
            continue;
        }
        let authorities = match &trust {
            Trust::Unverified => None,
            Trust::System => Some(Authorities::of_system().map_err(|error| {
                Invalid::new(
                    format!("route[{index}].next_hops[{place}]"),
                    format!("no certificate can be verified: {error}"),
                    "install the package ca-certificates, or name a file in `tls.ca` of the route",
                )
            })?),
            Trust::File(path) => {
                let key = || format!("route[{index}].tls.ca");
                let text = read_file(path, FILE_BYTES_MAX).map_err(|error| {
                    Invalid::new(
                        key(),
                        format!("`{}` cannot be read: {error}", path.display()),
                        unreadable_hint(path),
                    )
                })?;
                Some(Authorities::from_pem(&text).map_err(|error| {
                    Invalid::new(
                        key(),
                        format!("`{}`: {error}", path.display()),
                        PEM_OF_AUTHORITIES,
                    )
                })?)
            }
        };
        clients.put(trust, authorities, before);
    }
    Ok(clients)
}
