//! A response whose readers and fetches leave nothing to decide.
//!
//! It is requested once, has one reader, and is so small that no bound on the read-ahead is
//! reached: content is taken and sent at once, as `policy::fetch::InFlightState` would decide, but
//! without a call. That is most of them. When another reader is attached, or its reader disconnects
//! before its end, or it is cut, an `InFlightState` is made from its history, and decides from then
//! on; a test checks that both ways are equal.

use super::Simulator;
use super::exchange::Reading;
use super::fetch::FetchOwner;
use super::in_flight::InFlightResponse;
use super::next_hop::Answer;
use weir_policy::catalog::Refusal;
use weir_policy::fetch::{
    AbortPolicy, ByteSpan, ByteSpans, FetchId, InFlightRules, InFlightState, ReadAhead, ReaderId,
};
use weir_policy::{Event, Now};

/// What there is of a response without a `InFlightState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) fetch: u32,
    pub(super) exchange: u32,
    pub(super) rules: InFlightRules,
    /// Length of the content; 1 at least.
    pub(super) length: u64,
    /// Bytes that have come, all of which the reader was given.
    pub(super) front: u64,
    /// The most that ever came at once.
    pub(super) read_ahead_max: u64,
}

/// The ids of a fetch and a reader without an `InFlightState`.
pub(super) const UNDECIDED_IDS: (FetchId, ReaderId) = (FetchId(0), ReaderId(0));

/// An abort of a larger one is judged: how fast it came then matters.
const LARGEST_BYTES: u64 = 64 * 1024;

impl Simulator {
    /// Whether nothing could be decided about such a response while one client reads it.
    pub(super) fn is_plain(&self, answer: &Answer, head_bytes: u32) -> bool {
        let bytes = answer.span.to + u64::from(head_bytes);
        let share = match self.settings.read_ahead {
            ReadAhead::Bytes(bytes) => bytes / 4,
            ReadAhead::Unbounded => LARGEST_BYTES,
        };
        // the rate at which it came, which is not measured here, decides about nothing so small
        let little = match self.settings.abort {
            AbortPolicy::Value { little_bytes } => little_bytes,
            _ => LARGEST_BYTES,
        };
        self.plain_is_allowed
            && bytes <= share.min(little).min(LARGEST_BYTES)
            && bytes <= self.settings.network.tcp.receive_window_bytes
            && answer.span.from == 0
            && answer.facts.status != 206
            && answer.complete_length == Some(answer.span.to)
    }

    /// What has come is taken and handed on.
    pub(super) fn drive_plain(&mut self, id: u32, plain: Plain) {
        let fetch = self.fetches.at_mut(plain.fetch);
        let bytes = fetch.waiting();
        if bytes == 0 {
            if fetch.is_cut && fetch.came >= fetch.total {
                self.decide_from_now_on(id);
                self.drive(id);
            }
            return;
        }
        fetch.taken = fetch.came;
        let plain = Plain {
            front: plain.front + bytes,
            read_ahead_max: plain.read_ahead_max.max(bytes),
            ..plain
        };
        self.in_flight.at_mut(id).plain = Some(plain);
        self.tally.traffic.relayed_bytes += bytes;
        let is_whole = plain.front >= plain.length;
        let exchange = self.exchanges.at_mut(plain.exchange);
        exchange.written = exchange.head_bytes + plain.front;
        if is_whole {
            exchange.is_all = true;
            exchange.reading = None;
        }
        self.send(plain.exchange);
        if is_whole {
            self.end_fetch(plain.fetch);
            self.release_fetch(plain.fetch);
            self.settle_whole(id, plain.length, plain.read_ahead_max);
        } else if self.fetches.at(plain.fetch).is_cut {
            self.drive_plain(id, plain);
        }
    }

    /// All of it is there and was handed on.
    pub(super) fn settle_whole(&mut self, id: u32, length: u64, read_ahead_max: u64) {
        let aborts = &mut self.tally.aborts;
        aborts.read_ahead_max_bytes = aborts.read_ahead_max_bytes.max(read_ahead_max);
        let is_outdated = self.is_outdated(id);
        let in_flight = self.in_flight.at_mut(id);
        in_flight.is_gone = true;
        let mut refusal = None;
        if in_flight.is_kept {
            let held = std::mem::take(&mut in_flight.held);
            let mut stored = in_flight.stored.clone();
            stored.complete_length = Some(length);
            refusal = self.store(stored, held, is_outdated).err();
            if let Some(why) = refusal {
                self.tell_leader(id, Event::NotAdmitted(why));
            }
        }
        self.close_group(id, matches!(refusal, None | Some(Refusal::NotResident)));
        self.in_flight.remove(id);
    }

    /// Makes a `InFlightState` of what has been without one.
    pub(super) fn decide_from_now_on(&mut self, id: u32) {
        let now = self.now();
        let in_flight: &mut InFlightResponse = self.in_flight.at_mut(id);
        let round_trips = (in_flight.client_us, in_flight.server_us);
        let (fill, fetch_id, reader, fetch, exchange) =
            match (in_flight.plain.take(), in_flight.single_reader.take()) {
                (Some(plain), _) => {
                    let (fill, fetch_id, reader) = plain.told(now, round_trips);
                    let aborts = &mut self.tally.aborts;
                    aborts.read_ahead_max_bytes =
                        aborts.read_ahead_max_bytes.max(plain.read_ahead_max);
                    (fill, fetch_id, reader, plain.fetch, plain.exchange)
                }
                (None, Some(single_reader)) => {
                    let (fill, fetch_id, reader) = single_reader.told();
                    (
                        fill,
                        fetch_id,
                        reader,
                        single_reader.fetch,
                        single_reader.exchange,
                    )
                }
                (None, None) => return,
            };
        if let Some(reader) = reader {
            in_flight.readers.push((reader, exchange));
            self.exchanges.at_mut(exchange).reading = Some(Reading {
                in_flight: id,
                reader,
            });
        }
        in_flight.fill = Some(Box::new(fill));
        in_flight.fetches.push((fetch_id, fetch));
        self.fetches.at_mut(fetch).owner = FetchOwner::InFlight(id, fetch_id);
    }
}

impl Plain {
    /// The `InFlightState` with the same history, its fetch, and its reader.
    fn told(
        &self,
        now: Now,
        round_trips: (u32, u32),
    ) -> (InFlightState, FetchId, Option<ReaderId>) {
        let (mut fill, fetch, reader) = one_reader(self.rules, now, self.length, round_trips);
        if let Some(reader) = reader {
            // in no larger pieces than it came: its read-ahead was never further
            let mut from = 0;
            while let Some(given) = ByteSpan::new(from, self.front.min(from + self.read_ahead_max))
            {
                fill.received(now, fetch, given.len());
                fill.moved(now, reader, given.to);
                fill.delivered(given);
                from = given.to;
            }
        }
        (fill, fetch, reader)
    }
}

/// A response of `length` bytes of which nothing has come, with one fetch and one reader of all of
/// it.
pub(super) fn one_reader(
    rules: InFlightRules,
    begun: Now,
    length: u64,
    (client_us, server_us): (u32, u32),
) -> (InFlightState, FetchId, Option<ReaderId>) {
    let span = ByteSpan {
        from: 0,
        to: length,
    };
    let mut fill = InFlightState::new(rules, begun, Some(length), ByteSpans::new());
    let fetch = fill.begin(begun, span);
    fill.set_round_trips(fetch, client_us, server_us);
    let reader = fill.attach(span);
    debug_assert!(reader.is_ok(), "it is coming: {reader:?}");
    (fill, fetch, reader.ok())
}
