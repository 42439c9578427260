//! `Cache-Status`, RFC 9211: how a cache handled a request, one member for each cache.

use alloc::vec::Vec;

use crate::fields::structured::{
    BareItem, parameter_of_last, write_integer, write_token_or_string,
};
use crate::words;

words! {
    /// Why a request was forwarded, RFC 9211 §2.2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Fwd {
        /// The cache does not handle this request: it has content or requests an upgrade, the
        /// profile excludes it, or the cache is off.
        Bypass = "bypass",
        /// The method has to be forwarded: it is neither GET nor HEAD.
        Method = "method",
        /// Nothing is stored for this URI.
        UriMiss = "uri-miss",
        /// Something is stored for this URI, but for other values of the fields that `Vary` names.
        VaryMiss = "vary-miss",
        /// No stored response could be used, and neither `uri-miss` nor `vary-miss` says why.
        Miss = "miss",
        /// The stored response is fresh, but the directives of the request forbid to use it.
        Request = "request",
        /// The stored response is stale.
        Stale = "stale",
        /// Only a part of the requested response is stored.
        Partial = "partial",
    }
}

/// One member of `Cache-Status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// The name of the cache.
    pub cache: &'a str,
    /// Was the request satisfied without forwarding it? Leaves out `fwd`, `fwd-status`, `stored`
    /// and `collapsed`, which are about forwarding.
    pub hit: bool,
    /// Why it was forwarded.
    pub fwd: Option<Fwd>,
    /// The status the next hop answered with, where it differs from the response's.
    pub fwd_status: Option<u16>,
    /// Was the response stored?
    pub stored: Option<bool>,
    /// Was the request collapsed into another?
    pub collapsed: Option<bool>,
    /// The seconds of freshness that are left; negative when stale (RFC 9211 §2.4).
    pub ttl: Option<i64>,
    /// More about it, in our own words.
    pub detail: Option<&'a str>,
}

/// Whether the cache that sent a response had it, by the line of its own `Cache-Status` field: the
/// last member (RFC 9211 §2). `None` if the line is no List, or has no member.
#[must_use]
pub fn is_hit(value: &[u8]) -> Option<bool> {
    match parameter_of_last(value, b"hit") {
        Ok(Some(hit)) => Some(hit == BareItem::Boolean(true)),
        Ok(None) if value.trim_ascii().is_empty() => None,
        Ok(None) => Some(false),
        Err(_) => None,
    }
}

/// Whether the cache that sent a response gives `detail` in its own `Cache-Status` member, the last
/// of this line.
#[must_use]
pub fn has_detail(value: &[u8], detail: &str) -> bool {
    let found = parameter_of_last(value, b"detail");
    matches!(found, Ok(Some(BareItem::Token(found))) if found == detail.as_bytes())
}

impl CacheStatus<'_> {
    /// Appends the member. Every input gives a valid structured field: a text that is no token is
    /// quoted, characters that no string may have become `?`, numbers are clamped to fifteen
    /// digits.
    pub fn write(&self, out: &mut Vec<u8>) {
        Self::write_cache(self.cache, out);
        self.write_parameters(out);
    }

    /// Appends the name of a cache, with which its member begins.
    pub fn write_cache(cache: &str, out: &mut Vec<u8>) {
        write_token_or_string(cache, out);
    }

    /// Appends what is behind the name, as [`Self::write`] does.
    pub fn write_parameters(&self, out: &mut Vec<u8>) {
        if self.hit {
            out.extend_from_slice(b";hit");
        } else {
            self.write_forwarding(out);
        }
        if let Some(ttl) = self.ttl {
            out.extend_from_slice(b";ttl=");
            write_integer(ttl, out);
        }
        if !self.hit {
            write_flag(b";stored", self.stored, out);
            write_flag(b";collapsed", self.collapsed, out);
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b";detail=");
            write_token_or_string(detail, out);
        }
    }

    fn write_forwarding(&self, out: &mut Vec<u8>) {
        if let Some(fwd) = self.fwd {
            out.extend_from_slice(b";fwd=");
            out.extend_from_slice(fwd.as_str().as_bytes());
        }
        if let Some(status) = self.fwd_status {
            out.extend_from_slice(b";fwd-status=");
            write_integer(i64::from(status), out);
        }
    }
}

/// A structured boolean: true is the bare name (RFC 9651 §4.1.1.2).
fn write_flag(name: &[u8], flag: Option<bool>, out: &mut Vec<u8>) {
    if let Some(flag) = flag {
        out.extend_from_slice(name);
        if !flag {
            out.extend_from_slice(b"=?0");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sfv::{BareItem, List, ListEntry, Parser};

    use super::{CacheStatus, Fwd, has_detail, is_hit};

    #[test]
    fn detail_is_that_of_the_last_cache() {
        let check = |value: &str, expected: bool| {
            assert_eq!(has_detail(value.as_bytes(), "disk"), expected, "{value}");
        };
        check("a;hit;detail=disk", true);
        check("a;hit, b;hit;detail=disk", true);
        check("b;hit;detail=disk, a;hit", false);
        check("a;hit;detail=memory", false);
        check("a;hit", false);
        check("a;hit;detail=disk;;", false);
        check("", false);
    }

    fn written(status: &CacheStatus<'_>) -> String {
        let mut out = Vec::new();
        status.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn check(status: &CacheStatus<'_>, expected: &str) {
        assert_eq!(written(status), expected);
    }

    const MISS: CacheStatus<'_> = CacheStatus {
        cache: "weir",
        hit: false,
        fwd: Some(Fwd::UriMiss),
        fwd_status: None,
        stored: Some(true),
        collapsed: None,
        ttl: None,
        detail: None,
    };

    #[test]
    fn cache_status_members_are_written_as_in_rfc_9211() {
        check(
            &CacheStatus {
                cache: "weir",
                hit: true,
                ttl: Some(376),
                ..MISS
            },
            "weir;hit;ttl=376",
        );
        check(&MISS, "weir;fwd=uri-miss;stored");
        let stale = CacheStatus {
            cache: "my cache",
            fwd: Some(Fwd::Stale),
            fwd_status: Some(304),
            stored: Some(false),
            collapsed: Some(true),
            ttl: Some(-412),
            detail: Some("disk \"full\""),
            ..MISS
        };
        check(
            &stale,
            r#""my cache";fwd=stale;fwd-status=304;ttl=-412;stored=?0;collapsed;detail="disk \"full\"""#,
        );
    }

    #[test]
    fn hit_omits_forwarding_parameters() {
        let hit = CacheStatus {
            hit: true,
            fwd_status: Some(200),
            collapsed: Some(false),
            ..MISS
        };
        check(&hit, "weir;hit");
    }

    #[test]
    fn response_is_a_hit_if_the_last_member_says_so() {
        let check = |value: &str, expected| {
            assert_eq!(is_hit(value.as_bytes()), expected, "{value}");
        };
        check("weir;hit", Some(true));
        check("origin-cache;fwd=uri-miss, weir;hit;ttl=60", Some(true));
        check("far;hit, weir;fwd=stale;stored", Some(false));
        check("weir;hit;hit=?0", Some(false));
        check("weir;hit=1", Some(false));
        check("\"my cache\";hit", Some(true));
        check("(a b);hit", Some(true));
        check("weir", Some(false));
        check("", None);
        check(" ", None);
        check("weir;hit,", None);
        check("weir;hit;;", None);
        check("weir hit", None);
    }

    fn optional_text() -> impl Strategy<Value = Option<String>> {
        prop::option::of(any::<String>())
    }

    proptest! {
        #[test]
        fn every_member_parses_as_a_structured_field(
            cache: String, hit: bool, fwd in prop::option::of(prop::sample::select(Fwd::ALL.to_vec())), fwd_status: Option<u16>,
            stored: Option<bool>, collapsed: Option<bool>, ttl: Option<i64>, detail in optional_text(),
        ) {
            let detail = detail.as_deref();
            let status = CacheStatus { cache: &cache, hit, fwd, fwd_status, stored, collapsed, ttl, detail };
            let text = written(&status);
            let list = Parser::new(&text).parse::<List>().unwrap();
            let [ListEntry::Item(item)] = &list[..] else { panic!("not one item: {text}") };
            let is_text = matches!(item.bare_item, BareItem::Token(_) | BareItem::String(_));
            prop_assert!(is_text, "{}", text);
            let flag = |name: &str| match item.params.get(name) {
                Some(BareItem::Boolean(flag)) => Some(*flag),
                other => { assert_eq!(other, None); None }
            };
            prop_assert_eq!(flag("hit"), hit.then_some(true));
            prop_assert_eq!(is_hit(text.as_bytes()), Some(hit));
            prop_assert_eq!(flag("stored"), stored.filter(|_| !hit));
            prop_assert_eq!(flag("collapsed"), collapsed.filter(|_| !hit));
            prop_assert_eq!(item.params.contains_key("fwd"), fwd.is_some() && !hit);
            prop_assert_eq!(item.params.contains_key("ttl"), ttl.is_some());
            prop_assert_eq!(item.params.contains_key("detail"), detail.is_some());
        }
    }
}
