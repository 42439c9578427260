//! The account of a shard: what is stored, what arrives, and what is not stored any more and still
//! read.

use super::{Entry, Shard};
use crate::stored::StoredResponse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_policy::Digest;
use weir_policy::catalog::{Refusal, Slot, check_in_flight};

/// The share of the budget, as a divisor, up to which what arrives may wait for the disk when it is
/// over: half of it is for what arrives, and the rest of that for what comes next.
const WAITING_SHARE: u64 = 4;

/// Bytes of a shard that has room for content of `largest` bytes while it arrives: it may come to
/// 7/16 of it. The head, and the list of its pieces, are in the rest.
pub(crate) const fn shard_bytes_for(largest: u64) -> u64 {
    largest.saturating_mul(5) / 2
}

impl Entry {
    /// Its key, if a reader holds it, so that evicting it would free nothing.
    fn in_use(&self) -> Option<Digest> {
        is_in_use(&self.response).then_some(self.primary)
    }
}

/// The key of the entry in `slot`, if it is in use.
pub(super) fn in_use(entries: &[Option<Entry>], slot: Slot) -> Option<Digest> {
    entries.get(slot.index())?.as_ref()?.in_use()
}

/// Whether a reader beside the caller has its pieces: under the lock of its shard no further
/// reader gets them.
fn is_in_use(response: &Arc<StoredResponse>) -> bool {
    let memory = response.body.memory();
    memory.is_some_and(|memory| Arc::strong_count(response) > 1 || Arc::strong_count(memory) > 1)
}

impl Shard {
    /// See [`weir_policy::catalog::Catalog::newcomer_max_bytes`].
    pub(crate) fn newcomer_max_bytes(&self, key: Digest) -> u64 {
        self.catalog.newcomer_max_bytes(key)
    }

    /// Whether the in-flight responses may hold `wanted` bytes if one of them holds `held` already.
    pub(super) fn check_share(&self, wanted: u64, held: u64) -> Result<(), Refusal> {
        let others = self.in_flight_bytes() - held;
        check_in_flight(self.catalog.budget_bytes(), others, wanted)
    }

    /// Whether all that arrives holds little of the budget, so that some of it may wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.in_flight_bytes() <= self.catalog.budget_bytes() / WAITING_SHARE
    }

    pub(super) fn hold(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.make_room(bytes)?;
        self.catalog.hold(bytes, &mut self.victims);
        self.drop_victims();
        Ok(())
    }

    /// Makes others leave until `bytes` more fit.
    pub(super) fn make_room(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.take_given_back();
        let (entries, victims) = (&self.entries, &mut self.victims);
        let in_use = |slot| in_use(entries, slot);
        let room = self.catalog.make_room_to_hold(bytes, victims, &in_use);
        self.drop_victims();
        room
    }

    /// Makes room for the queue of copies, once.
    pub(super) fn begin_copies(&mut self) -> Result<(), Refusal> {
        self.take_given_back();
        let (entries, victims) = (&self.entries, &mut self.victims);
        let in_use = |slot| in_use(entries, slot);
        let begun = self.catalog.begin_copies(victims, &in_use);
        self.drop_victims();
        begun
    }

    /// Whether `response` is stored here, as a copy of what another node keeps.
    pub(crate) fn is_copy(&self, primary: Digest, response: &Arc<StoredResponse>) -> bool {
        let slot = self.slot_of(primary, response);
        slot.is_some_and(|slot| self.catalog.is_copy(slot))
    }

    /// `response` is no copy from now on, if it is stored here.
    pub(crate) fn make_own(&mut self, primary: Digest, response: &Arc<StoredResponse>) {
        if let Some(slot) = self.slot_of(primary, response) {
            self.catalog.make_own(slot, primary);
        }
    }

    /// Removes from the account the bytes that evicted responses have freed.
    pub(super) fn take_given_back(&mut self) {
        let bytes = self.given_back.swap(0, Ordering::Relaxed);
        self.lingering_bytes -= bytes;
        self.catalog.release(bytes);
    }

    /// `response` is not stored any more, or was not taken in: what is read of it stays in the
    /// account.
    pub(crate) fn linger(&mut self, response: &Arc<StoredResponse>) {
        if is_in_use(response)
            && let Some(memory) = response.body.memory()
            && memory.linger(&self.given_back)
        {
            let bytes = memory.bytes as u64;
            self.lingering_bytes += bytes;
            self.catalog.keep_held(bytes);
        }
    }

    /// The response of `entry` is not stored any more.
    pub(super) fn leave(&mut self, entry: Entry) {
        self.linger(&entry.response);
        if entry.response.body.is_in_file() {
            self.leaving.push(entry.response);
        }
    }

    /// Responses that have left, to be dropped when the lock is not held.
    pub(crate) fn take_leaving(&mut self) -> Vec<Arc<StoredResponse>> {
        std::mem::take(&mut self.leaving)
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        let held = self.in_flight_bytes() + self.lingering_bytes();
        self.catalog.used_bytes() + self.catalog.overhead_bytes() + held
    }

    /// Bytes of responses that are not stored any more, or were refused, and are still read.
    pub(crate) fn lingering_bytes(&self) -> u64 {
        self.lingering_bytes - self.given_back.load(Ordering::Relaxed)
    }

    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.catalog.held_bytes() - self.lingering_bytes
    }

    pub(crate) fn set_budget(&mut self, budget_bytes: u64) {
        self.catalog.set_budget(budget_bytes, &mut self.victims);
        self.drop_victims();
        // evicted responses that are still read make others leave
        self.catalog.hold(0, &mut self.victims);
        while !self.victims.is_empty() {
            self.drop_victims();
            self.catalog.hold(0, &mut self.victims);
        }
        self.follow_slots();
    }
}
