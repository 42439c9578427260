//! Where in the life of a request a module is called.

use weir_semantics::words;

words! {
    /// A point in the life of a request at which modules are called.
    ///
    /// *Received* is what comes from a client or a next hop, *sent* what goes to a next hop or a
    /// client: on the way of a response *received* happens once for each fetch, before the response
    /// is stored, and *sent* once for each client, also if the response was stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Hook {
        /// The head of a request has come from the client; it is not judged yet.
        RequestReceived = "request-received",
        /// The head of a request is made for the next hop.
        RequestSent = "request-sent",
        /// The head of a final response has come from the next hop; it is not judged yet, and will
        /// be stored as it is then.
        ResponseReceived = "response-received",
        /// The head of a final response is made for the client.
        ResponseSent = "response-sent",
        /// The exchange is over. Not called for a request that the proxy sends without a client,
        /// such as a validation in the background.
        Done = "done",
    }
}

impl Hook {
    /// Its place in [`Hook::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether modules are called in the reverse order: on the way of a response the module that is
    /// listed first stands nearest to the client, too.
    #[must_use]
    pub const fn is_toward_client(self) -> bool {
        matches!(self, Self::ResponseReceived | Self::ResponseSent)
    }

    /// Whether a module may answer here in the place of a next hop.
    #[must_use]
    pub const fn may_respond(self) -> bool {
        matches!(
            self,
            Self::RequestReceived | Self::RequestSent | Self::ResponseReceived
        )
    }
}

/// A set of hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks(u16);

impl Hooks {
    /// No hook.
    pub const NONE: Self = Self(0);

    /// This set and `hook`.
    #[must_use]
    pub const fn with(self, hook: Hook) -> Self {
        Self(self.0 | 1 << hook.index())
    }

    /// Whether `hook` is in the set.
    #[must_use]
    pub const fn contains(self, hook: Hook) -> bool {
        self.0 & 1 << hook.index() != 0
    }

    /// The hooks that are in one of the sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Hook> for Hooks {
    fn from_iter<T: IntoIterator<Item = Hook>>(hooks: T) -> Self {
        hooks.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_contains_the_hooks_put_in_and_no_other() {
        for chosen in Hook::ALL {
            let set: Hooks = [chosen].into_iter().collect();
            for hook in Hook::ALL {
                assert_eq!(set.contains(hook), hook == chosen);
                assert!(set.union(Hooks::NONE.with(hook)).contains(hook));
            }
            assert!(!set.is_empty());
        }
        assert!(Hooks::NONE.is_empty());
    }
}
