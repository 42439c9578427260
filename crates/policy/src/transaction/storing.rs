//! Whether a response is kept: what the RFC allows, then what the profile does, then what we
//! choose.

use super::{Command, Commands, ForwardedForm, Rules, Transaction, is_error, may_excuse};
use crate::now::Now;
use crate::stored::StoredFacts;
use crate::stored::ignored::{IgnoredDirective, StoringIgnored};
use crate::verdict::{Handling, NotStored, Storing};
use weir_semantics::{Fwd, Method, RequestFacts, ResponseDirectives, ResponseFacts, storable};

crate::choice! {
    /// What a response that sets a cookie must say to be stored and shared.
    #[derive(Default)]
    pub enum SetCookieRule {
        /// `public` or `s-maxage`: the origin speaks of shared caches. Many origins put a lifetime
        /// on everything and a session cookie on it; a cookie given to the wrong person is worth
        /// more than the hit.
        #[default]
        Permitted = "permitted",
        /// Nothing beyond what any response must say: By RFC 9111 §7.3 the origin must mark
        /// responses that may not be shared.
        Rfc9111 = "rfc9111",
    }
}

impl SetCookieRule {
    /// Whether a response that sets a cookie may be shared by what it says.
    pub(crate) const fn permits(self, directives: &ResponseDirectives) -> bool {
        match self {
            Self::Permitted => directives.public || directives.s_maxage.is_some(),
            Self::Rfc9111 => true,
        }
    }
}

/// Whether a response to credentials is stored only because a rule has those ignored.
const fn shares_credentials(ignored: StoringIgnored) -> bool {
    ignored.has(IgnoredDirective::RequestAuthorization)
}

impl Transaction {
    /// Whether `response` is stored, and under which facts.
    pub(super) fn storing(
        &self,
        now: Now,
        rules: &Rules,
        response: &ResponseFacts,
    ) -> Result<StoredFacts, NotStored> {
        if self.spares_stored(now, response) {
            return Err(NotStored::StoredIsUsable);
        }
        let facts = self.storing_for(&self.request_sent(), now, rules, response)?;
        Ok(facts.transformed(self.is_transformed))
    }

    /// The same for `request` in the place of the one that was sent.
    pub(super) fn storing_for(
        &self,
        request: &RequestFacts,
        now: Now,
        rules: &Rules,
        response: &ResponseFacts,
    ) -> Result<StoredFacts, NotStored> {
        if self.bypassing {
            return Err(match self.bypasses_by_rule {
                true => NotStored::BypassByRule,
                false => NotStored::Bypass,
            });
        }
        if self.is_forbidden {
            return Err(NotStored::Module);
        }
        if let Some(cause) = rules.profile.refuses(response) {
            storable(request, response).map_err(NotStored::Rule)?;
            return Err(NotStored::Profile(cause));
        }
        let by_rule = rules.reuse.ignored;
        let given = rules.heuristic.assigned;
        let given = given.or(rules.reuse.forced_for(response.status));
        let (left, mut ignored) = by_rule
            .storable(request, response, given)
            .map_err(NotStored::Rule)?;
        let response = &left;
        // what permits to share the cookie may be said of the rest alone: `private="Set-Cookie"`
        let permits = ignored.is_empty() && rules.set_cookie.permits(&response.directives);
        if response.has_set_cookie && !permits {
            let by_rule = by_rule.set_cookie(request).ok_or(NotStored::SetCookie)?;
            ignored = ignored.and(by_rule);
        }
        // an error that one odd request can provoke, kept by heuristics, would spoil the target for
        // everybody; that there is nothing (any more) is no such error
        let provokable = response.status >= 400 && !matches!(response.status, 404 | 410);
        // nor does one that a rule alone has stored take the place of a response that is none
        let is_there = self.stored.is_some_and(|stored| stored.status < 400);
        let is_displacing = ignored.gives_lifetime() && is_there;
        if provokable && (is_displacing || !response.has_explicit_lifetime()) {
            return Err(NotStored::Useless);
        }
        let facts = StoredFacts::new(response, self.request_time, now, &rules.heuristic)
            .keeping_lifetime(request.has_authorization && !shares_credentials(ignored))
            .ignoring(ignored);
        if rules.reuse.of(&facts).is_useless() {
            return Err(NotStored::Useless);
        }
        if matches!(response.status, 412 | 416 | 417) {
            return Err(NotStored::Conditional);
        }
        // last: what the rules refuse says of the target what it says without modules
        if self.keeps_stored {
            return Err(NotStored::Module);
        }
        Ok(facts)
    }

    /// Notes that a response is stored by a rule of the operator, if one had something ignored.
    pub(super) fn note_storing(&mut self, facts: &StoredFacts) {
        if let Some(deviation) = facts.ignored.deviation() {
            self.verdict.marks = self.verdict.marks.deviating(deviation);
        }
    }

    /// The request as it was sent to the next hop: its ranges decide whether a 206 is storable.
    const fn request_sent(&self) -> RequestFacts {
        match self.form {
            ForwardedForm::AsSent if self.fetches_whole => self.request.for_whole(),
            ForwardedForm::AsSent => self.request,
            ForwardedForm::Validation => self.request.for_whole(),
            ForwardedForm::MissingRange => self.request.for_part(),
        }
    }

    /// Whether a response that is not stored shows that the stored one is outdated: the origin
    /// answered the same question with another representation, or with its absence; not with a
    /// part, or an error that may be this client's alone.
    pub(super) fn replaces(&self, now: Now, response: &ResponseFacts) -> bool {
        self.stored.is_some()
            && self.request.method == Method::Get
            && !self.spares_stored(now, response)
            && matches!(response.status, 200..=205 | 300..=303 | 305..=308 | 404 | 410)
    }

    /// Whether the stored response stays as it is, whatever `response` permits: it is fresh, this
    /// client bypassed it, and the response is an error, or a redirect without a lifetime. Such an
    /// answer may be this request's alone, and an attacker could provoke it to spoil the target for
    /// all others. A stale response is not protected: its next use would send the same request.
    ///
    /// What nothing has asked for comes to a request without the fields of a client, and may be
    /// that request's alone, too: no error and no redirect.
    pub(super) fn spares_stored(&self, now: Now, response: &ResponseFacts) -> bool {
        let is_redirect = matches!(response.status, 300..=303 | 305..=399);
        let is_no_substitute =
            response.status >= 400 || is_redirect && !response.has_explicit_lifetime();
        let is_bypassed = self.verdict.handling == Handling::Forward(Fwd::Request);
        let is_fresh = |stored: StoredFacts| !stored.no_cache && stored.ttl(now) > 0;
        // no client waits for a refresh, and all are served the stored response meanwhile
        let is_served_meanwhile =
            |stored: StoredFacts| may_excuse(now, &stored, stored.stale_while_revalidate);
        let is_failed_refresh = self.is_refresh && is_error(response.status);
        let is_no_better = response.status >= 300 && response.status != 304;
        self.spares_servable && is_no_better
            || is_no_substitute && is_bypassed && self.stored.is_some_and(is_fresh)
            || is_failed_refresh && self.stored.is_some_and(is_served_meanwhile)
    }

    /// Whether the stored response stays though `why` keeps the new one from being stored: the
    /// reason is the request of this client, of which any client can send one. And the response is
    /// fresh and was bypassed, or it is stale, and its origin has it served for longer: while it is
    /// refreshed, or if the origin fails (RFC 5861).
    pub(super) fn spares_usable(
        &self,
        now: Now,
        response: (&Rules, &ResponseFacts),
        why: NotStored,
    ) -> bool {
        let is_bypassed = self.verdict.handling == Handling::Forward(Fwd::Request);
        let is_usable = |stored: StoredFacts| match stored.ttl(now) > 0 {
            true => !stored.no_cache && is_bypassed,
            false => {
                may_excuse(now, &stored, stored.stale_while_revalidate)
                    || may_excuse(now, &stored, stored.stale_if_error)
            }
        };
        self.stored.is_some_and(is_usable) && self.is_of_the_request(now, response, why)
    }

    /// Whether the response is not stored only because it is not what the modules of the target
    /// make of its responses. A module that fails must not remove what is good and stored: that a
    /// client can have it fail, perhaps by the fields of its request, is no word of the origin's.
    pub(super) const fn is_set_aside(&self, why: NotStored) -> bool {
        matches!(why, NotStored::Module) && !self.is_forbidden
    }

    /// What was being stored ended early. Of what was not being stored the reason is known already.
    pub(super) fn incomplete(&mut self) -> Commands {
        if matches!(self.verdict.storing, Some(Storing::NotStored(_))) {
            return Commands::default();
        }
        if self.keeps_part && self.verdict.storing == Some(Storing::Stored) {
            return Commands::one(Command::KeepPart);
        }
        self.not_stored(NotStored::Incomplete)
    }

    pub(super) fn not_stored(&mut self, why: NotStored) -> Commands {
        self.verdict.storing = Some(Storing::NotStored(why));
        Commands::default()
    }
}
