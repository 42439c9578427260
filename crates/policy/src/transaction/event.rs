//! The events of a transaction.

use super::update::Update;
use crate::catalog::Refusal;
use crate::stored::StoredFacts;
use weir_semantics::{DeltaSeconds, ResponseFacts};

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The request is authorised. `unshared` is set where its answer must not be shared for reasons
    /// outside the facts: it has content, requests an upgrade, or nothing may be stored at all.
    Request {
        /// Go around the cache.
        unshared: bool,
    },
    /// A stored response was chosen (RFC 9111 §4.1).
    Found(&'a StoredFacts),
    /// A stored response was chosen of which only a part is there (RFC 9111 §3.3).
    FoundPart(&'a StoredFacts, Covers),
    /// No stored response could be chosen. A request that waited for a response that cannot answer
    /// it gets this event when it stops waiting.
    Missing(Missing),
    /// The final response head of the next hop.
    Response(&'a ResponseFacts),
    /// A final response head that may update the stored response, merged into that: whether it may
    /// is decided by `Transaction::may_update`.
    Update(Update<'a>),
    /// The next hop could not give a response head.
    Failed(Failure),
    /// The catalog did not take what `Store` offered, or let it go before it was whole.
    NotAdmitted(Refusal),
    /// The content ended early, or its transfer was given up: what was being stored is not whole.
    Incomplete,
}

/// Whether a stored part has the request's range, in the form of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// Every byte of the answer is there. So it is for an answer without content: to HEAD, 304 to a
    /// precondition that the stored fields decide, 416 where the complete length is known.
    Wanted,
    /// Some are not: the request is for the whole, for a range that is not all there, or for
    /// several ranges.
    Lacking,
}

/// Why nothing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing is stored for the target.
    Target,
    /// Something is, but for other nominated fields (RFC 9111 §4.1).
    Variant,
}

/// How the next hop failed before a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It could not be reached, or fell silent, or closed: we are disconnected from it.
    Disconnected,
    /// It answered with something that is not HTTP.
    Protocol,
    /// We did not try: one of our own limits or rules.
    Ours,
    /// We did not try: the link to it has spent its quota.
    LinkSpent {
        /// How long past its freshness a response may be served in its place, if it may.
        stale_for: Option<DeltaSeconds>,
    },
}
