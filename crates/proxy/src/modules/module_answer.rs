//! What a module puts in the place of a response of the next hop.

use weir_extend::LocalResponse;
use weir_policy::extension::ModuleFailure;

/// What a module has put in the place of a response of the next hop.
#[derive(Debug)]
pub(crate) enum ModuleAnswer {
    /// Its own.
    Respond(LocalResponse),
    /// Nothing, as it failed.
    Refuse(ModuleRefusal),
}

impl ModuleAnswer {
    /// The word for a response that was begun and is cut for it.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Respond(_) => "module-answered",
            Self::Refuse(_) => "module-failed",
        }
    }
}

/// A module failed without which a request must not continue.
#[derive(Clone, Debug)]
pub(crate) struct ModuleRefusal {
    /// The module's name.
    pub(crate) name: String,
    pub(crate) failure: ModuleFailure,
}
