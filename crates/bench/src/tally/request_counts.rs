//! What became of the clients' requests, exactly: `requests = hits + validated + forwarded +
//! not_modified + errors + aborted`.

use super::outcome::{CrossCheck, ErrorKind, Outcome};
use super::request_kind::RequestKind;
use crate::check::WrongKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_measure::record::ClientSide;
use weir_measure::{Label, merge_fields};

/// What became of the requests of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestCounts {
    /// The counts of the record.
    pub client: ClientSide,
    /// 200 to a request whose condition held: allowed, and a waste.
    pub condition_ignored: u64,
    /// Hits where the request forbade a stored response: common, and against the request.
    pub reload_ignored: u64,
    /// Bytes of content sent, by POST.
    pub sent_content_bytes: u64,
    /// Connections that took a second or more: a SYN was lost or the listen queue full (RFC 6298:
    /// first repetition after 1 s).
    pub connections_slow: u64,
    /// Requests repeated because their connection, used before, had closed when they came. Same
    /// request, same mark.
    pub repeated: u64,
}

impl Default for RequestCounts {
    fn default() -> Self {
        Self {
            client: ClientSide {
                // counted, which it is not in old records
                not_modified_forwarded: Some(0),
                ..ClientSide::default()
            },
            condition_ignored: 0,
            reload_ignored: 0,
            sent_content_bytes: 0,
            connections_slow: 0,
            repeated: 0,
        }
    }
}

impl RequestCounts {
    /// Enters the end of a request.
    pub fn enter(&mut self, outcome: Outcome, content_bytes: u64) {
        let client = &mut self.client;
        client.content_bytes += content_bytes;
        match outcome {
            Outcome::Hit => client.hits += 1,
            Outcome::Validated => client.validated += 1,
            Outcome::Forwarded => client.forwarded += 1,
            Outcome::NotModified { by_origin } => {
                client.not_modified += 1;
                *client.not_modified_forwarded.get_or_insert_default() += u64::from(by_origin);
            }
            Outcome::Error(kind) => {
                *at(&mut client.errors, kind) += 1;
                client.failed_content_bytes += content_bytes;
            }
            Outcome::Aborted => client.aborted += 1,
        }
        if matches!(outcome, Outcome::Hit | Outcome::Validated) {
            client.hit_content_bytes += content_bytes;
        }
    }

    /// Enters the end of a request of a kind.
    pub(crate) fn enter_kind(&mut self, kind: RequestKind, outcome: Outcome) {
        let side = at(&mut self.client.by_kind, kind);
        side.requests += 1;
        match outcome {
            Outcome::Hit => side.hits += 1,
            Outcome::Validated => side.validated += 1,
            Outcome::Forwarded => side.forwarded += 1,
            Outcome::NotModified { .. } => side.not_modified += 1,
            Outcome::Error(_) | Outcome::Aborted => {}
        }
    }

    /// Enters a wrong response, which is in one of the other counts as well.
    pub(crate) fn enter_wrong(&mut self, kind: WrongKind) {
        *at(&mut self.client.wrong, kind) += 1;
    }

    /// Enters what `Cache-Status` or `X-Cache` said beside the marks.
    pub(crate) fn enter_cross_check(&mut self, check: CrossCheck) {
        let agreement = &mut self.client.cache_status;
        *match check {
            CrossCheck::Agree => &mut agreement.agree,
            CrossCheck::Disagree => &mut agreement.disagree,
            CrossCheck::Absent => &mut agreement.absent,
        } += 1;
    }

    /// Failed requests of this kind.
    #[must_use]
    pub fn errors_of(&self, kind: ErrorKind) -> u64 {
        self.client.errors.get(kind.word()).copied().unwrap_or(0)
    }

    /// Wrong responses of this kind.
    #[must_use]
    pub fn wrong_of(&self, kind: WrongKind) -> u64 {
        self.client.wrong.get(kind.word()).copied().unwrap_or(0)
    }

    /// Requests that have ended, in whatever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.client.answered() + self.client.error_count() + self.client.aborted
    }

    /// Does every request that was begun stand in exactly one count?
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.client.requests == self.ended()
    }
}

/// The entry of a kind; its word is copied once.
fn at<V: Default>(counts: &mut BTreeMap<String, V>, kind: impl Label) -> &mut V {
    let word = kind.word();
    if !counts.contains_key(word) {
        counts.insert(word.to_owned(), V::default());
    }
    counts.get_mut(word).expect("it was just looked for")
}

merge_fields! {
    RequestCounts { sum {
        client, condition_ignored, reload_ignored, sent_content_bytes, connections_slow, repeated,
    } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::record::KindSide;

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
            counts.client.requests += 1;
            assert!(!counts.is_balanced());
            counts.enter(outcome, 10);
            assert!(counts.is_balanced());
        }
        assert_eq!(counts.client.hit_content_bytes, 20);
        assert_eq!(counts.client.not_modified_forwarded, Some(1));
        let mut twice = counts.clone();
        twice.merge(&counts);
        assert_eq!(twice.ended(), 2 * counts.ended());
        assert_eq!(twice.errors_of(ErrorKind::Reset), 2);
    }
    #[test]
    fn each_outcome_of_a_kind_is_counted_once_and_merged() {
        let mut one = RequestCounts::default();
        let outcomes = [
            Outcome::Hit,
            Outcome::Validated,
            Outcome::Forwarded,
            Outcome::NotModified { by_origin: true },
            Outcome::Aborted,
        ];
        for outcome in outcomes {
            one.enter_kind(RequestKind::Reload, outcome);
        }
        let mut two = one.clone();
        two.merge(&one);
        let reloads = KindSide {
            requests: 10,
            hits: 2,
            validated: 2,
            forwarded: 2,
            not_modified: 2,
        };
        let expected = BTreeMap::from([("reload".to_owned(), reloads)]);
        assert_eq!(two.client.by_kind, expected);
    }
}
