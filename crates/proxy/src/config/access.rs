//! Clients that may use forward listeners, and destinations that these may reach.

pub(crate) mod forwarded;
pub(crate) mod login;

use crate::config::listener::{Listener, ListenerKind};
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::setting::table;
use crate::config::values::cidr::Cidr;
use crate::config::values::text::Form;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr};

table! {
    /// The `[access]` table. In both pairs the denial wins.
    pub struct Access in "access" {
        /// Clients that may use forward listeners. This machine alone, so that opening a listener
        /// to the network does not give the proxy to everyone there. Gateways are for all that
        /// reach them; a rule with `client` and `deny` shuts clients out.
        clients: Vec<Cidr> = loopback();
        /// Clients that may not use them, even if `clients` has them.
        deny_clients: Vec<Cidr> = Vec::new();
        /// Destinations that a forward proxy may reach although they are denied by default:
        /// loopback, private, link-local and metadata addresses. They are denied so that no client
        /// reads an internal service through the proxy. The address is checked after resolution,
        /// with every connection. Next hops of routes need no entry.
        allow_destinations: Vec<Cidr> = Vec::new();
        /// Destinations that are denied in addition to the defaults.
        deny_destinations: Vec<Cidr> = Vec::new();
        /// Ports that CONNECT may reach; an empty list refuses CONNECT. 443 alone, since a tunnel
        /// to port 25 sends mail.
        connect_ports: Vec<u16> = vec![443];
    }
}

impl Form for Vec<u16> {
    const FORM: &'static str = "a list of ports, such as [443, 8443]";
}

fn loopback() -> Vec<Cidr> {
    let v4 = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
    let v6 = Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128);
    vec![Cidr::from(IpNet::V4(v4)), Cidr::from(IpNet::V6(v6))]
}

/// Refuses rules that contradict each other, and a proxy open to the world.
pub(super) fn check(access: &Access, listeners: &[Listener], mistakes: &mut Mistakes) {
    mistakes.note(check_pair(
        "clients",
        &access.clients,
        "deny_clients",
        &access.deny_clients,
    ));
    mistakes.note(check_pair(
        "allow_destinations",
        &access.allow_destinations,
        "deny_destinations",
        &access.deny_destinations,
    ));
    if let Some(index) = access.connect_ports.iter().position(|&port| port == 0) {
        mistakes.note(Err(Invalid::new(
            format!("access.connect_ports[{index}]"),
            "0 is not a port that can be reached",
            "name the ports CONNECT may reach, such as [443]",
        )));
    }
    mistakes.note(check_clients(access, listeners));
    mistakes.note(check_effect(access, listeners));
}

/// What shuts clients out of gateways, and holds for forward listeners as well.
const DENIED_BY_RULE: &str = "to deny clients of gateways, use a rule with `client` and `deny`";

/// The key that says who may use forward listeners, if one does.
fn key_of_clients(access: &Access) -> Option<&'static str> {
    match (access.deny_clients.is_empty(), access.clients == loopback()) {
        (false, _) => Some("access.deny_clients"),
        (true, false) => Some("access.clients"),
        (true, true) => None,
    }
}

/// Refuses clients of forward listeners where there are none: an operator who names them for a
/// gateway believes that it is closed to others.
fn check_effect(access: &Access, listeners: &[Listener]) -> Result<(), Invalid> {
    let has_forward = listeners.iter().any(is_forward);
    match key_of_clients(access).filter(|_| !has_forward) {
        None => Ok(()),
        Some(key) => Err(Invalid::new(
            key,
            "it is for clients of forward listeners, and there is none: no client would be denied",
            format!("remove the line; {DENIED_BY_RULE}"),
        )),
    }
}

/// Clients that are named for forward listeners beside gateways, which everyone may use.
pub(super) fn warnings(access: &Access, listeners: &[Listener]) -> Vec<Invalid> {
    let mut gateways = listeners.iter();
    let gateway = gateways.find(|listener| listener.mode == ListenerKind::Gateway);
    let has_forward = listeners.iter().any(is_forward);
    match (key_of_clients(access), gateway) {
        (Some(key), Some(gateway)) if has_forward => vec![Invalid::new(
            key,
            format!(
                "it is for forward listeners alone: the gateway on {} is for all clients that \
                 reach it",
                gateway.address
            ),
            DENIED_BY_RULE,
        )],
        _ => Vec::new(),
    }
}

fn is_forward(listener: &Listener) -> bool {
    listener.mode == ListenerKind::Forward
}

fn check_clients(access: &Access, listeners: &[Listener]) -> Result<(), Invalid> {
    if access.clients.is_empty() && listeners.iter().any(is_forward) {
        return Err(Invalid::new(
            "access.clients",
            "the list is empty, so that nobody may use the forward listener",
            "remove the line for clients on this machine, or name networks",
        ));
    }
    let open = listeners
        .iter()
        .filter(|listener| is_forward(listener))
        .find(|listener| !listener.address.ip().is_loopback());
    let everybody = access.clients.iter().position(Cidr::is_everything);
    if let (Some(listener), Some(index)) = (open, everybody) {
        return Err(Invalid::new(
            format!("access.clients[{index}]"),
            format!(
                "{} makes the forward listener on {} an open proxy",
                access.clients[index], listener.address
            ),
            "name the networks of your clients, such as \"10.0.0.0/8\"",
        ));
    }
    Ok(())
}

fn check_pair(yes_key: &str, yes: &[Cidr], no_key: &str, no: &[Cidr]) -> Result<(), Invalid> {
    match no.iter().position(|denied| yes.contains(denied)) {
        None => Ok(()),
        Some(index) => Err(Invalid::new(
            format!("access.{no_key}[{index}]"),
            format!("{} is in access.{yes_key} as well", no[index]),
            "remove it from one of the two",
        )),
    }
}
