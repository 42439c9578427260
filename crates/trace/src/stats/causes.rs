//! Why a response is not kept: the causes of PROXIM's table, and what RFC 9111 says of the same
//! requests.

use super::super::Row;
use super::said::Share;
use crate::row::directives::{REQUEST_FIELD, RequestBit};
use crate::row::words::{TraceMethod, words};
use serde::Serialize;
use weir_semantics::{NotStorable, storable};

words! {
    /// A cause for which the caches of 1998 did not keep a response (section 3 of the paper, and
    /// `http-1998` of `weir serve`), as the paper names it. A request can have several.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    Cause {
        /// The request has Cookie, or the response Set-Cookie.
        Cookie = "cookie present",
        /// The target has a `?`.
        Query = "URL has ?",
        /// The request has Cache-Control, or `Pragma: no-cache`.
        ClientCacheControl = "client Cache-Control",
        /// The target has `cgi-bin`.
        CgiBin = "URL has cgi-bin",
        /// The method is neither GET nor HEAD.
        Method = "not GET or HEAD",
        /// The request has Authorization.
        Authorization = "Authorization",
        /// The response has Cache-Control, Expires or `Pragma: no-cache`.
        ServerCacheControl = "server Cache-Control",
    }
}

impl Cause {
    /// Whether a row has it; `None` if the trace does not say. Of a cause with two sides one that
    /// is known will do: a request that was never answered has no Set-Cookie.
    #[must_use]
    pub fn of(self, row: &Row) -> Option<bool> {
        match self {
            Self::Cookie => either(row.has_cookie, row.has_set_cookie),
            Self::Query => row.has_query,
            Self::ClientCacheControl => row.request_directives.map(|bits| bits & CLIENT != 0),
            Self::CgiBin => row.has_cgi_bin,
            Self::Method => row
                .method
                .map(|method| !matches!(method, TraceMethod::Get | TraceMethod::Head)),
            Self::Authorization => row.has_authorization,
            Self::ServerCacheControl => either(
                row.response_directives.map(|bits| bits != 0),
                row.expires_s.map(|_| true),
            ),
        }
    }
}

const CLIENT: u32 = REQUEST_FIELD | RequestBit::PragmaNoCache.bit();

fn either(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (None, None) => None,
        _ => Some(one == Some(true) || other == Some(true)),
    }
}

/// The causes that one row is known to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CauseSet(u8);

impl CauseSet {
    /// Those of a row.
    pub(crate) fn of(row: &Row) -> Self {
        let found = Cause::ALL
            .iter()
            .filter(|cause| cause.of(row) == Some(true));
        Self(found.fold(0, |bits, cause| bits | 1 << *cause as u8))
    }

    pub(crate) const fn has(self, cause: Cause) -> bool {
        self.0 & (1 << cause as u8) != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The same with cookies ignored.
    pub(crate) const fn without_cookies(self) -> Self {
        Self(self.0 & !(1 << Cause::Cookie as u8))
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CauseShare {
    /// The cause.
    pub cause: Cause,
    /// The requests that have it; `None` if the trace does not say.
    pub requests: Option<Share>,
    /// Of those that have it and whose heads the trace knows, how many RFC 9111 lets a shared cache
    /// store.
    pub storable: Option<Share>,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// A line for each cause, in the order of the paper.
    pub each: Vec<CauseShare>,
    /// The requests with any cause that the trace knows of.
    pub union: Option<Share>,
    /// Of those, how many RFC 9111 lets a shared cache store.
    pub union_storable: Option<Share>,
}

/// What RFC 9111 §3 says to a shared cache of the requests whose method, status and directives the
/// trace knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Storable {
    /// Storable, of those that are known.
    pub storable: Share,
    /// The others by the first reason, in the order in which they are looked for, without those
    /// that no response has.
    pub reasons: Vec<Reason>,
}

/// A reason of [`NotStorable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The word that the log and the counters of `weir serve` have for it.
    pub reason: &'static str,
    /// Requests.
    pub requests: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    each: [Share; Cause::ALL.len()],
    each_storable: [Share; Cause::ALL.len()],
    union: Share,
    union_storable: Share,
    storable: Share,
    reasons: [u64; NotStorable::ALL.len()],
}

impl Counter {
    pub(super) fn add(&mut self, row: &Row) -> CauseSet {
        let verdict = judge(row);
        let is_storable = verdict.map(|verdict| verdict.is_ok());
        let found = CauseSet::of(row);
        let mut is_said = false;
        for (index, cause) in Cause::ALL.iter().enumerate() {
            let said = cause.of(row);
            self.each[index].add(said);
            is_said |= said.is_some();
            if found.has(*cause) {
                self.each_storable[index].add(is_storable);
            }
        }
        self.union.add(is_said.then_some(!found.is_empty()));
        if !found.is_empty() {
            self.union_storable.add(is_storable);
        }
        self.storable.add(is_storable);
        if let Some(Err(reason)) = verdict
            && let Some(index) = NotStorable::ALL.iter().position(|known| *known == reason)
        {
            self.reasons[index] += 1;
        }
        found
    }

    pub(super) fn finish(self) -> (Causes, Option<Storable>) {
        let shares = self.each.into_iter().zip(self.each_storable);
        let each = Cause::ALL.iter().zip(shares);
        let causes = Causes {
            each: each
                .map(|(cause, (requests, storable))| CauseShare {
                    cause: *cause,
                    requests: requests.finish(),
                    storable: storable.finish(),
                })
                .collect(),
            union: self.union.finish(),
            union_storable: self.union_storable.finish(),
        };
        let reasons = NotStorable::ALL.iter().zip(self.reasons);
        let reasons = reasons.filter(|(_, requests)| *requests > 0);
        let storable = self.storable.finish().map(|storable| Storable {
            storable,
            reasons: reasons
                .map(|(reason, requests)| Reason {
                    reason: reason.as_str(),
                    requests,
                })
                .collect(),
        });
        (causes, storable)
    }
}

/// What RFC 9111 says, if the row knows enough of both heads.
fn judge(row: &Row) -> Option<Result<(), NotStorable>> {
    row.request_directives?;
    row.response_directives?;
    Some(storable(&row.request_facts()?, &row.response_facts()?))
}
