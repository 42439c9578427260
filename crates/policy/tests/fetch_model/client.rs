//! The client's side of a reader.

use crate::hop::{Fate, Transfer};
use crate::world::World;
use weir_policy::fetch::{
    AttachError, ByteSpan, CutReason, FetchId, NEAR_BYTES, ReadPermit, ReaderId, Step,
};

/// A reader as its client is: it comes, is slow, stops for a while, seeks, leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) comes_ms: u64,
    pub(crate) wants: ByteSpan,
    pub(crate) bytes_ms: u64,
    /// It takes nothing in between.
    stops_ms: (u64, u64),
    leaves_ms: u64,
    /// It comes back for something else so often.
    seeks: u64,
    pub(crate) id: Option<ReaderId>,
    /// The next byte it wants.
    pub(crate) at: u64,
    /// What it may still take in this step of the clock.
    credit: u64,
}

impl Client {
    pub(crate) fn is_stopped(&self, now_ms: u64) -> bool {
        let here_ms = now_ms.saturating_sub(self.comes_ms);
        (self.stops_ms.0..self.stops_ms.1).contains(&here_ms)
    }
}

impl World {
    pub(crate) fn client(&mut self) -> Client {
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
            at: wants.from,
            credit: 0,
        }
    }

    /// Comes, reads, leaves; false if it is gone for good.
    pub(crate) fn client_goes_on(&mut self, place: usize) -> bool {
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
        let went_on = self.goes_on_in_background();
        match self.fill.attach(client.wants) {
            Ok(id) => {
                if went_on && !self.goes_on_in_background() {
                    self.tally.count("returned");
                }
                client.id = Some(id);
                client.at = client.wants.from;
                true
            }
            Err(not_here) => {
                self.is_refused_rightly(client.wants, not_here);
                self.tally.count("refused");
                false
            }
        }
    }

    fn goes_on_in_background(&self) -> bool {
        let goes_on =
            |transfer: &Transfer| self.fill.permit(transfer.fetch) == ReadPermit::Background;
        self.transfers.iter().any(goes_on)
    }

    fn is_refused_rightly(&self, wants: ByteSpan, not_here: AttachError) {
        let known = self.fill.complete_length().unwrap_or(u64::MAX);
        let has_all = self.here.holds(wants.from, wants.to.min(known));
        let right = match not_here {
            AttachError::BeyondEnd => wants.from >= known,
            AttachError::Closed => self.can_fail && !has_all && self.fill.closed().is_some(),
            AttachError::CannotRange => {
                !self.rules.can_range && !has_all && self.is_out_of_reach(wants, known)
            }
            AttachError::TooManySpans | AttachError::TooManyReaders => false,
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
        if client.is_stopped(self.now_ms) {
            return true;
        }
        client.credit = client.bytes_ms * self.step_ms;
        loop {
            let end = client.wants.to.min(self.hop.length);
            match self.fill.step(self.now(), id) {
                Step::Read(_) if client.credit == 0 => break,
                Step::Read(span) => self.given(client, id, span),
                Step::Wait => {
                    assert!(client.at < end || self.fill.complete_length().is_none());
                    break;
                }
                Step::Fetch { fetch, span } => self.fetch(client, fetch, span),
                Step::Done => {
                    assert!(client.at >= end, "done at {} of {end}", client.at);
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
        assert_eq!(offered.from, client.at);
        assert!(offered.to <= client.wants.to);
        assert!(
            self.here.holds(offered.from, offered.to),
            "{offered:?} is not here"
        );
        let to = offered.to.min(offered.from + client.credit);
        let span = ByteSpan { to, ..offered };
        client.credit -= span.len();
        client.at = to;
        let delivered = self.fill.delivered(span);
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

    pub(crate) fn fetch(&mut self, client: &Client, fetch: FetchId, span: ByteSpan) {
        assert!(self.rules.can_range);
        assert!(self.transfers.len() < self.rules.fetches_max as usize);
        // what the reader needs, as much as is missing, near enough
        assert_eq!(span.from, self.here.end_of(client.at));
        assert!(span.from - client.at <= self.rules.read_ahead.bytes());
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

    fn is_cut_rightly(&mut self, client: &Client, cut: CutReason) {
        let at = client.at;
        assert!(!self.here.holds(at, at + 1));
        let right = match cut {
            CutReason::NextHop | CutReason::Changed | CutReason::NotShared => self.can_fail,
            CutReason::Stopped => !self.rules.can_range,
            // there are none
            CutReason::Module => false,
        };
        assert!(right, "{cut:?} at {at}");
        // nothing that runs was asked for what it is cut from
        for transfer in &self.transfers {
            let front = self.fill.front(transfer.fetch);
            let would_come = front <= at && at < transfer.asked.to;
            assert!(!would_come, "{cut:?} at {at} before {front}: {transfer:?}");
        }
        self.tally.count(match cut {
            CutReason::NextHop => "cut-next-hop",
            CutReason::Changed => "cut-changed",
            CutReason::NotShared => "cut-not-shared",
            CutReason::Stopped | CutReason::Module => "cut-stopped",
        });
    }

    /// Leaves, and comes back for something else if it has a mind to.
    fn leaves(&mut self, client: &mut Client, id: ReaderId) -> bool {
        self.fill.leave(id);
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
}
