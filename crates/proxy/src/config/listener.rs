//! Addresses that clients connect to, and what a listener is to them.

pub(super) mod acme;
mod balancers;
pub(super) mod tls;

use crate::config::setting::Setting;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::values::cidr::Cidr;
use crate::config::values::name::Names;
use crate::config::values::text::{Form, choice};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use tls::ListenerTls;
use weir_extend::ListenerMode;
use weir_semantics::Scheme;

/// One `[[listener]]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// Address and port to listen on; port 0 takes any free one.
    #[serde(deserialize_with = "super::values::address::deserialize")]
    pub address: SocketAddr,
    /// Forward proxy, gateway, or for the other nodes of the cluster.
    #[serde(default)]
    pub mode: ListenerKind,
    /// What rules and the access log call it; absent for its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// TLS; absent: requests come in clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
    /// Whether HTTP/2 is spoken, too; absent: under TLS it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<bool>,
    /// Balancers in front, whose connections begin with a header; without any there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxy_protocol: Vec<Cidr>,
}

impl Listener {
    /// Whether it is the listener that `other` is, perhaps with another name or with other
    /// certificates: it stays open when the one takes the place of the other. Of those with port 0,
    /// which may be several, the name tells which one it is.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.address == other.address
            && self.mode == other.mode
            && self.tls.is_some() == other.tls.is_some()
            && self.proxy_protocol == other.proxy_protocol
            && (self.address.port() != 0 || self.name == other.name)
    }

    /// Whether clients may speak HTTP/2.
    pub(crate) fn has_http2(&self) -> bool {
        self.http2.unwrap_or(self.tls.is_some())
    }

    /// The scheme of requests that name none.
    pub(crate) fn scheme(&self) -> Scheme {
        match (self.mode, &self.tls) {
            (ListenerKind::Gateway, Some(_)) => Scheme::Https,
            _ => Scheme::Http,
        }
    }

    pub(super) fn settings() -> Vec<Setting> {
        let mut settings = vec![
            Setting::new::<SocketAddr>(
                "listener[].address",
                &[
                    "Where clients connect; port 0 takes any free one. Without any listener table there is one",
                    "forward listener on 127.0.0.1:3128: loopback, so that a first try opens nothing to the network.",
                ],
            ),
            Setting::new::<ListenerKind>(
                "listener[].mode",
                &[
                    "What the listener is to its clients: `forward` takes absolute-form requests and CONNECT to",
                    "anywhere allowed, `gateway` answers for the next hops of the routes, `peer` takes requests of the other",
                    "members of the cluster alone.",
                ],
            )
            .by_default(&ListenerKind::default()),
            Setting::new::<String>(
                "listener[].name",
                &[
                    "What `rule[].listener` and the access log call the listener, each name once; without it, rules name its address.",
                ],
            ),
        ];
        settings.push(balancers::settings());
        settings.extend(tls::settings());
        settings.push(Setting::new::<bool>(
            "listener[].http2",
            &[
                "Whether clients may speak HTTP/2, beside HTTP/1.1; without it, those of a listener with TLS may. Under TLS",
                "the two choose (ALPN); in clear a client has to know that it may, and begins with it.",
            ],
        ));
        settings
    }
}

impl Listener {
    /// What rules call it: its name, its address if it has none.
    #[must_use]
    pub fn name_or_address(&self) -> String {
        let address = || self.address.to_string();
        self.name.clone().unwrap_or_else(address)
    }
}

impl Default for Listener {
    /// A forward listener on 127.0.0.1:3128: loopback, and the port that Squid made usual.
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 3128)),
            mode: ListenerKind::Forward,
            name: None,
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        }
    }
}

choice! {
    /// Whom a listener is for.
    #[derive(Default)]
    pub enum ListenerKind {
        /// Clients that know of the proxy: absolute-form, CONNECT.
        #[default]
        Forward = "forward",
        /// Clients that take it for the origin: origin-form, routes.
        Gateway = "gateway",
        /// The other members of the cluster.
        Peer = "peer",
    }
}

impl ListenerKind {
    /// What it is to its clients; `None` if they are nodes, whose requests say what their clients
    /// take them for.
    #[must_use]
    pub const fn mode(self) -> Option<Mode> {
        match self {
            Self::Forward => Some(Mode::Forward),
            Self::Gateway => Some(Mode::Gateway),
            Self::Peer => None,
        }
    }
}

impl From<Mode> for ListenerKind {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Forward => Self::Forward,
            Mode::Gateway => Self::Gateway,
        }
    }
}

choice! {
    /// What the proxy is to a client (RFC 9110 §3.7).
    #[derive(Default)]
    pub enum Mode {
        /// A proxy the client knows of: absolute-form, CONNECT.
        #[default]
        Forward = "forward",
        /// A gateway that looks like the origin: origin-form, routes.
        Gateway = "gateway",
    }
}

impl From<Mode> for ListenerMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Forward => Self::Forward,
            Mode::Gateway => Self::Gateway,
        }
    }
}

impl Form for SocketAddr {
    const FORM: &'static str = "an address and port, such as \"127.0.0.1:3128\"";
}

/// Refuses no listener at all, and two that cannot both be bound (`admin` included).
pub(super) fn check(listeners: &[Listener], admin: Option<SocketAddr>, mistakes: &mut Mistakes) {
    if listeners.is_empty() {
        mistakes.note(Err(Invalid::new(
            "listener",
            "there is no listener",
            "remove the line for the default, or add a [[listener]] table",
        )));
    }
    let mut names = Names::new("listener");
    for (index, listener) in listeners.iter().enumerate() {
        mistakes.note(check_address(listeners, index, admin));
        if let Some(name) = &listener.name {
            let key = format!("listener[{index}].name");
            mistakes.note(names.add(&key, name).and_then(|()| check_name(key, name)));
        }
        mistakes.note(balancers::check(index, listener));
        if let Some(tls) = &listener.tls {
            mistakes.note(check_tls(listeners, index, tls));
        }
        if listener.mode == ListenerKind::Peer && listener.http2 == Some(true) {
            mistakes.note(Err(Invalid::new(
                format!("listener[{index}].http2"),
                "members of a cluster speak HTTP/1.1 with each other",
                "remove the line",
            )));
        }
    }
}

/// Refuses the name of a mode: a rule that names it is for all listeners of the mode.
fn check_name(key: String, name: &str) -> Result<(), Invalid> {
    match name.parse::<ListenerKind>() {
        Err(_) => Ok(()),
        Ok(mode) => Err(Invalid::new(
            key,
            format!("`{mode}` is a mode, and not the name of a listener"),
            "give it another name",
        )),
    }
}

fn check_address(
    listeners: &[Listener],
    index: usize,
    admin: Option<SocketAddr>,
) -> Result<(), Invalid> {
    let address = listeners[index].address;
    let mut earlier = listeners[..index].iter();
    if let Some(earlier) = earlier.find(|earlier| overlap(earlier.address, address)) {
        return Err(Invalid::new(
            format!("listener[{index}].address"),
            format!(
                "{address} is already taken by the listener on {}",
                earlier.address
            ),
            "give each listener an address and port of its own",
        ));
    }
    if admin.is_some_and(|admin| overlap(admin, address)) {
        return Err(Invalid::new(
            "admin.address",
            format!("the listener on {address} already takes it"),
            "give admin a port of its own, or set admin.address to \"off\"",
        ));
    }
    Ok(())
}

/// Refuses TLS that makes no sense on the listener with this index.
fn check_tls(listeners: &[Listener], index: usize, tls: &ListenerTls) -> Result<(), Invalid> {
    let listener = &listeners[index];
    if listener.mode == ListenerKind::Peer {
        return Err(Invalid::new(
            format!("listener[{index}].tls"),
            "members of a cluster speak no TLS with each other",
            "remove the `tls` table; `cluster.secret_file` has members prove what they say",
        ));
    }
    // both would be the same to a reload
    let is_other = |other: &&Listener| other.tls.is_some() && other.address == listener.address;
    if listeners[..index].iter().any(|other| is_other(&other)) {
        return Err(Invalid::new(
            format!("listener[{index}].address"),
            format!(
                "two listeners with TLS have the address {}",
                listener.address
            ),
            "give each a port of its own",
        ));
    }
    tls::check(index, tls)
}

/// Whether binding one address makes binding the other fail. Port 0 never clashes.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |wide: SocketAddr, narrow: SocketAddr| {
        wide.ip().is_unspecified() && wide.is_ipv4() == narrow.is_ipv4()
    };
    one.port() != 0
        && one.port() == other.port()
        && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
}
