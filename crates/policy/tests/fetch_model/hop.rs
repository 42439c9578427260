//! The next hop's side of a fetch.

use crate::chance::Chance;
use crate::client::Client;
use crate::world::World;
use weir_policy::fetch::{ByteSpan, FetchEnd, FetchId, PART_BYTES_MIN, ReadAhead, ReadPermit};

/// A fetch as the next hop sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) fetch: FetchId,
    pub(crate) asked: ByteSpan,
    /// Its head tells the length of the content.
    pub(crate) is_range: bool,
    /// The next byte it sends.
    pub(crate) front: u64,
    /// It answers from then on.
    pub(crate) answers_ms: u64,
    pub(crate) bytes_ms: u64,
    pub(crate) fate: Fate,
    /// Granted, taken from the connection, and not yet told: another worker is at it.
    pub(crate) under_way: u64,
    /// It was judged, and ends.
    pub(crate) is_stopped: bool,
}

/// What becomes of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It comes to its end.
    Whole,
    /// The next hop says that it sends only what is before this byte, and does so.
    Short(u64),
    /// The connection is cut before this byte.
    Cut(u64),
    /// The next hop has another representation.
    Changed,
}

/// How next hops behave in one world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) length: u64,
    /// One transfer in so many is cut or changed; 0: none.
    pub(crate) fails_once_in: u64,
    /// A transfer takes so many milliseconds for all of the content.
    pub(crate) content_ms: u64,
}

impl Hop {
    pub(crate) fn asked(
        &self,
        chance: &mut Chance,
        now_ms: u64,
        fetch: FetchId,
        asked: ByteSpan,
        is_first: bool,
    ) -> Transfer {
        let to = asked.to.min(self.length);
        let fails = self.fails_once_in > 0 && chance.once_in(self.fails_once_in);
        let fate = if asked.from >= self.length && self.length > 0 {
            // nothing is there: refused
            Fate::Changed
        } else if !fails && !is_first && asked.from + PART_BYTES_MIN < to && chance.once_in(5) {
            Fate::Short(chance.within(asked.from + PART_BYTES_MIN, to))
        } else if !fails {
            Fate::Whole
        } else if !is_first && chance.once_in(3) {
            Fate::Changed
        } else {
            Fate::Cut(chance.within(asked.from, to + 1))
        };
        Transfer {
            fetch,
            asked,
            front: asked.from,
            is_range: !is_first,
            answers_ms: now_ms + if is_first { 0 } else { chance.within(0, 30) },
            bytes_ms: self.length / chance.within(1, self.content_ms + 1) + 1,
            fate,
            under_way: 0,
            is_stopped: false,
        }
    }

    /// Where a transfer ends at the latest.
    pub(crate) fn end_of(&self, transfer: &Transfer) -> u64 {
        transfer.asked.to.min(self.length)
    }
}

impl World {
    /// All transfers once; false in the end for those that have ended.
    pub(crate) fn transfers_go_on(&mut self) {
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
        let fetch = transfer.fetch;
        self.tell(transfer);
        if transfer.is_stopped {
            return self.end(fetch, FetchEnd::Stopped);
        }
        if self.now_ms < transfer.answers_ms {
            // no reader may need it before its head is here
            return match self.fill.permit(fetch) {
                ReadPermit::Unread if self.chance.once_in(3) => self.end(fetch, FetchEnd::Stopped),
                ReadPermit::Yield => self.yield_place(fetch),
                _ => true,
            };
        }
        if let Fate::Short(to) = transfer.fate
            && to < transfer.asked.to
        {
            self.fill.narrow(fetch, to);
            transfer.asked.to = to;
            self.tally.count("sent-less");
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
        let bytes = match self.fill.permit(fetch) {
            ReadPermit::UpTo(bytes) => {
                assert!(bytes > 0);
                self.is_within_lead(transfer, bytes);
                bytes
            }
            ReadPermit::Wait => {
                self.tally.count("waited-for-reader");
                return true;
            }
            ReadPermit::Background => {
                self.tally.count("background");
                self.fill.remaining(fetch).unwrap_or(9999)
            }
            ReadPermit::Unread if self.chance.once_in(2) => {
                self.fill.continue_unread(fetch);
                return true;
            }
            ReadPermit::Unread => {
                // a reader may come between judgement and end
                transfer.is_stopped = true;
                return self.has_races || self.end(fetch, FetchEnd::Stopped);
            }
            ReadPermit::Complete => {
                self.tally.count("complete");
                return self.end(fetch, FetchEnd::Met);
            }
            ReadPermit::Yield => return self.yield_place(fetch),
        };
        let sent = transfer.bytes_ms * self.step_ms;
        let until = match transfer.fate {
            Fate::Cut(at) => at.min(end),
            Fate::Short(_) | Fate::Changed | Fate::Whole => end,
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
            // one that goes on for what a cut one has lost passes what that had brought
            let is_of_cut = self.fill.closed().is_some();
            assert!(self.has_races || is_of_cut, "fetched twice: {from}..{to}");
            self.twice += bytes - new;
            if !self.has_races {
                self.tally.count("gone-through");
            }
            self.tally.count("twice");
        }
        self.here.came(from, to);
        transfer.front = to;
        self.fill.received(self.now(), transfer.fetch, bytes);
        self.here.assert_is(self.fill.present());
    }

    fn end(&mut self, fetch: FetchId, how: FetchEnd) -> bool {
        self.fill.end(fetch, how);
        false
    }

    fn yield_place(&mut self, fetch: FetchId) -> bool {
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

    /// A reader is there that wants all that may be taken, with nothing missing between them but
    /// what is taken now, and no further back than the share of the read-ahead; or it waits ahead.
    fn is_within_lead(&self, transfer: &Transfer, bytes: u64) {
        let ReadAhead::Bytes(read_ahead) = self.rules.read_ahead else {
            return;
        };
        let front = transfer.front;
        // what all take in a turn of 1 ms; measured on a clock of coarse steps, perhaps twice that
        let bound = (read_ahead / 4).max(1460) + 2 * self.fastest_bytes_ms;
        let is_bound_to = |client: &Client| {
            let is_near = client.at > front || self.here.holds(client.at, front);
            is_near && client.wants.to >= front + bytes && front + bytes <= client.at + bound
        };
        let mut readers = self.clients.iter().filter(|client| client.id.is_some());
        assert!(
            readers.any(is_bound_to),
            "{bytes} from {front}: {:?}",
            self.clients
        );
    }
}
