//! `Cache-Control`, RFC 9111 §5.2, RFC 5861 (`stale-*`) and RFC 8246 (`immutable`).
//!
//! Our reading where the text leaves room, always towards reusing less:
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

use crate::fields::field::{list_elements, trim_ows};
use crate::time::DeltaSeconds;

/// What a request's `Cache-Control` says (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-cache`: validate before reuse.
    pub no_cache: bool,
    /// `no-store`: store nothing of request or response.
    pub no_store: bool,
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
        for element in list_elements(value) {
            self.add(&Directive::new(element));
        }
    }

    fn add(&mut self, directive: &Directive<'_>) {
        if directive.is("no-cache") {
            self.no_cache = true;
        } else if directive.is("no-store") {
            self.no_store = true;
        } else if directive.is("only-if-cached") {
            self.only_if_cached = true;
        } else if directive.is("max-age") {
            directive.shorten(&mut self.max_age);
        } else if directive.is("min-fresh") {
            // the longer is the stricter; Option orders None first
            self.min_fresh = self.min_fresh.max(directive.seconds());
        } else if directive.is("max-stale") {
            let seconds = if directive.argument.is_none() {
                Some(DeltaSeconds::MAX)
            } else {
                directive.seconds()
            };
            if let Some(seconds) = seconds {
                shorten(&mut self.max_stale, seconds);
            }
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
        for element in list_elements(value) {
            let directive = Directive::new(element);
            if !self.add_restriction(&directive) && !self.add_permission(&directive) {
                self.add_lifetime(&directive);
            }
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

    fn add_restriction(&mut self, directive: &Directive<'_>) -> bool {
        let flag = if directive.is("no-store") {
            &mut self.no_store
        } else if directive.is("no-cache") {
            if directive.has_content() {
                &mut self.no_cache_fields
            } else {
                &mut self.no_cache
            }
        } else if directive.is("private") {
            &mut self.private
        } else if directive.is("must-revalidate") {
            &mut self.must_revalidate
        } else if directive.is("proxy-revalidate") {
            &mut self.proxy_revalidate
        } else if directive.is("no-transform") {
            &mut self.no_transform
        } else {
            return false;
        };
        *flag = true;
        true
    }

    fn add_permission(&mut self, directive: &Directive<'_>) -> bool {
        let flag = if directive.is("public") {
            &mut self.public
        } else if directive.is("immutable") {
            &mut self.immutable
        } else if directive.is("must-understand") {
            &mut self.must_understand
        } else {
            return false;
        };
        *flag |= directive.argument.is_none();
        true
    }

    fn add_lifetime(&mut self, directive: &Directive<'_>) {
        if directive.is("max-age") {
            directive.shorten(&mut self.max_age);
        } else if directive.is("s-maxage") {
            directive.shorten(&mut self.s_maxage);
        } else if directive.is("stale-while-revalidate") {
            directive.shorten(&mut self.stale_while_revalidate);
        } else if directive.is("stale-if-error") {
            directive.shorten(&mut self.stale_if_error);
        }
    }
}

/// One directive: a name and perhaps an argument, quotation marks included.
struct Directive<'a> {
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

    /// Is it the directive with this name? Whitespace before `=` is no reason to overlook a
    /// restriction.
    fn is(&self, name: &str) -> bool {
        trim_ows(self.name).eq_ignore_ascii_case(name.as_bytes())
    }

    /// Is there an argument with something in it?
    fn has_content(&self) -> bool {
        self.argument
            .is_some_and(|argument| !matches!(argument, b"" | b"\"\""))
    }

    /// The argument as seconds; `None` if it is missing or not in the form `1*DIGIT`, quoted or
    /// not.
    fn seconds(&self) -> Option<DeltaSeconds> {
        if self
            .name
            .last()
            .is_some_and(|byte| matches!(byte, b' ' | b'\t'))
        {
            return None;
        }
        let argument = self.argument?;
        let inner = argument
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\""));
        DeltaSeconds::parse(inner.unwrap_or(argument))
    }

    /// Sets `slot` to the argument, or to 0 if that is invalid, unless it holds something shorter.
    fn shorten(&self, slot: &mut Option<DeltaSeconds>) {
        shorten(slot, self.seconds().unwrap_or(DeltaSeconds::ZERO));
    }
}

fn shorten(slot: &mut Option<DeltaSeconds>, seconds: DeltaSeconds) {
    *slot = Some(slot.map_or(seconds, |present| present.min(seconds)));
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
