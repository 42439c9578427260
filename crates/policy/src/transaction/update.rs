//! A response that may update the stored one: a 304 to our validators (RFC 9111 §4.3.4), the 206
//! that brings the rest of a stored part (§3.4), a 200 to HEAD (§4.3.5).
//!
//! The driver merges the fields (`weir_semantics::merge`) and reports the result. The rules of
//! storing are applied to the merged response, with the request that brought the update: an update
//! can make a response private, and it can come for a request whose responses are not stored. If
//! the rules refuse, the client of this request gets the merged response, and the stored one is
//! dropped. If they refuse because of the request (`no-store`, credentials), it stays as it is: any
//! client can send such a request. So it does if the response is set aside because a module failed.
//!
//! Where the text is silent:
//! * An update that is about another response says that the stored one is not the present one. It
//!   is dropped, and after a 304 or 206 the request is sent once more, as the client sent it:
//!   without our condition.
//! * A 304 may set a cookie for its client beside what is stored. A 206, or a 200 to HEAD, is a
//!   response of its own: if it would not be shared with its cookie, nothing of it is shared
//!   without.
//! * A response to a request with `Authorization` (§3.5) must itself permit to share it: a 304 and
//!   a 206 have the Cache-Control of a 200 (RFC 9110 §15.4.5, §15.3.7), and a 200 to HEAD has all
//!   fields of a response to GET. The permission to share a response with a cookie is inherited by
//!   a 206, but not by a 200 to HEAD.
//! * An update that changes the nominated fields is not stored: the stored response was keyed by
//!   the old ones, and what its request said in the new ones is not known any more.

use super::{Command, Commands, ForwardedForm, Rules, Serving, Transaction};
use crate::now::Now;
use crate::stored::StoredFacts;
use crate::stored::ignored::StoringIgnored;
use crate::verdict::{NotStored, Storing};
use weir_semantics::{DecidedBy, Fits, Method, NotStorable, RequestFacts, ResponseFacts};

/// A response that may update the stored one.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// What the response itself says.
    pub response: &'a ResponseFacts,
    /// What the stored response says with the fields of this one merged into it.
    pub merged: &'a ResponseFacts,
    /// Whether it is about the stored response: `weir_semantics::StoredValidators::validated_by`
    /// for a 304, `weir_semantics::combines` for a 206, `weir_semantics::StoredValidators::fits`
    /// for a 200 to HEAD.
    pub fits: Fits,
    /// `weir_semantics::MergedFields::changes_vary`.
    pub changes_vary: bool,
}

impl Transaction {
    /// Whether a response with this `status` may update the stored one. Then the driver merges, and
    /// reports `Event::Update`; any other response is reported as `Event::Response`.
    #[must_use]
    pub fn may_update(&self, status: u16) -> bool {
        match status {
            304 => self.form == ForwardedForm::Validation && self.servable().is_some(),
            206 => self.form == ForwardedForm::MissingRange,
            200 => self.request.method == Method::Head && self.servable().is_some(),
            _ => false,
        }
    }

    pub(super) fn update(&mut self, now: Now, rules: &Rules, update: &Update<'_>) -> Commands {
        let status = update.response.status;
        if !self.may_update(status) {
            return self.respond(now, rules, update.response);
        }
        self.verdict.fwd_status = Some(status);
        match status {
            304 => self.not_modified(now, rules, update),
            206 => self.part(now, rules, update),
            _ => self.head(now, rules, update),
        }
    }

    fn not_modified(&mut self, now: Now, rules: &Rules, update: &Update<'_>) -> Commands {
        if update.fits != Fits::Same {
            return self.outdated(now);
        }
        self.verdict.decided_by = update.merged.decided_by;
        let (facts, change) = match self.storing_merged(now, rules, update) {
            Ok(facts) => {
                self.verdict.storing = Some(Storing::Stored);
                self.note_storing(&facts);
                (facts, Commands::one(Command::Freshen(facts)))
            }
            Err(why) => {
                let facts = self.merged_facts(now, rules, update);
                (facts, self.not_updated(now, (rules, update.merged), why))
            }
        };
        self.stored = Some(facts);
        self.verdict.ttl = Some(facts.ttl(now));
        change.with(Command::ServeMerged(Serving {
            age: facts.current_age(now),
        }))
    }

    fn part(&mut self, now: Now, rules: &Rules, update: &Update<'_>) -> Commands {
        if update.fits != Fits::Same {
            return self.outdated_unless_spared(now, update.response);
        }
        self.verdict.decided_by = update.merged.decided_by;
        let facts = match self.storing_merged(now, rules, update) {
            Ok(facts) => facts,
            // what is stored may be joined for another request
            Err(why)
                if self.is_of_the_request(now, (rules, update.merged), why)
                    || self.is_set_aside(why) =>
            {
                return Commands::one(self.forward_again(now));
            }
            Err(_) => return self.outdated(now),
        };
        self.verdict.storing = Some(Storing::Stored);
        self.note_storing(&facts);
        self.keeps_part = facts.can_be_part();
        Commands::one(Command::Relay).with(Command::Combine(facts))
    }

    /// The stored response is updated, or dropped; it stays as it is if no validator shows whether
    /// it is still current. The client gets what the next hop sent.
    fn head(&mut self, now: Now, rules: &Rules, update: &Update<'_>) -> Commands {
        let relay = Commands::one(Command::Relay);
        // a 200 says of a stored error or redirect that it is over
        let is_other_status = update.merged.status != update.response.status;
        if update.fits == Fits::Other || is_other_status {
            let why = NotStored::Rule(NotStorable::Method);
            return relay.and(self.not_updated(now, (rules, update.response), why));
        }
        if update.fits == Fits::Unknown {
            let _ = self.not_stored(NotStored::Rule(NotStorable::Method));
            return relay;
        }
        self.verdict.decided_by = update.merged.decided_by;
        match self.storing_merged(now, rules, update) {
            Ok(facts) => {
                self.verdict.storing = Some(Storing::Stored);
                self.note_storing(&facts);
                relay.with(Command::Freshen(facts))
            }
            Err(why) => relay.and(self.not_updated(now, (rules, update.merged), why)),
        }
    }

    /// What becomes of a stored response that the merged one does not replace, because of `why`.
    fn not_updated(
        &mut self,
        now: Now,
        response: (&Rules, &ResponseFacts),
        why: NotStored,
    ) -> Commands {
        let is_spared = self.is_of_the_request(now, response, why) || self.is_set_aside(why);
        let _ = self.not_stored(why);
        if is_spared {
            Commands::default()
        } else {
            Commands::one(Command::Drop)
        }
    }

    /// Whether the merged response is stored, and under which facts. The content is stored already:
    /// the request counts as a GET for the whole.
    fn storing_merged(
        &self,
        now: Now,
        rules: &Rules,
        update: &Update<'_>,
    ) -> Result<StoredFacts, NotStored> {
        if update.changes_vary {
            return Err(NotStored::VaryChanged);
        }
        let is_head = self.request.method == Method::Head && update.response.status == 200;
        if is_head || self.request.has_authorization {
            self.permits_sharing(now, rules, update)?;
        }
        let sets_cookie = update.response.has_set_cookie && update.response.status != 304;
        let merged = ResponseFacts {
            has_set_cookie: update.merged.has_set_cookie || sets_cookie,
            has_mixed_line_ends: update.response.has_mixed_line_ends,
            ..*update.merged
        };
        let facts = self.storing_for(&self.request_for_whole(), now, rules, &merged)?;
        Ok(self.of_stored_content(facts))
    }

    /// Facts of the content that is updated, which stays as it is: it may have been changed by
    /// modules, and whose it was it still is.
    fn of_stored_content(&self, facts: StoredFacts) -> StoredFacts {
        let stored = |is: fn(StoredFacts) -> bool| self.stored.is_some_and(is);
        facts
            .transformed(stored(|it| it.is_transformed))
            .keeping_lifetime(stored(|it| it.keeps_lifetime))
            .ignoring(self.stored.map_or(StoringIgnored::NONE, |it| it.ignored))
    }

    /// Whether the response itself permits to share it, where that must be said.
    fn permits_sharing(
        &self,
        now: Now,
        rules: &Rules,
        update: &Update<'_>,
    ) -> Result<(), NotStored> {
        // as a response with the stored content would have them
        let response = ResponseFacts {
            status: update.merged.status,
            has_content_range: false,
            // the cookies of a 304 are not stored
            has_set_cookie: update.response.has_set_cookie && update.response.status != 304,
            ..*update.response
        };
        match self.storing_for(&self.request_for_whole(), now, rules, &response) {
            // the field that decides may be one that only the stored response has (RFC 9213)
            Err(
                why @ (NotStored::Rule(
                    NotStorable::ResponseNoStore
                    | NotStorable::Private
                    | NotStorable::Authorization,
                )
                | NotStored::SetCookie),
            ) => Err(why),
            _ => Ok(()),
        }
    }

    /// The request as one for content that is stored already.
    const fn request_for_whole(&self) -> RequestFacts {
        RequestFacts {
            method: Method::Get,
            ..self.request.for_whole()
        }
    }

    fn merged_facts(&self, now: Now, rules: &Rules, update: &Update<'_>) -> StoredFacts {
        let facts = StoredFacts::new(update.merged, self.request_time, now, &rules.heuristic);
        self.of_stored_content(facts)
    }

    /// The stored response is of a representation that the origin does not have any more; one that
    /// nothing has asked about stays, as the request may be answered otherwise than those of
    /// clients.
    pub(super) fn outdated(&mut self, now: Now) -> Commands {
        if self.is_unasked {
            return Commands::one(self.forward_again(now));
        }
        self.stored = None;
        Commands::one(Command::Drop).with(self.forward_again(now))
    }

    /// As `outdated`; but a response that this client bypassed stays if the new one is an error.
    pub(super) fn outdated_unless_spared(
        &mut self,
        now: Now,
        response: &ResponseFacts,
    ) -> Commands {
        if self.spares_stored(now, response) {
            return Commands::one(self.forward_again(now));
        }
        self.outdated(now)
    }

    /// Whether it is refused because of the request: what a request with credentials brings is for
    /// its user, and says nothing of what is stored for all.
    ///
    /// So is one with a cookie, if a rule of the operator has the same response to a request
    /// without a cookie stored: the cookie alone keeps it from that, and any client can send one.
    pub(super) fn is_of_the_request(
        &self,
        now: Now,
        (rules, response): (&Rules, &ResponseFacts),
        why: NotStored,
    ) -> bool {
        let is_refused = matches!(
            why,
            NotStored::Bypass | NotStored::Rule(NotStorable::RequestNoStore)
        );
        let is_stored = |request: RequestFacts| {
            let request = request.for_whole();
            self.storing_for(&request, now, rules, response).is_ok()
        };
        let is_of_cookie = || {
            let anonymous = RequestFacts {
                has_cookie: false,
                ..self.request
            };
            self.request.has_cookie && !is_stored(self.request) && is_stored(anonymous)
        };
        is_refused || self.request.has_authorization || is_of_cookie()
    }

    /// Once at most: from then on the request is sent only as the client sent it.
    pub(super) fn forward_again(&mut self, now: Now) -> Command {
        self.form = ForwardedForm::AsSent;
        self.verdict.fwd_status = None;
        self.verdict.decided_by = DecidedBy::CacheControl;
        self.request_time = now.wall;
        Command::ForwardAgain
    }
}
