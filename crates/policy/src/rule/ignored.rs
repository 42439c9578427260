//! Directives that a rule has the proxy ignore.

use weir_semantics::RequestDirectives;

crate::choice! {
    /// A directive, and in which message it is ignored.
    pub enum IgnoredDirective {
        /// `no-cache` of a request (RFC 9111 §5.2.1.4), and `Pragma: no-cache` (§5.4): what a
        /// client reloads by.
        RequestNoCache = "request no-cache",
        /// `max-age` of a request (§5.2.1.1).
        RequestMaxAge = "request max-age",
        /// `min-fresh` of a request (§5.2.1.3).
        RequestMinFresh = "request min-fresh",
        /// `max-stale` of a request (§5.2.1.2).
        RequestMaxStale = "request max-stale",
    }
}

/// A set of directives of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestIgnored(u8);

impl RequestIgnored {
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether there is none in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn has(self, directive: IgnoredDirective) -> bool {
        self.0 & 1 << directive as u8 != 0
    }

    /// Takes these out of `left`. What that was; `None` if there is none in the set.
    #[must_use]
    pub fn take_from(self, left: &mut RequestDirectives) -> Option<RequestDirectives> {
        if self.is_empty() {
            return None;
        }
        let before = *left;
        if self.has(IgnoredDirective::RequestNoCache) {
            left.no_cache = false;
        }
        if self.has(IgnoredDirective::RequestMaxAge) {
            left.max_age = None;
        }
        if self.has(IgnoredDirective::RequestMinFresh) {
            left.min_fresh = None;
        }
        if self.has(IgnoredDirective::RequestMaxStale) {
            left.max_stale = None;
        }
        Some(before)
    }
}

impl FromIterator<IgnoredDirective> for RequestIgnored {
    fn from_iter<T: IntoIterator<Item = IgnoredDirective>>(directives: T) -> Self {
        let bits = directives.into_iter().map(|directive| 1 << directive as u8);
        Self(bits.fold(0, |all, bit: u8| all | bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::DeltaSeconds;

    #[test]
    fn ignored_directive_is_gone_and_no_other() {
        let some = Some(DeltaSeconds(1));
        let all = RequestDirectives {
            no_cache: true,
            no_store: true,
            no_transform: true,
            only_if_cached: true,
            max_age: some,
            min_fresh: some,
            max_stale: some,
            any: true,
        };
        for directive in IgnoredDirective::ALL {
            let mut left = all;
            let before = RequestIgnored::from_iter([directive]).take_from(&mut left);
            assert_eq!(before, Some(all));
            let mut expected = all;
            match directive {
                IgnoredDirective::RequestNoCache => expected.no_cache = false,
                IgnoredDirective::RequestMaxAge => expected.max_age = None,
                IgnoredDirective::RequestMinFresh => expected.min_fresh = None,
                IgnoredDirective::RequestMaxStale => expected.max_stale = None,
            }
            assert_eq!(left, expected, "{directive}");
        }
        let mut left = all;
        assert_eq!(RequestIgnored::NONE.take_from(&mut left), None);
        assert_eq!(left, all);
    }
}
