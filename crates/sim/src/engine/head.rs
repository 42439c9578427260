//! The next hop's response head: what the policy makes of it, and what begins with it.

use super::Simulator;
use super::exchange::{AS_SENT, Reading, Stage};
use super::fetch::FetchOwner;
use super::in_flight::InFlightResponse;
use super::next_hop::Answer;
use super::plain::{Plain, UNDECIDED_IDS};
use super::single_reader::SingleReader;
use crate::cache::StoredResponse;
use crate::world;
use weir_policy::catalog::Refusal;
use weir_policy::fetch::{ByteSpan, ByteSpans, FetchId, InFlightRules, InFlightState};
use weir_policy::transaction::says_about_target;
use weir_policy::{Command, Event, Failure, StoredFacts};
use weir_semantics::ResponseFacts;

/// What to store of a response.
#[derive(Clone, Copy, Debug)]
enum StoreAction {
    New(StoredFacts),
    /// It completes the stored part.
    Part(StoredFacts),
}

impl Simulator {
    /// The head of what `fetch` brings is at the proxy.
    pub(super) fn head(&mut self, id: u32, fetch: u32) {
        let Some(answer) = self.fetches.at_mut(fetch).answer.take() else {
            return;
        };
        let merging = self.merging(id, &answer);
        let event = match &merging {
            Some(merging) => Event::Update(merging.update(&answer.facts)),
            None => Event::Response(&answer.facts),
        };
        let storing = self.exchanges.at(id).ask().ruled.storing;
        let commands = self.handle_ruled(id, storing, event);
        let (mut kept, mut is_stored) = (None, false);
        for command in commands.iter() {
            match command {
                Command::Store(facts) => kept = Some(StoreAction::New(facts)),
                Command::Combine(facts) => kept = Some(StoreAction::Part(facts)),
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
                    self.lead_failed(id);
                    self.serve_stored(id);
                    return;
                }
                Command::ForwardAgain => {
                    self.stop(fetch);
                    if self.exchanges.at(id).is_background {
                        // the next request for it is forwarded
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

    /// Forwards the response: through the store if it is stored.
    fn relay(&mut self, id: u32, fetch: u32, answer: &Answer, kept: Option<StoreAction>) {
        let now = self.now();
        let stored = self.stored_of(id, answer, kept);
        let reuse = self.exchanges.at(id).ask().ruled.storing.reuse;
        let answers_others = kept.is_some() && reuse.of(&stored.facts).answers_others(now);
        if kept.is_some() && !answers_others {
            self.refuse_followers(id, true);
        }
        let held = kept.and_then(|kept| self.take_room(id, answer, &kept));
        // the rest of a part is no answer alone: it is joined, if only on its way
        let kept = kept.filter(|kept| held.is_some() || matches!(kept, StoreAction::Part(_)));
        if kept.is_none() {
            self.refuse_followers(id, says_about_target(answer.facts.status));
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
        // all of it came with its head: no follower gets it before it is stored
        let is_quick = (is_background || is_there)
            && matches!(kept, Some(StoreAction::New(_)))
            && answer.facts.status != 206;
        let is_published = !is_quick && kept.is_some();
        let leads = self.exchanges.at_mut(id).leads.take();
        let in_flight = self.begin_in_flight(id, fetch, answer, (kept, held), stored);
        let response = self.in_flight.at_mut(in_flight);
        response.is_unpublished = is_published;
        response.leads = leads.filter(|_| !is_published);
        if is_background {
            // what came with the head could not be waited for
            let came = self.fetches.at(fetch).waiting();
            self.fetches.at_mut(fetch).granted = came;
            self.background.take(now, came);
        } else {
            let wants = match kept {
                Some(StoreAction::Part(_)) => self.exchanges.at(id).wants(answer.complete_length),
                _ => answer.span,
            };
            self.read(id, in_flight, wants);
        }
        if is_published {
            self.publish(in_flight, leads, answers_others);
        }
        if is_background {
            self.over(id);
        }
    }

    /// A validation in the background brings what neither a client nor the store takes.
    fn give_up_refresh(&mut self, id: u32, fetch: u32, held: Option<u64>) {
        if let Some(held) = held {
            self.cache.give_back(held);
            self.handle(id, Event::Incomplete);
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

    /// Takes room for a response that may be stored; reports to the transaction if there is none.
    fn take_room(&mut self, id: u32, answer: &Answer, kept: &StoreAction) -> Option<u64> {
        let head_bytes = match (kept, &self.exchanges.at(id).kept) {
            (StoreAction::Part(_), Some(part)) => part.head_bytes,
            _ => self.exchanges.at(id).ask().head_bytes,
        };
        let target = self.exchanges.at(id).ask().target;
        let refusal = match self.cache.take_room(target, answer.span.len(), head_bytes) {
            Ok(held) => return Some(held),
            Err(refusal) => refusal,
        };
        self.handle(id, Event::NotAdmitted(refusal));
        None
    }

    /// What the response would be in the store.
    fn stored_of(&mut self, id: u32, answer: &Answer, kept: Option<StoreAction>) -> StoredResponse {
        let now = self.now();
        let heuristic = self.settings.rules.heuristic;
        let request_time = self.exchanges.at_mut(id).tx().request_time();
        let exchange = self.exchanges.at(id);
        let ask = exchange.ask();
        let (response, facts) = match (kept, &exchange.kept) {
            (Some(StoreAction::Part(facts)), Some(part)) => {
                let response = part.response.updated_by(&answer.facts, now.wall);
                (response, facts)
            }
            (Some(StoreAction::New(facts)), _) => (as_stored(answer.facts), facts),
            _ => {
                let facts = StoredFacts::new(&answer.facts, request_time, now, &heuristic);
                (as_stored(answer.facts), facts)
            }
        };
        StoredResponse {
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
    fn relay_head(&mut self, id: u32, stored: StoredResponse, held: Option<u64>) {
        let target = stored.target;
        if let Some(held) = held {
            let is_outdated = self.exchanges.at(id).epoch != self.epoch(target);
            match self.store(stored, held, is_outdated) {
                Ok(_) => self.lead_stored(id),
                Err(refusal) => {
                    self.handle(id, Event::NotAdmitted(refusal));
                    if refusal == Refusal::NotResident {
                        self.lead_stored(id);
                    } else {
                        self.refuse_followers(id, false);
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
        (kept, held): (Option<StoreAction>, Option<u64>),
        stored: StoredResponse,
    ) -> u32 {
        let head_bytes = stored.head_bytes;
        let exchange = self.exchanges.at(id);
        let rules = InFlightRules {
            read_ahead: self.settings.read_ahead,
            can_range: kept.is_some()
                && stored.facts.strong_tag
                && answer.complete_length.is_some(),
            ..InFlightRules::default()
        };
        let is_whole = !matches!(kept, Some(StoreAction::Part(_))) && !exchange.is_background;
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
        let server_us = u32::try_from(exchange.server_delay.rtt / 1000).unwrap_or(u32::MAX);
        let single_reader = is_paced.then(|| {
            let round_trips = (client_us, server_us);
            let length = answer.span.to;
            Box::new(SingleReader::new(
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
            single_reader,
            is_kept: held.is_some(),
            held: held.unwrap_or(0),
            epoch: exchange.epoch,
            drops: matches!(kept, Some(StoreAction::Part(_))).then_some(exchange.chosen.1),
            leader: (id, exchange.number),
            part_of: match kept {
                Some(StoreAction::Part(_)) => exchange.found,
                _ => None,
            },
            is_for_store_alone: exchange.is_background,
            tx: *exchange.tx(),
            server: exchange.ask().server,
            is_persistent: self.fetches.at(fetch).is_persistent,
            server_delay: exchange.server_delay,
            client_us,
            server_us,
            fetches: Vec::new(),
            readers: Vec::new(),
            leads: None,
            group: None,
            uses: None,
            is_settled: false,
            is_unpublished: false,
            is_gone: false,
            stored,
        });
        let fetch_id = if is_plain || is_paced {
            UNDECIDED_IDS.0
        } else {
            self.begin_fill(id, fetch, in_flight, rules, answer, kept)
        };
        self.fetches.at_mut(fetch).owner = FetchOwner::InFlight(in_flight, fetch_id);
        in_flight
    }

    /// There is something to decide about this response.
    fn begin_fill(
        &mut self,
        id: u32,
        fetch: u32,
        in_flight: u32,
        rules: InFlightRules,
        answer: &Answer,
        kept: Option<StoreAction>,
    ) -> FetchId {
        let now = self.now();
        let exchange = self.exchanges.at(id);
        let present = match (kept, exchange.kept.as_deref()) {
            (
                Some(StoreAction::Part(_)),
                Some(StoredResponse {
                    part: Some(part), ..
                }),
            ) => (**part).clone(),
            _ => ByteSpans::new(),
        };
        let response = self.in_flight.at_mut(in_flight);
        let mut fill = InFlightState::new(rules, now, answer.complete_length, present);
        let fetch_id = fill.begin(now, answer.span);
        fill.set_round_trips(fetch_id, response.client_us, response.server_us);
        if exchange.is_background {
            fill.continue_unread(fetch_id);
        }
        response.fill = Some(Box::new(fill));
        response.fetches.push((fetch_id, fetch));
        fetch_id
    }

    /// The exchange that began it reads the content.
    fn read(&mut self, id: u32, in_flight: u32, wants: ByteSpan) {
        let response = self.in_flight.at_mut(in_flight);
        let head_bytes = response.stored.head_bytes;
        let reader = if response.plain.is_some() || response.single_reader.is_some() {
            Some(UNDECIDED_IDS.1)
        } else {
            let reader = response.fill().attach(wants);
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

    /// The next hop gave no head.
    pub(super) fn failed(&mut self, id: u32) {
        self.lead_failed(id);
        // no excuse to serve it
        let _ = self.lose_forgotten(id);
        let commands = self.handle(id, Event::Failed(Failure::Disconnected));
        match commands.first() {
            Some(Command::Serve(_)) => self.serve_stored(id),
            _ if self.exchanges.at(id).is_background => self.serve_stored(id),
            _ => self.forward_uncollapsed(id),
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
