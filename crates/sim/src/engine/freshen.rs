//! What a response head makes of the stored response: updated, served as merged, forgotten.

use super::Simulator;
use super::choose::form;
use super::exchange::AS_SENT;
use super::next_hop::Answer;
use crate::cache::Which;
use crate::facts::{Ask, Validators};
use weir_policy::{StoredFacts, Update};
use weir_semantics::{Fits, ResponseFacts};
use weir_trace::Row;

/// A response that may update the stored one, merged into that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merging {
    merged: ResponseFacts,
    fits: Fits,
    changes_vary: bool,
}

impl Merging {
    pub(super) const fn update<'a>(&'a self, response: &'a ResponseFacts) -> Update<'a> {
        Update {
            response,
            merged: &self.merged,
            fits: self.fits,
            changes_vary: self.changes_vary,
        }
    }
}
impl Simulator {
    pub(super) fn drop_found(&mut self, id: u32) {
        let exchange = self.exchanges.at(id);
        let (found, target) = (exchange.found, exchange.ask().target);
        if let Some(which) = found {
            self.drop_one(which, target);
        }
    }

    /// RFC 9111 §4.4: responses of this target, stored or requested so far, may not be used any
    /// more.
    pub(super) fn invalidate(&mut self, target: u64) {
        self.cache.invalidate(target);
        *self.invalidations.entry(target).or_insert(0) += 1;
        self.collapse.forget(target);
    }

    /// How often a target was invalidated. A stored response is not to be used any more, and what
    /// rests on it is not to be stored.
    pub(super) fn drop_one(&mut self, which: Which, target: u64) {
        self.cache.drop_one(which);
        *self.drops.entry(target).or_insert(0) += 1;
    }

    pub(super) fn drops(&self, target: u64) -> u32 {
        self.drops.get(&target).copied().unwrap_or(0)
    }

    /// Shows whether something of a target was dropped meanwhile.
    pub(super) fn forgotten(&self, target: u64) -> (u32, u32) {
        (self.epoch(target), self.drops(target))
    }

    /// If the response chosen for the request was dropped since, the request continues as if it had
    /// not been found.
    pub(super) fn lose_forgotten(&mut self, id: u32) -> bool {
        let now = self.now();
        let exchange = self.exchanges.at(id);
        let is_lost =
            exchange.kept.is_some() && exchange.chosen != self.forgotten(exchange.ask().target);
        if is_lost {
            let exchange = self.exchanges.at_mut(id);
            exchange.kept = None;
            exchange.forwarding = AS_SENT;
            let _ = exchange.tx().lost(now);
        }
        is_lost
    }

    pub(super) fn epoch(&self, target: u64) -> u32 {
        self.invalidations.get(&target).copied().unwrap_or(0)
    }

    /// What the answer makes of the stored response, if it may update that.
    pub(super) fn merging(&mut self, id: u32, answer: &Answer) -> Option<Merging> {
        let received = self.now().wall;
        let exchange = self.exchanges.at_mut(id);
        if !exchange.tx().may_update(answer.facts.status) {
            return None;
        }
        let (stored, ask) = (exchange.kept.as_deref()?, exchange.ask());
        let fits = match answer.facts.status {
            206 if answer.is_rest => Fits::Same,
            206 => Fits::Other,
            304 => stored.validators.validated_by(ask.validators),
            _ => stored.compared_with(ask),
        };
        Some(Merging {
            merged: stored.response.updated_by(&answer.facts, received),
            fits,
            changes_vary: ask.vary != Row::VARY_NONE && ask.vary != stored.vary,
        })
    }

    /// The stored response is updated: in the store if that has these `facts` of it, and for this
    /// client in any case.
    pub(super) fn freshen(
        &mut self,
        id: u32,
        merging: Option<Merging>,
        facts: Option<StoredFacts>,
    ) {
        let now = self.now();
        let heuristic = self.settings.rules.heuristic;
        let exchange = self.exchanges.at_mut(id);
        let request_time = exchange.tx().request_time();
        let ask = *exchange.ask();
        let (Some(fresh), Some(merging)) = (&mut exchange.kept, merging) else {
            return;
        };
        fresh.response = merging.merged;
        fresh.validators = updated(fresh.validators, &ask);
        fresh.facts = facts
            .unwrap_or_else(|| StoredFacts::new(&fresh.response, request_time, now, &heuristic));
        if let (Some(which), Some(_)) = (exchange.found, facts) {
            self.cache.freshen(which, fresh);
        }
    }

    /// The client gets the updated response; those that wait for it too, if it is stored and for
    /// them.
    pub(super) fn serve_merged(&mut self, id: u32, is_stored: bool) {
        let now = self.now();
        let exchange = self.exchanges.at(id);
        let facts = exchange.kept.as_ref().map(|fresh| fresh.facts);
        let reuse = exchange.ask().ruled.storing.reuse;
        let is_shared = |facts: StoredFacts| reuse.of(&facts).answers_others(now);
        let answers_others = is_stored && facts.is_some_and(is_shared);
        if !exchange.is_background {
            self.tally.requests.validated += 1;
        }
        self.serve_stored(id);
        if answers_others {
            self.lead_stored(id);
        } else {
            self.refuse_followers(id, true);
        }
    }

    /// Serves the stored response that was validated.
    pub(super) fn serve_stored(&mut self, id: u32) {
        let exchange = self.exchanges.at(id);
        if exchange.is_background {
            self.end_refresh(id);
            return;
        }
        let Some(stored) = &exchange.kept else { return };
        let (own, (head, content)) = (stored.facts, form(exchange, stored));
        self.note_rules(id, &own);
        self.plan(id, head, content, true);
        self.serve_planned(id);
    }
}

fn updated(stored: Validators, ask: &Ask) -> Validators {
    Validators {
        etag: ask.validators.etag.or(stored.etag),
        etag_is_weak: match ask.validators.etag {
            Some(_) => ask.validators.etag_is_weak,
            None => stored.etag_is_weak,
        },
        last_modified_s: ask.validators.last_modified_s.or(stored.last_modified_s),
        are_all: stored.are_all,
    }
}
