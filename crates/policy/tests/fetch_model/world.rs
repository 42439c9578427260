//! One world: a content, a next hop, readers, and a driver that does what it is told.

use crate::chance::Chance;
use crate::hop::{Fate, Hop, Transfer};
use crate::twin::{Here, Reads};
use weir_policy::fetch::{ByteSpan, ByteSpans, Cut, FetchEnd, FetchId, Fill, FillRules, Lead};
use weir_policy::fetch::{NEAR_BYTES, NotHere, ReaderId, Step, Take};
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;

/// How often what happened: to see that everything does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally([u64; NAMES.len()]);

const NAMES: [&str; 17] = [
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
    "met",
    "twice",
    "resumed-after-cut",
    "whole",
];

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }

    pub(crate) fn never_happened(&self) -> Vec<&'static str> {
        let names = NAMES.iter().zip(self.0);
        names
            .filter(|&(_, count)| count == 0)
            .map(|(name, _)| *name)
            .collect()
    }

    fn count(&mut self, name: &str) {
        let place = NAMES.iter().position(|known| *known == name).unwrap();
        self.0[place] += 1;
    }
}

/// A reader as its client is: it comes, is slow, stops for a while, seeks, leaves.
#[derive(Clone, Copy, Debug)]
struct Client {
    comes_ms: u64,
    wants: ByteSpan,
    bytes_ms: u64,
    /// It takes nothing in between.
    stops_ms: (u64, u64),
    leaves_ms: u64,
    /// It comes back for something else so often.
    seeks: u64,
    id: Option<ReaderId>,
    reads: Reads,
    /// What it may still take in this step of the clock.
    credit: u64,
}

impl Client {
    fn is_stopped(&self, now_ms: u64) -> bool {
        let here_ms = now_ms.saturating_sub(self.comes_ms);
        (self.stops_ms.0..self.stops_ms.1).contains(&here_ms)
    }
}

pub(crate) struct World {
    chance: Chance,
    now_ms: u64,
    step_ms: u64,
    rules: FillRules,
    hop: Hop,
    /// A granted take may be told later, when other things have happened.
    has_races: bool,
    fill: Fill,
    here: Here,
    transfers: Vec<Transfer>,
    clients: Vec<Client>,
    /// The most all clients together take in a millisecond: no measured rate may be much above.
    fastest_bytes_ms: u64,
    kept: u64,
    fetched: u64,
    twice: u64,
    live: u64,
    can_fail: bool,
    tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let chance = &mut chance;
        let lead = chance.one_of(&[
            Lead::DEFAULT,
            Lead::Bytes(4096),
            Lead::Bytes(300_000),
            Lead::Unbounded,
        ]);
        // from nothing to some forty leads: longer ones only take longer
        let length = chance.one_of(&[0, 1, 3000, 40_000, 200_000, 1_000_000, 3_000_000]);
        let length = length.min(lead.bytes().saturating_mul(20));
        let length = length
            + if length > 1 {
                chance.within(0, length)
            } else {
                0
            };
        let can_range = !chance.once_in(4);
        let rules = FillRules {
            lead,
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
            fill: Fill::new(rules, now(0), is_told.then_some(length), present),
            here,
            transfers: Vec::new(),
            clients: Vec::new(),
            fastest_bytes_ms: 0,
            kept,
            fetched: 0,
            twice: 0,
            live: 0,
            can_fail: hop.fails_once_in > 0,
            tally: Tally::default(),
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

    fn now(&self) -> Now {
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

    fn client(&mut self) -> Client {
        let chance = &mut self.chance;
        let length = self.hop.length;
        let from = if chance.once_in(2) {
            0
        } else {
            chance.within(0, length.max(1))
        };
        let to = if chance.once_in(2) {
            ByteSpan::OPEN
        } else {
            chance.within(from + 1, length + 2)
        };
        let wants = ByteSpan { from, to };
        // all of it in a moment, or in half a second
        let bytes_ms = length / chance.one_of(&[1, 20, 100, 100, 500, 500]) + 1;
        let stops_ms = chance.within(0, 300);
        let never = (u64::MAX, u64::MAX);
        Client {
            comes_ms: self.now_ms + chance.one_of(&[0, 0, 0, 50]) * chance.within(0, 5),
            wants,
            bytes_ms,
            stops_ms: if chance.once_in(3) {
                (stops_ms, stops_ms + 2000)
            } else {
                never
            },
            leaves_ms: if chance.once_in(3) {
                chance.within(0, 300)
            } else {
                u64::MAX
            },
            seeks: chance.one_of(&[0, 0, 1, 2]),
            id: None,
            reads: Reads {
                wants,
                at: wants.from,
            },
            credit: 0,
        }
    }

    /// All transfers once; false in the end for those that have ended.
    fn transfers_go_on(&mut self) {
        for place in (0..self.transfers.len()).rev() {
            let mut transfer = self.transfers[place];
            if self.transfer_goes_on(&mut transfer) {
                self.transfers[place] = transfer;
            } else {
                self.transfers.swap_remove(place);
            }
        }
    }

    fn transfer_goes_on(&mut self, transfer: &mut Transfer) -> bool {
        let (now, fetch) = (self.now(), transfer.fetch);
        self.tell(transfer);
        if transfer.is_stopped {
            return self.end(fetch, FetchEnd::Stopped);
        }
        if self.now_ms < transfer.answers_ms {
            // nobody may need it before its head is here
            return match self.fill.take(now, fetch) {
                Take::Orphaned if self.chance.once_in(3) => self.end(fetch, FetchEnd::Stopped),
                Take::GiveWay => self.give_way(fetch),
                _ => true,
            };
        }
        let end = self.hop.end_of(transfer);
        match transfer.fate {
            Fate::Changed => return self.end(fetch, FetchEnd::Changed),
            Fate::Cut(at) if transfer.front >= at => return self.cut(transfer),
            // with the length unknown only the end of the connection tells the end
            _ if transfer.front >= end => return self.end(fetch, FetchEnd::Whole),
            _ => {}
        }
        if transfer.is_range {
            self.fill.learn_length(self.hop.length);
        }
        let bytes = match self.fill.take(now, fetch) {
            Take::UpTo(bytes) => {
                assert!(bytes > 0);
                self.is_within_lead(transfer, bytes);
                bytes
            }
            Take::Wait => {
                self.tally.count("waited-for-reader");
                return true;
            }
            Take::Background => {
                self.tally.count("background");
                self.fill.to_come(fetch).unwrap_or(9999)
            }
            Take::Orphaned if self.chance.once_in(2) => {
                self.fill.go_on(fetch);
                return true;
            }
            Take::Orphaned => {
                // a reader may come between judgement and end
                transfer.is_stopped = true;
                return self.has_races || self.end(fetch, FetchEnd::Stopped);
            }
            Take::Met => {
                self.tally.count("met");
                return self.end(fetch, FetchEnd::Whole);
            }
            Take::GiveWay => return self.give_way(fetch),
        };
        let sent = transfer.bytes_ms * self.step_ms;
        let until = match transfer.fate {
            Fate::Cut(at) => at.min(end),
            _ => end,
        };
        transfer.under_way = bytes.min(sent).min(until - transfer.front);
        if !self.has_races || self.chance.once_in(3) {
            self.tell(transfer);
        }
        true
    }

    /// What was taken is told.
    fn tell(&mut self, transfer: &mut Transfer) {
        let bytes = core::mem::take(&mut transfer.under_way);
        if bytes == 0 {
            return;
        }
        let (from, to) = (transfer.front, transfer.front + bytes);
        assert_eq!(self.fill.front(transfer.fetch), from);
        let new = self.here.missing(from, to);
        self.fetched += new;
        if new < bytes {
            assert!(self.has_races, "fetched twice: {from}..{to}");
            self.twice += bytes - new;
            self.tally.count("twice");
        }
        self.here.came(from, to);
        transfer.front = to;
        self.fill.received(self.now(), transfer.fetch, bytes);
        self.here.assert_is(self.fill.present());
    }

    fn end(&mut self, fetch: FetchId, how: FetchEnd) -> bool {
        self.fill.end(self.now(), fetch, how);
        false
    }

    fn give_way(&mut self, fetch: FetchId) -> bool {
        self.tally.count("gave-way");
        self.end(fetch, FetchEnd::Stopped)
    }

    fn cut(&mut self, transfer: &Transfer) -> bool {
        let was_closed = self.fill.closed().is_some();
        let ended = self.end(transfer.fetch, FetchEnd::Cut);
        if !was_closed && self.fill.closed().is_none() && self.fill.readers() > 0 {
            self.tally.count("resumed-after-cut");
        }
        ended
    }

    /// A reader is there that wants all that may be taken, with nothing missing between them but what is taken now, and
    /// no further back than the share of the lead; or it waits ahead.
    fn is_within_lead(&self, transfer: &Transfer, bytes: u64) {
        let Lead::Bytes(lead) = self.rules.lead else {
            return;
        };
        let front = transfer.front;
        // what all take in a turn of 1 ms; measured on a clock of coarse steps, perhaps twice that
        let bound = (lead / 4).max(1460) + 2 * self.fastest_bytes_ms;
        let is_bound_to = |reads: &Reads| {
            let is_near = reads.at > front || self.here.holds(reads.at, front);
            is_near && reads.wants.to >= front + bytes && front + bytes <= reads.at + bound
        };
        let mut readers = self.clients.iter().filter(|client| client.id.is_some());
        assert!(
            readers.any(|client| is_bound_to(&client.reads)),
            "{bytes} from {front}: {:?}",
            self.clients
        );
    }

    /// Comes, reads, leaves; false if it is gone for good.
    fn client_goes_on(&mut self, place: usize) -> bool {
        let mut client = self.clients[place];
        if self.now_ms < client.comes_ms {
            return true;
        }
        let stays = match client.id {
            None => self.comes(&mut client),
            Some(id) if self.now_ms >= client.comes_ms.saturating_add(client.leaves_ms) => {
                self.tally.count("left");
                self.leaves(&mut client, id)
            }
            Some(id) => self.reads(&mut client, id),
        };
        self.clients[place] = client;
        stays
    }

    fn comes(&mut self, client: &mut Client) -> bool {
        let goes_on = self
            .transfers
            .iter()
            .any(|transfer| self.fill.take(self.now(), transfer.fetch) == Take::Background);
        match self.fill.attach(self.now(), client.wants) {
            Ok(id) => {
                let still = self
                    .transfers
                    .iter()
                    .any(|transfer| self.fill.take(self.now(), transfer.fetch) == Take::Background);
                if goes_on && !still {
                    self.tally.count("returned");
                }
                client.id = Some(id);
                client.reads.at = client.wants.from;
                true
            }
            Err(not_here) => {
                self.is_refused_rightly(client.wants, not_here);
                self.tally.count("refused");
                false
            }
        }
    }

    fn is_refused_rightly(&self, wants: ByteSpan, not_here: NotHere) {
        let known = self.fill.complete_length().unwrap_or(u64::MAX);
        let has_all = self.here.holds(wants.from, wants.to.min(known));
        let right = match not_here {
            NotHere::BeyondEnd => wants.from >= known,
            NotHere::Closed => self.can_fail && !has_all && self.fill.closed().is_some(),
            NotHere::CannotRange => {
                !self.rules.can_range && !has_all && self.is_out_of_reach(wants, known)
            }
            NotHere::TooManySpans | NotHere::TooManyReaders => false,
        };
        assert!(right, "{not_here:?} {wants:?} {:?}", self.fill);
    }

    /// No one fetch comes by soon and to the end.
    fn is_out_of_reach(&self, wants: ByteSpan, known: u64) -> bool {
        let missing = self.here.end_of(wants.from);
        let brings = |transfer: &Transfer| {
            let front = self.fill.front(transfer.fetch);
            front <= missing
                && missing - front <= NEAR_BYTES
                && transfer.asked.to >= wants.to.min(known)
        };
        !self.transfers.iter().any(brings)
    }

    fn reads(&mut self, client: &mut Client, id: ReaderId) -> bool {
        let is_stopped = client.is_stopped(self.now_ms);
        client.credit = if is_stopped {
            0
        } else {
            client.bytes_ms * self.step_ms
        };
        while !is_stopped {
            let end = client.wants.to.min(self.hop.length);
            match self.fill.step(self.now(), id) {
                Step::Read(_) if client.credit == 0 => break,
                Step::Read(span) => self.given(client, id, span),
                Step::Wait => {
                    assert!(client.reads.at < end || self.fill.complete_length().is_none());
                    break;
                }
                Step::Fetch { fetch, span } => self.fetch(client, fetch, span),
                Step::Done => {
                    assert!(
                        client.reads.at >= end,
                        "done at {} of {end}",
                        client.reads.at
                    );
                    self.tally.count("done");
                    return self.leaves(client, id);
                }
                Step::Cut(cut) => {
                    self.is_cut_rightly(client, cut);
                    return self.leaves(client, id);
                }
            }
        }
        true
    }

    fn given(&mut self, client: &mut Client, id: ReaderId, offered: ByteSpan) {
        assert_eq!(offered.from, client.reads.at);
        assert!(offered.to <= client.wants.to);
        assert!(
            self.here.holds(offered.from, offered.to),
            "{offered:?} is not here"
        );
        let to = offered.to.min(offered.from + client.credit);
        let span = ByteSpan { to, ..offered };
        client.credit -= span.len();
        client.reads.at = to;
        let delivered = self.fill.delivered(self.now(), id, span);
        assert_eq!(delivered.live + delivered.again, span.len());
        assert!(delivered.kept <= delivered.again);
        self.live += delivered.live;
        self.fill.moved(self.now(), id, to);
        if self
            .transfers
            .iter()
            .any(|transfer| to > self.fill.front(transfer.fetch))
        {
            self.tally.count("read-ahead-of-front");
        }
    }

    fn fetch(&mut self, client: &Client, fetch: FetchId, span: ByteSpan) {
        assert!(self.rules.can_range);
        assert!(self.transfers.len() < self.rules.fetches_max as usize);
        // what the reader needs, as much as is missing, near enough
        assert_eq!(span.from, self.here.end_of(client.reads.at));
        assert!(span.from - client.reads.at <= self.rules.lead.bytes());
        assert!(span.to <= client.wants.to);
        let to = span.to.min(self.hop.length.max(span.from));
        assert_eq!(self.here.missing(span.from, to), to - span.from);
        for other in &self.transfers {
            let front = self.fill.front(other.fetch);
            assert!(
                front >= other.asked.to || front < span.from || front >= span.to,
                "{span:?} is on its way from {front}: {other:?}"
            );
        }
        let transfer = self
            .hop
            .asked(&mut self.chance, self.now_ms, fetch, span, false);
        self.transfers.push(transfer);
        self.tally.count("gap-fetched");
        // such a range of a content of unknown length can be asked for, and is refused
        self.can_fail |= transfer.fate == Fate::Changed;
    }

    fn is_cut_rightly(&mut self, client: &Client, cut: Cut) {
        let at = client.reads.at;
        assert!(!self.here.holds(at, at + 1));
        let right = match cut {
            Cut::NextHop | Cut::Changed => self.can_fail,
            Cut::Stopped => !self.rules.can_range,
        };
        assert!(right, "{cut:?} at {at}");
        self.tally.count(match cut {
            Cut::NextHop => "cut-next-hop",
            Cut::Changed => "cut-changed",
            Cut::Stopped => "cut-stopped",
        });
    }

    /// Leaves, and comes back for something else if it has a mind to.
    fn leaves(&mut self, client: &mut Client, id: ReaderId) -> bool {
        self.fill.leave(self.now(), id);
        client.id = None;
        if client.seeks == 0 {
            return false;
        }
        self.tally.count("seek");
        let next = self.client();
        *client = Client {
            seeks: client.seeks - 1,
            ..next
        };
        self.fastest_bytes_ms += client.bytes_ms;
        true
    }

    /// If a reader waits that would read, something is about to happen for somebody.
    fn nobody_starves(&mut self) {
        let now = self.now();
        let is_stirring = |transfer: &Transfer| {
            let take = self.fill.take(now, transfer.fetch);
            self.now_ms < transfer.answers_ms || !matches!(take, Take::Wait | Take::Background)
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
                        |transfer: &Transfer| self.fill.take(now, transfer.fetch) == Take::GiveWay;
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
