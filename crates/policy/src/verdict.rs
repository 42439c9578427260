//! One verdict, four echoes: what was decided for a request, and why.
//!
//! Every decision is an enum whose variants are reasons. `Cache-Status` (RFC 9211), the access log,
//! the counters and the simulator's tables take their words from here, so that they cannot
//! disagree.

mod marks;

pub use marks::{Deviation, Marks};

use crate::catalog::Refusal;
use weir_semantics::{CacheStatus, DecidedBy, Fwd, NotStorable, words};

/// The detail of a hit that came from disk, and its meaning.
pub const FROM_DISK: (&str, &str) = (
    "disk",
    "The stored response, or its content, came from disk and not from memory.",
);

/// The detail of a request for which a stored response is validated for a reason of the cluster,
/// and its meaning.
pub const MAY_BE_PURGED: (&str, &str) = (
    "may-be-purged",
    "What is stored may have been purged: this node of a cluster has lost touch with the log of \
     purges, or has missed purges. It is validated before each use, however fresh it is.",
);

/// The detail of a request that a stored response answers because a rule of the operator departs
/// from RFC 9111, and its meaning.
pub const BY_RULE: (&str, &str) = (
    "rule",
    "A rule of the operator has a stored response answer the request, or has one stored, which RFC \
     9111 would not permit without it, or changes the cache key; `weir_rule_deviations_total` says \
     how. Or a rule denies the request, or has it bypass the cache.",
);

/// What happened to one request, complete when its transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How it was answered.
    pub handling: Handling,
    /// Status of the next hop's response, if the request was forwarded (RFC 9211 §2.3).
    pub fwd_status: Option<u16>,
    /// Which field of the next hop's response decided whether it is stored and for how long (RFC
    /// 9213); `Cache-Status` names a targeted one behind the detail.
    pub decided_by: DecidedBy,
    /// What became of the next hop's response; `None` if there was none to keep.
    pub storing: Option<Storing>,
    /// Freshness left in seconds, negative when stale (RFC 9211 §2.5); set on hits.
    pub ttl: Option<i64>,
    /// What else is to be said of a stored response that answers it.
    pub marks: Marks,
    /// Whether the stored response may have been purged, so that it is validated although it is
    /// fresh.
    pub may_be_purged: bool,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Satisfied by a stored response without forwarding.
    Hit(Hit),
    /// Forwarded, for this reason (RFC 9211 §2.2).
    Forward(Fwd),
    /// It waited for the response to another request and was answered by it; alone it would have
    /// been forwarded, for this reason (RFC 9211 §2.6). It was not forwarded itself, so it is
    /// counted apart from those that were.
    Collapsed(Fwd),
    /// The stale stored response was served in place of the answer of the next hop.
    StaleInstead(StaleReason),
    /// Answered by us, for this reason.
    Refused(RefuseReason),
    /// Relayed as a tunnel (CONNECT, or after 101).
    Tunnel,
}

words! {
    /// Why a stored response could be used at once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Hit {
        /// It was fresh (RFC 9111 §4.2).
        Fresh = "fresh",
        /// Stale, and the client's `max-stale` allows it (RFC 9111 §5.2.1.2).
        MaxStale = "max-stale",
        /// Stale, served while it is validated in the background (RFC 5861 §3).
        WhileRevalidate = "stale-while-revalidate",
        /// It was fresh and still arriving: what was there was sent at once, the rest as it came (a
        /// delayed hit).
        Delayed = "delayed",
    }
}

words! {
    /// Why a stale response was served in place of that of the next hop.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StaleReason {
        /// `stale-if-error` allows it for this error (RFC 5861 §4).
        IfError = "stale-if-error",
        /// The next hop could not be reached at all (RFC 9111 §4.2.4, "disconnected").
        Disconnected = "disconnected",
        /// The link to the next hop has spent its quota, and its `when_spent` permits it; nothing
        /// was forwarded.
        LinkSpent = "link-spent",
    }
}

words! {
    /// Why we answered a request ourselves without a stored response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RefuseReason {
        /// `only-if-cached` and nothing usable is stored: 504 (RFC 9111 §5.2.1.7).
        OnlyIfCached = "only-if-cached",
        /// `OPTIONS` for the proxy itself, or with Max-Forwards 0 (RFC 9110 §7.6.2).
        AnsweredHere = "answered-here",
        /// The message of the client breaks the rules of HTTP or a limit.
        BadRequest = "bad-request",
        /// The client, its destination or its port is not allowed.
        Denied = "denied",
        /// The next hop could not be used; the proxy error says how.
        NextHop = "next-hop",
        /// The next hop could not be used, and the stored response must not be used without it: 504
        /// (RFC 9111 §5.2.2.2).
        MustRevalidate = "must-revalidate",
        /// The request came back to this proxy.
        Loop = "loop",
        /// One of the limits of the proxy was reached.
        Overloaded = "overloaded",
        /// The stored response was to be sent, and cannot be read from disk.
        Unreadable = "unreadable",
        /// A module answered it.
        ModuleAnswered = "module",
        /// A module failed, and the request may not continue without it.
        ModuleFailed = "module-failed",
        /// A rule of the operator denies it.
        Rule = "rule",
        /// The link to the next hop has spent its quota, and nothing usable is stored: 429 or 504.
        LinkSpent = "link-spent",
        /// The client has not logged in to the proxy, or with a wrong password or token.
        Login = "login",
    }
}

impl RefuseReason {
    /// Whether the request was to be forwarded, and the next hop could not be used: nothing of ours
    /// refuses it.
    #[must_use]
    pub const fn is_of_next_hop(self) -> bool {
        matches!(self, Self::NextHop | Self::MustRevalidate)
    }
}

/// What became of a response from the next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storing {
    /// Stored, or being stored as it is relayed.
    Stored,
    /// Not stored, and why.
    NotStored(NotStored),
}

words! {
    /// Why a response was not stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NotStored {
        /// It sets a cookie, and the origin did not say that it may be shared: neither `public` nor
        /// `s-maxage`. RFC 9111 §7.3 would allow it; the setting `cache.set_cookie` chooses.
        SetCookie = "set-cookie",
        /// It is an error, or a redirect without a lifetime, and the stored response stays: the
        /// client bypassed a fresh one, or it was a validation in the background
        /// (`stale-while-revalidate`).
        StoredIsUsable = "stored-is-usable",
        /// It updates a stored response, and would have it vary on other fields than those it is
        /// stored under.
        VaryChanged = "vary-changed",
        /// It could never be reused: it has no lifetime (errors: none given explicitly) and no
        /// validator.
        Useless = "no-lifetime",
        /// It answers a condition, a range or an expectation of its request (412, 416, 417). Those
        /// fields are in no cache key: other requests would get it too, whatever lifetime it has.
        Conditional = "conditional",
        /// The request bypasses the cache.
        Bypass = "bypass",
        /// A rule of the operator has the request bypass the cache.
        BypassByRule = "rule",
        /// A module forbids it, or changed the fields that decide it without the operator's
        /// permission to have more stored (`module[].may_store`); or one failed, and the response
        /// passed without it.
        Module = "module",
        /// It did not arrive whole, and is of no use in part.
        Incomplete = "incomplete",
        of
        /// RFC 9111 §3 does not allow it.
        Rule(NotStorable),
        /// The profile `http-1998` does not allow it.
        Profile(Uncachable1998),
        /// The catalog refused it.
        Catalog(Refusal),
    }
}

words! {
    /// Causes by which the profile `http-1998` leaves a response uncached (Feldmann et al., INFOCOM
    /// 1999: the table of uncachable causes).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Uncachable1998 {
        /// The request's method is neither GET nor HEAD.
        Method = "1998-method",
        /// The target has a query.
        Query = "1998-query",
        /// The target's path holds `cgi-bin`.
        CgiBin = "1998-cgi-bin",
        /// The request carries credentials.
        Authorization = "1998-authorization",
        /// The request carries a Cookie, or the response sets one.
        Cookie = "1998-cookie",
        /// The request has Cache-Control or Pragma.
        ClientCacheControl = "1998-client-cache-control",
        /// The response has Cache-Control or Expires.
        ServerCacheControl = "1998-server-cache-control",
    }
}

impl Verdict {
    /// Before anything is decided.
    pub(crate) const fn new() -> Self {
        Self {
            handling: Handling::Forward(Fwd::Bypass),
            fwd_status: None,
            decided_by: DecidedBy::CacheControl,
            storing: None,
            ttl: None,
            marks: Marks::NONE,
            may_be_purged: false,
        }
    }

    /// What the cache called `cache` says of it (RFC 9211): the line of `Cache-Status` in responses
    /// and logs, and in whatever is compared with them.
    #[must_use]
    pub const fn cache_status<'a>(&self, cache: &'a str) -> CacheStatus<'a> {
        CacheStatus {
            cache,
            hit: matches!(
                self.handling,
                Handling::Hit(_) | Handling::StaleInstead(StaleReason::LinkSpent)
            ),
            fwd: match self.handling {
                Handling::Hit(_) | Handling::StaleInstead(StaleReason::LinkSpent) => None,
                Handling::Forward(fwd) | Handling::Collapsed(fwd) => Some(fwd),
                Handling::StaleInstead(_) => Some(Fwd::Stale),
                // an attempt was made, and nothing came back
                Handling::Refused(RefuseReason::NextHop) => Some(Fwd::Miss),
                Handling::Refused(RefuseReason::MustRevalidate) => Some(Fwd::Stale),
                Handling::Refused(_) => None,
                Handling::Tunnel => Some(Fwd::Bypass),
            },
            fwd_status: self.fwd_status,
            stored: match self.storing {
                Some(Storing::Stored) => Some(true),
                Some(Storing::NotStored(_)) | None => None,
            },
            collapsed: match self.handling {
                Handling::Collapsed(_) => Some(true),
                _ => None,
            },
            ttl: self.ttl,
            detail: self.detail(),
        }
    }

    /// The reason beside the word, where each stands in a column of its own (log, tables): for a
    /// collapsed request why it would have been forwarded, else [`Verdict::detail`]. `Cache-Status`
    /// has `fwd` for the first.
    #[must_use]
    pub const fn reason(&self) -> Option<&'static str> {
        match self.handling {
            Handling::Collapsed(fwd) => Some(fwd.as_str()),
            _ => self.detail(),
        }
    }

    /// The finer reason: that a rule of the operator has a stored response answer, else that of the
    /// handling, else that a hit came from disk or that what is stored may have been purged, else
    /// why the response was not stored, else that a rule departs from RFC 9111 otherwise.
    #[must_use]
    pub const fn detail(&self) -> Option<&'static str> {
        match (self.handling.detail(), self.handling, self.storing) {
            (_, Handling::Hit(_) | Handling::Collapsed(_) | Handling::StaleInstead(_), _)
                if self.marks.is_by_rule() =>
            {
                Some(BY_RULE.0)
            }
            (Some(detail), ..) => Some(detail),
            (None, Handling::Hit(_), _) if self.marks.is_from_disk() => Some(FROM_DISK.0),
            (None, Handling::Forward(Fwd::Stale), _) if self.may_be_purged => Some(MAY_BE_PURGED.0),
            (None, _, Some(Storing::NotStored(why))) => Some(why.as_str()),
            (None, ..) if self.marks.is_by_rule() => Some(BY_RULE.0),
            (None, ..) => None,
        }
    }
}

impl Handling {
    /// The word that log, counters and tables share.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit(_) | Self::StaleInstead(StaleReason::LinkSpent) => "hit",
            Self::Forward(fwd) => fwd.as_str(),
            Self::Collapsed(_) => "collapsed",
            Self::StaleInstead(_) => "stale",
            Self::Refused(why) if why.is_of_next_hop() => "error",
            Self::Refused(_) => "refused",
            Self::Tunnel => "tunnel",
        }
    }

    /// The finer reason, where the word alone does not show it.
    #[must_use]
    pub const fn detail(self) -> Option<&'static str> {
        match self {
            Self::Hit(Hit::Fresh) | Self::Forward(_) | Self::Collapsed(_) | Self::Tunnel => None,
            Self::Hit(hit) => Some(hit.as_str()),
            Self::StaleInstead(excuse) => Some(excuse.as_str()),
            Self::Refused(refused) => Some(refused.as_str()),
        }
    }
}

#[cfg(test)]
mod tests;
