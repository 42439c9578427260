//! How the clients' links are shaped.

use crate::failure::Failure;
use crate::link::Namespace;
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use weir_measure::record::{LinkShaping, Mode};
use weir_workload::Scenario;

/// What shapes the clients' links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shaping {
    /// The clients themselves, by reading slowly from small receive buffers. Needs no privileges.
    #[default]
    User,
    /// The kernel: clients in a network namespace, with a token bucket at both ends of a link for
    /// each. Needs root, and a proxy on this machine that listens on all its addresses. Delay and
    /// loss stay in user space.
    Namespace,
}

impl FromStr for Shaping {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "user" => Ok(Self::User),
            "namespace" => Ok(Self::Namespace),
            _ => Err(format!("`{word}` is neither `user` nor `namespace`")),
        }
    }
}

impl std::fmt::Display for Shaping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Namespace => "namespace",
        })
    }
}

impl From<Shaping> for LinkShaping {
    fn from(shaping: Shaping) -> Self {
        match shaping {
            Shaping::User => Self::User,
            Shaping::Namespace => Self::Namespace,
        }
    }
}

/// How long the proxy may take to accept at its new address.
const REACH_MAX: Duration = Duration::from_secs(5);

impl Shaping {
    /// The namespace, if there is one: a scenario without links needs none.
    ///
    /// # Errors
    /// There is no proxy, it cannot be reached from a namespace, or none can be made.
    pub(super) fn namespace(
        self,
        scenario: &Scenario,
        mode: Mode,
        proxy: SocketAddr,
    ) -> Result<Option<Arc<Namespace>>, Failure> {
        let Some(link) = scenario
            .clients
            .link
            .as_ref()
            .filter(|_| self == Self::Namespace)
        else {
            return Ok(None);
        };
        let what = "cannot shape by a namespace";
        if mode == Mode::Direct {
            let cause = "the origin listens on loopback, which a namespace cannot reach";
            return Err(
                Failure::usage(what, cause).with_hint("measure a proxy, or use `--shape user`")
            );
        }
        let namespace = Arc::new(Namespace::new(link, scenario.agents())?);
        let near = namespace.near(0, proxy.port());
        // our own end of the link: what listens there answers through the link as well
        TcpStream::connect_timeout(&near, REACH_MAX).map_err(|error| {
            let cause = format!("no proxy at {near}, where clients reach this machine: {error}");
            Failure::usage(what, cause).with_hint(format!(
                "let the proxy listen on port {} of all addresses of this machine, and let it take requests from 198.18.0.0/15",
                proxy.port()
            ))
        })?;
        Ok(Some(namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_shaping_parses_back_and_unknown_words_are_refused() {
        for shaping in [Shaping::User, Shaping::Namespace] {
            assert_eq!(shaping.to_string().parse(), Ok(shaping));
        }
        assert!("kernel".parse::<Shaping>().is_err());
    }
}
