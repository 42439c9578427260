//! What is to be said of a stored response that answers a request, beside how it does.

use weir_semantics::words;

words! {
    /// How a rule of the operator departs from RFC 9111.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Deviation {
        /// A directive of the request was ignored (RFC 9111 §5.2.1): without the rule the request
        /// would have been forwarded.
        RequestDirective = "request-directive",
        /// A lifetime was forced (§4.2.1), or given to a response whose status has none (§4.2.2):
        /// without the rule the response would have been stale, or not stored.
        LifetimeForced = "lifetime-forced",
        /// A response was served stale that nothing but the rule permits to be (§4.2.4).
        Stale = "stale",
        /// A directive of the response was ignored (§5.2.2): it was stored by what remains.
        ResponseDirective = "response-directive",
        /// A response was shared that says that it is for one user, or does not say that it may be
        /// shared (§3, §3.5, §7.3).
        Shared = "shared",
        /// The cache key is not that of the target URI (§2): parameters of its query were dropped
        /// or sorted.
        Key = "key",
    }
}

/// Facts of a stored response that answers a request, in one byte: a hit looks at all of them at
/// once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

const DISK: u8 = 1;
const REQUEST_DIRECTIVE: u8 = 2;
const LIFETIME_FORCED: u8 = 4;
const STALE: u8 = 8;
const RESPONSE_DIRECTIVE: u8 = 16;
const SHARED: u8 = 32;
const KEY: u8 = 64;

impl Marks {
    /// None.
    pub const NONE: Self = Self(0);

    /// The response, or its content, came from disk and not from memory.
    #[must_use]
    pub const fn from_disk(self) -> Self {
        Self(self.0 | DISK)
    }

    /// A rule departs from RFC 9111.
    #[must_use]
    pub const fn deviating(self, deviation: Deviation) -> Self {
        match deviation {
            Deviation::RequestDirective => Self(self.0 | REQUEST_DIRECTIVE),
            Deviation::LifetimeForced => Self(self.0 | LIFETIME_FORCED),
            Deviation::Stale => Self(self.0 | STALE),
            Deviation::ResponseDirective => Self(self.0 | RESPONSE_DIRECTIVE),
            Deviation::Shared => Self(self.0 | SHARED),
            Deviation::Key => Self(self.0 | KEY),
        }
    }

    /// Whether there is one.
    #[must_use]
    pub const fn are_any(self) -> bool {
        self.0 != 0
    }

    /// Whether the response came from disk.
    #[must_use]
    pub const fn is_from_disk(self) -> bool {
        self.0 & DISK != 0
    }

    /// Whether a rule departs from RFC 9111.
    #[must_use]
    pub const fn is_by_rule(self) -> bool {
        self.0 & !DISK != 0
    }

    /// How rules depart from RFC 9111.
    pub fn deviations(self) -> impl Iterator<Item = Deviation> {
        let all = Deviation::ALL.into_iter();
        all.filter(move |deviation| self.deviating(*deviation) == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept_apart() {
        let (none, disk) = (Marks::NONE, Marks::NONE.from_disk());
        assert!(!none.are_any() && !none.is_by_rule() && !none.is_from_disk());
        assert!(disk.are_any() && disk.is_from_disk() && !disk.is_by_rule());
        for deviation in Deviation::ALL {
            let one = none.deviating(deviation);
            assert!(one.is_by_rule() && !one.is_from_disk());
            assert!(one.deviations().eq([deviation]));
            let both = one.from_disk();
            assert!(both.is_by_rule() && both.is_from_disk());
        }
    }
}
