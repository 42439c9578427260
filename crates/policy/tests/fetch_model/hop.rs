//! The next hop's side of a fetch.

use crate::chance::Chance;
use weir_policy::fetch::{ByteSpan, FetchId};

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
            is_range: !is_first,
            front: asked.from,
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
