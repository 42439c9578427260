//! One response for several requests: which may wait for another's, and which are answered by it.
//!
//! RFC 9111 §4 allows to collapse requests and says little about how. Our reading is the strict
//! one: a request that joins is answered by a response that it could be answered by if it were
//! stored already, and by no other. So a response that must be validated before each use, or is
//! stale as it comes, serves the request it was fetched for alone.

use super::{Commands, ForwardedForm, Transaction};
use crate::judge::{Judgement, judge};
use crate::now::Now;
use crate::stored::StoredFacts;
use crate::verdict::{Handling, Hit};
use weir_semantics::{Fwd, Method, RangeKind, RequestDirectives};

/// When a request came to share the response of another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// It waited for the head: forwarded, as RFC 9211 §2.6 sees it, and collapsed.
    Waited,
    /// The head was there, and the content in flight: a hit, though delayed.
    InFlight,
}

/// Whether a response with this status that is not shared means that later ones of its target will
/// not be either: not an error, which is temporary, and not a part, whose whole may be shared.
#[must_use]
pub const fn says_about_target(status: u16) -> bool {
    status < 500 && !matches!(status, 206 | 416)
}

impl StoredFacts {
    /// Whether this response answers requests that it was not sent for. If not, none is to wait for
    /// it: each validates for itself, all at the same time.
    #[must_use]
    pub fn answers_others(&self, now: Now) -> bool {
        let plain = RequestDirectives::default();
        matches!(judge(now, &plain, self), Judgement::Use(_))
    }
}

impl Transaction {
    /// Whether this request may wait for the response to another one; to be called once the look-up
    /// has found nothing to answer it with.
    ///
    /// Only a GET: a HEAD costs little. Not with `no-cache`, which requires a response of its own;
    /// not with `only-if-cached`, which must not wait; not for several ranges, which only a whole
    /// response answers. A request with preconditions or with a range may: they are evaluated
    /// against the response. So may one with credentials: those forbid to store an answer, not to
    /// be given one (RFC 9111 §3.5).
    #[must_use]
    pub const fn follows(&self) -> bool {
        let directives = &self.request.directives;
        self.is_shared_get()
            && !directives.no_cache
            && !directives.only_if_cached
            && !matches!(self.request.range, RangeKind::Many)
    }

    /// Whether others may wait for the response to this request; to be called after `Forward`.
    /// False where the request alone makes it unlikely that its response can be stored: they would
    /// wait for nothing.
    #[must_use]
    pub const fn leads(&self) -> bool {
        let request = &self.request;
        let own_question = match self.form {
            ForwardedForm::Validation | ForwardedForm::MissingRange => true,
            ForwardedForm::AsSent if self.fetches_whole => true,
            ForwardedForm::AsSent => {
                !request.preconditions
                    && match request.range {
                        RangeKind::None => true,
                        RangeKind::One => !request.has_if_range,
                        RangeKind::Many => false,
                    }
            }
        };
        self.is_shared_get() && own_question && self.completes()
    }

    /// Whether what this request fetches may be joined with a shared response: for one that says
    /// `no-store`, or has credentials, a part may not be stored.
    #[must_use]
    pub const fn completes(&self) -> bool {
        !self.request.directives.no_store && !self.request.has_authorization
    }

    /// Whether the response to this request may be stored, as far as the request shows.
    #[must_use]
    pub const fn may_store(&self) -> bool {
        self.is_shared_get() && !self.request.directives.no_store
    }

    const fn is_shared_get(&self) -> bool {
        matches!(self.request.method, Method::Get) && !self.bypassing
    }

    /// Whether a response to this request that is not shared means that later ones of its target
    /// will not be either ([`says_about_target`]): not one that a failed module has let pass.
    #[must_use]
    pub const fn says_about_target(&self, status: u16) -> bool {
        !self.keeps_stored && says_about_target(status)
    }

    /// Another request's response could answer this one: `stored` are its facts, `joined` says when
    /// this one came. Gives `Serve`, or `Forward` for a request that goes alone, as the client sent
    /// it.
    pub fn joined(&mut self, now: Now, stored: &StoredFacts, joined: JoinKind) -> Commands {
        if stored.is_withheld_from(&self.request) {
            self.stored = None;
            return self.forward(now, self.reason_to_forward(), ForwardedForm::AsSent);
        }
        let hit = match judge(now, &self.request.directives, stored) {
            Judgement::Use(hit) => hit,
            Judgement::Forward(fwd) => {
                self.stored = None;
                return self.forward(now, fwd, ForwardedForm::AsSent);
            }
        };
        self.verdict.handling = match (joined, hit) {
            (JoinKind::Waited, _) => Handling::Collapsed(self.reason_to_forward()),
            (JoinKind::InFlight, Hit::Fresh) => Handling::Hit(Hit::Delayed),
            // that it is stale is the more important to say
            (JoinKind::InFlight, stale) => Handling::Hit(stale),
        };
        self.serve(now, stored)
    }

    /// Why this request would have been forwarded, by the result of the look-up, if the driver
    /// reported one.
    const fn reason_to_forward(&self) -> Fwd {
        match self.verdict.handling {
            Handling::Forward(fwd) if !matches!(fwd, Fwd::Bypass) => fwd,
            _ => Fwd::UriMiss,
        }
    }
}
