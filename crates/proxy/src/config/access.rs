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
        /// to the network does not give the proxy to everyone there.
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
}

fn check_clients(access: &Access, listeners: &[Listener]) -> Result<(), Invalid> {
    let forward = |listener: &&Listener| listener.mode == ListenerKind::Forward;
    if access.clients.is_empty() && listeners.iter().any(|listener| forward(&listener)) {
        return Err(Invalid::new(
            "access.clients",
            "the list is empty, so that nobody may use the forward listener",
            "remove the line for clients on this machine, or name networks",
        ));
    }
    let open = listeners
        .iter()
        .filter(forward)
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
