//! What the proxy says of its response, held against what the marks say.
//!
//! `Cache-Status` (RFC 9211) is read as a structured field; of several members the last one counts,
//! that of the cache nearest to the client. Where it is absent, `X-Cache` is read as Squid, nginx
//! and others write it: `HIT from proxy`, `MISS`, `REVALIDATED`.

use sfv::{BareItem, List, ListEntry, Parser};

use crate::tally::{CrossCheck, Outcome};

/// What a proxy claims to have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The response came from its store.
    Hit,
    /// The request was forwarded, and brought what is sent.
    Forwarded,
    /// The request joined another's fetch.
    Collapsed,
    /// The request was forwarded, and what was stored is current.
    Validated,
}

impl Claim {
    /// Reads `Cache-Status`; `None` if it is no such thing.
    pub(super) fn of_cache_status(value: &[u8]) -> Option<Self> {
        let members: List = Parser::new(value).parse().ok()?;
        // no member of Cache-Status is a list; it claims nothing
        let ListEntry::Item(nearest) = members.last()? else {
            return None;
        };
        let parameter = |name: &str| nearest.params.get(name);
        let is_set = |name: &str| parameter(name) == Some(&BareItem::Boolean(true));
        if is_set("hit") {
            return Some(Self::Hit);
        }
        if is_set("collapsed") {
            return Some(Self::Collapsed);
        }
        parameter("fwd")?;
        let is_validated = parameter("fwd-status") == Some(&BareItem::Integer(304.into()));
        Some(if is_validated {
            Self::Validated
        } else {
            Self::Forwarded
        })
    }

    /// Reads `X-Cache`; `None` if it says neither.
    pub(super) fn of_x_cache(value: &[u8]) -> Option<Self> {
        // the nearest cache writes its word last
        let last = value.rsplit(|&byte| byte == b',').next()?.trim_ascii();
        let word = last
            .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .next()?;
        let has = |part: &[u8]| {
            word.windows(part.len())
                .any(|window| window.eq_ignore_ascii_case(part))
        };
        if has(b"REVALIDATED") || has(b"REFRESH") {
            Some(Self::Validated)
        } else if has(b"HIT") || has(b"STALE") || has(b"UPDATING") {
            Some(Self::Hit)
        } else if has(b"MISS") || has(b"EXPIRED") || has(b"BYPASS") || has(b"PASS") {
            Some(Self::Forwarded)
        } else {
            None
        }
    }

    /// Is that what the marks say? A validated response counts as a hit with some caches and as a
    /// miss with others: both agree.
    pub(super) fn agrees(self, outcome: Outcome) -> CrossCheck {
        let is_so = match outcome {
            Outcome::Hit => matches!(self, Self::Hit | Self::Collapsed),
            Outcome::Validated => true,
            Outcome::Forwarded => matches!(self, Self::Forwarded),
            _ => return CrossCheck::Absent,
        };
        if is_so {
            CrossCheck::Agree
        } else {
            CrossCheck::Disagree
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_cache_status_member_gives_the_claim_and_invalid_ones_none() {
        let check = |value: &str, expected| {
            assert_eq!(
                Claim::of_cache_status(value.as_bytes()),
                expected,
                "{value}"
            );
        };
        check("weir;hit;ttl=100", Some(Claim::Hit));
        check(
            "weir;fwd=uri-miss;fwd-status=200;stored",
            Some(Claim::Forwarded),
        );
        check("weir;fwd=stale;fwd-status=304", Some(Claim::Validated));
        check("weir;fwd=miss;collapsed", Some(Claim::Collapsed));
        check("\"far, away\"; hit, near; fwd=miss", Some(Claim::Forwarded));
        check("far; fwd=miss, near; hit", Some(Claim::Hit));
        check("weir;hit=?0;fwd=request", Some(Claim::Forwarded));
        check("weir;hit;hit=?0", None);
        check("weir", None);
        check("(weir;hit)", None);
        check("HIT from proxy", None);
        check("", None);
    }

    #[test]
    fn x_cache_value_is_read_as_hit_forward_or_revalidation() {
        let check = |value: &str, expected| {
            assert_eq!(Claim::of_x_cache(value.as_bytes()), expected, "{value}");
        };
        check("HIT from proxy.example", Some(Claim::Hit));
        check("MISS from proxy.example", Some(Claim::Forwarded));
        check("MISS from far, HIT from near", Some(Claim::Hit));
        check("TCP_REFRESH_HIT", Some(Claim::Validated));
        check("REVALIDATED", Some(Claim::Validated));
        check("EXPIRED", Some(Claim::Forwarded));
        check("hit", Some(Claim::Hit));
        check("none", None);
        check("", None);
    }

    #[test]
    fn claim_that_contradicts_the_measured_outcome_disagrees() {
        use CrossCheck::{Absent, Agree, Disagree};
        let claims = [
            Claim::Hit,
            Claim::Collapsed,
            Claim::Forwarded,
            Claim::Validated,
        ];
        let check = |outcome, expected| {
            assert_eq!(
                claims.map(|claim| claim.agrees(outcome)),
                expected,
                "{outcome:?}"
            );
        };
        check(Outcome::Hit, [Agree, Agree, Disagree, Disagree]);
        check(Outcome::Forwarded, [Disagree, Disagree, Agree, Disagree]);
        check(Outcome::Validated, [Agree; 4]);
        check(Outcome::Aborted, [Absent; 4]);
    }
}
