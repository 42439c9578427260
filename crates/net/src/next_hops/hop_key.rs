//! The name of a next hop.

use std::fmt;
use std::sync::Arc;

/// A next hop by host and port: connections are pooled and counted by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HopKey {
    /// Canonical host: lower case, an IPv6 address without brackets.
    pub host: Arc<str>,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for HopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}
