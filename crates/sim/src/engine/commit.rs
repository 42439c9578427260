//! How an in-flight response is stored, and when it is dropped.

use super::Simulator;
use super::exchange::Stage;
use crate::cache::{StoredResponse, Stores, Which};
use weir_policy::catalog::Refusal;
use weir_policy::fetch::CutReason;
use weir_policy::verdict::{NotStored, Storing};
use weir_policy::{Command, Event};

impl Simulator {
    /// Stores what is whole, or what is left of it, and forgets it when it has no reader any more.
    pub(super) fn settle(&mut self, id: u32) {
        let in_flight = self.in_flight.at_mut(id);
        if in_flight.is_unpublished {
            return;
        }
        let has_fetches = !in_flight.fetches.is_empty();
        let is_whole = in_flight.fill().is_whole();
        let is_over = !has_fetches && in_flight.fill().is_over();
        if !in_flight.is_settled && (is_whole || is_over) {
            in_flight.is_settled = true;
            let refusal = if in_flight.is_kept {
                self.commit(id, is_whole)
            } else {
                None
            };
            self.close_group(id, matches!(refusal, None | Some(Refusal::NotResident)));
            self.end_in_flight_refresh(id, refusal);
        }
        let in_flight = self.in_flight.at_mut(id);
        if in_flight.is_settled
            && in_flight.fetches.is_empty()
            && in_flight.readers.is_empty()
            && !in_flight.is_gone
        {
            in_flight.is_gone = true;
            let uses = in_flight.uses.take();
            let aborts = &mut self.tally.aborts;
            let fill = in_flight.fill();
            aborts.read_ahead_max_bytes = aborts.read_ahead_max_bytes.max(fill.read_ahead_max());
            self.tally.traffic.wasted_bytes += fill.undelivered() + fill.fetched_twice();
            self.in_flight.remove(id);
            if let Some(content) = uses {
                self.cache.end_use(content);
            }
        }
    }

    /// The validation in the background that brought it is over, if it was one.
    fn end_in_flight_refresh(&mut self, id: u32, refusal: Option<Refusal>) {
        let in_flight = self.in_flight.at(id);
        if !in_flight.is_for_store_alone {
            return;
        }
        let storing = match refusal {
            Some(refusal) => Some(Storing::NotStored(NotStored::Catalog(refusal))),
            None => in_flight.tx.verdict().storing,
        };
        let target = in_flight.stored.target;
        self.refreshes.end(target, storing);
    }

    /// Whether its target was invalidated since it was requested.
    pub(super) fn is_outdated(&self, id: u32) -> bool {
        let in_flight = self.in_flight.at(id);
        let target = in_flight.stored.target;
        let lacks_base = |drops| drops != self.drops(target);
        in_flight.epoch != self.epoch(target) || in_flight.drops.is_some_and(lacks_base)
    }

    /// Stores what has come, if it is of use; why not, if it is not because of the catalog.
    fn commit(&mut self, id: u32, is_whole: bool) -> Option<Refusal> {
        let (now, rules) = (self.now(), self.settings.rules);
        let is_outdated = self.is_outdated(id);
        let in_flight = self.in_flight.at_mut(id);
        let mut stored = in_flight.stored.clone();
        let (held, part_of) = (std::mem::take(&mut in_flight.held), in_flight.part_of);
        stored.complete_length = in_flight.fill().complete_length();
        if !is_whole {
            let has_changed = in_flight
                .fill()
                .closed()
                .is_some_and(CutReason::outdates_stored);
            let commands = in_flight.tx.handle(now, &rules, Event::Incomplete);
            let present = in_flight.fill().present().clone();
            let is_of_use = commands.first() == Some(Command::KeepPart) && !present.is_empty();
            if has_changed || !is_of_use {
                self.cache.give_back(held);
                if let Some(part) = part_of.filter(|_| has_changed) {
                    self.drop_one(part, stored.target);
                }
                self.tell_leader(id, Event::Incomplete);
                return None;
            }
            stored.part = Some(Box::new(present));
            self.tally.aborts.parts_kept += 1;
        }
        let content_bytes = stored.content_bytes();
        let stored = self.store(stored, held, is_outdated);
        // readers go on to read here
        self.in_flight.at_mut(id).uses = match stored {
            Ok(Some(which)) => self.cache.begin_use(which),
            Ok(None) | Err(_) => self.cache.begin_use_unstored(content_bytes),
        };
        let refusal = stored.err()?;
        self.tell_leader(id, Event::NotAdmitted(refusal));
        Some(refusal)
    }

    /// Its storing is in the verdict of the exchange that began it, if that has not ended.
    pub(super) fn tell_leader(&mut self, id: u32, event: Event<'_>) {
        let (now, rules) = (self.now(), self.settings.rules);
        let in_flight = self.in_flight.at(id);
        let (leader, number) = in_flight.leader;
        if in_flight.is_for_store_alone {
            return;
        }
        let exchange = self.exchanges.at_mut(leader);
        if exchange.number == number && exchange.stage == Stage::Sending && !exchange.has_left {
            exchange.tx().handle(now, &rules, event);
        }
    }

    /// Stores a response for which room was taken; which it is then, if it was admitted.
    pub(super) fn store(
        &mut self,
        stored: StoredResponse,
        held: u64,
        is_outdated: bool,
    ) -> Result<Option<Which>, Refusal> {
        let now = self.now();
        self.cache.give_back(held);
        let target = stored.target;
        let is_shared = stored.part.is_none() && stored.facts.answers_others(now);
        let why = if is_outdated {
            Stores::Refused(Refusal::NotResident)
        } else {
            self.cache.store(stored)
        };
        let (word, refused) = match why {
            Stores::Done(which) => {
                if is_shared {
                    self.collapse.shared(target);
                }
                return Ok(Some(which));
            }
            Stores::NotAdmitted(why) => (why.as_str(), Ok(None)),
            Stores::Refused(why) => (why.as_str(), Err(why)),
        };
        *self.tally.not_admitted.entry(word).or_insert(0) += 1;
        refused
    }
}
