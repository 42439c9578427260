//! The next hop's response head: what the policy makes of it, and what begins with it.

use super::Simulator;
use super::ask::Answer;
use super::choose::{Boarded, form};
use super::exchange::{AS_SENT, Reading, Stage};
use super::fetch::For;
use super::flights::LEADERS_MAX;
use super::in_flight::InFlightResponse;
use super::paced::Paced;
use super::plain::{NOBODY, Plain};
use crate::cache::{Stored, Which};
use crate::world;
use weir_policy::catalog::Refusal;
use weir_policy::fetch::{ByteSpan, ByteSpans, FetchId, Fill, FillRules};
use weir_policy::transaction::says_about_target;
use weir_policy::{Command, Event, Failure, Joined, StoredFacts};
use weir_semantics::ResponseFacts;

/// What is to be stored of a response.
#[derive(Clone, Copy, Debug)]
enum Kept {
    New(StoredFacts),
    /// It completes the stored part.
    Part,
}

impl Simulator {
    /// The head of what `fetch` brings is at the proxy.
    pub(super) fn head(&mut self, id: u32, fetch: u32) {
        let Some(answer) = self.fetches.at_mut(fetch).answer.take() else {
            return;
        };
        let (now, rules) = (self.now(), self.settings.rules);
        let merging = self.merging(id, &answer);
        let event = match &merging {
            Some(merging) => Event::Update(merging.update(&answer.facts)),
            None => Event::Response(&answer.facts),
        };
        let commands = self.exchanges.at_mut(id).tx().handle(now, &rules, event);
        let (mut kept, mut is_stored) = (None, false);
        for command in commands.iter() {
            match command {
                Command::Store(facts) => kept = Some(Kept::New(facts)),
                Command::Combine(_) => kept = Some(Kept::Part),
                Command::Invalidate => self.invalidate(self.exchanges.at(id).ask().target),
                Command::Drop => self.drop_found(id),
                Command::Freshen(facts) => {
                    self.freshen(id, merging, Some(facts));
                    is_stored = true;
                }
                Command::ServeMerged(_) => {
                    if !is_stored {
                        self.freshen(id, merging, None);
                    }
                    self.serve_merged(id, is_stored);
                    return;
                }
                Command::Serve(_) => {
                    self.stop(fetch);
                    self.pass_on(id);
                    self.serve_kept(id);
                    return;
                }
                Command::AskAgain => {
                    self.stop(fetch);
                    if self.exchanges.at(id).is_background {
                        // the next request for it asks
                        self.end_refresh(id);
                        return;
                    }
                    self.exchanges.at_mut(id).forwarding = AS_SENT;
                    self.exchanges.at_mut(id).kept = None;
                    self.go(id);
                    return;
                }
                Command::Relay => {}
                _ => debug_assert!(false, "{command:?} after a response"),
            }
        }
        self.relay(id, fetch, &answer, kept);
    }

    /// Passes the response on: by way of the store if it is to be stored.
    fn relay(&mut self, id: u32, fetch: u32, answer: &Answer, kept: Option<Kept>) {
        let now = self.now();
        let stored = self.stored_of(id, answer, kept);
        let answers_others = kept.is_some() && stored.facts.answers_others(now);
        if kept.is_some() && !answers_others {
            self.go_alone(id, true);
        }
        let held = kept.and_then(|kept| self.take_room(id, answer, &kept));
        // the rest of a part is no answer alone: it is joined, if only on its way
        let kept = kept.filter(|kept| held.is_some() || matches!(kept, Kept::Part));
        if kept.is_none() {
            self.go_alone(id, says_about_target(answer.facts.status));
        }
        if answer.span.from >= answer.span.to {
            self.relay_head(id, stored, held);
            return;
        }
        let it = self.fetches.at(fetch);
        let is_background = self.exchanges.at(id).is_background;
        let is_there = it.came >= it.total && !it.is_cut;
        if is_background && !is_there && (held.is_none() || self.settings.background_bytes_s == 0) {
            self.give_up_refresh(id, fetch, held);
            return;
        }
        let (at, it) = (self.world.at(), self.fetches.at_mut(fetch));
        if it.is_cut && it.came >= it.total {
            it.breaks_off_next = true;
            self.world.schedule(at, world::Event::Resumed(fetch));
        }
        // all of it came with its head: nobody hears of it before it is stored
        let is_quick = (is_background || is_there)
            && matches!(kept, Some(Kept::New(_)))
            && answer.facts.status != 206;
        let in_flight = self.begin_in_flight(id, fetch, answer, (kept, held), stored);
        if is_background {
            // what came with the head could not be waited for
            let came = self.fetches.at(fetch).waiting();
            self.fetches.at_mut(fetch).granted = came;
            self.background.take(now, came);
        } else {
            let wants = match kept {
                Some(Kept::Part) => self.exchanges.at(id).wants(answer.complete_length),
                _ => answer.span,
            };
            self.read(id, in_flight, wants);
        }
        let leads = self.exchanges.at_mut(id).leads.take();
        if !is_quick && kept.is_some() {
            self.take_off(in_flight, leads, answers_others);
        }
        if is_background {
            self.over(id);
        }
    }

    /// A validation in the background brings what neither a client nor the store takes.
    fn give_up_refresh(&mut self, id: u32, fetch: u32, held: Option<u64>) {
        let (now, rules) = (self.now(), self.settings.rules);
        if let Some(held) = held {
            self.cache.give_back(held);
            let event = Event::Incomplete;
            self.exchanges.at_mut(id).tx().handle(now, &rules, event);
        }
        self.stop(fetch);
        self.end_refresh(id);
    }

    /// A validation in the background is over.
    pub(super) fn end_refresh(&mut self, id: u32) {
        let exchange = self.exchanges.at_mut(id);
        let storing = exchange.tx().verdict().storing;
        let target = exchange.ask().target;
        self.refreshes.end(target, storing);
        self.over(id);
    }

    /// From now on others may read what arrives, if it is for others.
    fn take_off(&mut self, in_flight: u32, leads: Option<u32>, answers_others: bool) {
        match leads {
            Some(flight) => self.land(flight, in_flight),
            None if answers_others => {
                let target = self.in_flight.at(in_flight).stored.target;
                let flight = self.flights.publish(target, in_flight);
                self.in_flight.at_mut(in_flight).flight = Some(flight);
            }
            None => {}
        }
        if !self.in_flight.at(in_flight).is_kept || self.is_outdated(in_flight) {
            self.close_flight(in_flight, true);
        }
    }

    /// Takes room for a response that may be stored; the transaction is told if there is none.
    fn take_room(&mut self, id: u32, answer: &Answer, kept: &Kept) -> Option<u64> {
        let head_bytes = match (kept, &self.exchanges.at(id).kept) {
            (Kept::Part, Some(part)) => part.head_bytes,
            _ => self.exchanges.at(id).ask().head_bytes,
        };
        let target = self.exchanges.at(id).ask().target;
        let refusal = match self.cache.take_room(target, answer.span.len(), head_bytes) {
            Ok(held) => return Some(held),
            Err(refusal) => refusal,
        };
        let (now, rules) = (self.now(), self.settings.rules);
        let event = Event::NotAdmitted(refusal);
        self.exchanges.at_mut(id).tx().handle(now, &rules, event);
        None
    }

    /// What the response would be in the store.
    fn stored_of(&mut self, id: u32, answer: &Answer, kept: Option<Kept>) -> Stored {
        let now = self.now();
        let heuristic = self.settings.rules.heuristic;
        let request_time = self.exchanges.at_mut(id).tx().request_time();
        let exchange = self.exchanges.at(id);
        let ask = exchange.ask();
        let (response, facts) = match (kept, &exchange.kept) {
            (Some(Kept::Part), Some(part)) => {
                let response = part.response.updated_by(&answer.facts, now.wall);
                let facts = StoredFacts::new(&response, request_time, now, &heuristic);
                (response, facts)
            }
            (Some(Kept::New(facts)), _) => (as_stored(answer.facts), facts),
            _ => {
                let facts = StoredFacts::new(&answer.facts, request_time, now, &heuristic);
                (as_stored(answer.facts), facts)
            }
        };
        Stored {
            target: ask.target,
            vary: ask.vary,
            variant: ask.variant,
            facts,
            response,
            validators: ask.validators,
            head_bytes: ask.head_bytes,
            complete_length: answer.complete_length,
            part: None,
        }
    }

    /// A response without content: it is there with its head.
    fn relay_head(&mut self, id: u32, stored: Stored, held: Option<u64>) {
        let target = stored.target;
        if let Some(held) = held {
            let is_outdated = self.exchanges.at(id).epoch != self.epoch(target);
            match self.store(stored, held, is_outdated) {
                Ok(_) => self.land_stored(id),
                Err(refusal) => {
                    let (now, rules) = (self.now(), self.settings.rules);
                    let event = Event::NotAdmitted(refusal);
                    self.exchanges.at_mut(id).tx().handle(now, &rules, event);
                    if refusal == Refusal::NotResident {
                        self.land_stored(id);
                    } else {
                        self.go_alone(id, false);
                    }
                }
            }
        }
        if self.exchanges.at(id).is_background {
            self.end_refresh(id);
            return;
        }
        let head_bytes = self.exchanges.at(id).ask().head_bytes;
        self.plan(id, head_bytes, 0, false);
        self.serve_planned(id);
    }

    fn begin_in_flight(
        &mut self,
        id: u32,
        fetch: u32,
        answer: &Answer,
        (kept, held): (Option<Kept>, Option<u64>),
        stored: Stored,
    ) -> u32 {
        let head_bytes = stored.head_bytes;
        let exchange = self.exchanges.at(id);
        let rules = FillRules {
            read_ahead: self.settings.read_ahead,
            can_range: kept.is_some()
                && stored.facts.strong_tag
                && answer.complete_length.is_some(),
            ..FillRules::default()
        };
        let is_whole = !matches!(kept, Some(Kept::Part)) && !exchange.is_background;
        let is_plain = is_whole && self.is_plain(answer, head_bytes);
        let is_paced = is_whole && !is_plain && self.is_paced(answer);
        let plain = is_plain.then_some(Plain {
            fetch,
            exchange: id,
            rules,
            length: answer.span.to,
            front: 0,
            read_ahead_max: 0,
        });
        let client_us = u32::try_from(exchange.loop_ns / 1000).unwrap_or(u32::MAX);
        let server_us = u32::try_from(exchange.server_rtt / 1000).unwrap_or(u32::MAX);
        let paced = is_paced.then(|| {
            let round_trips = (client_us, server_us);
            let length = answer.span.to;
            Box::new(Paced::new(
                (fetch, id),
                rules,
                self.now(),
                length,
                round_trips,
            ))
        });
        let exchange = self.exchanges.at_mut(id);
        let in_flight = self.in_flight.insert(InFlightResponse {
            fill: None,
            plain,
            paced,
            is_kept: held.is_some(),
            held: held.unwrap_or(0),
            epoch: exchange.epoch,
            drops: matches!(kept, Some(Kept::Part)).then_some(exchange.chosen.1),
            leader: (id, exchange.number),
            part_of: match kept {
                Some(Kept::Part) => exchange.found,
                _ => None,
            },
            is_for_store_alone: exchange.is_background,
            tx: *exchange.tx(),
            server: exchange.ask().server,
            lives_on: self.fetches.at(fetch).lives_on,
            server_setup: exchange.server_setup,
            rtt: exchange.server_rtt,
            think: exchange.think,
            client_us,
            server_us,
            fetches: Vec::new(),
            readers: Vec::new(),
            flight: exchange.leads,
            uses: None,
            is_settled: false,
            is_landing: false,
            is_gone: false,
            stored,
        });
        let fetch_id = if is_plain || is_paced {
            NOBODY.0
        } else {
            self.begin_fill(id, fetch, in_flight, rules, answer, kept)
        };
        self.fetches.at_mut(fetch).owner = For::InFlight(in_flight, fetch_id);
        in_flight
    }

    /// There is something to decide about this response.
    fn begin_fill(
        &mut self,
        id: u32,
        fetch: u32,
        in_flight: u32,
        rules: FillRules,
        answer: &Answer,
        kept: Option<Kept>,
    ) -> FetchId {
        let now = self.now();
        let exchange = self.exchanges.at(id);
        let present = match (kept, exchange.kept.as_deref()) {
            (
                Some(Kept::Part),
                Some(Stored {
                    part: Some(part), ..
                }),
            ) => (**part).clone(),
            _ => ByteSpans::new(),
        };
        let response = self.in_flight.at_mut(in_flight);
        let mut fill = Fill::new(rules, now, answer.complete_length, present);
        let fetch_id = fill.begin(now, answer.span);
        fill.set_round_trips(fetch_id, response.client_us, response.server_us);
        if exchange.is_background {
            fill.go_on(fetch_id);
        }
        response.fill = Some(Box::new(fill));
        response.fetches.push((fetch_id, fetch));
        fetch_id
    }

    /// The one who asked reads what arrives.
    fn read(&mut self, id: u32, in_flight: u32, wants: ByteSpan) {
        let now = self.now();
        let response = self.in_flight.at_mut(in_flight);
        let head_bytes = response.stored.head_bytes;
        let reader = if response.plain.is_some() || response.paced.is_some() {
            Some(NOBODY.1)
        } else {
            let reader = response.fill().attach(now, wants);
            debug_assert!(reader.is_ok(), "its own response: {reader:?}");
            response.readers.extend(reader.map(|reader| (reader, id)));
            reader.ok()
        };
        let exchange = self.exchanges.at_mut(id);
        exchange.expect(head_bytes, wants.len());
        exchange.stage = Stage::Sending;
        exchange.reading = reader.map(|reader| Reading { in_flight, reader });
        if reader.is_none() {
            exchange.written = u64::from(head_bytes);
            exchange.is_all = true;
        }
        self.start_sending(id);
    }

    /// The response is arriving: those who waited for its head read it, if it is for them.
    fn land(&mut self, flight: u32, in_flight: u32) {
        let (target, number) = (
            self.flights.at(flight).target,
            self.flights.at(flight).number,
        );
        self.flights.mark_shared(target);
        self.flights.at_mut(flight).in_flight = Some(in_flight);
        let waiting = std::mem::take(&mut self.flights.at_mut(flight).waiting);
        self.in_flight.at_mut(in_flight).is_landing = true;
        for id in waiting {
            let is_for = self
                .in_flight
                .at(in_flight)
                .is_for(self.exchanges.at(id).ask());
            let boarded = if is_for {
                self.join(id, in_flight, number, Joined::Waited)
            } else {
                Boarded::Not
            };
            match boarded {
                Boarded::Reads => {}
                Boarded::Alone(forwarding) => {
                    self.exchanges.at_mut(id).forwarding = forwarding;
                    self.go_next(id);
                }
                Boarded::Not => {
                    self.pass(id, number);
                    self.forward_next(id);
                }
            }
        }
        let response = self.in_flight.at_mut(in_flight);
        response.is_landing = false;
        if response.fill.is_some() {
            self.settle(in_flight);
        }
    }

    /// The response is stored already: those who waited look again.
    pub(super) fn land_stored(&mut self, id: u32) {
        if let Some(flight) = self.exchanges.at_mut(id).leads.take() {
            self.end_flight(flight, true);
        }
    }

    /// Looks for another flight, once what is happening now has happened.
    pub(super) fn forward_next(&mut self, id: u32) {
        self.exchanges.at_mut(id).stage = Stage::Forward;
        let at = self.world.at();
        self.later(id, at);
    }

    /// Nobody comes by this flight any more; who waits for it looks into the store, or goes alone.
    pub(super) fn end_flight(&mut self, flight: u32, is_stored: bool) {
        let (target, number) = (
            self.flights.at(flight).target,
            self.flights.at(flight).number,
        );
        // of what was arriving that was said when it took off
        if is_stored && self.flights.at(flight).in_flight.is_none() {
            self.flights.mark_shared(target);
        }
        let mut waiting = Vec::new();
        self.flights.remove(flight, &mut waiting);
        for id in waiting {
            if is_stored {
                self.look_again(id, number);
            } else {
                self.go_next(id);
            }
        }
    }

    fn look_again(&mut self, id: u32, flight: u64) {
        let (now, rules) = (self.now(), self.settings.rules);
        let found = self.cache.find(now, self.exchanges.at(id).ask()).ok();
        let is_whole = |which: &Which| {
            let stored = self.cache.get(*which);
            stored.is_some_and(|stored| stored.part.is_none())
        };
        let Some(which) = found.filter(is_whole) else {
            self.pass(id, flight);
            self.forward_next(id);
            return;
        };
        self.uses(id, which);
        let chosen = self.forgotten(self.exchanges.at(id).ask().target);
        let exchange = self.exchanges.at_mut(id);
        let Some(stored) = self.cache.get(which) else {
            return;
        };
        let before = *exchange.tx();
        let commands = exchange.tx().joined(now, &stored.facts, Joined::Waited);
        if let Some(Command::Serve(_)) = commands.first() {
            let (head, content) = form(exchange, stored);
            self.plan(id, head, content, true);
            self.serve_planned(id);
            return;
        }
        // what must be validated before each use is validated for this one too
        *exchange.tx() = before;
        let commands = exchange
            .tx()
            .handle(now, &rules, Event::Found(&stored.facts));
        exchange.kept = Some(Box::new(stored.clone()));
        exchange.chosen = chosen;
        if let Some(Command::Forward(forwarding)) = commands.first() {
            exchange.forwarding = forwarding;
        }
        self.go_next(id);
    }

    /// The answer is not for others: each asks for itself, and for a while so do those who come.
    pub(super) fn go_alone(&mut self, id: u32, is_remembered: bool) {
        let Some(flight) = self.exchanges.at_mut(id).leads.take() else {
            return;
        };
        let now = self.now();
        let target = self.flights.at(flight).target;
        if is_remembered {
            let until = now.tick.plus_ms(self.settings.uncollapsible_ms);
            self.flights.mark_alone(now, target, until);
        }
        self.end_flight(flight, false);
    }

    /// The next hop gave no head.
    pub(super) fn failed(&mut self, id: u32) {
        self.pass_on(id);
        // no excuse to serve it
        let _ = self.lose_forgotten(id);
        let (now, rules) = (self.now(), self.settings.rules);
        let event = Event::Failed(Failure::Disconnected);
        let commands = self.exchanges.at_mut(id).tx().handle(now, &rules, event);
        match commands.first() {
            Some(Command::Serve(_)) => self.serve_kept(id),
            _ if self.exchanges.at(id).is_background => self.serve_kept(id),
            _ => self.answer_alone(id),
        }
    }

    /// Who asked for others has nothing for them. The first of those who wait that may ask for
    /// others asks next, and who comes before it and may not goes alone; if that was the second to
    /// ask, each goes alone.
    fn pass_on(&mut self, id: u32) {
        let Some(flight) = self.exchanges.at_mut(id).leads.take() else {
            return;
        };
        let leaders = self.flights.at(flight).leaders;
        if leaders >= LEADERS_MAX || self.flights.at(flight).waiting.is_empty() {
            let mut waiting = Vec::new();
            self.flights.remove(flight, &mut waiting);
            for id in waiting {
                self.go_next(id);
            }
            return;
        }
        let mut waiting = std::mem::take(&mut self.flights.at_mut(flight).waiting);
        let next = waiting
            .iter()
            .position(|id| self.exchanges.at_mut(*id).tx().leads());
        let rest = waiting.split_off(next.map_or(waiting.len(), |next| next + 1));
        if next.is_some() {
            let flight = self.flights.at_mut(flight);
            flight.waiting = rest;
            flight.leaders += 1;
        } else {
            self.flights.remove(flight, &mut Vec::new());
        }
        for (place, id) in waiting.into_iter().enumerate() {
            if Some(place) == next {
                self.exchanges.at_mut(id).leads = Some(flight);
            }
            self.go_next(id);
        }
    }
}

/// A part is stored in the form of the whole (RFC 9111 §3.4).
const fn as_stored(facts: ResponseFacts) -> ResponseFacts {
    if facts.status != 206 {
        return facts;
    }
    ResponseFacts {
        status: 200,
        has_content_range: false,
        content_range: None,
        ..facts
    }
}
