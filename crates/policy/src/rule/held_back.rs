//! How much of the memory for stored responses is kept for readers that a rate holds back.
//!
//! A response with readers is not evicted, and one that is sent slowly is read for long: without a
//! bound, a few clients that each ask for something large would keep all others from being stored.
//! So such readers together may keep a share of the memory, and each client a share of that: one
//! with many slow responses takes nothing from others. A reader beyond that is held back as well,
//! and nothing is kept for it: what it reads may be evicted, and is fetched for it alone then.

use crate::digest::Digest;
use alloc::collections::BTreeMap;

/// Percent of the memory for stored responses that may be kept so.
pub const HELD_BACK_PERCENT_MAX: u64 = 25;

/// Percent of that which may be kept for one client. One response is kept whatever its size, so
/// that what is larger than this share can be stored, too.
pub const HELD_BACK_CLIENT_PERCENT_MAX: u64 = 25;

/// A response in memory: a number that no other one has as long as it has readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptResponse(pub u64);

/// The responses that are kept for readers that are held back: each counts once, however many read
/// it.
#[derive(Clone, Debug, Default)]
pub struct HeldBack {
    responses: BTreeMap<KeptResponse, Kept>,
    /// By client and response, how many readers that client has there.
    readers: BTreeMap<(Digest, KeptResponse), u32>,
    /// Bytes of all of them.
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    bytes: u64,
    /// Clients with readers.
    clients: u32,
}

impl HeldBack {
    /// A reader of `client` is to be held back, and `response` has so many bytes in memory; whether
    /// it may be kept there, where responses may have `budget_bytes`. If so, [`Self::end`] follows.
    pub fn begin(
        &mut self,
        client: Digest,
        response: KeptResponse,
        bytes: u64,
        budget_bytes: u64,
    ) -> bool {
        let reader = (client, response);
        if let Some(readers) = self.readers.get_mut(&reader) {
            *readers += 1;
            return true;
        }
        let known = self.responses.get(&response);
        let bytes = known.map_or(bytes, |known| known.bytes.max(bytes));
        if !self.has_room(reader, bytes, budget_bytes) {
            return false;
        }
        self.readers.insert(reader, 1);
        let new = Kept {
            bytes: 0,
            clients: 0,
        };
        let kept = self.responses.entry(response).or_insert(new);
        kept.clients += 1;
        self.bytes = self.bytes - kept.bytes + bytes;
        kept.bytes = bytes;
        true
    }

    /// `response`, of which `client` has a reader that is held back, has so many bytes in memory by
    /// now; whether it may be kept there still. If not, the reader is to [`Self::end`].
    pub fn grow(
        &mut self,
        client: Digest,
        response: KeptResponse,
        bytes: u64,
        budget_bytes: u64,
    ) -> bool {
        let reader = (client, response);
        if !self.readers.contains_key(&reader) || !self.has_room(reader, bytes, budget_bytes) {
            return false;
        }
        if let Some(kept) = self.responses.get_mut(&response) {
            let bytes = kept.bytes.max(bytes);
            self.bytes = self.bytes - kept.bytes + bytes;
            kept.bytes = bytes;
        }
        true
    }

    /// A reader that `client` has of `response` has ended, or nothing is kept for it any more.
    pub fn end(&mut self, client: Digest, response: KeptResponse) {
        let reader = (client, response);
        let Some(readers) = self.readers.get_mut(&reader) else {
            return;
        };
        *readers -= 1;
        if *readers > 0 {
            return;
        }
        self.readers.remove(&reader);
        let Some(kept) = self.responses.get_mut(&response) else {
            return;
        };
        kept.clients -= 1;
        if kept.clients == 0 {
            self.bytes -= kept.bytes;
            self.responses.remove(&response);
        }
    }

    /// Bytes of the responses that are kept.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether `bytes` of a response may be kept, for one of its readers among others.
    fn has_room(
        &self,
        (client, response): (Digest, KeptResponse),
        bytes: u64,
        budget_bytes: u64,
    ) -> bool {
        let all_max = budget_bytes / 100 * HELD_BACK_PERCENT_MAX;
        let own_max = all_max / 100 * HELD_BACK_CLIENT_PERCENT_MAX;
        let before = self.responses.get(&response).map_or(0, |kept| kept.bytes);
        let others = self.bytes - before;
        if others.saturating_add(bytes.max(before)) > all_max {
            return false;
        }
        let own = (client, KeptResponse(0))..=(client, KeptResponse(u64::MAX));
        let own = self.readers.range(own).map(|((_, own), _)| own);
        let own = own.filter(|own| **own != response);
        let own = own.filter_map(|own| self.responses.get(own));
        let own_others: u64 = own.map(|kept| kept.bytes).sum();
        own_others == 0 || own_others.saturating_add(bytes) <= own_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So large that a quarter of a quarter is 100 bytes.
    const BUDGET: u64 = 1600;

    const fn client(number: u64) -> Digest {
        Digest(number, 0)
    }

    fn begin(held: &mut HeldBack, reader: u64, response: u64, bytes: u64) -> bool {
        held.begin(client(reader), KeptResponse(response), bytes, BUDGET)
    }

    fn end(held: &mut HeldBack, reader: u64, response: u64) {
        held.end(client(reader), KeptResponse(response));
    }

    #[test]
    fn responses_are_kept_up_to_their_share_of_memory() {
        let mut held = HeldBack::default();
        assert!(begin(&mut held, 1, 1, 300));
        assert!(!begin(&mut held, 2, 2, 101));
        assert!(begin(&mut held, 2, 2, 100));
        assert!(!begin(&mut held, 3, 3, 1));
        end(&mut held, 1, 1);
        assert_eq!(held.bytes(), 100);
        assert!(begin(&mut held, 3, 3, 300));
        // of one that was not begun nothing is given back
        end(&mut held, 4, 4);
        end(&mut held, 1, 2);
        assert_eq!(held.bytes(), 400);
    }

    #[test]
    fn client_keeps_its_share_or_one_response_and_takes_nothing_from_others() {
        let mut held = HeldBack::default();
        assert!(begin(&mut held, 1, 1, 60));
        assert!(!begin(&mut held, 1, 2, 41));
        assert!(begin(&mut held, 1, 2, 40));
        assert!(!begin(&mut held, 1, 3, 1));
        assert!(begin(&mut held, 2, 3, 150));
        assert!(!begin(&mut held, 2, 4, 1));
        assert!(begin(&mut held, 3, 4, 100));
        assert_eq!(held.bytes(), 350);
    }

    #[test]
    fn response_counts_once_until_its_last_reader_ends() {
        let mut held = HeldBack::default();
        for reader in [1, 1, 2] {
            assert!(begin(&mut held, reader, 1, 400));
        }
        for (reader, left) in [(1, 400), (2, 400), (1, 0)] {
            end(&mut held, reader, 1);
            assert_eq!(held.bytes(), left);
        }
    }

    #[test]
    fn response_counts_by_what_has_come_of_it() {
        let mut held = HeldBack::default();
        let grow = |held: &mut HeldBack, reader, response, bytes| {
            held.grow(client(reader), KeptResponse(response), bytes, BUDGET)
        };
        assert!(begin(&mut held, 1, 1, 0));
        assert!(begin(&mut held, 1, 2, 0));
        assert!(grow(&mut held, 1, 1, 70));
        assert!(!grow(&mut held, 1, 2, 31));
        assert!(grow(&mut held, 1, 2, 30));
        assert_eq!(held.bytes(), 100);
        end(&mut held, 1, 1);
        // alone it may be larger
        assert!(grow(&mut held, 1, 2, 400));
        assert!(!grow(&mut held, 1, 2, 401));
        // one that is not kept any more stays so
        end(&mut held, 1, 2);
        assert!(!grow(&mut held, 1, 2, 1));
        assert_eq!(held.bytes(), 0);
    }
}
