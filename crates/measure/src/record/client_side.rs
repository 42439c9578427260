//! What the clients saw of a phase.

use crate::merge_fields;
use alloc::collections::BTreeMap;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Requests by how they ended: `requests = hits + validated + forwarded + not_modified + errors +
/// aborted`, exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientSide {
    /// Requests that were begun.
    pub requests: u64,
    /// Responses that carry another request's mark: from the store, or from a fetch that was
    /// shared.
    pub hits: u64,
    /// Of the hits, the collapsed requests (RFC 9211 §2.6): the origin began the response after
    /// this request was sent, for another request. Zero in records of versions that did not count
    /// them.
    #[serde(default)]
    pub collapsed: u64,
    /// Responses from the store that were validated at the origin for this request.
    pub validated: u64,
    /// Responses that the origin gave to this request.
    pub forwarded: u64,
    /// 304 to a conditional request of ours, from the proxy or the origin.
    pub not_modified: u64,
    /// Of those, the ones with a request to the origin. `None` in records of versions that did not
    /// count them.
    #[serde(default)]
    pub not_modified_forwarded: Option<u64>,
    /// Requests that got no whole response, by kind: `connect`, `reset`, `timeout`, `status-502`
    /// ...
    pub errors: BTreeMap<String, u64>,
    /// Requests that the client aborted, as the scenario requires.
    pub aborted: u64,
    /// Responses that are not what the origin says, by kind: `wrong-byte`, `short-body` ... They
    /// are counted in the lines above too.
    pub wrong: BTreeMap<String, u64>,
    /// Content received, bytes; without heads and without framing.
    pub content_bytes: u64,
    /// Of these in responses of failed requests, bytes. Zero in records of versions that did not
    /// count them.
    #[serde(default)]
    pub failed_content_bytes: u64,
    /// Of these in hits, bytes.
    pub hit_content_bytes: u64,
    /// Requests that a cache without limits could have answered from what it had, by the order in
    /// which targets were requested: what the workload offers. Time is left out: what had expired
    /// or changed since counts as well.
    #[serde(default)]
    pub could_hit: u64,
    /// Content received by those, bytes.
    #[serde(default)]
    pub could_hit_content_bytes: u64,
    /// Requests that have ended, by their kind: `plain`, `reload` ... Empty in records of versions
    /// that did not count them.
    #[serde(default)]
    pub by_kind: BTreeMap<String, KindSide>,
    /// Connections to the proxy that were set up.
    pub connections_opened: u64,
    /// Requests sent on a connection that had carried one before.
    pub connections_reused: u64,
    /// What the proxy said of its hits, beside what the marks say.
    pub cache_status: CacheStatusAgreement,
}

impl ClientSide {
    /// Requests that got a whole response.
    #[must_use]
    pub const fn answered(&self) -> u64 {
        self.hits + self.validated + self.forwarded + self.not_modified
    }

    /// Errors of all kinds.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Wrong responses of all kinds.
    #[must_use]
    pub fn wrong_count(&self) -> u64 {
        self.wrong.values().sum()
    }
}

/// Requests of one kind by how they ended; what is missing to [`requests`](Self::requests) failed
/// or was aborted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindSide {
    /// All of them that have ended.
    pub requests: u64,
    /// Answered from the store, or from a fetch that was shared.
    pub hits: u64,
    /// Answered from the store after a validation.
    pub validated: u64,
    /// Answered by the origin.
    pub forwarded: u64,
    /// Answered with 304, by the proxy or the origin.
    pub not_modified: u64,
}

/// `Cache-Status` (RFC 9211) or `X-Cache` of a response compared with the origin's mark in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatusAgreement {
    /// Both say hit, or both say that it was forwarded.
    pub agree: u64,
    /// One says hit and the other does not.
    pub disagree: u64,
    /// The response has neither field.
    pub absent: u64,
}

merge_fields! {
    ClientSide { sum {
        requests, hits, collapsed, validated, forwarded, not_modified, not_modified_forwarded,
        errors, aborted, wrong, content_bytes, failed_content_bytes, hit_content_bytes, could_hit,
        could_hit_content_bytes, by_kind, connections_opened, connections_reused, cache_status,
    } }
    KindSide { sum { requests, hits, validated, forwarded, not_modified } }
    CacheStatusAgreement { sum { agree, disagree, absent } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_and_aborted_requests_are_not_counted_as_answered() {
        let side = ClientSide {
            requests: 11,
            hits: 1,
            validated: 2,
            forwarded: 3,
            not_modified: 1,
            errors: BTreeMap::from([("connect".into(), 2), ("timeout".into(), 1)]),
            aborted: 1,
            ..ClientSide::default()
        };
        assert_eq!(side.answered(), 7);
        assert_eq!(side.error_count(), 3);
        assert_eq!(
            side.requests,
            side.answered() + side.error_count() + side.aborted
        );
    }
}
