//! What an operator sees of a module that is loaded.

use serde::Serialize;
use std::collections::BTreeMap;
use weir_extend::Hook;
use weir_policy::extension::{ExecutionModel, FailurePolicy};

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
    /// Where it is called.
    pub run: ExecutionModel,
    /// Whether it is called for new requests.
    pub state: ModuleState,
    /// What becomes of a request for which it fails.
    pub on_failure: FailurePolicy,
    /// Whether it may have a response stored that the rules would not store.
    pub may_store: bool,
    /// The hooks that it is called at, in their order.
    pub hooks: Vec<&'static str>,
    /// Calls of it that failed since the proxy started, also under former configurations.
    pub failures: u64,
    /// What it says about itself, a line each.
    pub notes: Vec<String>,
    /// What it counts by itself.
    pub metrics: BTreeMap<String, u64>,
}

/// Whether a module is called for new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// It is.
    Enabled,
    /// It is not, as it failed too often: they are refused or continue without it.
    BreakerOpen,
    /// It is not, as an operator has disabled it: they continue without it.
    Disabled,
}

impl ModuleState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::BreakerOpen => "breaker-open",
            Self::Disabled => "disabled",
        }
    }
}

/// The names of the hooks that `is_hooked` has.
pub(super) fn hook_names(is_hooked: impl Fn(Hook) -> bool) -> Vec<&'static str> {
    let hooks = Hook::ALL.into_iter().filter(|hook| is_hooked(*hook));
    hooks.map(Hook::as_str).collect()
}

/// Appends text of a module as visible ASCII, at most about `bytes_max` bytes of it: what a
/// terminal or a reader of lines may take for more than text is escaped.
pub(crate) fn push_visible(out: &mut String, text: &str, bytes_max: usize) {
    let end = out.len() + bytes_max;
    for character in text.trim_end().chars() {
        if out.len() >= end {
            out.push_str("...");
            break;
        }
        match character {
            '\'' | '"' => out.push(character),
            _ => out.extend(character.escape_default()),
        }
    }
}
