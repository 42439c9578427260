//! What becomes of a response under construction in the store, and when it is gone.

use super::Simulator;
use crate::cache::{Stored, Stores};
use weir_policy::{Command, Event};

impl Simulator {
    /// Stores what is whole, or what is left of it, and forgets it when nobody reads it any more.
    pub(super) fn settle(&mut self, id: u32) {
        let arriving = self.arriving.at_mut(id);
        let has_fetches = !arriving.fetches.is_empty();
        let is_whole = arriving.fill().is_whole();
        let is_over = !has_fetches && arriving.fill().is_over();
        if !arriving.is_settled && (is_whole || is_over) {
            self.arriving.at_mut(id).is_settled = true;
            self.close_flight(id);
            if self.arriving.at(id).is_kept && !self.arriving.at(id).is_outdated {
                self.commit(id, is_whole);
            }
        }
        let arriving = self.arriving.at_mut(id);
        if arriving.is_settled
            && arriving.fetches.is_empty()
            && arriving.readers.is_empty()
            && !arriving.is_gone
        {
            arriving.is_gone = true;
            let aborts = &mut self.tally.aborts;
            let fill = arriving.fill();
            aborts.lead_max_bytes = aborts.lead_max_bytes.max(fill.lead_max());
            self.tally.traffic.wasted_bytes += fill.undelivered() + fill.fetched_twice();
            self.arriving.remove(id);
        }
    }

    /// Nobody comes to it any more by way of its flight.
    pub(super) fn close_flight(&mut self, id: u32) {
        if let Some(flight) = self.arriving.at_mut(id).flight.take() {
            let mut waiting = Vec::new();
            self.flights.remove(flight, &mut waiting);
            debug_assert!(waiting.is_empty(), "it has landed");
        }
    }

    fn commit(&mut self, id: u32, is_whole: bool) {
        let (now, rules) = (self.now(), self.settings.rules);
        let arriving = self.arriving.at_mut(id);
        let mut stored = arriving.stored.clone();
        stored.complete_length = arriving.fill().complete_length();
        if !is_whole {
            let commands = arriving.tx.handle(now, &rules, Event::Incomplete);
            let present = arriving.fill().present().clone();
            if commands.first() != Some(Command::KeepPart) || present.is_empty() {
                return;
            }
            stored.part = Some(Box::new(present));
            self.tally.aborts.parts_kept += 1;
        }
        self.store(stored);
    }

    pub(super) fn store(&mut self, stored: Stored) {
        let now = self.now();
        match self.cache.store(now, stored) {
            Stores::NotAdmitted(why) => {
                *self.tally.not_admitted.entry(why.as_str()).or_insert(0) += 1;
            }
            Stores::Refused(why) => {
                *self.tally.not_admitted.entry(why.as_str()).or_insert(0) += 1;
            }
            Stores::Done => {}
        }
    }
}
