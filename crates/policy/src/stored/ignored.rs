//! Directives that a rule has the proxy ignore.

use crate::verdict::Deviation;
use weir_semantics::{
    DeltaSeconds, NotStorable, RequestDirectives, RequestFacts, ResponseDirectives, ResponseFacts,
    storable,
};

crate::choice! {
    /// A directive, and in which message it is ignored.
    #[derive(PartialOrd, Ord)]
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
        /// `Authorization` of a request (§3.5): the response to credentials is shared though it
        /// does not say that it may be.
        RequestAuthorization = "request authorization",
        /// `no-cache` of a response (§5.2.2.4), of single fields, too.
        ResponseNoCache = "response no-cache",
        /// `must-revalidate` of a response (§5.2.2.2).
        ResponseMustRevalidate = "response must-revalidate",
        /// `proxy-revalidate` of a response (§5.2.2.8).
        ResponseProxyRevalidate = "response proxy-revalidate",
        /// `max-age` of a response (§5.2.2.1).
        ResponseMaxAge = "response max-age",
        /// `s-maxage` of a response (§5.2.2.10).
        ResponseSMaxage = "response s-maxage",
        /// `Expires` of a response (§5.3).
        ResponseExpires = "response expires",
        /// `no-store` of a response (§5.2.2.5).
        ResponseNoStore = "response no-store",
        /// `private` of a response (§5.2.2.7), of single fields, too.
        ResponsePrivate = "response private",
        /// `Set-Cookie` of a response (§7.3): it is shared though it does not say that it may be.
        ResponseSetCookie = "response set-cookie",
    }
}

impl IgnoredDirective {
    /// Whether it is ignored when a response is stored, which is for all clients; the others are
    /// when one is chosen.
    #[must_use]
    pub const fn is_of_storing(self) -> bool {
        !matches!(
            self,
            Self::RequestNoCache
                | Self::RequestMaxAge
                | Self::RequestMinFresh
                | Self::RequestMaxStale
        )
    }

    /// Whether one user can see by it what is for another.
    #[must_use]
    pub const fn shares(self) -> bool {
        matches!(
            self,
            Self::RequestAuthorization
                | Self::ResponseNoStore
                | Self::ResponsePrivate
                | Self::ResponseSetCookie
        )
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of directives of requests that are ignored when a response is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestIgnored(u16);

impl RequestIgnored {
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether there is none in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn has(self, directive: IgnoredDirective) -> bool {
        self.0 & directive.bit() != 0
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
        let of_requests = directives.into_iter().filter(|it| !it.is_of_storing());
        Self(of_requests.fold(0, |all, directive| all | directive.bit()))
    }
}

/// A set of directives that are ignored when a response is stored. With a stored response it is
/// kept which of them would have forbidden or shortened its use: it is used only where a rule still
/// has these ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoringIgnored(u16);

impl StoringIgnored {
    /// None.
    pub const NONE: Self = Self(0);

    /// No directive, but the rule of RFC 9111 §3 that a response is stored only if it says its
    /// lifetime or has a status for which a cache may choose one (§4.2.2). It is ignored where a
    /// rule that names the status, such as 302 or 503, has `lifetime`, by default or forced. A
    /// response that was stored so has the rule's lifetime, is used only while a rule gives it
    /// one, and answers no request with credentials or a cookie.
    pub const LIFETIME_GIVEN: Self = Self(1 << 15);

    /// Whether there is none in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as a number, for records on disk: a bit a directive, which never changes its
    /// meaning.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set of a number; `None` if one of its bits means nothing here.
    #[must_use]
    pub fn from_bits(bits: u16) -> Option<Self> {
        let known: Self = IgnoredDirective::ALL.into_iter().collect();
        let known = known.and(Self::LIFETIME_GIVEN);
        (bits & !known.0 == 0).then_some(Self(bits))
    }

    /// How a response departs from RFC 9111 that is stored since these were ignored.
    #[must_use]
    pub fn deviation(self) -> Option<Deviation> {
        match (self.is_empty(), self.shares()) {
            (true, _) => None,
            _ if self == Self::LIFETIME_GIVEN => Some(Deviation::LifetimeForced),
            (false, false) => Some(Deviation::ResponseDirective),
            (false, true) => Some(Deviation::Shared),
        }
    }

    /// Whether a rule gives the lifetime of a response that has none.
    #[must_use]
    pub const fn gives_lifetime(self) -> bool {
        self.0 & Self::LIFETIME_GIVEN.0 != 0
    }

    /// Those that `others` lacks.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether one user can see by one of them what is for another.
    #[must_use]
    pub fn shares(self) -> bool {
        let mut all = IgnoredDirective::ALL.into_iter();
        all.any(|directive| directive.shares() && self.has(directive))
    }

    /// Whether it has this one.
    #[must_use]
    pub const fn has(self, directive: IgnoredDirective) -> bool {
        self.0 & directive.bit() != 0
    }

    /// Takes what says how long a response may be used out of what it says. Which directives that
    /// were.
    fn take_uses(self, left: &mut ResponseFacts) -> Self {
        let said = &left.directives;
        let there = [
            (IgnoredDirective::ResponseNoCache, said.needs_validation()),
            (
                IgnoredDirective::ResponseMustRevalidate,
                said.must_revalidate,
            ),
            (
                IgnoredDirective::ResponseProxyRevalidate,
                said.proxy_revalidate,
            ),
            (IgnoredDirective::ResponseMaxAge, said.max_age.is_some()),
            (IgnoredDirective::ResponseSMaxage, said.s_maxage.is_some()),
            (IgnoredDirective::ResponseExpires, left.expires.is_some()),
        ];
        let taken = there.into_iter().filter(|it| it.1 && self.has(it.0));
        let taken: Self = taken.map(|it| it.0).collect();
        left.directives = taken.left_of(&left.directives);
        if taken.has(IgnoredDirective::ResponseExpires) {
            left.expires = None;
        }
        taken
    }

    /// Whether what says how long a response may be used stays in force. It may be all that keeps
    /// one user from what is for another: an origin that is asked at each use looks at who asks.
    const fn keeps_uses(self, request: &RequestFacts, response: &ResponseFacts) -> bool {
        request.has_authorization && !self.has(IgnoredDirective::RequestAuthorization)
            || request.has_cookie && !self.has(IgnoredDirective::ResponsePrivate)
            || response.has_set_cookie && !self.has(IgnoredDirective::ResponseSetCookie)
    }

    /// Takes what forbids to store a response out of `request` and `left`, if that is `why`. What
    /// that was; `None` if it is not ignored.
    fn take_reason(
        self,
        why: NotStorable,
        (request, left): (&mut RequestFacts, &mut ResponseFacts),
    ) -> Option<Self> {
        let directive = match why {
            NotStorable::Authorization => IgnoredDirective::RequestAuthorization,
            NotStorable::ResponseNoStore => IgnoredDirective::ResponseNoStore,
            NotStorable::Private => IgnoredDirective::ResponsePrivate,
            _ => return None,
        };
        match directive {
            IgnoredDirective::RequestAuthorization => request.has_authorization = false,
            IgnoredDirective::ResponseNoStore => left.directives.no_store = false,
            _ => left.directives.private = false,
        }
        self.has(directive).then_some(Self(directive.bit()))
    }

    /// Gives the response the lifetime of a rule, as if it said so itself. `None` if no rule does.
    fn give_lifetime(
        self,
        lifetime: Option<DeltaSeconds>,
        left: &mut ResponseFacts,
    ) -> Option<Self> {
        left.directives.max_age = Some(lifetime.filter(|_| self.gives_lifetime())?);
        Some(Self::LIFETIME_GIVEN)
    }

    /// A response and its request without what is ignored, and which directives that were: of those
    /// that forbid to store it, only those that would have. `lifetime` is what a rule gives it
    /// where it has none.
    ///
    /// # Errors
    ///
    /// Why it may not be stored nevertheless.
    pub fn storable(
        self,
        request: &RequestFacts,
        response: &ResponseFacts,
        lifetime: Option<DeltaSeconds>,
    ) -> Result<(ResponseFacts, Self), NotStorable> {
        let (mut request, mut left) = (*request, *response);
        let keeps_uses = self.keeps_uses(&request, &left);
        let mut taken = match keeps_uses {
            true => Self::NONE,
            false => self.take_uses(&mut left),
        };
        // a reason that is taken away does not come back: this ends
        while let Err(why) = storable(&request, &left) {
            let reason = match why {
                // what is for one user may be so for the want of a lifetime alone
                NotStorable::NoExplicitLifetime if keeps_uses => None,
                NotStorable::NoExplicitLifetime => self.give_lifetime(lifetime, &mut left),
                _ => self.take_reason(why, (&mut request, &mut left)),
            };
            taken.0 |= reason.ok_or(why)?.0;
        }
        Ok((left, taken))
    }

    /// That it sets a cookie, if that is ignored. Not of what answers a cookie or credentials: it
    /// is a cookie of one user.
    #[must_use]
    pub const fn set_cookie(self, request: &RequestFacts) -> Option<Self> {
        let directive = IgnoredDirective::ResponseSetCookie;
        let is_of_user = request.has_cookie || request.has_authorization;
        if self.has(directive) && !is_of_user {
            Some(Self(directive.bit()))
        } else {
            None
        }
    }

    /// Those of both.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// `directives` without those that are in it.
    #[must_use]
    pub const fn left_of(self, directives: &ResponseDirectives) -> ResponseDirectives {
        let mut left = *directives;
        if self.has(IgnoredDirective::ResponseNoCache) {
            left.no_cache = false;
            left.no_cache_fields = false;
        }
        if self.has(IgnoredDirective::ResponseMustRevalidate) {
            left.must_revalidate = false;
        }
        if self.has(IgnoredDirective::ResponseProxyRevalidate) {
            left.proxy_revalidate = false;
        }
        if self.has(IgnoredDirective::ResponseMaxAge) {
            left.max_age = None;
        }
        if self.has(IgnoredDirective::ResponseSMaxage) {
            left.s_maxage = None;
        }
        if self.has(IgnoredDirective::ResponseNoStore) {
            left.no_store = false;
        }
        if self.has(IgnoredDirective::ResponsePrivate) {
            left.private = false;
        }
        left
    }
}

impl FromIterator<IgnoredDirective> for StoringIgnored {
    fn from_iter<T: IntoIterator<Item = IgnoredDirective>>(directives: T) -> Self {
        let of_storing = directives.into_iter().filter(|it| it.is_of_storing());
        Self(of_storing.fold(0, |all, directive| all | directive.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::{DeltaSeconds, FieldLine, Method, Timestamp};

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
        let of_requests = IgnoredDirective::ALL.into_iter();
        for directive in of_requests.filter(|it| !it.is_of_storing()) {
            let mut left = all;
            let before = RequestIgnored::from_iter([directive]).take_from(&mut left);
            assert_eq!(before, Some(all));
            let mut expected = all;
            match directive {
                IgnoredDirective::RequestNoCache => expected.no_cache = false,
                IgnoredDirective::RequestMaxAge => expected.max_age = None,
                IgnoredDirective::RequestMinFresh => expected.min_fresh = None,
                _ => expected.max_stale = None,
            }
            assert_eq!(left, expected, "{directive}");
        }
        let mut left = all;
        assert_eq!(RequestIgnored::NONE.take_from(&mut left), None);
        assert_eq!(left, all);
    }

    /// What becomes of a response with this `Cache-Control` to a request with these fields.
    fn check(
        ignored: &[IgnoredDirective],
        request: &[(&str, &str)],
        said: &str,
        expected: Result<(&str, &[IgnoredDirective]), NotStorable>,
    ) {
        let request: Vec<_> = request
            .iter()
            .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
            .collect();
        let request = RequestFacts::gather(Method::Get, "/", &request);
        let of = |said: &str| {
            let line = FieldLine::new("Cache-Control", said.as_bytes());
            ResponseFacts::gather(200, &[line], Timestamp(0)).directives
        };
        let mut response = ResponseFacts::gather(200, &[], Timestamp(0));
        response.directives = of(said);
        let ignored: StoringIgnored = ignored.iter().copied().collect();
        let found = ignored.storable(&request, &response, None);
        let expected = expected.map(|(left, taken)| (of(left), taken.iter().copied().collect()));
        let found = found.map(|(left, taken)| (left.directives, taken));
        assert_eq!(found, expected, "{said}");
    }

    #[test]
    fn response_is_stored_without_what_is_ignored_and_which_that_was_is_known() {
        use IgnoredDirective::{
            RequestAuthorization, ResponseMaxAge, ResponseMustRevalidate, ResponseNoCache,
            ResponseNoStore, ResponsePrivate, ResponseProxyRevalidate, ResponseSMaxage,
        };
        check(&[], &[], "max-age=1", Ok(("max-age=1", &[])));
        check(&[], &[], "private", Err(NotStorable::Private));
        let all = [
            ResponseNoCache,
            ResponseMustRevalidate,
            ResponseProxyRevalidate,
            ResponseMaxAge,
            ResponseSMaxage,
        ];
        check(&all, &[], "public", Ok(("public", &[])));
        check(
            &all,
            &[],
            "no-cache=\"x\", must-revalidate, proxy-revalidate, max-age=1, s-maxage=2, public",
            Ok(("public", &all)),
        );
        check(&all, &[], "no-store", Err(NotStorable::ResponseNoStore));
        check(
            &[ResponseNoStore],
            &[],
            "no-store, private",
            Err(NotStorable::Private),
        );
        check(
            &[ResponseNoStore, ResponsePrivate],
            &[],
            "no-store, private, max-age=1",
            Ok(("max-age=1", &[ResponseNoStore, ResponsePrivate])),
        );
        let credentials = [("Authorization", "Basic eDp5")];
        check(
            &[ResponsePrivate],
            &credentials,
            "max-age=1",
            Err(NotStorable::Authorization),
        );
        check(
            &[RequestAuthorization],
            &credentials,
            "max-age=1",
            Ok(("max-age=1", &[RequestAuthorization])),
        );
        // what the response permits itself is no departure
        check(
            &[RequestAuthorization],
            &credentials,
            "public, max-age=1",
            Ok(("public, max-age=1", &[])),
        );
        check(
            &[RequestAuthorization],
            &[("Cache-Control", "no-store")],
            "max-age=1",
            Err(NotStorable::RequestNoStore),
        );
    }

    #[test]
    fn nothing_of_one_user_is_used_for_longer_without_word_that_it_is_shared() {
        use IgnoredDirective::{
            RequestAuthorization, ResponseMaxAge, ResponseNoCache, ResponsePrivate,
        };
        let uses = [ResponseNoCache, ResponseMaxAge];
        let said = "public, no-cache, max-age=0";
        check(&uses, &[], said, Ok(("public", &uses)));
        for (field, share) in [
            (("Authorization", "Basic eDp5"), RequestAuthorization),
            (("Cookie", "user=alice"), ResponsePrivate),
        ] {
            check(&uses, &[field], said, Ok((said, &[])));
            let shared = [ResponseNoCache, ResponseMaxAge, share];
            check(&shared, &[field], said, Ok(("public", &uses)));
        }
        let request = RequestFacts::gather(Method::Get, "/", &[]);
        let lines = [
            FieldLine::new("Cache-Control", said.as_bytes()),
            FieldLine::new("Set-Cookie", b"user=alice"),
        ];
        let response = ResponseFacts::gather(200, &lines, Timestamp(0));
        let ignored: StoringIgnored = uses.into_iter().collect();
        assert_eq!(
            ignored.storable(&request, &response, None),
            Ok((response, StoringIgnored::NONE))
        );
    }

    type Fields = [(&'static str, &'static str)];
    type Expected = Result<(Option<DeltaSeconds>, StoringIgnored), NotStorable>;

    fn check_given(
        ignored: StoringIgnored,
        lifetime: Option<DeltaSeconds>,
        (request, status): (&Fields, u16),
        response: &Fields,
        expected: Expected,
    ) {
        let lines = |fields: &Fields| -> Vec<FieldLine<'static>> {
            let lines = fields.iter();
            lines
                .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
                .collect()
        };
        let request = RequestFacts::gather(Method::Get, "/", &lines(request));
        let response = ResponseFacts::gather(status, &lines(response), Timestamp(0));
        let found = ignored.storable(&request, &response, lifetime);
        let found = found.map(|(left, taken)| (left.directives.max_age, taken));
        assert_eq!(found, expected, "{status} {response:?}");
    }

    #[test]
    fn lifetime_of_a_rule_is_given_where_nothing_else_forbids_to_store_the_response() {
        const MINUTE: Option<DeltaSeconds> = Some(DeltaSeconds(60));
        let given = StoringIgnored::LIFETIME_GIVEN;
        let none = StoringIgnored::NONE;
        let without = Err(NotStorable::NoExplicitLifetime);
        check_given(given, MINUTE, (&[], 302), &[], Ok((MINUTE, given)));
        check_given(given, MINUTE, (&[], 503), &[], Ok((MINUTE, given)));
        check_given(none, MINUTE, (&[], 302), &[], without);
        check_given(given, None, (&[], 302), &[], without);
        // what gives a lifetime, or permits to, keeps its own
        check_given(given, MINUTE, (&[], 404), &[], Ok((None, none)));
        let own = ("Cache-Control", "max-age=5");
        check_given(
            given,
            MINUTE,
            (&[], 302),
            &[own],
            Ok((Some(DeltaSeconds(5)), none)),
        );
        // what may be for one user
        for field in [("Cookie", "a=b"), ("Authorization", "x")] {
            let why = match field.0 {
                "Cookie" => without,
                _ => Err(NotStorable::Authorization),
            };
            check_given(given, MINUTE, (&[field], 302), &[], why);
        }
        check_given(given, MINUTE, (&[], 302), &[("Set-Cookie", "a=b")], without);
        for (said, why) in [
            ("private", NotStorable::Private),
            ("no-store", NotStorable::ResponseNoStore),
        ] {
            check_given(
                given,
                MINUTE,
                (&[], 302),
                &[("Cache-Control", said)],
                Err(why),
            );
        }
        check_given(
            given,
            MINUTE,
            (&[], 302),
            &[("Vary", "*")],
            Err(NotStorable::VaryStar),
        );
        // never a part, nor what updates
        check_given(
            given,
            MINUTE,
            (&[], 206),
            &[],
            Err(NotStorable::PartialContent),
        );
        check_given(
            given,
            MINUTE,
            (&[], 304),
            &[],
            Err(NotStorable::StatusNotUnderstood),
        );
        assert_eq!(given.deviation(), Some(Deviation::LifetimeForced));
        assert!(!given.shares() && StoringIgnored::from_bits(given.bits()) == Some(given));
    }

    #[test]
    fn cookie_is_shared_only_where_the_request_is_of_no_user() {
        let facts = |fields: &[(&str, &str)]| {
            let lines: Vec<_> = fields
                .iter()
                .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
                .collect();
            RequestFacts::gather(Method::Get, "/", &lines)
        };
        let ignored: StoringIgnored = [IgnoredDirective::ResponseSetCookie].into_iter().collect();
        assert_eq!(ignored.set_cookie(&facts(&[])), Some(ignored));
        assert_eq!(ignored.set_cookie(&facts(&[("Cookie", "a=b")])), None);
        assert_eq!(ignored.set_cookie(&facts(&[("Authorization", "x")])), None);
        assert_eq!(StoringIgnored::NONE.set_cookie(&facts(&[])), None);
        assert!(ignored.shares());
    }

    #[test]
    fn set_is_read_from_its_bits_and_unknown_ones_are_refused() {
        let all: StoringIgnored = IgnoredDirective::ALL.into_iter().collect();
        assert_eq!(StoringIgnored::from_bits(all.bits()), Some(all));
        assert_eq!(StoringIgnored::from_bits(0), Some(StoringIgnored::NONE));
        assert_eq!(StoringIgnored::from_bits(1), None);
        assert_eq!(StoringIgnored::from_bits(1 << 14), None);
        assert_eq!(all.without(all), StoringIgnored::NONE);
    }
}
