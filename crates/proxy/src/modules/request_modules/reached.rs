//! How far the calls at a hook have come: to the end, or to a module that has deferred.

use super::{ComparedHead, HookResult, SavedHead};
use weir_extend::{RequestHead, ResponseHead};
use weir_net::Deadline;
use weir_policy::extension::ModuleId;

/// What came of the calls at a hook so far.
pub(crate) enum Reached<'h> {
    /// No module is to be called there any more.
    End(HookResult),
    /// A module has deferred: the others are called when it is ready.
    Deferred(Box<Deferred<'h>>),
}

/// A module that has deferred.
pub(crate) struct Deferred<'h> {
    pub(super) id: ModuleId,
    /// When it has failed. It does not run while content is awaited that it is to be handed.
    pub(super) wait: Deadline,
    /// How often it has deferred at this hook.
    pub(super) count: usize,
    /// The head before its first call, if the request may continue without the module.
    pub(super) saved: Option<SavedHead<'h>>,
    /// The same, if what the module changes may not be stored.
    pub(super) compared: Option<ComparedHead<'h>>,
}

/// A hook in whose middle a request has left the fast path, with the head as it is there. The
/// modules that were called are not called again.
pub(crate) enum UnfinishedHook {
    /// At the head of the request.
    Request(Reached<'static>, RequestHead<'static>),
    /// At the head of the response.
    Response(Reached<'static>, ResponseHead<'static>),
}

impl Reached<'_> {
    /// All modules were called, and the request continues.
    pub(crate) const fn continuing() -> Self {
        Self::End(HookResult::Continue)
    }

    /// Whether the request continues, and no module has deferred.
    pub(crate) fn continues(&self) -> bool {
        matches!(self, Self::End(HookResult::Continue))
    }

    /// The same, which holds all that it is made of.
    pub(crate) fn into_owned(self) -> Reached<'static> {
        match self {
            Self::End(result) => Reached::End(result),
            Self::Deferred(deferred) => Reached::Deferred(Box::new(Deferred {
                id: deferred.id,
                wait: deferred.wait,
                count: deferred.count,
                saved: deferred.saved.map(SavedHead::into_owned),
                compared: deferred
                    .compared
                    .map(|(status, fields)| (status, fields.into_owned())),
            })),
        }
    }
}
