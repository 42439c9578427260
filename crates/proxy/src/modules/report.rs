//! What an operator sees of a module that is loaded.

use serde::Serialize;
use weir_extend::Hook;
use weir_policy::extension::FailurePolicy;

/// A module of the configuration in force. The names are those of the JSON form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleReport {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The hosts whose requests it is for; `None` for any.
    pub host: Option<String>,
    /// What the path of these requests begins with.
    pub path: String,
    /// Whether requests that begin now pass it.
    pub state: ModuleState,
    /// What becomes of a request for which it fails.
    pub on_failure: FailurePolicy,
    /// Whether it may have a response stored that the rules would not store.
    pub may_store: bool,
    /// The hooks that it is called at, in their order.
    pub hooks: Vec<&'static str>,
    /// Calls of it that failed since the proxy started, also under former configurations.
    pub failures: u64,
}

/// Whether requests that begin now pass a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// They do.
    Enabled,
    /// It failed too often: it is not called, and they are refused or continue without it.
    Resting,
    /// An operator has disabled it: they continue without it.
    Disabled,
}

impl ModuleState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Resting => "resting",
            Self::Disabled => "disabled",
        }
    }
}

/// The names of the hooks that `is_hooked` has.
pub(super) fn hook_names(is_hooked: impl Fn(Hook) -> bool) -> Vec<&'static str> {
    let hooks = Hook::ALL.into_iter().filter(|hook| is_hooked(*hook));
    hooks.map(Hook::as_str).collect()
}
