//! Whether a response is kept: what the RFC allows, then what the profile does, then what we choose.

use super::{Asked, Command, Commands, Rules, Transaction};
use crate::now::Now;
use crate::stored::StoredFacts;
use crate::verdict::{NotStored, Storing};
use weir_semantics::{Method, RequestFacts, ResponseFacts, storable};

impl Transaction {
    /// Whether `response` is stored, and under which facts.
    pub(super) fn storing(
        &self,
        now: Now,
        rules: &Rules,
        response: &ResponseFacts,
    ) -> Result<StoredFacts, NotStored> {
        if self.bypassing {
            return Err(NotStored::Bypass);
        }
        storable(&self.request_sent(), response).map_err(NotStored::Rule)?;
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
        if matches!(response.status, 412 | 416 | 417) {
            return Err(NotStored::Conditional);
        }
        Ok(facts)
    }

    /// The request as the next hop saw it: which ranges it asked for decides whether a 206 is storable.
    const fn request_sent(&self) -> RequestFacts {
        match self.asked {
            Asked::AsSent => self.request,
            Asked::Validation => self.request.for_whole(),
            Asked::Rest => self.request.for_part(),
        }
    }

    /// Whether a response that is not stored shows that the stored one is outdated: the origin answered
    /// the same question with another representation, or with its absence; not with a part, or an error that may be
    /// this client's alone.
    pub(super) fn replaces(&self, response: &ResponseFacts) -> bool {
        self.stored.is_some()
            && self.request.method == Method::Get
            && matches!(response.status, 200..=205 | 300..=303 | 305..=308 | 404 | 410)
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
