//! Which next hops a gateway forwards to, by host and path prefix.

pub(crate) mod balancing;
pub(in crate::config) mod cluster;
pub(in crate::config) mod link;
pub(in crate::config) mod mechanism;
pub(in crate::config) mod members_source;
pub(in crate::config) mod next_hop_tls;
mod own_member;
pub(crate) mod parent;
pub(in crate::config) mod probe;
pub(in crate::config) mod send_proxy_protocol;

use crate::config::listener::Listener;
use crate::config::route::next_hop_tls::NextHopTls;
use crate::config::route::probe::Probe;
use crate::config::route::send_proxy_protocol::SendProxyProtocol;
use crate::config::setting::Setting;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::values::address::AdminAddress;
use crate::config::values::host::Host;
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::read_ahead::ReadAhead;
use crate::config::values::text::{BadValue, Form, text_value};
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_policy::route::ChoiceFor;
use weir_policy::route::policy::PolicyKind;

balancing::with_constants! {
    /// One `[[route]]` table. Which of several routes a request takes is decided in
    /// `weir_policy::route`.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Route {
        /// Hosts it is for; absent for any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub host: Option<HostPattern>,
        /// Path prefix it is for.
        #[serde(default)]
        pub path: PathPrefix,
        /// Where to forward; at least one, each once.
        pub next_hops: Vec<NextHopUrl>,
        /// How the next hops share the requests.
        #[serde(default, skip_serializing_if = "is_default")]
        pub policy: PolicyKind,
        /// What a next hop is chosen for.
        #[serde(default, skip_serializing_if = "is_default")]
        pub choice_for: ChoiceFor,
        /// The share of each next hop; empty: all have 1.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub weights: Vec<u16>,
    }
    {
        /// How long a next hop that is new, or was ejected, gets less than its share.
        #[serde(default, skip_serializing_if = "is_none")]
        pub ramp: Span,
        /// How next hops are probed; absent: they are not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub probe: Option<Probe>,
        /// How far a fetch may run ahead; absent for `fetch.read_ahead`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub read_ahead: Option<ReadAhead>,
        /// Whom next hops by TLS must have certificates from; absent: whom the system trusts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tls: Option<NextHopTls>,
        /// Whether HTTP/2 is spoken to the next hops; absent: to those by TLS that choose it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub http2: Option<bool>,
        /// How next hops are told for whom a connection is; absent: they are not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub send_proxy_protocol: Option<SendProxyProtocol>,
    }
}

impl Route {
    /// Whether HTTP/2 may be spoken to this next hop of the route.
    pub(crate) fn has_http2(&self, hop: &NextHopUrl) -> bool {
        self.http2.unwrap_or(hop.tls)
    }

    pub(super) fn settings() -> Vec<Setting> {
        let mut settings = vec![
            Setting::new::<HostPattern>(
                "route[].host",
                &[
                    "Hosts the route is for: a name, an address, or `*.` and a name for all names below it.",
                    "Without it, any host. The more exact host wins.",
                ],
            ),
            Setting::new::<PathPrefix>(
                "route[].path",
                &[
                    "What the path begins with, in whole segments: `/static` is for `/static` and `/static/a`, not for `/statics`;",
                    "`/static/` not for `/static`. Among routes for a host the longest wins.",
                ],
            )
            .by_default(&PathPrefix::default()),
            Setting::new::<Vec<NextHopUrl>>(
                "route[].next_hops",
                &[
                    "Where to forward, by `policy`; one that refuses a connection rests for a while. To one of scheme https, connections",
                    "are by TLS 1.2 or 1.3, with its host as the name that its certificate must be for (`route[].tls`).",
                ],
            ),
            Setting::new::<ReadAhead>(
                "route[].read_ahead",
                &[
                    "How far a fetch for this route may run ahead of its fastest client, in the range of `fetch.read_ahead`;",
                    "without it, `fetch.read_ahead`. A next hop on the same machine may want `unbounded`, a thin link little.",
                ],
            ),
        ];
        settings.extend(balancing::settings());
        settings.extend(probe::settings());
        settings.extend(next_hop_tls::settings());
        settings.push(Setting::new::<bool>(
            "route[].http2",
            &[
                "Whether HTTP/2 is spoken to the next hops; without it, to those of scheme https that choose it in the handshake (ALPN).",
                "`false`: HTTP/1.1 alone. `true`: to those of scheme http, too, which must speak it from the first byte (prior knowledge).",
                "Next hops behind a link, and requests that switch protocols (WebSocket), are spoken to by HTTP/1.1 in any case.",
            ],
        ));
        settings.push(send_proxy_protocol::setting());
        settings
    }
}

/// The hosts of a route: one exactly, or all names below one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// This host alone.
    Exact(Host),
    /// Every name that ends in a dot and this name, not the name itself: `*.example.com`.
    Suffix(Host),
}

impl HostPattern {
    /// As routes and modules are chosen by it.
    pub(crate) fn pattern(&self) -> weir_policy::route::HostPattern {
        use weir_policy::route::HostPattern as Pattern;
        match self {
            Self::Exact(host) => Pattern::Exact(host.as_str().to_owned()),
            Self::Suffix(parent) => Pattern::Suffix(parent.as_str().to_owned()),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => host.fmt(f),
            Self::Suffix(parent) => write!(f, "*.{parent}"),
        }
    }
}

impl std::str::FromStr for HostPattern {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let Some(parent) = text.strip_prefix("*.") else {
            return text.parse().map(Self::Exact);
        };
        let parent: Host = parent.parse()?;
        if parent.ip().is_some() {
            return Err(BadValue::new(format!(
                "`{text}`: nothing is below an address"
            )));
        }
        Ok(Self::Suffix(parent))
    }
}

impl Form for HostPattern {
    const FORM: &'static str = "a host, such as \"www.example.com\" or \"*.example.com\"";
}

text_value!(HostPattern);

/// The start of a path: `/` and what follows, kept as it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPrefix(String);

impl PathPrefix {
    /// The prefix as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for PathPrefix {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for PathPrefix {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if !text.starts_with('/') {
            return Err(
                BadValue::new(format!("path `{text}` does not begin with `/`"))
                    .suggesting(format!("/{text}")),
            );
        }
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'*');
        if !text.bytes().all(plain) {
            return Err(BadValue::new(format!(
                "path `{text}` is not a prefix: it holds a space, a control, `?`, `#`, `*` or a byte beyond ASCII"
            )));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Form for PathPrefix {
    const FORM: &'static str = "a path prefix, such as \"/static\"";
}

text_value!(PathPrefix);

impl Form for Vec<NextHopUrl> {
    const FORM: &'static str =
        "a list of URLs of scheme http or https, such as [\"http://10.0.0.1:8080\"]";
}

/// Addresses that this proxy itself listens at, as sorted sets: a hundred thousand routes are
/// checked.
pub(in crate::config) struct OwnPlaces {
    listeners: BTreeSet<SocketAddr>,
    admin: BTreeSet<SocketAddr>,
}

impl OwnPlaces {
    pub(in crate::config) fn new(listeners: &[Listener], admin: &AdminAddress) -> Self {
        Self {
            listeners: listeners.iter().map(|listener| listener.address).collect(),
            admin: admin.socket().into_iter().collect(),
        }
    }

    /// Refuses a next hop at one of them; `key` is where it stands, `hint` what to do.
    fn check(
        &self,
        key: impl FnOnce() -> String,
        hop: &NextHopUrl,
        hint: &str,
    ) -> Result<(), Invalid> {
        let what = if leads_back(hop, &self.listeners) {
            "a listener of this proxy: requests would go round"
        } else if leads_back(hop, &self.admin) {
            "the admin interface of this proxy: every client could purge"
        } else {
            return Ok(());
        };
        Err(Invalid::new(key(), format!("{hop} is {what}"), hint))
    }
}

/// Refuses routes that lead nowhere, twice to the same requests, or back to a listener.
pub(super) fn check(routes: &[Route], own: &OwnPlaces, mistakes: &mut Mistakes) {
    let mut seen = BTreeSet::new();
    for (index, route) in routes.iter().enumerate() {
        let is_new = seen.insert((&route.host, &route.path));
        mistakes.note(check_scope(index, route, is_new));
        mistakes.note(balancing::check(index, route));
        if let Some(probe) = &route.probe {
            mistakes.note(probe.check(index));
        }
        if let Some(tls) = &route.tls {
            mistakes.note(tls.check(index, &route.next_hops));
        }
        if let Some(read_ahead) = route.read_ahead {
            mistakes.note(read_ahead.check(&format!("route[{index}].read_ahead")));
        }
        for (place, hop) in route.next_hops.iter().enumerate() {
            let key = || format!("route[{index}].next_hops[{place}]");
            mistakes.note(own.check(key, hop, "name the origin here, not the proxy"));
        }
    }
}

/// Refuses a route that leads nowhere, and one for the requests of an earlier one.
fn check_scope(index: usize, route: &Route, is_new: bool) -> Result<(), Invalid> {
    if route.next_hops.is_empty() {
        return Err(Invalid::new(
            format!("route[{index}].next_hops"),
            "the list is empty",
            "name at least one, such as [\"http://10.0.0.1:8080\"]",
        ));
    }
    if !is_new {
        return Err(Invalid::new(
            format!("route[{index}]"),
            format!(
                "an earlier route has the same host and path ({})",
                describe(route)
            ),
            "put the next hops of both into one route",
        ));
    }
    Ok(())
}

fn is_none(span: &Span) -> bool {
    *span == Span::ZERO
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn describe(route: &Route) -> String {
    match &route.host {
        Some(host) => format!("{host}{}", route.path),
        None => format!("any host, {}", route.path),
    }
}

/// As far as the text shows. Interfaces, hosts file and name servers are consulted when the proxy
/// starts and connects.
fn leads_back(hop: &NextHopUrl, own: &BTreeSet<SocketAddr>) -> bool {
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let is_localhost = |name: &str| name == "localhost" || name.ends_with(".localhost");
    let addresses = match hop.host.ip().map(|ip| ip.to_canonical()) {
        // a connection to the unspecified address arrives at the loopback
        Some(ip) if ip.is_unspecified() => vec![loopback[usize::from(ip.is_ipv6())]],
        Some(ip) => vec![ip],
        // RFC 6761 §6.3
        None if is_localhost(hop.host.as_str().trim_end_matches('.')) => loopback.to_vec(),
        None => Vec::new(),
    };
    let listens_at = |ip: IpAddr| own.contains(&SocketAddr::new(ip, hop.port));
    addresses.into_iter().any(|ip| {
        let everywhere = match ip {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        listens_at(ip) || (ip.is_loopback() && listens_at(everywhere))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_pattern_and_path_prefix_are_displayed_in_canonical_form() {
        let host = |text: &str| text.parse().map(|pattern: HostPattern| pattern.to_string());
        assert_eq!(host("WWW.Example.com"), Ok("www.example.com".to_owned()));
        assert_eq!(host("*.Example.com"), Ok("*.example.com".to_owned()));
        assert_eq!(host("[0::1]"), Ok("[::1]".to_owned()));
        let path = |text: &str| text.parse().map(|prefix: PathPrefix| prefix.to_string());
        assert_eq!(path("/"), Ok("/".to_owned()));
        assert_eq!(path("/Static/"), Ok("/Static/".to_owned()));
    }

    #[test]
    fn next_hop_at_a_listening_address_of_this_proxy_is_detected() {
        let own = |text: &str| BTreeSet::from([text.parse().unwrap()]);
        let check = |hop: &str, listens: &str, expected: bool| {
            let hop: NextHopUrl = hop.parse().unwrap();
            assert_eq!(leads_back(&hop, &own(listens)), expected, "{hop} {listens}");
        };
        for hop in [
            "http://127.0.0.1:81",
            "http://0.0.0.0:81",
            "http://[::ffff:127.0.0.1]:81",
            "http://localhost:81",
            "http://x.LOCALHOST:81",
        ] {
            check(hop, "127.0.0.1:81", true);
            check(hop, "0.0.0.0:81", true);
            check(hop, "127.0.0.1:82", false);
            check(hop, "10.0.0.1:81", false);
        }
        check("http://127.0.0.2:81", "127.0.0.1:81", false);
        check("http://127.0.0.2:81", "0.0.0.0:81", true);
        check("http://[::]:81", "[::1]:81", true);
        check("http://[::1]:81", "[::]:81", true);
        check("http://[::1]:81", "0.0.0.0:81", false);
        check("http://localhost.example:81", "127.0.0.1:81", false);
    }

    #[test]
    fn malformed_host_pattern_or_path_prefix_is_refused() {
        for text in ["", "*", "*.", "a.*.b", "*.10.0.0.1", "www.*"] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
        for text in ["", "static", "/a b", "/a?b", "/a#b", "/a*", "/ä", "/\u{7f}"] {
            assert!(text.parse::<PathPrefix>().is_err(), "{text}");
        }
    }
}
