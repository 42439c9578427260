//! A response that one fetch brings for one reader, and that is larger than the bounds on the
//! read-ahead.
//!
//! What may be taken and handed on is then a matter of two places and of the reader's pace:
//! `policy::fetch::Pace` is called as `policy::fetch::InFlightState` would call it. Events are
//! recorded; when another reader is attached, when the reader disconnects, or when the response is
//! cut, an `InFlightState` replays them, each at its time, and decides from then on. So it is the
//! `InFlightState` that it would have been. A test holds both ways equal.

use super::Simulator;
use super::next_hop::Answer;
use super::plain::one_reader;
use weir_policy::Now;
use weir_policy::fetch::{ByteSpan, FetchId, InFlightRules, InFlightState, Pace, ReaderId};

/// A response with one fetch and one reader.
#[derive(Clone, Debug)]
pub(super) struct SingleReader {
    pub(super) fetch: u32,
    pub(super) exchange: u32,
    rules: InFlightRules,
    begun: Now,
    /// Of the client and of the server, microseconds.
    round_trips: (u32, u32),
    /// Length of the content; 1 at least.
    pub(super) length: u64,
    /// The next byte that the fetch brings.
    front: u64,
    /// The next byte that the reader is given.
    at: u64,
    pace: Pace,
    pub(super) read_ahead_max: u64,
    told: Vec<PendingDelivery>,
}

/// Bytes that came and bytes that were then given, at one time.
#[derive(Clone, Copy, Debug)]
struct PendingDelivery {
    now: Now,
    came: u64,
    given: u64,
}

/// More is not written down: 2 MiB a response. One with so much behind it is handed to a
/// `InFlightState` before its time. In tests that comes soon.
const TOLD_MAX: usize = if cfg!(test) { 64 } else { 65_536 };

impl SingleReader {
    pub(super) fn new(
        (fetch, exchange): (u32, u32),
        rules: InFlightRules,
        begun: Now,
        length: u64,
        round_trips: (u32, u32),
    ) -> Self {
        let mut pace = Pace::new(rules.read_ahead, begun);
        pace.set_round_trips(round_trips.0, round_trips.1);
        // about one for each packet
        let expected = usize::try_from(length / 1024).unwrap_or(usize::MAX);
        Self {
            fetch,
            exchange,
            rules,
            begun,
            round_trips,
            length,
            front: 0,
            at: 0,
            pace,
            read_ahead_max: 0,
            told: Vec::with_capacity(expected.clamp(8, 128)),
        }
    }

    /// Bytes that the fetch may take.
    fn room(&self) -> u64 {
        let until = self.at.saturating_add(self.pace.ahead()).min(self.length);
        until.saturating_sub(self.front)
    }

    fn came(&mut self, now: Now, bytes: u64) {
        self.front += bytes;
        self.read_ahead_max = self.read_ahead_max.max(self.front - self.at);
        self.tell(now, bytes, 0);
    }

    /// Bytes that the reader may have unsent.
    fn unsent(&self) -> u64 {
        if self.is_whole() {
            return u64::MAX;
        }
        self.pace.unsent().map_or(u64::MAX, u64::from)
    }

    fn given(&mut self, now: Now, bytes: u64) {
        self.at += bytes;
        if !self.is_whole() {
            self.pace.handed_over(now, bytes, self.at == self.front);
        }
        self.tell(now, 0, bytes);
    }

    fn tell(&mut self, now: Now, came: u64, given: u64) {
        match self.told.last_mut() {
            // a reader is given what has just come
            Some(last) if came == 0 && last.given == 0 && last.now == now => last.given = given,
            _ => self.told.push(PendingDelivery { now, came, given }),
        }
    }

    const fn is_whole(&self) -> bool {
        self.front >= self.length
    }

    /// Bytes that have come and were not given to the reader.
    #[cfg(test)]
    pub(super) const fn held(&self) -> u64 {
        self.front - self.at
    }

    /// The window toward the server, if there is one.
    fn window(&self) -> Option<u32> {
        self.pace.window(Some(self.length - self.front))
    }

    /// The `InFlightState` with the same history, its fetch, and its reader.
    pub(super) fn told(&self) -> (InFlightState, FetchId, Option<ReaderId>) {
        let (mut fill, fetch, reader) =
            one_reader(self.rules, self.begun, self.length, self.round_trips);
        let mut at = 0;
        for told in &self.told {
            if told.came > 0 {
                fill.received(told.now, fetch, told.came);
            }
            let given = ByteSpan::new(at, at + told.given);
            if let Some((reader, given)) = reader.zip(given) {
                fill.moved(told.now, reader, given.to);
                fill.delivered(given);
                at = given.to;
            }
        }
        (fill, fetch, reader)
    }
}

impl Simulator {
    /// Whether there is one reader and one fetch of all of it.
    pub(super) fn is_paced(&self, answer: &Answer) -> bool {
        self.plain_is_allowed
            && answer.span.from == 0
            && answer.facts.status != 206
            && answer.complete_length == Some(answer.span.to)
    }

    /// Moves it on as far as that goes.
    pub(super) fn drive_paced(&mut self, id: u32) {
        let Some(mut single_reader) = self.in_flight.at_mut(id).single_reader.take() else {
            return;
        };
        let mut is_to_be_decided = single_reader.told.len() >= TOLD_MAX;
        while !is_to_be_decided {
            let has_taken = self.take_paced(&mut single_reader);
            is_to_be_decided = !has_taken && self.is_cut(&single_reader);
            if is_to_be_decided || !self.feed_paced(&mut single_reader) && !has_taken {
                break;
            }
        }
        if single_reader.at >= single_reader.length {
            self.end_fetch(single_reader.fetch);
            self.release_fetch(single_reader.fetch);
            self.settle_whole(id, single_reader.length, single_reader.read_ahead_max);
            return;
        }
        if !is_to_be_decided {
            self.offer_paced(&single_reader);
        }
        self.in_flight.at_mut(id).single_reader = Some(single_reader);
        if is_to_be_decided {
            self.decide_from_now_on(id);
            self.drive(id);
        }
    }

    /// Whether nothing more will come, though it is not all.
    fn is_cut(&self, single_reader: &SingleReader) -> bool {
        let fetch = self.fetches.at(single_reader.fetch);
        fetch.is_cut
            && fetch.came >= fetch.total
            && fetch.waiting() == 0
            && single_reader.room() > 0
    }

    /// The fetch takes what it may of what has come; whether that was anything.
    fn take_paced(&mut self, single_reader: &mut SingleReader) -> bool {
        let now = self.now();
        let fetch = self.fetches.at_mut(single_reader.fetch);
        let bytes = single_reader.room().min(fetch.waiting());
        if bytes == 0 {
            return false;
        }
        fetch.taken += bytes;
        single_reader.came(now, bytes);
        true
    }

    /// The client's kernel is given what there is, as much as it may hold; whether that was
    /// anything.
    fn feed_paced(&mut self, single_reader: &mut SingleReader) -> bool {
        let now = self.now();
        let exchange = self.exchanges.at_mut(single_reader.exchange);
        let room = single_reader.unsent();
        let bytes = (single_reader.front - single_reader.at).min(room);
        if bytes == 0 || exchange.written - exchange.sender.sent >= room {
            return false;
        }
        single_reader.given(now, bytes);
        exchange.written = exchange.written.max(exchange.head_bytes) + bytes;
        self.tally.traffic.relayed_bytes += bytes;
        if single_reader.at >= single_reader.length {
            exchange.is_all = true;
            exchange.reading = None;
        }
        self.send(single_reader.exchange);
        true
    }

    /// Sets how much the server may send.
    fn offer_paced(&mut self, single_reader: &SingleReader) {
        let receive_window_bytes = self.settings.network.tcp.receive_window_bytes;
        let fetch = self.fetches.at_mut(single_reader.fetch);
        fetch.offered = single_reader
            .window()
            .map_or(receive_window_bytes, u64::from);
        if fetch.came > 0 && fetch.sent < fetch.total {
            let at = self.world.at() + fetch.rtt;
            self.send_more(single_reader.fetch, at);
        }
    }
}
