//! Targets by host and path prefix, without a next hop.

use super::host::{self, HostPattern};
use super::is_prefix;
use alloc::string::String;
use weir_semantics::without_query;

/// The targets that something of an operator's is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The hosts, canonical; `None` for any.
    host: Option<HostPattern>,
    path_prefix: String,
}

impl Scope {
    /// The targets of the hosts that `host` names, `None` for any, whose path begins with
    /// `path_prefix`, in whole segments; `/` for any.
    #[must_use]
    pub fn new(host: Option<HostPattern>, path_prefix: &str) -> Self {
        Self {
            host: host.map(|pattern| match pattern {
                HostPattern::Exact(exact) => {
                    HostPattern::Exact(host::canonical(&exact).into_owned())
                }
                HostPattern::Suffix(suffix) => {
                    HostPattern::Suffix(host::canonical(&suffix).into_owned())
                }
            }),
            path_prefix: String::from(path_prefix),
        }
    }

    /// The hosts; `None` for any.
    #[must_use]
    pub const fn host(&self) -> Option<&HostPattern> {
        self.host.as_ref()
    }

    /// What the path begins with, in whole segments; `/` for any.
    #[must_use]
    pub fn path_prefix(&self) -> &str {
        &self.path_prefix
    }

    /// Whether a target is among them, as [`Routes::find`] decides for a route: `host` without
    /// port, in any case; `path` as received, with or without query, or `*`.
    ///
    /// [`Routes::find`]: super::Routes::find
    #[must_use]
    #[inline]
    pub fn covers(&self, host: &[u8], path: &str) -> bool {
        self.covers_host(host) && (self.path_prefix == "/" || self.covers_path(path))
    }

    #[inline]
    fn covers_host(&self, host: &[u8]) -> bool {
        let host = host.strip_suffix(b".").unwrap_or(host);
        match &self.host {
            None => true,
            // mostly another length: nothing is compared
            Some(HostPattern::Exact(exact)) => host.eq_ignore_ascii_case(exact.as_bytes()),
            Some(HostPattern::Suffix(suffix)) => {
                let below = host.len().checked_sub(suffix.len());
                let split = below.and_then(|below| host.split_at_checked(below));
                split.is_some_and(|(below, end)| {
                    below.ends_with(b".") && end.eq_ignore_ascii_case(suffix.as_bytes())
                })
            }
        }
    }

    fn covers_path(&self, path: &str) -> bool {
        let path = without_query(path);
        is_prefix(&self.path_prefix, path)
    }
}
