//! What a log shows of a parent or sibling that a request was sent to.

use crate::config::ParentKind;
use crate::settings::hierarchy::ConfiguredProxy;
use weir_policy::route::policy::PolicyKind;

/// A parent or sibling that a request was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedProxy {
    kind: ParentKind,
    policy: PolicyKind,
}

impl LoggedProxy {
    /// Of a parent or sibling.
    pub(crate) const fn of(proxy: &ConfiguredProxy) -> Self {
        Self {
            kind: proxy.kind,
            policy: proxy.policy,
        }
    }

    /// What it is.
    pub(crate) const fn word(self) -> &'static str {
        self.kind.as_str()
    }

    /// Squid's code for how it was chosen. A sibling whose response was used had it stored.
    pub(crate) const fn squid_code(self) -> &'static str {
        match (self.kind, self.policy) {
            (ParentKind::Sibling, _) => "SIBLING_HIT",
            (ParentKind::Parent, PolicyKind::InTurn) => "ROUNDROBIN_PARENT",
            (ParentKind::Parent, policy) if policy.uses_target() => "CARP",
            (ParentKind::Parent, _) => "FIRSTUP_PARENT",
        }
    }
}
