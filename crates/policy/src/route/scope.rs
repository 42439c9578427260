//! Targets by host and path prefix, without a next hop.

use super::host::{self, HostPattern};
use super::is_prefix;
use alloc::string::String;

/// The targets that something of an operator's is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The hosts; `None` for any.
    pub host: Option<HostPattern>,
    /// What the path begins with, in whole segments; `/` for any.
    pub path_prefix: String,
}

impl Scope {
    /// Whether a target is among them, as [`Routes::find`] decides for a route: `host` without
    /// port, in any case; `path` as received, with or without query, or `*`.
    ///
    /// [`Routes::find`]: super::Routes::find
    #[must_use]
    pub fn covers(&self, host: &str, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or(path);
        is_prefix(&self.path_prefix, path) && self.covers_host(host)
    }

    fn covers_host(&self, host: &str) -> bool {
        let host = host::canonical(host);
        match &self.host {
            None => true,
            Some(HostPattern::Exact(exact)) => *host == *host::canonical(exact),
            Some(HostPattern::Suffix(suffix)) => {
                let suffix = host::canonical(suffix);
                let below = host.strip_suffix(&*suffix);
                below.is_some_and(|below| below.ends_with('.'))
            }
        }
    }
}
