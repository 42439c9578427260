//! Only a part of the request's range is stored: requests the missing range, and joins it (RFC 9111
//! §3.4).
//!
//! Where the text is silent:
//! * A part that is fresh and lacks something is forwarded for `partial` (RFC 9211 §2.2); one that
//!   could not be used for another reason, for that reason. Either way only the missing range is
//!   requested: the 206 to an `If-Range` says that the representation is the same, which is all a
//!   validation would say.
//! * A request for several ranges is forwarded as it came, also for `partial`: that is what the RFC
//!   calls it when not all of the requested ranges are there. `bypass` would mean that the cache
//!   was not used.
//! * So is a request that says `no-store`: what it fetches could not be joined.
//! * A 206 that does not fit comes from an origin that does not keep its own `If-Range`. It does
//!   not answer the client either, even if its request is for a range: it has another range and may
//!   leave out fields (RFC 9110 §15.3.7). The request is sent once more, as the client sent it. So
//!   is one whose response may not be stored, as it can only be joined in the store (`update.rs`).

use super::{Commands, ForwardedForm, Transaction};
use crate::judge::{Judgement, judge};
use crate::now::Now;
use crate::stored::StoredFacts;
use weir_semantics::{Fwd, RangeKind};

impl Transaction {
    /// The stored part lacks some of the request's range.
    pub(super) fn lack(&mut self, now: Now, stored: &StoredFacts) -> Commands {
        self.stored = Some(*stored);
        self.lacking = true;
        let fwd = match judge(now, &self.request.directives, stored) {
            Judgement::Use(_) => Fwd::Partial,
            Judgement::Forward(fwd) => fwd,
        };
        let can_be_joined = stored.can_be_part()
            && self.request.range != RangeKind::Many
            && !self.request.directives.no_store;
        let form = if can_be_joined {
            ForwardedForm::MissingRange
        } else {
            ForwardedForm::AsSent
        };
        self.forward(now, fwd, form)
    }
}
