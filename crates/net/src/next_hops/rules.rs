//! The rules by which connections to next hops are opened, waited for and shared.

use super::link::Links;
use crate::tls::TlsClients;
use std::time::Duration;
use weir_policy::connections::OpenRules;
use weir_policy::destination::DestinationRules;

/// The rules for one request.
///
/// They do not change: a program that reads new settings makes new rules, and a request keeps those
/// that it began with.
#[derive(Clone, Debug)]
pub struct ConnectionRules {
    /// Longest time to connect, over all addresses of a next hop and with the TLS handshake. The
    /// time to resolve its name is not part of it.
    pub connect_limit: Duration,
    /// Longest wait for a place among the open connections, or for a file descriptor.
    pub wait_limit: Duration,
    /// How many connections may be open, and what to do when all of them are busy.
    pub open: OpenRules,
    /// Idle connections to keep ready to each configured next hop; 0 opens none in advance.
    pub connections_ahead: usize,
    /// Connections are opened in advance only to next hops that a request used within this time.
    pub used_within: Duration,
    /// Addresses that a client may choose.
    pub destinations: DestinationRules,
    /// What a failure says behind an address that `destinations` denies, such as the name of the
    /// setting that allows more; empty: nothing.
    pub denied_hint: &'static str,
    /// What is moved over which link.
    pub links: Links,
    /// What connections to next hops by TLS are opened with.
    pub tls: TlsClients,
}

impl Default for ConnectionRules {
    /// 10 s to connect, 5 s to wait; at most 256 connections to one next hop and 4096 in all; none
    /// opened in advance; clients may choose public addresses only.
    fn default() -> Self {
        Self {
            connect_limit: Duration::from_secs(10),
            wait_limit: Duration::from_secs(5),
            open: OpenRules {
                per_hop_max: 256,
                total_max: 4096,
                when_busy: weir_policy::connections::WhenBusy::default(),
            },
            connections_ahead: 0,
            used_within: Duration::from_mins(1),
            destinations: DestinationRules::default(),
            denied_hint: "",
            links: Links::default(),
            tls: TlsClients::default(),
        }
    }
}
