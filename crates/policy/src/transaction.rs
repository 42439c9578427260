//! The life of one request, decided without touching the world.
//!
//! `Transaction::handle(now, event) -> commands`: the driver reports events, the transaction
//! returns commands. Heads and lengths go in; content never does. Nothing is allocated and nothing
//! is formatted. What follows is every state (the command whose outcome the driver tells), its
//! events, and the commands that each may give; `tests/transitions.rs` makes it. After a command
//! that no state is named after, the transaction is over.
//!
//! ```text
//! start
//! └─ Request  ── Answer | Forward | LookUp
//!
//! LookUp
//! ├─ Found, FoundPart (Wanted)  ── Answer | Forward | Forward{validate} | Serve | Serve + RefreshInBackground
//! ├─ FoundPart (Lacking)        ── Answer | Forward | Forward{complete}
//! ├─ Missing                    ── Answer | Forward
//! └─ joined                     ── Forward | Serve
//!
//! Forward
//! ├─ Failed             ── Answer | Serve
//! ├─ Response 200, 301  ── Relay | Relay + Drop | Relay + Invalidate | Relay + Store
//! ├─ Response 206       ── Relay | Relay + Invalidate | Relay + Store
//! ├─ Response 304       ── Relay | Relay + Invalidate
//! ├─ Response 404       ── Relay | Relay + Drop | Relay + Store
//! ├─ Response 416       ── Relay
//! ├─ Response 503       ── Relay | Relay + Store | Serve
//! └─ Update 200         ── Relay | Relay + Drop | Relay + Freshen
//!
//! Forward{validate}
//! ├─ Failed                  ── Answer | Serve
//! ├─ Response 200, 301, 404  ── Relay | Relay + Drop | Relay + Store
//! ├─ Response 206, 416       ── Relay
//! ├─ Response 503            ── Relay | Relay + Store | Serve
//! ├─ Update 200              ── Relay | Relay + Drop | Relay + Freshen
//! └─ Update 304              ── Drop + ForwardAgain | Drop + ServeMerged | Freshen + ServeMerged | ServeMerged
//!
//! Forward{complete}
//! ├─ Failed                  ── Answer
//! ├─ Response 200, 301, 404  ── Relay | Relay + Drop | Relay + Drop + Store
//! ├─ Response 304            ── Relay
//! ├─ Response 416            ── Drop + ForwardAgain | ForwardAgain
//! ├─ Response 503            ── Relay | Relay + Store
//! └─ Update 206              ── Drop + ForwardAgain | ForwardAgain | Relay + Combine
//!
//! ForwardAgain
//! ├─ Failed                  ── Answer
//! ├─ Response 200, 301, 404  ── Relay | Relay + Drop | Relay + Store
//! ├─ Response 206, 503       ── Relay | Relay + Store
//! └─ Response 304, 416       ── Relay
//!
//! Store
//! ├─ Incomplete   ── KeepPart | nothing
//! └─ NotAdmitted  ── nothing
//!
//! Combine
//! ├─ Incomplete   ── KeepPart
//! └─ NotAdmitted  ── nothing
//! ```
//!
//! RFC 9111 §4 (choosing and reusing), §3 (storing), §3.3 and §3.4 (parts), §4.3 (validation), §4.4
//! (invalidation); RFC 5861.

mod command;
mod event;
mod part;
mod phase;
mod profile;
mod sharing;
mod storing;
mod update;

pub use command::{Command, Commands, Forwarding, Serving};
pub use event::{Covers, Event, Failure, Missing};
pub use phase::{Phase, Phases};
pub use profile::Profile;
pub use sharing::{JoinKind, says_about_target};
pub use storing::SetCookieRule;
pub use update::Update;

use crate::judge::{Judgement, judge};
use crate::now::Now;
use crate::rule::Reuse;
use crate::stored::StoredFacts;
use crate::verdict::{
    Deviation, Handling, Hit, NotStored, RefuseReason, StaleReason, Storing, Verdict,
};
use weir_semantics::{
    DeltaSeconds, Fwd, Heuristic, Method, RequestDirectives, RequestFacts, ResponseFacts, Timestamp,
};

/// The rules a transaction is decided by; a snapshot of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What may be stored at all.
    pub profile: Profile,
    /// Heuristic freshness (RFC 9111 §4.2.2).
    pub heuristic: Heuristic,
    /// How long past its freshness a response may be served while the next hop cannot be reached
    /// (RFC 9111 §4.2.4), seconds. Never for responses that forbid it.
    pub disconnected_stale_max: DeltaSeconds,
    /// What a response that sets a cookie must say to be stored.
    pub set_cookie: SetCookieRule,
    /// How a rule of the operator has the response used that comes.
    pub reuse: Reuse,
}

/// One request on its way.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    request: RequestFacts,
    stored: Option<StoredFacts>,
    /// `stored` is a part that lacks some of the request's range: it cannot answer.
    lacking: bool,
    form: ForwardedForm,
    bypassing: bool,
    /// A rule of the operator has it bypass the cache.
    bypasses_by_rule: bool,
    /// It validates in the background what a client was served stale.
    is_refresh: bool,
    /// Nothing has asked for what comes.
    is_unasked: bool,
    /// The stored response stays if what comes is no better: nothing has asked for that, and it can
    /// be served.
    spares_servable: bool,
    /// What is being stored is of use in part too.
    keeps_part: bool,
    /// A module forbids to store the response.
    is_forbidden: bool,
    /// The response says nothing of what is stored.
    keeps_stored: bool,
    /// The request is sent for the whole, without the client's preconditions and range.
    fetches_whole: bool,
    /// Modules change the content of the response.
    is_transformed: bool,
    request_time: Timestamp,
    verdict: Verdict,
}

/// The form in which the request was sent to the next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForwardedForm {
    /// As the client sent it.
    AsSent,
    /// With our validators: whether the stored response is still current.
    Validation,
    /// With Range, for the missing range of the stored part.
    MissingRange,
}

impl Transaction {
    /// A transaction for an authorised request.
    #[must_use]
    pub fn new(request: RequestFacts, now: Now) -> Self {
        Self {
            request,
            stored: None,
            lacking: false,
            form: ForwardedForm::AsSent,
            bypassing: false,
            bypasses_by_rule: false,
            is_refresh: false,
            is_unasked: false,
            spares_servable: false,
            keeps_part: false,
            is_forbidden: false,
            keeps_stored: false,
            fetches_whole: false,
            is_transformed: false,
            request_time: now.wall,
            verdict: Verdict::new(),
        }
    }

    /// A transaction that validates `stored` in the background, after it was served stale (RFC 5861
    /// §3). It is a GET, also where a HEAD was served, and for the whole, also where a range was:
    /// what comes is for the store.
    #[must_use]
    pub fn refresh(request: RequestFacts, stored: &StoredFacts, now: Now) -> (Self, Forwarding) {
        let method = Method::Get;
        let request = RequestFacts { method, ..request };
        let mut transaction = Self::new(request.for_whole(), now);
        transaction.is_refresh = true;
        transaction.stored = Some(*stored);
        transaction.form = ForwardedForm::validation(stored);
        transaction.verdict.handling = Handling::Forward(Fwd::Stale);
        (transaction, transaction.form.forwarding())
    }

    /// Neither a client nor a module nor the operator has asked for what comes, which may make what
    /// is stored better alone: a part is completed or stays as it is, and no error or redirect
    /// takes the place of a response that is fresh or may be served stale. To be called once it is
    /// known what is stored.
    pub fn unasked(&mut self, now: Now, rules: &Rules) {
        self.is_unasked = true;
        let may_be_served = |stored: StoredFacts| {
            let limits = [
                stored.stale_while_revalidate,
                disconnected_limit(rules, &stored),
            ];
            let is_excused = |limit| may_excuse(now, &stored, limit);
            !stored.no_cache && stored.ttl(now) > 0 || limits.into_iter().any(is_excused)
        };
        self.spares_servable = self.servable().is_some_and(may_be_served);
    }

    /// The exchange became a tunnel.
    pub fn tunnel(&mut self) {
        self.verdict.handling = Handling::Tunnel;
        self.verdict.storing = None;
    }

    /// The request is unshared because a rule of the operator has it bypass the cache.
    pub fn bypass_by_rule(&mut self) {
        self.bypasses_by_rule = true;
    }

    /// A rule of the operator has changed its target for the cache key.
    pub fn rekey_by_rule(&mut self) {
        self.verdict.marks = self.verdict.marks.deviating(Deviation::Key);
    }

    /// A module forbids to store the response that is to come.
    pub fn forbid_storing(&mut self) {
        self.is_forbidden = true;
    }

    /// What comes is not what the modules of this target make of its responses: one has failed, and
    /// the request continues without it. What would be stored is not, and what is stored stays; a
    /// response that the rules do not store drops it as ever.
    pub fn keep_stored(&mut self) {
        self.keeps_stored = true;
    }

    /// Modules may change content before it is stored: the request is sent to the next hop for the
    /// whole, and without the client's preconditions. Those are about the changed content.
    pub fn fetch_whole(&mut self) {
        self.fetches_whole = true;
    }

    /// Whether the request is sent so.
    #[must_use]
    pub const fn fetches_whole(&self) -> bool {
        self.fetches_whole
    }

    /// Says whether the content of the response that comes passes modules; not that of a stored one
    /// which it only updates.
    pub fn transformed(&mut self, is_transformed: bool) {
        self.is_transformed = is_transformed;
    }

    /// What was found came from disk.
    pub fn found_on_disk(&mut self) {
        self.verdict.marks = self.verdict.marks.from_disk();
    }

    /// Notes by which rule of the operator a stored response answers the request that would not
    /// without: `sent` are the directives of the request before any were ignored, `own` the facts
    /// of the response as it came, `used` those by which it is used.
    pub fn answered_by_rule(
        &mut self,
        now: Now,
        (rules, sent): (&Rules, &RequestDirectives),
        (own, used): (&StoredFacts, &StoredFacts),
    ) {
        let is_used = |directives| matches!(judge(now, directives, own), Judgement::Use(_));
        let is_stored = matches!(
            self.verdict.handling,
            Handling::Hit(_) | Handling::Collapsed(_) | Handling::StaleInstead(_)
        );
        if is_stored && let Some(deviation) = own.ignored.deviation() {
            self.verdict.marks = self.verdict.marks.deviating(deviation);
        }
        let deviation = match self.verdict.handling {
            Handling::Hit(_) | Handling::Collapsed(_) if is_used(sent) => return,
            Handling::Hit(_) | Handling::Collapsed(_) if is_used(&self.request.directives) => {
                Deviation::RequestDirective
            }
            Handling::Hit(_) | Handling::Collapsed(_) if used.ttl(now) > 0 => {
                Deviation::LifetimeForced
            }
            Handling::Hit(_) | Handling::Collapsed(_) => Deviation::Stale,
            Handling::StaleInstead(excuse) => {
                let limit = match excuse {
                    StaleReason::IfError => own.stale_if_error,
                    StaleReason::Disconnected => disconnected_limit(rules, own),
                    // it is a setting of the operator that permits it, and no rule
                    StaleReason::LinkSpent => return,
                };
                if may_excuse(now, own, limit) {
                    return;
                }
                Deviation::Stale
            }
            Handling::Forward(_) | Handling::Refused(_) | Handling::Tunnel => return,
        };
        self.verdict.marks = self.verdict.marks.deviating(deviation);
    }

    /// What was found may have been purged: its facts are those of what must be validated.
    pub const fn found_that_may_be_purged(&mut self) {
        self.verdict.may_be_purged = true;
    }

    /// What was found on disk could not be read after all: as if nothing had been found, and not
    /// validated.
    pub fn lost(&mut self, now: Now) -> Commands {
        self.verdict = Verdict::new();
        self.stored = None;
        self.lacking = false;
        self.miss(now, Missing::Target)
    }

    /// What was decided so far; complete after the last event.
    #[must_use]
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The request's facts.
    #[must_use]
    pub const fn request(&self) -> &RequestFacts {
        &self.request
    }

    /// The request is sent to the next hop, now. What it waited before, for another request's
    /// response or for a connection, is no `response_delay`: nothing ages in it.
    pub fn sent(&mut self, now: Now) {
        self.request_time = now.wall;
    }

    /// When the request was sent to the next hop, for `response_delay` (RFC 9111 §4.2.3); until
    /// then, when that was decided.
    #[must_use]
    pub const fn request_time(&self) -> Timestamp {
        self.request_time
    }

    /// Takes one event and answers with what to do.
    pub fn handle(&mut self, now: Now, rules: &Rules, event: Event<'_>) -> Commands {
        match event {
            Event::Request { unshared } => self.begin(now, rules, unshared),
            Event::Found(stored) | Event::FoundPart(stored, _)
                if stored.is_withheld_from(&self.request) =>
            {
                self.miss(now, Missing::Target)
            }
            Event::Found(stored) => self.choose(now, stored),
            Event::FoundPart(stored, Covers::Wanted) => self.choose(now, stored),
            Event::FoundPart(stored, Covers::Lacking) => self.lack(now, stored),
            Event::Missing(missing) => self.miss(now, missing),
            Event::Response(response) => self.respond(now, rules, response),
            Event::Update(update) => self.update(now, rules, &update),
            Event::Failed(failure) => self.fail(now, rules, failure),
            Event::NotAdmitted(refusal) => self.not_stored(NotStored::Catalog(refusal)),
            Event::Incomplete => self.incomplete(),
        }
    }

    fn begin(&mut self, now: Now, rules: &Rules, unshared: bool) -> Commands {
        if !matches!(self.request.method, Method::Get | Method::Head) {
            self.bypassing = true;
            return self.forward(now, Fwd::Method, ForwardedForm::AsSent);
        }
        if unshared || rules.profile.bypass(&self.request).is_some() {
            self.bypassing = true;
            return self.forward(now, Fwd::Bypass, ForwardedForm::AsSent);
        }
        Commands::one(Command::LookUp)
    }

    fn choose(&mut self, now: Now, stored: &StoredFacts) -> Commands {
        self.stored = Some(*stored);
        match judge(now, &self.request.directives, stored) {
            Judgement::Use(hit) => {
                let serve = self.hit(now, stored, hit);
                // only what is stored is wanted: two caches that validate with each other, each by
                // such a request, would never end
                let is_refreshed = !self.is_for_caches_alone();
                if hit == Hit::WhileRevalidate && is_refreshed {
                    serve.with(Command::RefreshInBackground)
                } else {
                    serve
                }
            }
            Judgement::Forward(fwd) => self.forward(now, fwd, ForwardedForm::validation(stored)),
        }
    }

    fn hit(&mut self, now: Now, stored: &StoredFacts, hit: Hit) -> Commands {
        self.verdict.handling = Handling::Hit(hit);
        self.serve(now, stored)
    }

    fn serve(&mut self, now: Now, stored: &StoredFacts) -> Commands {
        self.verdict.ttl = Some(stored.ttl(now));
        Commands::one(Command::Serve(Serving {
            age: stored.current_age(now),
        }))
    }

    fn miss(&mut self, now: Now, missing: Missing) -> Commands {
        let fwd = match missing {
            Missing::Target => Fwd::UriMiss,
            Missing::Variant => Fwd::VaryMiss,
        };
        self.forward(now, fwd, ForwardedForm::AsSent)
    }

    fn forward(&mut self, now: Now, fwd: Fwd, form: ForwardedForm) -> Commands {
        if self.is_for_caches_alone() {
            return self.refuse(RefuseReason::OnlyIfCached);
        }
        self.request_time = now.wall;
        self.form = form;
        self.verdict.handling = Handling::Forward(fwd);
        Commands::one(Command::Forward(form.forwarding()))
    }

    /// Ends the transaction with an answer of our own.
    pub fn refuse(&mut self, refused: RefuseReason) -> Commands {
        self.verdict.handling = Handling::Refused(refused);
        // neither is of the answer
        self.verdict.ttl = None;
        if self.verdict.storing == Some(Storing::Stored) {
            self.not_stored(NotStored::Incomplete);
        }
        Commands::one(Command::Answer(refused))
    }

    /// After [`RefuseReason::OnlyIfCached`]: another cache of the same owner is asked, as the
    /// client asked, and none that would ask the origin. How to forward the request.
    pub fn ask_another_cache(&mut self, now: Now) -> Forwarding {
        self.request_time = now.wall;
        self.form = ForwardedForm::AsSent;
        self.verdict.handling = Handling::Forward(Fwd::Miss);
        self.form.forwarding()
    }

    /// Whether the request may not reach an origin: it says `only-if-cached`.
    #[must_use]
    pub const fn is_for_caches_alone(&self) -> bool {
        self.request.directives.only_if_cached
    }

    /// Whether it is one that caches answer: it does not bypass them.
    #[must_use]
    pub const fn is_for_caches(&self) -> bool {
        !self.bypassing
    }

    fn respond(&mut self, now: Now, rules: &Rules, response: &ResponseFacts) -> Commands {
        self.verdict.fwd_status = Some(response.status);
        if self.form == ForwardedForm::MissingRange && self.is_unasked {
            // the rest is all that is wanted
            return Commands::one(self.forward_again(now));
        }
        if self.form == ForwardedForm::MissingRange && matches!(response.status, 206 | 416) {
            return self.outdated_unless_spared(now, response);
        }
        if let Some(stored) = self.servable()
            && is_error(response.status)
            && may_excuse(now, &stored, stored.stale_if_error)
        {
            self.verdict.handling = Handling::StaleInstead(StaleReason::IfError);
            return self.serve(now, &stored);
        }
        self.verdict.decided_by = response.decided_by;
        let storing = self.storing(now, rules, response);
        self.verdict.storing = Some(storing.map_or_else(Storing::NotStored, |_| Storing::Stored));
        if let Ok(facts) = &storing {
            self.note_storing(facts);
        }
        let relay = Commands::one(Command::Relay);
        if !self.request.method.is_safe() {
            return if response.status < 400 {
                relay.with(Command::Invalidate)
            } else {
                relay
            };
        }
        match storing {
            Ok(facts) => {
                // what a refresh replaces is whole, and stays if this is not
                self.keeps_part =
                    facts.can_be_part() && !self.is_refresh && !self.has_usable_whole(now);
                // a whole one stays until the new one is there; a part of it is of no use any more
                let relay =
                    if self.form == ForwardedForm::MissingRange && self.replaces(now, response) {
                        relay.with(Command::Drop)
                    } else {
                        relay
                    };
                relay.with(Command::Store(facts))
            }
            Err(why)
                if self.replaces(now, response)
                    && !self.is_set_aside(why)
                    && !self.spares_usable(now, (rules, response), why) =>
            {
                relay.with(Command::Drop)
            }
            Err(_) => relay,
        }
    }

    /// Whether the received part of a response is stored if it ends early.
    #[must_use]
    pub const fn keeps_part(&self) -> bool {
        self.keeps_part
    }

    /// Whether a whole stored response was found that is fresh, or may be served if the next hop
    /// fails: no part replaces it.
    fn has_usable_whole(&self, now: Now) -> bool {
        let is_usable = |stored: StoredFacts| {
            !stored.no_cache && stored.ttl(now) > 0
                || may_excuse(now, &stored, stored.stale_if_error)
        };
        self.servable().is_some_and(is_usable)
    }

    /// The stored response, if it holds the request's range.
    fn servable(&self) -> Option<StoredFacts> {
        self.stored.filter(|_| !self.lacking)
    }

    fn fail(&mut self, now: Now, rules: &Rules, failure: Failure) -> Commands {
        if let Some(stored) = self.servable() {
            let excuse = match failure {
                Failure::Disconnected => {
                    let limit = disconnected_limit(rules, &stored);
                    Some((StaleReason::Disconnected, limit))
                }
                Failure::Protocol => Some((StaleReason::IfError, stored.stale_if_error)),
                Failure::Ours => None,
                Failure::LinkSpent { stale_for } => {
                    let limit = stale_for.filter(|_| !stored.must_revalidate);
                    Some((StaleReason::LinkSpent, limit))
                }
            };
            if let Some((excuse, limit)) = excuse
                && may_excuse(now, &stored, limit)
            {
                self.verdict.handling = Handling::StaleInstead(excuse);
                return self.serve(now, &stored);
            }
            // RFC 9111 §5.2.2.2: 504, so that the client can distinguish this from an error of the
            // next hop
            if stored.must_revalidate && failure == Failure::Disconnected {
                return self.refuse(RefuseReason::MustRevalidate);
            }
        }
        self.refuse(match failure {
            Failure::Ours => RefuseReason::Overloaded,
            Failure::LinkSpent { .. } => RefuseReason::LinkSpent,
            Failure::Disconnected | Failure::Protocol => RefuseReason::NextHop,
        })
    }
}

impl ForwardedForm {
    /// With a validator of `stored`, if it has one (RFC 9111 §4.3.1).
    const fn validation(stored: &StoredFacts) -> Self {
        if stored.has_validator {
            Self::Validation
        } else {
            Self::AsSent
        }
    }

    const fn forwarding(self) -> Forwarding {
        Forwarding {
            validate: matches!(self, Self::Validation),
            complete: matches!(self, Self::MissingRange),
        }
    }
}

/// The statuses RFC 5861 §4 calls an error.
const fn is_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// How long past its freshness a response is served while its next hop cannot be reached.
fn disconnected_limit(rules: &Rules, stored: &StoredFacts) -> Option<DeltaSeconds> {
    let unless_forbidden = (!stored.must_revalidate).then_some(rules.disconnected_stale_max);
    stored.stale_if_error.or(unless_forbidden)
}

fn may_excuse(now: Now, stored: &StoredFacts, limit: Option<DeltaSeconds>) -> bool {
    let staleness = -stored.ttl(now);
    !stored.no_cache && limit.is_some_and(|limit| staleness <= i64::from(limit.0))
}

#[cfg(test)]
mod tests;
