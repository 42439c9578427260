//! Which ports a tunnel may lead to.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

/// The ports `CONNECT` may lead to. A tunnel carries anything, so a mail or shell port would make
/// the proxy a relay for it (RFC 9110 §9.3.6: restrict `CONNECT` to a limited set of known ports).
/// By default 443 only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectPorts(pub Vec<RangeInclusive<u16>>);

impl Default for ConnectPorts {
    fn default() -> Self {
        Self(vec![443..=443])
    }
}

/// A tunnel to this port is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortDenial(pub u16);

impl PortDenial {
    /// The reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        "connect-port"
    }
}

impl fmt::Display for PortDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CONNECT to port {} is denied", self.0)
    }
}

impl core::error::Error for PortDenial {}

impl ConnectPorts {
    /// Whether a tunnel may lead to `port`. Port 0 is none, whatever the ranges say.
    ///
    /// # Errors
    /// The port again, if not.
    pub fn check(&self, port: u16) -> Result<(), PortDenial> {
        if port != 0 && self.0.iter().any(|range| range.contains(&port)) {
            Ok(())
        } else {
            Err(PortDenial(port))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_is_allowed_only_to_configured_ports() {
        let ports = ConnectPorts::default();
        assert_eq!(ports.check(443), Ok(()));
        for port in [0, 22, 25, 80, 442, 444, 65535] {
            assert_eq!(ports.check(port), Err(PortDenial(port)));
        }
        let ports = ConnectPorts(vec![0..=10, 8443..=8444]);
        let open: Vec<u16> = (0..=u16::MAX)
            .filter(|port| ports.check(*port).is_ok())
            .collect();
        assert_eq!(open, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8443, 8444]);
    }
}
