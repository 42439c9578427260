//! What became of requests of each kind.

use super::counts::Counts;
use super::outcome::Outcome;
use serde::{Deserialize, Serialize};
use weir_measure::{labels, merge_fields};
use weir_workload::{Ask, AskKind, Method};

labels! {
    /// How something was asked for.
    RequestKind {
        /// `GET` without a condition.
        Plain = "plain",
        /// `If-Modified-Since` a second before the last modification: 200 is right (`PolyMix`:
        /// Ims200).
        ModifiedSince = "if-modified-200",
        /// `If-Modified-Since` a second after it: 304 is right (`PolyMix`: Ims304).
        NotModifiedSince = "if-modified-304",
        /// `Cache-Control: no-cache`.
        Reload = "reload",
        /// `HEAD`.
        Head = "head",
        /// `POST`.
        Post = "post",
    }
}

impl RequestKind {
    pub(crate) const fn of(ask: &Ask) -> Self {
        match (ask.method, ask.kind) {
            (Method::Head, _) => Self::Head,
            (Method::Post { .. }, _) => Self::Post,
            (Method::Get, AskKind::Plain) => Self::Plain,
            (Method::Get, AskKind::Reload) => Self::Reload,
            (Method::Get, AskKind::IfModifiedSince { newer: false }) => Self::ModifiedSince,
            (Method::Get, AskKind::IfModifiedSince { newer: true }) => Self::NotModifiedSince,
        }
    }
}

/// Requests that have ended, by how they were asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByKind {
    /// All of them, failed and aborted ones included.
    pub ended: Counts<RequestKind>,
    /// With content that another request brought.
    pub hits: Counts<RequestKind>,
    /// With stored content that the origin said is current.
    pub validated: Counts<RequestKind>,
    /// With what the origin sent.
    pub forwarded: Counts<RequestKind>,
    /// With 304, from the proxy or the origin.
    pub not_modified: Counts<RequestKind>,
}

impl ByKind {
    /// Enters the end of a request.
    pub(crate) fn enter(&mut self, kind: RequestKind, outcome: Outcome) {
        self.ended.add(kind);
        match outcome {
            Outcome::Hit => self.hits.add(kind),
            Outcome::Validated => self.validated.add(kind),
            Outcome::Forwarded => self.forwarded.add(kind),
            Outcome::NotModified { .. } => self.not_modified.add(kind),
            Outcome::Error(_) | Outcome::Aborted => {}
        }
    }
}

merge_fields! {
    ByKind { sum { ended, hits, validated, forwarded, not_modified } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::Target;

    const TARGET: Target = Target {
        server: 0,
        number: 1,
    };

    #[test]
    fn request_kind_follows_from_condition_reload_and_method() {
        let check = |kind, method, expected| {
            let plain = Ask::plain(0, TARGET);
            let ask = Ask {
                kind,
                method,
                ..plain
            };
            assert_eq!(RequestKind::of(&ask), expected);
        };
        let since = |newer| AskKind::IfModifiedSince { newer };
        check(AskKind::Plain, Method::Get, RequestKind::Plain);
        check(AskKind::Reload, Method::Get, RequestKind::Reload);
        check(since(false), Method::Get, RequestKind::ModifiedSince);
        check(since(true), Method::Get, RequestKind::NotModifiedSince);
        check(AskKind::Plain, Method::Head, RequestKind::Head);
        let post = Method::Post { content_bytes: 5 };
        check(AskKind::Plain, post, RequestKind::Post);
    }

    #[test]
    fn each_outcome_of_a_kind_is_counted_once_and_merged() {
        let mut one = ByKind::default();
        let outcomes = [
            Outcome::Hit,
            Outcome::Validated,
            Outcome::Forwarded,
            Outcome::NotModified { by_origin: true },
            Outcome::Aborted,
        ];
        for outcome in outcomes {
            one.enter(RequestKind::Reload, outcome);
        }
        let mut two = one;
        two.merge(&one);
        let of = |counts: &Counts<RequestKind>| counts.of(RequestKind::Reload);
        assert_eq!((of(&two.ended), two.ended.sum()), (10, 10));
        for counts in [&two.hits, &two.validated, &two.forwarded, &two.not_modified] {
            assert_eq!((of(counts), counts.sum()), (2, 2));
        }
    }
}
