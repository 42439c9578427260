//! `Cache-Control`, RFC 9111 §5.2, RFC 5861 (`stale-*`) and RFC 8246 (`immutable`).
//!
//! Our reading where the text permits several, always the one that reuses less:
//! * Names are compared without regard to case; an argument may be a token or a quoted string
//!   (§5.2).
//! * A freshness argument that is not `1*DIGIT` (missing, negative, fraction, single quotes, space
//!   around `=`) counts as 0: stale (§4.2.1). Only the request's `min-fresh` and `max-stale` are
//!   ignored then: 0 means nothing there.
//! * Of a directive given twice with different arguments the stricter one counts. §4.2.1 allows the
//!   first or "stale"; the smaller one is never more than the first, and does not depend on the
//!   order.
//! * A directive that restricts (`no-store`, `private`, ...) does so with any argument; one that
//!   permits (`public`, `immutable`, `must-understand`) counts only without.
//! * Directives we do not know are ignored (§5.2.3).
//!
//! The two tables are the only lists of directives. What a directive says is read by
//! [`Directive::in_request`] and [`Directive::in_response`], for `Cache-Control`, for targeted
//! fields and for traces.

use crate::fields::field::{list_elements, trim_ows};
use crate::fields::known::eq_lower;
use crate::time::DeltaSeconds;

/// What a request's `Cache-Control` says (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-cache`: validate before reuse.
    pub no_cache: bool,
    /// `no-store`: store nothing of request or response.
    pub no_store: bool,
    /// `no-transform`: leave the content as it is.
    pub no_transform: bool,
    /// `only-if-cached`: a stored response or 504.
    pub only_if_cached: bool,
    /// `max-age`: the greatest age that is welcome.
    pub max_age: Option<DeltaSeconds>,
    /// `min-fresh`: how long the response must yet be fresh.
    pub min_fresh: Option<DeltaSeconds>,
    /// `max-stale`: how stale the response may be; [`DeltaSeconds::MAX`] if any staleness will do.
    pub max_stale: Option<DeltaSeconds>,
    /// Was there a `Cache-Control` field at all, whatever it says?
    pub any: bool,
}

impl RequestDirectives {
    /// Reads one field line's value and adds what it says.
    pub fn add_line(&mut self, value: &[u8]) {
        self.any = true;
        for directive in directives(value) {
            self.add(directive.in_request());
        }
    }
}

/// What a response's `Cache-Control` says (RFC 9111 §5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `no-store`: store nothing; see `must_understand`.
    pub no_store: bool,
    /// `no-cache` without field names: validate before every reuse.
    pub no_cache: bool,
    /// `no-cache="..."` with field names. We treat it as `no_cache`, as §5.2.2.4 allows.
    pub no_cache_fields: bool,
    /// `private`, with field names too: not for a shared cache.
    pub private: bool,
    /// `public`: storable although it would otherwise not be.
    pub public: bool,
    /// `must-revalidate`: never serve stale.
    pub must_revalidate: bool,
    /// `proxy-revalidate`: as `must-revalidate`, for shared caches.
    pub proxy_revalidate: bool,
    /// `must-understand`: store only if the status is understood, and then in spite of `no-store`.
    pub must_understand: bool,
    /// `no-transform`: leave the content as it is.
    pub no_transform: bool,
    /// `immutable`: no validation while fresh, not even on reload (RFC 8246).
    pub immutable: bool,
    /// `max-age`: the freshness lifetime.
    pub max_age: Option<DeltaSeconds>,
    /// `s-maxage`: the freshness lifetime in a shared cache, and `proxy-revalidate`.
    pub s_maxage: Option<DeltaSeconds>,
    /// `stale-while-revalidate`: how long it may be served stale while it is validated (RFC 5861
    /// §3).
    pub stale_while_revalidate: Option<DeltaSeconds>,
    /// `stale-if-error`: how long it may be served stale when the next hop fails (RFC 5861 §4).
    pub stale_if_error: Option<DeltaSeconds>,
    /// Was there a `Cache-Control` field at all, whatever it says?
    pub any: bool,
}

impl ResponseDirectives {
    /// Reads one field line's value and adds what it says.
    pub fn add_line(&mut self, value: &[u8]) {
        self.any = true;
        for directive in directives(value) {
            self.add(directive.in_response());
        }
    }

    /// Must every reuse be validated first (RFC 9111 §5.2.2.4), fresh or not?
    #[must_use]
    pub const fn needs_validation(&self) -> bool {
        self.no_cache || self.no_cache_fields
    }

    /// Is serving it stale forbidden to a shared cache (RFC 9111 §4.2.4), whatever a request or
    /// `stale-*` allows?
    #[must_use]
    pub const fn forbids_stale(&self) -> bool {
        self.needs_validation()
            || self.must_revalidate
            || self.proxy_revalidate
            || self.s_maxage.is_some()
    }
}

/// How the argument of a directive counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// It restricts: with any argument, and without.
    Restriction,
    /// It restricts, and names fields.
    FieldNames,
    /// It permits: without an argument only.
    Permission,
    /// A number of seconds of which less is stricter; 0 if the argument is invalid.
    Lifetime,
    /// A number of seconds of which more is stricter; without effect if the argument is invalid.
    LeastSeconds,
    /// A number of seconds of which less is stricter, or no argument for any number; without effect
    /// if the argument is invalid.
    MostSeconds,
}

impl Form {
    /// What a directive of this form says with `argument`; `None`: nothing. What is no number of
    /// seconds is 0.
    fn read(self, argument: &Argument) -> Option<DeltaSeconds> {
        let said = |is_said: bool| is_said.then_some(DeltaSeconds::ZERO);
        match self {
            Self::Restriction => said(true),
            Self::FieldNames => said(argument.has_content),
            Self::Permission => said(!argument.is_there),
            Self::Lifetime => Some(argument.seconds.unwrap_or(DeltaSeconds::ZERO)),
            Self::LeastSeconds => argument.seconds,
            Self::MostSeconds if !argument.is_there => Some(DeltaSeconds::MAX),
            Self::MostSeconds => argument.seconds,
        }
    }

    /// The stricter of two numbers.
    fn stricter(self, one: DeltaSeconds, other: DeltaSeconds) -> DeltaSeconds {
        match self {
            Self::LeastSeconds => one.max(other),
            _ => one.min(other),
        }
    }
}

/// What a directive's argument is like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Argument {
    pub(crate) is_there: bool,
    /// Whether it can hold field names.
    pub(crate) has_content: bool,
    pub(crate) seconds: Option<DeltaSeconds>,
}

/// Where a directive is kept.
enum Slot<'a> {
    Flag(&'a mut bool),
    Seconds(&'a mut Option<DeltaSeconds>),
}

/// What one directive of a field comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading<D> {
    /// This directive, with its seconds; 0 where it has none.
    Says(D, DeltaSeconds),
    /// A known directive with an argument that makes it invalid.
    Ignored,
    /// A directive that is not known.
    Unknown,
}

/// Declares the directives of requests or of responses: variant, name, form, and the field of
/// `$Directives` that keeps it. If a name is here twice, the first one whose form accepts the
/// argument counts.
macro_rules! directives {
    (
        $(#[$about:meta])*
        $Directive:ident in $Directives:ident {
            $( $(#[$meaning:meta])*
            $Variant:ident = $name:literal, $form:ident, $Slot:ident($field:ident), )+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Directive {
            $( $(#[$meaning])* $Variant, )+
        }

        impl $Directive {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$Variant,)+];

            /// The name, in lower case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$Variant => $name, )+ }
            }

            const fn form(self) -> Form {
                match self { $( Self::$Variant => Form::$form, )+ }
            }

            /// Those of this name, which is compared without regard to case.
            pub(crate) fn named(name: &[u8]) -> impl Iterator<Item = Self> {
                const NAMES: &[&[u8]] = &[$($name.as_bytes(),)+];
                let names = NAMES.iter().zip($Directive::ALL);
                let is_named = |one: &[u8]| one.len() == name.len() && eq_lower(name, one);
                let named = names.filter(move |(one, _)| is_named(one));
                named.map(|(_, directive)| *directive)
            }

            /// What the directive of this name says with this argument.
            pub(crate) fn read(name: &[u8], argument: &Argument) -> Reading<Self> {
                let mut reading = Reading::Unknown;
                for directive in Self::named(name) {
                    if let Some(seconds) = directive.form().read(argument) {
                        return Reading::Says(directive, seconds);
                    }
                    reading = Reading::Ignored;
                }
                reading
            }
        }

        impl $Directives {
            fn slot(&mut self, directive: $Directive) -> Slot<'_> {
                match directive {
                    $( $Directive::$Variant => Slot::$Slot(&mut self.$field), )+
                }
            }

            /// Makes `directive` say so many seconds, 0 where it has none; `None`: it is not there.
            pub fn set(&mut self, directive: $Directive, seconds: Option<DeltaSeconds>) {
                match self.slot(directive) {
                    Slot::Flag(flag) => *flag = seconds.is_some(),
                    Slot::Seconds(slot) => *slot = seconds,
                }
            }

            /// The seconds of `directive`, 0 where it has none; `None` if it is not there.
            #[must_use]
            pub fn get(mut self, directive: $Directive) -> Option<DeltaSeconds> {
                match self.slot(directive) {
                    Slot::Flag(flag) => flag.then_some(DeltaSeconds::ZERO),
                    Slot::Seconds(slot) => *slot,
                }
            }

            /// Adds what a directive says; of two numbers of seconds the stricter one counts.
            fn add(&mut self, reading: Reading<$Directive>) {
                let Reading::Says(directive, seconds) = reading else {
                    return;
                };
                match self.slot(directive) {
                    Slot::Flag(flag) => *flag = true,
                    Slot::Seconds(slot) => {
                        let form = directive.form();
                        let stricter = slot.map_or(seconds, |present| form.stricter(present, seconds));
                        *slot = Some(stricter);
                    }
                }
            }
        }
    };
}

directives! {
    /// A directive of a request (RFC 9111 §5.2.1).
    RequestDirective in RequestDirectives {
        /// Validate before reuse.
        NoCache = "no-cache", Restriction, Flag(no_cache),
        /// Store nothing of request or response.
        NoStore = "no-store", Restriction, Flag(no_store),
        /// Leave the content as it is.
        NoTransform = "no-transform", Restriction, Flag(no_transform),
        /// A stored response or 504.
        OnlyIfCached = "only-if-cached", Restriction, Flag(only_if_cached),
        /// The greatest age that is welcome.
        MaxAge = "max-age", Lifetime, Seconds(max_age),
        /// How stale the response may be.
        MaxStale = "max-stale", MostSeconds, Seconds(max_stale),
        /// How long the response must yet be fresh.
        MinFresh = "min-fresh", LeastSeconds, Seconds(min_fresh),
    }
}

directives! {
    /// A directive of a response (RFC 9111 §5.2.2, RFC 5861, RFC 8246).
    ResponseDirective in ResponseDirectives {
        /// Validate before a reuse of the named fields.
        NoCacheFields = "no-cache", FieldNames, Flag(no_cache_fields),
        /// Validate before every reuse.
        NoCache = "no-cache", Restriction, Flag(no_cache),
        /// Store nothing.
        NoStore = "no-store", Restriction, Flag(no_store),
        /// Not for a shared cache, as to the named fields.
        PrivateFields = "private", FieldNames, Flag(private),
        /// Not for a shared cache.
        Private = "private", Restriction, Flag(private),
        /// Storable although it would otherwise not be.
        Public = "public", Permission, Flag(public),
        /// Never serve stale.
        MustRevalidate = "must-revalidate", Restriction, Flag(must_revalidate),
        /// The same for shared caches.
        ProxyRevalidate = "proxy-revalidate", Restriction, Flag(proxy_revalidate),
        /// Store only if the status is understood.
        MustUnderstand = "must-understand", Permission, Flag(must_understand),
        /// Leave the content as it is.
        NoTransform = "no-transform", Restriction, Flag(no_transform),
        /// No validation while fresh.
        Immutable = "immutable", Permission, Flag(immutable),
        /// The freshness lifetime.
        MaxAge = "max-age", Lifetime, Seconds(max_age),
        /// The freshness lifetime in a shared cache.
        SMaxAge = "s-maxage", Lifetime, Seconds(s_maxage),
        /// How long it may be served stale while it is validated.
        StaleWhileRevalidate = "stale-while-revalidate", Lifetime, Seconds(stale_while_revalidate),
        /// How long it may be served stale when the next hop fails.
        StaleIfError = "stale-if-error", Lifetime, Seconds(stale_if_error),
    }
}

/// The directives of one field line's value.
pub fn directives(value: &[u8]) -> impl Iterator<Item = Directive<'_>> {
    list_elements(value).map(Directive::new)
}

/// One directive as it is written: a name and perhaps an argument, quotation marks included.
#[derive(Clone, Copy, Debug)]
pub struct Directive<'a> {
    name: &'a [u8],
    argument: Option<&'a [u8]>,
}

impl<'a> Directive<'a> {
    fn new(element: &'a [u8]) -> Self {
        match element.iter().position(|&byte| byte == b'=') {
            Some(at) => Self {
                name: &element[..at],
                argument: Some(&element[at + 1..]),
            },
            None => Self {
                name: element,
                argument: None,
            },
        }
    }

    /// What it says in a request.
    #[must_use]
    pub fn in_request(&self) -> Reading<RequestDirective> {
        RequestDirective::read(self.trimmed_name(), &self.argument())
    }

    /// What it says in a response.
    #[must_use]
    pub fn in_response(&self) -> Reading<ResponseDirective> {
        ResponseDirective::read(self.trimmed_name(), &self.argument())
    }

    /// Whitespace before `=` is no reason to overlook a restriction.
    fn trimmed_name(&self) -> &'a [u8] {
        trim_ows(self.name)
    }

    fn argument(&self) -> Argument {
        Argument {
            is_there: self.argument.is_some(),
            has_content: !matches!(self.argument, None | Some(b"" | b"\"\"")),
            seconds: self.seconds(),
        }
    }

    /// The argument as seconds; `None` if it is missing or not in the form `1*DIGIT`, quoted or
    /// not.
    fn seconds(&self) -> Option<DeltaSeconds> {
        let argument = self.argument?;
        if matches!(self.name.last(), Some(b' ' | b'\t')) {
            return None;
        }
        let inner = argument
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\""));
        DeltaSeconds::parse(inner.unwrap_or(argument))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response(lines: &[&str]) -> ResponseDirectives {
        let mut directives = ResponseDirectives::default();
        lines
            .iter()
            .for_each(|line| directives.add_line(line.as_bytes()));
        directives
    }

    /// The line sets exactly what `change` does.
    fn check(line: &str, change: impl FnOnce(&mut ResponseDirectives)) {
        let mut expected = ResponseDirectives {
            any: true,
            ..ResponseDirectives::default()
        };
        change(&mut expected);
        assert_eq!(response(&[line]), expected, "{line:?}");
    }

    fn check_max_age(lines: &[&str], expected: Option<u32>) {
        assert_eq!(
            response(lines).max_age.map(DeltaSeconds::as_secs),
            expected,
            "{lines:?}"
        );
    }

    fn check_request(lines: &[&str], expected: RequestDirectives) {
        let mut directives = RequestDirectives::default();
        lines
            .iter()
            .for_each(|line| directives.add_line(line.as_bytes()));
        assert_eq!(
            directives,
            RequestDirectives {
                any: true,
                ..expected
            },
            "{lines:?}"
        );
    }

    #[test]
    fn each_response_directive_sets_its_own_flag() {
        check("", |_| {});
        check("foobar, foo=bar", |_| {});
        check("No-StOrE", |d| d.no_store = true);
        check("no-cache", |d| d.no_cache = true);
        check("no-cache=\"a, b\"", |d| d.no_cache_fields = true);
        check("no-cache=a", |d| d.no_cache_fields = true);
        check("private", |d| d.private = true);
        check("private=\"a\"", |d| d.private = true);
        check("public", |d| d.public = true);
        check("must-revalidate", |d| d.must_revalidate = true);
        check("proxy-revalidate", |d| d.proxy_revalidate = true);
        check("must-understand", |d| d.must_understand = true);
        check("no-transform", |d| d.no_transform = true);
        check("immutable", |d| d.immutable = true);
        check("max-age=1", |d| d.max_age = Some(DeltaSeconds(1)));
        check("s-maxage=1", |d| d.s_maxage = Some(DeltaSeconds(1)));
        check("stale-while-revalidate=1", |d| {
            d.stale_while_revalidate = Some(DeltaSeconds(1))
        });
        check("stale-if-error=1", |d| {
            d.stale_if_error = Some(DeltaSeconds(1))
        });
    }

    #[test]
    fn unexpected_argument_voids_permissions_but_not_restrictions() {
        check("no-store=1", |d| d.no_store = true);
        check("no-store =", |d| d.no_store = true);
        check("no-cache=", |d| d.no_cache = true);
        check("no-cache=\"\"", |d| d.no_cache = true);
        check("must-revalidate=0", |d| d.must_revalidate = true);
        check("public=1, immutable=x, must-understand=", |_| {});
    }

    #[test]
    fn max_age_accepts_quoted_and_unquoted_digits() {
        check_max_age(&["max-age=3600"], Some(3600));
        check_max_age(&["MaX-aGe=\"3600\""], Some(3600));
        check_max_age(&["max-age=003600"], Some(3600));
        check_max_age(&["max-age=99999999999"], Some(1 << 31));
        check_max_age(&["foobar, max-age=3600"], Some(3600));
        check_max_age(&["max-age-x=3600, x-max-age=1, max-ag=1"], None);
    }

    #[test]
    fn invalid_max_age_counts_as_zero() {
        for argument in [
            "", "=", "=-1", "=+1", "=1.0", "=1.5", "='1'", "=a1", "=1a", "= 1", " =1", "=\"1",
            "=\"\"", "=1 2", "=\"\\1\"",
        ] {
            check_max_age(&[&format!("max-age{argument}")], Some(0));
        }
    }

    #[test]
    fn directive_inside_a_quoted_string_is_ignored() {
        check_max_age(&["extension=\"max-age=3600\", max-age=1"], Some(1));
        check_max_age(&["max-age=1, extension=\"max-age=3600\""], Some(1));
        check_max_age(&["extension=\"a, max-age=0\", max-age=1"], Some(1));
        check("x=\"a, no-store", |d| d.no_store = true);
    }

    #[test]
    fn shorter_of_two_max_ages_applies() {
        for lines in [
            &["max-age=1800, max-age=1"][..],
            &["max-age=1800", "max-age=1"],
            &["max-age=1", "max-age=1800"],
        ] {
            check_max_age(lines, Some(1));
        }
        check_max_age(&["max-age=1, max-age=x"], Some(0));
    }

    #[test]
    fn each_request_directive_sets_its_own_member() {
        let none = RequestDirectives::default();
        let seconds = |seconds| Some(DeltaSeconds(seconds));
        check_request(&["", "foo"], none);
        check_request(
            &["No-Cache"],
            RequestDirectives {
                no_cache: true,
                ..none
            },
        );
        check_request(
            &["no-store"],
            RequestDirectives {
                no_store: true,
                ..none
            },
        );
        check_request(
            &["only-if-cached"],
            RequestDirectives {
                only_if_cached: true,
                ..none
            },
        );
        check_request(
            &["max-age=0"],
            RequestDirectives {
                max_age: seconds(0),
                ..none
            },
        );
        check_request(
            &["max-age=x"],
            RequestDirectives {
                max_age: seconds(0),
                ..none
            },
        );
        check_request(
            &["min-fresh=5"],
            RequestDirectives {
                min_fresh: seconds(5),
                ..none
            },
        );
        check_request(
            &["min-fresh=5, min-fresh=7, min-fresh=x"],
            RequestDirectives {
                min_fresh: seconds(7),
                ..none
            },
        );
        check_request(
            &["max-stale=5"],
            RequestDirectives {
                max_stale: seconds(5),
                ..none
            },
        );
        check_request(
            &["max-stale"],
            RequestDirectives {
                max_stale: Some(DeltaSeconds::MAX),
                ..none
            },
        );
        check_request(
            &["max-stale", "max-stale=5"],
            RequestDirectives {
                max_stale: seconds(5),
                ..none
            },
        );
        check_request(&["max-stale=x, min-fresh"], none);
    }

    #[test]
    fn serving_stale_is_forbidden_by_each_of_five_directives() {
        for line in [
            "no-cache",
            "no-cache=a",
            "must-revalidate",
            "proxy-revalidate",
            "s-maxage=9",
        ] {
            assert!(response(&[line]).forbids_stale(), "{line}");
        }
        assert!(
            !response(&["max-age=1, stale-if-error=9, private, no-store, immutable"])
                .forbids_stale()
        );
        assert!(
            response(&["no-cache=a"]).needs_validation()
                && !response(&["must-revalidate"]).needs_validation()
        );
    }

    proptest! {
        #[test]
        fn order_of_directives_makes_no_difference(
            directives in prop::collection::vec(
                "(max-age|s-maxage|no-cache|public|stale-if-error|private|x)(=[0-9]{0,3})?", 0..6),
        ) {
            let forwards = directives.join(", ");
            let mut backwards = directives;
            backwards.reverse();
            prop_assert_eq!(response(&[&forwards]), response(&[&backwards.join(" ,")]));
        }

        #[test]
        fn parsing_arbitrary_bytes_does_not_panic(value in prop::collection::vec(any::<u8>(), 0..64)) {
            ResponseDirectives::default().add_line(&value);
            RequestDirectives::default().add_line(&value);
        }
    }
}
