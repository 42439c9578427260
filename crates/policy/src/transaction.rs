//! The life of one request, decided without touching the world.
//!
//! `Transaction::handle(now, event) -> commands`: the driver tells what happened, the transaction says what to
//! do. Heads and lengths go in; content never does. Nothing is allocated and nothing is formatted. The whole
//! order of events is:
//!
//! ```text
//! Request ─┬─ LookUp ── Found ───┬─ Serve                                  (hit)
//!          │                     ├─ Serve + RefreshInBackground            (hit, stale-while-revalidate)
//!          │                     ├─ Forward{validate} ── Response ─┬─ Freshen + Serve        (304)
//!          │                     │                                 ├─ Serve                  (5xx, stale-if-error)
//!          │                     │                                 └─ Relay [+ Store|Drop]
//!          │                     └─ Answer(OnlyIfCached)
//!          ├─────────── Missing ─┬─ Forward ── Response ── Relay [+ Store]
//!          │                     └─ Answer(OnlyIfCached)
//!          └─ Forward (method, bypass) ── Response ── Relay [+ Invalidate]
//!
//! Forward ── Failed ─┬─ Serve              (stale, where allowed)
//!                    └─ Answer
//! ```
//!
//! RFC 9111 §4 (choosing and reusing), §3 (storing), §4.3 (validation), §4.4 (invalidation); RFC 5861.

use crate::catalog::Refusal;
use crate::judge::{Judgement, judge};
use crate::now::Now;
use crate::profile::Profile;
use crate::stored::StoredFacts;
use crate::verdict::{Excuse, Handling, Hit, NotStored, Refused, Storing, Verdict};
use weir_semantics::{
    DeltaSeconds, Fwd, Heuristic, Method, RequestFacts, ResponseFacts, Timestamp, storable,
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
}

/// One request on its way.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    request: RequestFacts,
    stored: Option<StoredFacts>,
    validating: bool,
    bypassing: bool,
    request_time: Timestamp,
    verdict: Verdict,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The request is authorised. `unshared` is set where its answer must not be shared for reasons outside
    /// the facts: it carries content, or asks to upgrade.
    Request {
        /// Go around the cache.
        unshared: bool,
    },
    /// A stored response was chosen (RFC 9111 §4.1).
    Found(&'a StoredFacts),
    /// No stored response could be chosen.
    Missing(Missing),
    /// The final response head of the next hop.
    Response(&'a ResponseFacts),
    /// The next hop could not give a response head.
    Failed(Failure),
    /// The catalog did not take what `Store` offered, or let it go before it was whole.
    NotAdmitted(Refusal),
    /// The content ended early: what was being stored is not whole.
    Incomplete,
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
}

/// What the driver is to do, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Look for a stored response.
    LookUp,
    /// Send the stored response.
    Serve(Serving),
    /// Send the request to the next hop.
    Forward(Forwarding),
    /// Validate the stored response in the background; the client is served already.
    RefreshInBackground,
    /// Answer without a stored response; the driver knows status and text.
    Answer(Refused),
    /// Relay the next hop's response to the client.
    Relay,
    /// Store what is relayed under these facts.
    Store(StoredFacts),
    /// Update the stored response by the 304 just received (RFC 9111 §3.2, §4.3.4); these are its facts afterwards
    /// as far as the 304's own fields tell: the driver merges fields and computes them again.
    Freshen,
    /// Forget what is stored for the target and for same-origin Location and Content-Location (RFC 9111 §4.4).
    Invalidate,
    /// Forget the stored response that was being validated: the origin has another one, which is not stored.
    Drop,
}

/// How a stored response is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Value for Age (RFC 9111 §5.1), seconds.
    pub age: DeltaSeconds,
}

/// How a request is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// Replace the client's preconditions by the stored response's validators (RFC 9111 §4.3.1).
    pub validate: bool,
}

/// At most four commands, in order, without allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commands {
    slots: [Option<Command>; Self::MAX],
}

impl Commands {
    /// Most commands one event can give.
    pub const MAX: usize = 4;

    fn with(mut self, command: Command) -> Self {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(command);
        } else {
            debug_assert!(false, "more than {} commands", Self::MAX);
        }
        self
    }

    fn one(command: Command) -> Self {
        Self::default().with(command)
    }

    /// The commands in order.
    pub fn iter(&self) -> impl Iterator<Item = Command> + '_ {
        self.slots.iter().map_while(|slot| *slot)
    }

    /// The first command; every event but the last of a transaction gives at least one.
    #[must_use]
    pub fn first(&self) -> Option<Command> {
        self.slots[0]
    }

    /// The commands as a list, for comparing whole conversations in tests.
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<Command> {
        self.iter().collect()
    }
}

impl Transaction {
    /// A transaction for an authorised request.
    #[must_use]
    pub fn new(request: RequestFacts, now: Now) -> Self {
        Self {
            request,
            stored: None,
            validating: false,
            bypassing: false,
            request_time: now.wall,
            verdict: Verdict {
                handling: Handling::Forward(Fwd::Bypass),
                fwd_status: None,
                storing: None,
                ttl: None,
                collapsed: false,
            },
        }
    }

    /// A transaction that validates `stored` in the background, after it was served stale (RFC 5861 §3). It is a GET,
    /// also where a HEAD was served: what comes is for the store.
    #[must_use]
    pub fn refresh(request: RequestFacts, stored: &StoredFacts, now: Now) -> (Self, Forwarding) {
        let method = Method::Get;
        let mut transaction = Self::new(RequestFacts { method, ..request }, now);
        let validate = stored.has_validator;
        transaction.stored = Some(*stored);
        transaction.validating = validate;
        transaction.verdict.handling = Handling::Forward(Fwd::Stale);
        (transaction, Forwarding { validate })
    }

    /// The exchange became a tunnel.
    pub fn tunnel(&mut self) {
        self.verdict.handling = Handling::Tunnel;
        self.verdict.storing = None;
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

    /// When the request was sent on, for `response_delay` (RFC 9111 §4.2.3).
    #[must_use]
    pub const fn request_time(&self) -> Timestamp {
        self.request_time
    }

    /// Takes one event and answers with what to do.
    pub fn handle(&mut self, now: Now, rules: &Rules, event: Event<'_>) -> Commands {
        match event {
            Event::Request { unshared } => self.begin(now, rules, unshared),
            Event::Found(stored) => self.choose(now, stored),
            Event::Missing(missing) => self.miss(now, missing),
            Event::Response(response) => self.respond(now, rules, response),
            Event::Failed(failure) => self.fail(now, rules, failure),
            Event::NotAdmitted(refusal) => self.not_stored(NotStored::Catalog(refusal)),
            Event::Incomplete => self.not_stored(NotStored::Incomplete),
        }
    }

    fn begin(&mut self, now: Now, rules: &Rules, unshared: bool) -> Commands {
        if !matches!(self.request.method, Method::Get | Method::Head) {
            self.bypassing = true;
            return self.forward(now, Fwd::Method, false);
        }
        if unshared || rules.profile.bypass(&self.request).is_some() {
            self.bypassing = true;
            return self.forward(now, Fwd::Bypass, false);
        }
        Commands::one(Command::LookUp)
    }

    fn choose(&mut self, now: Now, stored: &StoredFacts) -> Commands {
        self.stored = Some(*stored);
        match judge(now, &self.request.directives, stored) {
            Judgement::Use(hit) => {
                let serve = self.hit(now, stored, hit);
                if hit == Hit::WhileRevalidate {
                    serve.with(Command::RefreshInBackground)
                } else {
                    serve
                }
            }
            Judgement::Ask(fwd) => self.forward(now, fwd, stored.has_validator),
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
        self.forward(now, fwd, false)
    }

    fn forward(&mut self, now: Now, fwd: Fwd, validate: bool) -> Commands {
        if self.request.directives.only_if_cached && !self.bypassing {
            return self.refuse(Refused::OnlyIfCached);
        }
        self.request_time = now.wall;
        self.validating = validate;
        self.verdict.handling = Handling::Forward(fwd);
        Commands::one(Command::Forward(Forwarding { validate }))
    }

    /// Ends the transaction with an answer of our own.
    pub fn refuse(&mut self, refused: Refused) -> Commands {
        self.verdict.handling = Handling::Refused(refused);
        Commands::one(Command::Answer(refused))
    }

    fn respond(&mut self, now: Now, rules: &Rules, response: &ResponseFacts) -> Commands {
        self.verdict.fwd_status = Some(response.status);
        if let Some(stored) = self.stored {
            if response.status == 304 && self.validating {
                return Commands::one(Command::Freshen);
            }
            if is_error(response.status) && may_excuse(now, &stored, stored.stale_if_error) {
                self.verdict.handling = Handling::StaleInstead(Excuse::IfError);
                return self.serve(now, &stored);
            }
        }
        let storing = self.storing(now, rules, response);
        self.verdict.storing = Some(storing.map_or_else(Storing::NotStored, |_| Storing::Stored));
        let relay = Commands::one(Command::Relay);
        if !self.request.method.is_safe() {
            return if response.status < 400 {
                relay.with(Command::Invalidate)
            } else {
                relay
            };
        }
        match storing {
            Ok(facts) => relay.with(Command::Store(facts)),
            Err(_) if self.replaces(response) => relay.with(Command::Drop),
            Err(_) => relay,
        }
    }

    /// After `Freshen` was done: `stored` are the facts of the stored response as updated.
    pub fn freshened(&mut self, now: Now, stored: &StoredFacts) -> Commands {
        self.stored = Some(*stored);
        self.verdict.storing = Some(Storing::Stored);
        self.serve(now, stored)
    }

    /// `Freshen` could not be done: the 304 names another response by a strong entity tag, and updates nothing
    /// (RFC 9111 §4.3.4). `stored` is served this once as it is, unless it must not be served without a validation
    /// that succeeded.
    pub fn not_freshened(&mut self, now: Now, stored: &StoredFacts) -> Commands {
        if stored.forbids_stale() {
            return self.refuse(Refused::NextHop);
        }
        self.serve(now, stored)
    }

    /// Whether a response that is not stored shows that the stored one is outdated: the origin answered
    /// the same question with another representation, or with its absence; not with a part, or an error that may be
    /// this client's alone.
    fn replaces(&self, response: &ResponseFacts) -> bool {
        self.stored.is_some()
            && self.request.method == Method::Get
            && matches!(response.status, 200..=205 | 300..=303 | 305..=308 | 404 | 410)
    }

    fn storing(
        &self,
        now: Now,
        rules: &Rules,
        response: &ResponseFacts,
    ) -> Result<StoredFacts, NotStored> {
        if self.bypassing {
            return Err(NotStored::Bypass);
        }
        storable(&self.request, response).map_err(NotStored::Rule)?;
        if let Some(cause) = rules.profile.refuses(response) {
            return Err(NotStored::Profile(cause));
        }
        let permitted = response.has_explicit_lifetime() || response.directives.public;
        if response.has_set_cookie && !permitted {
            return Err(NotStored::SetCookie);
        }
        // an error that one odd request can provoke, kept by heuristics, would spoil the target for everybody; that
        // there is nothing (any more) is no such error
        let provokable = response.status >= 400 && !matches!(response.status, 404 | 410);
        if provokable && !response.has_explicit_lifetime() {
            return Err(NotStored::Useless);
        }
        let facts = StoredFacts::new(response, self.request_time, now, &rules.heuristic);
        if facts.is_useless() {
            return Err(NotStored::Useless);
        }
        Ok(facts)
    }

    fn fail(&mut self, now: Now, rules: &Rules, failure: Failure) -> Commands {
        if let Some(stored) = self.stored {
            let excuse = match failure {
                Failure::Disconnected => Some((
                    Excuse::Disconnected,
                    Some(
                        stored
                            .stale_if_error
                            .map_or(rules.disconnected_stale_max, |limit| limit),
                    ),
                )),
                Failure::Protocol => Some((Excuse::IfError, stored.stale_if_error)),
                Failure::Ours => None,
            };
            if let Some((excuse, limit)) = excuse
                && may_excuse(now, &stored, limit)
            {
                self.verdict.handling = Handling::StaleInstead(excuse);
                return self.serve(now, &stored);
            }
        }
        self.refuse(match failure {
            Failure::Ours => Refused::Overloaded,
            Failure::Disconnected | Failure::Protocol => Refused::NextHop,
        })
    }

    fn not_stored(&mut self, why: NotStored) -> Commands {
        self.verdict.storing = Some(Storing::NotStored(why));
        Commands::default()
    }
}

/// The statuses RFC 5861 §4 calls an error.
const fn is_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

fn may_excuse(now: Now, stored: &StoredFacts, limit: Option<DeltaSeconds>) -> bool {
    let staleness = -stored.ttl(now);
    !stored.forbids_stale() && limit.is_some_and(|limit| staleness <= i64::from(limit.0))
}

#[cfg(test)]
mod tests;
