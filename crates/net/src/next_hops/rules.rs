//! The rules by which connections to next hops are opened, waited for and shared.

use std::time::Duration;
use weir_policy::connections::OpenRules;
use weir_policy::destination::DestinationRules;

/// The rules for one request. They do not change: a program that reads new settings makes new
/// rules, and what has begun keeps those that it began with.
#[derive(Clone, Debug)]
pub struct ConnectionRules {
    /// Longest time to connect, over all addresses of a next hop. The time to resolve its name is
    /// not part of it.
    pub connect_limit: Duration,
    /// Longest wait for a place among the open connections, or for a file descriptor.
    pub wait_limit: Duration,
    /// How many connections may be open, and what to do when all of them are busy.
    pub open: OpenRules,
    /// Idle connections to keep ready to each configured next hop; 0 opens none in advance.
    pub connections_ahead: usize,
    /// Connections are opened in advance only to next hops that a request used this lately.
    pub used_within: Duration,
    /// Addresses that a client may choose.
    pub destinations: DestinationRules,
    /// What a failure says behind an address that `destinations` denies, such as the name of the
    /// setting that allows more; empty if there is nothing to say.
    pub denied_hint: &'static str,
}
