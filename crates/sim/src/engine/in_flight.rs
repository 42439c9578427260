//! An in-flight response: fetches write it, readers follow it, each as fast as its client takes it.
//!
//! `policy::fetch::InFlightState` decides. This module asks it in turn how much each fetch may read
//! and each reader may send, until nothing changes.

use super::Simulator;
use super::collapse::Variant;
use super::exchange::{Confirming, ServerDelay, Stage};
use super::fetch::{Fetch, FetchOwner};
use super::next_hop::is_found;
use super::plain::Plain;
use super::single_reader::SingleReader;
use crate::cache::{ContentId, StoredResponse, Which, digest};
use crate::facts::Ask;
use crate::journal::{Question, What};
use crate::world::Event;
use weir_policy::collapse::{GroupId, Selection};
use weir_policy::fetch::{
    AbortDecision, AbortPolicy, ByteSpan, Chance, Confirm, CutReason, FetchEnd, FetchId,
    InFlightState, ReadPermit, ReaderId, Step, StopReason, UnreadFetch, judge,
};
use weir_policy::{Now, Tick, Transaction};
use weir_trace::Row;

/// An in-flight response.
#[derive(Debug)]
pub(super) struct InFlightResponse {
    /// Decides about readers and fetches; `None` while there is nothing to decide.
    pub(super) fill: Option<Box<InFlightState>>,
    pub(super) plain: Option<Plain>,
    pub(super) single_reader: Option<Box<SingleReader>>,
    /// What it will be in the store.
    pub(super) stored: StoredResponse,
    /// It is for the store.
    pub(super) is_kept: bool,
    /// Room that it holds there, bytes.
    pub(super) held: u64,
    /// How often its target had been invalidated when it was requested.
    pub(super) epoch: u32,
    /// How often a stored response of it had been forgotten when the one was chosen that it
    /// completes.
    pub(super) drops: Option<u32>,
    /// The exchange that began it: its place among the exchanges, and its number.
    pub(super) leader: (u32, u64),
    /// The stored part that it completes.
    pub(super) part_of: Option<Which>,
    /// It is for the store alone: it has no client.
    pub(super) is_for_store_alone: bool,
    /// Its content once that is settled, if it is in use as long as it has readers here.
    pub(super) uses: Option<ContentId>,
    /// Whether it is settled what becomes of it in the store.
    pub(super) is_settled: bool,
    /// Its followers are about to read it: it is not settled, and stays as long.
    pub(super) is_unpublished: bool,
    /// It has no reader, and its place was given away.
    pub(super) is_gone: bool,
    /// The transaction of the exchange that began it: it decides whether a part is kept.
    pub(super) tx: Transaction,
    pub(super) server: u64,
    /// Connections to the server are kept open.
    pub(super) is_persistent: bool,
    pub(super) server_delay: ServerDelay,
    pub(super) client_us: u32,
    pub(super) server_us: u32,
    pub(super) fetches: Vec<(FetchId, u32)>,
    pub(super) readers: Vec<(ReaderId, u32)>,
    /// The group that waits until it is stored, as all of it came with its head.
    pub(super) leads: Option<GroupId>,
    /// The group in which others find it.
    pub(super) group: Option<GroupId>,
}

impl InFlightResponse {
    /// Decides about readers and fetches. It is called only where there is something to decide.
    #[expect(
        clippy::expect_used,
        reason = "`drive`, `join` and `leave` see to it before anything else is asked"
    )]
    pub(super) fn fill(&mut self) -> &mut InFlightState {
        self.fill
            .as_mut()
            .expect("a response that is not plain has a fill")
    }

    /// A reader reads no more.
    fn detach(&mut self, reader: ReaderId) {
        self.fill().leave(reader);
        self.readers.retain(|(known, _)| *known != reader);
    }

    /// Whether it is the variant for this request.
    pub(super) const fn select(&self, ask: &Ask) -> Selection<Variant> {
        let vary = self.stored.vary;
        if vary == Row::VARY_NONE || self.stored.variant == ask.variant {
            Selection::Selected
        } else {
            Selection::Other(ask.variant)
        }
    }
}

impl Simulator {
    /// Moves everything on as far as it can.
    pub(super) fn drive(&mut self, id: u32) {
        if let Some(plain) = self.in_flight.at(id).plain {
            self.drive_plain(id, plain);
            return;
        }
        if self.in_flight.at(id).single_reader.is_some() {
            self.drive_paced(id);
            return;
        }
        loop {
            let mut has_moved = false;
            let mut place = 0;
            while let Some((fetch_id, fetch)) = self.in_flight.at(id).fetches.get(place).copied() {
                has_moved |= self.take(id, fetch_id, fetch);
                // it may have ended, and another one be in its place
                let same = self.in_flight.at(id).fetches.get(place);
                if same.is_some_and(|same| same.1 == fetch) {
                    place += 1;
                }
            }
            let mut place = 0;
            while let Some((reader, exchange)) = self.in_flight.at(id).readers.get(place).copied() {
                has_moved |= self.feed(id, reader, exchange);
                let same = self.in_flight.at(id).readers.get(place);
                if same.is_some_and(|same| same.1 == exchange) {
                    place += 1;
                }
            }
            if !has_moved {
                break;
            }
        }
        self.offer(id);
        self.settle(id);
    }

    /// A fetch takes what it may of what has come; whether that was anything.
    fn take(&mut self, id: u32, fetch_id: FetchId, fetch: u32) -> bool {
        let waiting = self.fetches.at(fetch).waiting();
        let in_flight = self.in_flight.at_mut(id);
        let is_for_store_alone = in_flight.is_for_store_alone;
        let may = match in_flight.fill().permit(fetch_id) {
            ReadPermit::UpTo(most) => most,
            ReadPermit::Wait => return false,
            // one that continues is decided on again when it turns out not to be stored
            ReadPermit::Background if !is_for_store_alone && !self.is_wanted(id) => {
                return self.judge(id, fetch_id, fetch);
            }
            ReadPermit::Background => match self.granted(id, fetch_id, fetch) {
                0 => return false,
                granted => granted,
            },
            ReadPermit::Unread
                if self.fetches.at(fetch).came < self.fetches.at(fetch).head_bytes =>
            {
                // there is nothing to judge it by before its head
                if self.settings.abort == AbortPolicy::Finish {
                    return false;
                }
                self.end(id, fetch_id, fetch, FetchEnd::Stopped);
                return true;
            }
            ReadPermit::Unread => return self.judge(id, fetch_id, fetch),
            ReadPermit::Complete => {
                self.end(id, fetch_id, fetch, FetchEnd::Met);
                return true;
            }
            ReadPermit::Yield => {
                self.end(id, fetch_id, fetch, FetchEnd::Stopped);
                return true;
            }
        };
        let bytes = may.min(waiting);
        if bytes == 0 {
            let it = self.fetches.at(fetch);
            if it.is_cut && it.came >= it.total && !it.breaks_off_next {
                self.tally.aborts.by_servers += 1;
                let transfer = it.number;
                self.enter(|| What::Broken { transfer });
                self.end(id, fetch_id, fetch, FetchEnd::Cut);
                return true;
            }
            return false;
        }
        self.accept(id, fetch_id, fetch, bytes);
        true
    }

    /// The content that came with the head of a fetch is there before anything is decided about the
    /// fetch.
    pub(super) fn accept_with_head(&mut self, id: u32, fetch_id: FetchId, fetch: u32) {
        let remaining = self.in_flight.at_mut(id).fill().remaining(fetch_id);
        let waiting = self.fetches.at(fetch).waiting();
        let bytes = waiting.min(remaining.unwrap_or(u64::MAX));
        if bytes > 0 {
            self.accept(id, fetch_id, fetch, bytes);
        }
    }

    fn accept(&mut self, id: u32, fetch_id: FetchId, fetch: u32, bytes: u64) {
        let now = self.now();
        let it = self.fetches.at_mut(fetch);
        it.taken += bytes;
        it.granted = it.granted.saturating_sub(bytes);
        let (transfer, bytes_so_far) = (it.number, it.taken - it.head_bytes);
        let in_flight = self.in_flight.at_mut(id);
        in_flight.fill().received(now, fetch_id, bytes);
        let readers = in_flight.readers.len();
        self.enter(|| What::Content {
            transfer,
            bytes: bytes_so_far,
            readers,
        });
        // its end is seen with its last byte: before any reader continues
        if self.in_flight.at_mut(id).fill().permit(fetch_id) == ReadPermit::Complete {
            self.end(id, fetch_id, fetch, FetchEnd::Met);
        }
    }

    /// Whether what comes will be stored, as things are.
    fn is_wanted(&self, id: u32) -> bool {
        self.in_flight.at(id).is_kept && !self.is_outdated(id)
    }

    /// What the budget of the background lets a fetch take now; it looks again when there is more.
    fn granted(&mut self, id: u32, fetch_id: FetchId, fetch: u32) -> u64 {
        let now = self.now();
        let remaining = self.in_flight.at_mut(id).fill().remaining(fetch_id);
        let it = self.fetches.at_mut(fetch);
        if it.granted == 0 && !it.is_waiting_for_grant {
            let wanted = remaining.unwrap_or(u64::MAX).clamp(1, TURN_BYTES);
            it.granted = self.background.take(now, wanted);
            if it.granted == 0 {
                let ready = self.background.ready_at(now, wanted);
                if ready != Tick(u64::MAX) {
                    it.is_waiting_for_grant = true;
                    let in_ms = ready.ms_since(now.tick).max(1);
                    let at = self.world.at() + in_ms * 1_000_000;
                    self.world.schedule(at, Event::Resumed(fetch));
                }
            }
        }
        it.granted
    }

    /// A fetch in the background looks again.
    pub(super) fn resumed(&mut self, fetch: u32) {
        let it = self.fetches.at_mut(fetch);
        it.is_waiting_for_grant = false;
        it.breaks_off_next = false;
        it.is_held = true;
        if let FetchOwner::InFlight(id, _) = it.owner {
            self.drive(id);
        }
        self.fetches.at_mut(fetch).is_held = false;
        self.release_fetch(fetch);
    }

    /// A fetch without readers continues, or stops.
    fn judge(&mut self, id: u32, fetch_id: FetchId, fetch: u32) -> bool {
        let now = self.now();
        let unread = self.unread(id, fetch_id, now);
        let verdict = match judge(&self.settings.abort, &unread) {
            // it would wait for ever
            AbortDecision::Continue(_) if self.settings.background_bytes_s == 0 => {
                AbortDecision::Stop(StopReason::NoBudget)
            }
            verdict => verdict,
        };
        *self
            .tally
            .aborts
            .fetches
            .entry(verdict.as_str())
            .or_insert(0) += 1;
        let transfer = self.fetches.at(fetch).number;
        // what is not for the store is not judged, but relayed
        if self.in_flight.at(id).is_kept {
            self.enter(|| What::Judged {
                transfer,
                word: verdict.as_str(),
            });
        }
        match verdict {
            AbortDecision::Continue(_) => {
                self.in_flight.at_mut(id).fill().continue_unread(fetch_id)
            }
            AbortDecision::Stop(_) => self.end(id, fetch_id, fetch, FetchEnd::Stopped),
        }
        true
    }

    fn unread(&mut self, id: u32, fetch_id: FetchId, now: Now) -> UnreadFetch {
        let is_outdated = self.is_outdated(id);
        let in_flight = self.in_flight.at_mut(id);
        let is_kept = in_flight.is_kept && !is_outdated;
        let part_is_kept = in_flight.tx.keeps_part();
        let (target, server_us) = (in_flight.stored.target, in_flight.server_us);
        let fill = in_flight.fill();
        // opening takes a round trip, and slow start another before it is at speed again (RFC 5681
        // §3.1)
        let set_up_us = 2 * u64::from(server_us);
        UnreadFetch {
            received: fill.present().total(),
            complete_length: fill.complete_length(),
            is_kept: is_kept && !fill.closed().is_some_and(CutReason::outdates_stored),
            again: if fill.is_awaited(fetch_id) {
                Chance::CERTAIN
            } else {
                self.popularity.again(digest(target, 0))
            },
            part_is_kept,
            new_connection_bytes: fill.rate_bytes_s(fetch_id).saturating_mul(set_up_us) / 1_000_000,
            background_free_bytes: self.background.free(now),
        }
    }

    /// A fetch ends, so.
    pub(super) fn end(&mut self, id: u32, fetch_id: FetchId, fetch: u32, how: FetchEnd) {
        let in_flight = self.in_flight.at_mut(id);
        in_flight.fill().end(fetch_id, how);
        in_flight.fetches.retain(|(known, _)| *known != fetch_id);
        if how == FetchEnd::Met {
            self.end_fetch(fetch);
        } else {
            self.stop(fetch);
        }
        self.release_fetch(fetch);
    }

    /// A reader hands its client's kernel what is there, as much as that may hold; whether that was
    /// anything.
    fn feed(&mut self, id: u32, reader: ReaderId, exchange: u32) -> bool {
        if let Some(confirming) = self.exchanges.at(exchange).confirming {
            return self.confirm(id, reader, exchange, &confirming);
        }
        let now = self.now();
        let in_flight = self.in_flight.at_mut(id);
        match in_flight.fill().step(now, reader) {
            Step::Wait => false,
            Step::Read(span) => {
                let room = in_flight.fill().unsent(reader).map_or(u64::MAX, u64::from);
                let it = self.exchanges.at_mut(exchange);
                if it.written - it.sender.sent >= room {
                    return false;
                }
                // the head goes with the first bytes behind it
                it.written = it.written.max(it.head_bytes);
                let bytes = span.len().min(room);
                let to = span.from + bytes;
                in_flight.fill().moved(now, reader, to);
                let given = ByteSpan {
                    from: span.from,
                    to,
                };
                let delivered = in_flight.fill().delivered(given);
                it.written += bytes;
                it.again_bytes += delivered.again;
                let (row, given) = (it.number, it.written - it.head_bytes);
                self.tally.traffic.relayed_bytes += delivered.live;
                self.tally.aborts.completed_bytes += delivered.kept;
                self.enter(|| What::Given { row, bytes: given });
                let in_flight = self.in_flight.at_mut(id);
                // a step may begin a fetch: its result must be used in any case
                match in_flight.fill().step(now, reader) {
                    Step::Done => self.all_written(id, reader, exchange),
                    Step::Fetch { fetch, span } => self.fetch_gap(id, exchange, fetch, span),
                    Step::Wait | Step::Read(_) | Step::Cut(_) => {}
                }
                self.send(exchange);
                true
            }
            Step::Fetch { fetch, span } => {
                self.fetch_gap(id, exchange, fetch, span);
                true
            }
            Step::Done => {
                self.all_written(id, reader, exchange);
                self.send(exchange);
                true
            }
            Step::Cut(_) => {
                self.exchanges.at_mut(exchange).is_cut = true;
                self.all_written(id, reader, exchange);
                self.send(exchange);
                true
            }
        }
    }

    /// A reader that was sent nothing so far gets its head, if that can be, or looks elsewhere;
    /// whether anything moved.
    fn confirm(&mut self, id: u32, reader: ReaderId, exchange: u32, was: &Confirming) -> bool {
        let now = self.now();
        let in_flight = self.in_flight.at_mut(id);
        match in_flight.fill().confirm(now, reader) {
            Confirm::Wait => false,
            Confirm::Fetch { fetch, span } => {
                self.fetch_gap(id, exchange, fetch, span);
                true
            }
            Confirm::Yes => {
                let (head_bytes, length) = (
                    in_flight.stored.head_bytes,
                    in_flight.stored.complete_length,
                );
                let it = self.exchanges.at_mut(exchange);
                it.confirming = None;
                it.expect(head_bytes, it.wants(length).len());
                it.stage = Stage::Sending;
                self.start_sending(exchange);
                true
            }
            Confirm::No => {
                in_flight.detach(reader);
                let it = self.exchanges.at_mut(exchange);
                it.confirming = None;
                it.reading = None;
                *it.tx() = was.before;
                it.passes.pass(was.group);
                self.forward_next(exchange);
                true
            }
        }
    }

    /// A reader has had all it will get.
    fn all_written(&mut self, id: u32, reader: ReaderId, exchange: u32) {
        let it = self.exchanges.at_mut(exchange);
        it.is_all = true;
        it.written = it.written.max(it.head_bytes);
        it.reading = None;
        self.in_flight.at_mut(id).detach(reader);
    }

    /// A reader is detached.
    pub(super) fn leave(&mut self, exchange: u32) {
        if let Some(reading) = self.exchanges.at(exchange).reading {
            self.decide_from_now_on(reading.in_flight);
        }
        let Some(reading) = self.exchanges.at_mut(exchange).reading.take() else {
            return;
        };
        self.in_flight
            .at_mut(reading.in_flight)
            .detach(reading.reader);
        self.drive(reading.in_flight);
    }

    /// Begins to fetch what a reader has come to and is missing. The request is the reader's own:
    /// its row tells whether the origin still has the same.
    fn fetch_gap(&mut self, id: u32, reader: u32, fetch_id: FetchId, span: ByteSpan) {
        let now = self.now();
        let exchange = self.exchanges.at(reader);
        let (ask, row) = (*exchange.ask(), exchange.number);
        let in_flight = self.in_flight.at_mut(id);
        let refuses = refused(&ask, &in_flight.stored);
        let length = in_flight.fill().complete_length().unwrap_or(span.from);
        let to = span.to.min(length);
        let (client_us, server_us) = (in_flight.client_us, in_flight.server_us);
        in_flight
            .fill()
            .set_round_trips(fetch_id, client_us, server_us);
        let window = in_flight.fill().window(fetch_id);
        let (server, server_delay) = (in_flight.server, in_flight.server_delay);
        let (head_bytes, is_persistent) = (
            u64::from(in_flight.stored.head_bytes),
            in_flight.is_persistent,
        );
        let tcp = self.settings.network.tcp;
        let taken = self.servers.take(now, server, tcp.initial_window);
        let content = match refuses {
            None => to.saturating_sub(span.from),
            Some(_) => 0,
        };
        let fetch = Fetch {
            owner: FetchOwner::InFlight(id, fetch_id),
            status: match (refuses, ask.response.status) {
                (None, _) => 206,
                (Some(_), 206 | 304) => 200,
                (Some(_), status) => status,
            },
            connection: taken.id,
            is_reused: !taken.is_new,
            window: taken.window,
            rtt: server_delay.rtt,
            is_persistent,
            head_bytes,
            total: head_bytes + content,
            refuses,
            fails: ask.fails,
            gap: Some((row, span)),
            offered: window.map_or(tcp.receive_window_bytes, u64::from),
            ..Fetch::default()
        };
        let fetch = self.begin_fetch(fetch, row, taken, Question::Part(span));
        self.in_flight.at_mut(id).fetches.push((fetch_id, fetch));
        let first = self.world.at() + server_delay.first_packet_of(taken);
        self.send_more(fetch, first);
    }

    /// The kept connection of a fetch of missing bytes was closed without a byte of a response:
    /// they are requested again, on a new one.
    pub(super) fn repeat_gap(&mut self, id: u32, fetch_id: FetchId, former: u32) {
        let (now, tcp) = (self.now(), self.settings.network.tcp);
        self.stop(former);
        let in_flight = self.in_flight.at(id);
        let (server, server_delay) = (in_flight.server, in_flight.server_delay);
        let taken = self.servers.take_new(now, server, tcp.initial_window);
        let it = self.fetches.at(former);
        let Some((row, span)) = it.gap else {
            debug_assert!(false, "only a fetch of missing bytes fails here");
            return;
        };
        let first = self.world.at() + server_delay.first_packet_of(taken);
        let fetch = Fetch {
            owner: FetchOwner::InFlight(id, fetch_id),
            connection: taken.id,
            window: taken.window,
            rtt: it.rtt,
            is_persistent: it.is_persistent,
            head_bytes: it.head_bytes,
            total: it.total,
            refuses: it.refuses,
            fails: it.fails,
            status: it.status,
            gap: it.gap,
            offered: it.offered,
            ..Fetch::default()
        };
        let fetch = self.begin_fetch(fetch, row, taken, Question::Part(span));
        let fetches = &mut self.in_flight.at_mut(id).fetches;
        if let Some(place) = fetches.iter_mut().find(|(known, _)| *known == fetch_id) {
            place.1 = fetch;
        }
        self.send_more(fetch, first);
    }

    /// Sets how much the servers may send.
    fn offer(&mut self, id: u32) {
        let at = self.world.at();
        let mut place = 0;
        while let Some((fetch_id, fetch)) = self.in_flight.at(id).fetches.get(place).copied() {
            place += 1;
            let window = self.in_flight.at_mut(id).fill().window(fetch_id);
            let it = self.fetches.at_mut(fetch);
            it.offered = window.map_or(self.settings.network.tcp.receive_window_bytes, u64::from);
            let rtt = it.rtt;
            if it.came > 0 && it.sent < it.total {
                self.send_more(fetch, at + rtt);
            }
        }
    }
}

/// How a fetch of a part ends with its head: the origin has another representation now, or none to
/// give.
fn refused(ask: &Ask, stored: &StoredResponse) -> Option<FetchEnd> {
    let status = ask.response.status;
    if ask.fails || (status >= 400 && !matches!(status, 404 | 410)) {
        return Some(FetchEnd::Cut);
    }
    let is_same = is_found(status) && stored.validators.same_strongly(ask.validators);
    (!is_same).then_some(FetchEnd::Changed)
}

/// What a fetch takes in one turn: the live proxy's buffer to read into.
const TURN_BYTES: u64 = 64 * 1024;
