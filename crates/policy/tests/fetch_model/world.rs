//! One world: a content, a next hop, readers, and a driver that does what it is told.

use crate::chance::Chance;
use crate::client::Client;
use crate::hop::{Hop, Transfer};
use crate::model_tally::Tally;
use crate::reference::Here;
use weir_policy::fetch::{
    ByteSpan, ByteSpans, InFlightRules, InFlightState, ReadAhead, ReadPermit, Step,
};
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;

/// What happens in the worlds played.
pub(crate) const EVENTS: &[&str] = &[
    "done",
    "cut-next-hop",
    "cut-changed",
    "cut-stopped",
    "left",
    "seek",
    "refused",
    "gap-fetched",
    "read-ahead-of-front",
    "waited-for-reader",
    "background",
    "returned",
    "gave-way",
    "complete",
    "twice",
    "sent-less",
    "gone-through",
    "resumed-after-cut",
    "whole",
];

pub(crate) struct World {
    pub(crate) chance: Chance,
    pub(crate) now_ms: u64,
    pub(crate) step_ms: u64,
    pub(crate) rules: InFlightRules,
    pub(crate) hop: Hop,
    /// A granted take may be told later, when other things have happened.
    pub(crate) has_races: bool,
    pub(crate) fill: InFlightState,
    pub(crate) here: Here,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) clients: Vec<Client>,
    /// The most all clients together take in a millisecond: no measured rate may be much above.
    pub(crate) fastest_bytes_ms: u64,
    pub(crate) kept: u64,
    pub(crate) fetched: u64,
    pub(crate) twice: u64,
    pub(crate) live: u64,
    pub(crate) can_fail: bool,
    pub(crate) tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let chance = &mut chance;
        let read_ahead = chance.one_of(&[
            ReadAhead::DEFAULT,
            ReadAhead::Bytes(4096),
            ReadAhead::Bytes(300_000),
            ReadAhead::Unbounded,
        ]);
        // from nothing to some forty read-aheads: longer ones only take longer
        let length = chance.one_of(&[0, 1, 3000, 40_000, 200_000, 1_000_000, 3_000_000]);
        let length = length.min(read_ahead.bytes().saturating_mul(20));
        let length = length
            + if length > 1 {
                chance.within(0, length)
            } else {
                0
            };
        let can_range = !chance.once_in(4);
        let rules = InFlightRules {
            read_ahead,
            fetches_max: chance.one_of(&[1, 2, 3, 8]) as u32,
            can_range,
        };
        let hop = Hop {
            length,
            fails_once_in: chance.one_of(&[0, 0, 2, 5]),
            content_ms: chance.one_of(&[5, 100, 400]),
        };
        let mut here = Here::default();
        let mut present = ByteSpans::new();
        let parts = if can_range {
            chance.one_of(&[0, 0, 1, 3])
        } else {
            0
        };
        for _ in 0..parts {
            let from = chance.within(0, length + 1);
            let to = chance.within(from, length + 1);
            here.came(from, to);
            present.insert(ByteSpan { from, to });
        }
        let is_told = parts > 0 || !chance.once_in(4);
        let kept = present.total();
        let step_ms = chance.one_of(&[1, 3, 10]);
        let mut world = Self {
            now_ms: 0,
            step_ms,
            rules,
            hop,
            has_races: chance.once_in(3),
            fill: InFlightState::new(rules, now(0), is_told.then_some(length), present),
            here,
            transfers: Vec::new(),
            clients: Vec::new(),
            fastest_bytes_ms: 0,
            kept,
            fetched: 0,
            twice: 0,
            live: 0,
            can_fail: hop.fails_once_in > 0,
            tally: Tally::new(EVENTS),
            chance: chance.clone(),
        };
        if parts == 0 {
            world.begin();
        }
        for _ in 0..world.chance.one_of(&[1, 2, 3, 6]) {
            let client = world.client();
            world.clients.push(client);
        }
        world.fastest_bytes_ms = world.clients.iter().map(|client| client.bytes_ms).sum();
        world
    }

    /// Until all have what they want, or left, and no fetch runs.
    pub(crate) fn play(mut self) -> Tally {
        while !self.clients.is_empty() || !self.transfers.is_empty() {
            assert!(
                self.now_ms < 200_000,
                "it does not end: {:?} {:?}",
                self.clients,
                self.transfers
            );
            self.transfers_go_on();
            for place in (0..self.clients.len()).rev() {
                if !self.client_goes_on(place) {
                    self.clients.swap_remove(place);
                }
            }
            self.nobody_starves();
            self.accounts_balance();
            self.now_ms += self.step_ms;
        }
        assert!(self.fill.is_over());
        assert_eq!((self.fill.readers(), self.fill.fetches()), (0, 0));
        self.here.assert_is(self.fill.present());
        assert_eq!(self.fill.present().total(), self.kept + self.fetched);
        if self.fill.is_whole() {
            assert_eq!(self.fill.complete_length(), Some(self.hop.length));
            assert!(self.here.holds(0, self.hop.length));
            self.tally.count("whole");
        }
        self.tally
    }

    pub(crate) fn now(&self) -> Now {
        now(self.now_ms)
    }

    /// The fetch of the one that asked first.
    fn begin(&mut self) {
        let is_told = self.hop.length > 0 && self.chance.once_in(3);
        let to = if is_told {
            self.hop.length
        } else {
            ByteSpan::OPEN
        };
        let asked = ByteSpan { from: 0, to };
        let fetch = self.fill.begin(self.now(), asked);
        let transfer = self
            .hop
            .asked(&mut self.chance, self.now_ms, fetch, asked, true);
        self.transfers.push(transfer);
    }

    /// If a reader waits that would read, an event is about to happen for one of them.
    fn nobody_starves(&mut self) {
        let now = self.now();
        let is_stirring = |transfer: &Transfer| {
            let permit = self.fill.permit(transfer.fetch);
            self.now_ms < transfer.answers_ms
                || !matches!(permit, ReadPermit::Wait | ReadPermit::Background)
        };
        if self.transfers.iter().any(is_stirring) {
            return;
        }
        for place in 0..self.clients.len() {
            let client = self.clients[place];
            let Some(id) = client.id.filter(|_| !client.is_stopped(self.now_ms)) else {
                continue;
            };
            match self.fill.step(now, id) {
                Step::Fetch { fetch, span } => return self.fetch(&client, fetch, span),
                Step::Wait => {
                    // asking may have made room
                    let makes_room =
                        |transfer: &Transfer| self.fill.permit(transfer.fetch) == ReadPermit::Yield;
                    let is_stirred = self.transfers.iter().any(makes_room);
                    assert!(is_stirred, "starves: {client:?} {:?}", self.transfers);
                    return;
                }
                Step::Read(_) | Step::Done | Step::Cut(_) => {}
            }
        }
    }

    fn accounts_balance(&self) {
        assert_eq!(self.fill.fetched(), self.fetched);
        assert_eq!(self.fill.fetched_twice(), self.twice);
        assert_eq!(self.fetched, self.live + self.fill.undelivered());
        assert_eq!(self.fill.fetches(), self.transfers.len());
    }
}

fn now(now_ms: u64) -> Now {
    Now {
        wall: Timestamp(0),
        tick: Tick(now_ms),
    }
}
