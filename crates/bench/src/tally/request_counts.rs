//! What became of the clients' requests, exactly: `requests = hits + validated + forwarded +
//! not_modified + errors + aborted`.

use super::by_kind::ByKind;
use super::counts::Counts;
use super::outcome::{CrossCheck, ErrorKind, Outcome};
use crate::check::WrongKind;
use serde::{Deserialize, Serialize};
use weir_measure::merge_fields;

/// What became of the requests of a phase, or of a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestCounts {
    /// Requests that were begun, whatever became of them. One that is repeated on a fresh
    /// connection counts once.
    pub requests: u64,
    /// Answered with content that another request brought: it bears another's mark.
    pub hits: u64,
    /// Of those, the ones that waited for another request's fetch: the origin began to answer after
    /// they were sent.
    pub collapsed: u64,
    /// Answered with stored content after the origin validated it.
    pub validated: u64,
    /// Answered with what the origin sent for this request.
    pub forwarded: u64,
    /// Answered with 304, by the proxy or the origin.
    pub not_modified: u64,
    /// Of those, the ones for which the origin was asked: they bear their own mark.
    pub not_modified_forwarded: u64,
    /// Without an answer that could be used, by kind.
    pub errors: Counts<ErrorKind>,
    /// Left by the client before the end, as the scenario wants it.
    pub aborted: u64,
    /// Wrong responses, by kind. They are in one of the counts above as well.
    pub wrong: Counts<WrongKind>,
    /// 200 to a request whose condition held: allowed, and a waste.
    pub condition_ignored: u64,
    /// Hits where the request asked that no stored response be used: common, and not what was
    /// asked.
    pub reload_ignored: u64,
    /// What `Cache-Status` or `X-Cache` said beside what the marks say.
    pub cache_status: Counts<CrossCheck>,
    /// By how they were asked.
    pub by_kind: ByKind,
    /// Of those that have ended, the ones that a cache without limits could have answered from what
    /// it had, by the order of the stream.
    pub could_hit: u64,
    /// Bytes of content received by those.
    pub could_hit_content_bytes: u64,
    /// Bytes of content received, aborted and wrong ones included.
    pub content_bytes: u64,
    /// Of those, the ones of failed requests.
    pub failed_content_bytes: u64,
    /// Of all content bytes, the ones of hits and of validated responses.
    pub hit_content_bytes: u64,
    /// Bytes of content sent, by POST.
    pub sent_content_bytes: u64,
    /// Connections that were set up.
    pub connections_opened: u64,
    /// Requests on a connection that had carried one before.
    pub connections_reused: u64,
    /// Connections that took a second or more: a SYN was lost or the listen queue full (RFC 6298:
    /// first repetition after 1 s).
    pub connections_slow: u64,
    /// Requests repeated because their connection, used before, had closed when they came. Same
    /// request, same mark.
    pub repeated: u64,
}

impl RequestCounts {
    /// Enters the end of a request.
    pub fn enter(&mut self, outcome: Outcome, content_bytes: u64) {
        self.content_bytes += content_bytes;
        match outcome {
            Outcome::Hit => self.hits += 1,
            Outcome::Validated => self.validated += 1,
            Outcome::Forwarded => self.forwarded += 1,
            Outcome::NotModified { by_origin } => {
                self.not_modified += 1;
                self.not_modified_forwarded += u64::from(by_origin);
            }
            Outcome::Error(kind) => {
                self.errors.add(kind);
                self.failed_content_bytes += content_bytes;
            }
            Outcome::Aborted => self.aborted += 1,
        }
        if matches!(outcome, Outcome::Hit | Outcome::Validated) {
            self.hit_content_bytes += content_bytes;
        }
    }

    /// Requests that have ended, in whatever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.responses() + self.errors.sum() + self.aborted
    }

    /// Requests that were answered.
    #[must_use]
    pub fn responses(&self) -> u64 {
        self.hits + self.validated + self.forwarded + self.not_modified
    }

    /// Does every request that was begun stand in exactly one count?
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.requests == self.ended()
    }
}

merge_fields! {
    RequestCounts { sum {
        requests, hits, collapsed, validated, forwarded, not_modified, not_modified_forwarded,
        errors, aborted, wrong, condition_ignored, reload_ignored, cache_status, by_kind, could_hit,
        could_hit_content_bytes, content_bytes, failed_content_bytes, hit_content_bytes,
        sent_content_bytes, connections_opened, connections_reused, connections_slow, repeated,
    } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::Label as _;

    #[test]
    fn every_outcome_enters_exactly_one_account() {
        let mut counts = RequestCounts::default();
        let mut outcomes = vec![
            Outcome::Hit,
            Outcome::Validated,
            Outcome::Forwarded,
            Outcome::NotModified { by_origin: true },
            Outcome::NotModified { by_origin: false },
            Outcome::Aborted,
        ];
        outcomes.extend(ErrorKind::ALL.iter().copied().map(Outcome::Error));
        for (already, outcome) in (0..).zip(outcomes) {
            assert_eq!(counts.ended(), already);
            counts.requests += 1;
            assert!(!counts.is_balanced());
            counts.enter(outcome, 10);
            assert!(counts.is_balanced());
        }
        assert_eq!(counts.hit_content_bytes, 20);
        assert_eq!(counts.not_modified_forwarded, 1);
        let mut twice = counts.clone();
        twice.merge(&counts);
        assert_eq!(twice.ended(), 2 * counts.ended());
        assert_eq!(twice.errors.of(ErrorKind::Reset), 2);
    }
}
