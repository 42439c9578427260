//! What leaves a shard because it is outdated: purged, invalidated, or replaced by a response that
//! is not stored here.

use super::{Forgotten, InFlightId, Shard, StoredVariant};
use crate::record::Line;
use crate::resource::Resource;
use crate::stored::StoredResponse;
use std::sync::Arc;
use weir_policy::Digest;
use weir_policy::catalog::Slot;

/// Where a response is that is known to be outdated; of a variant its line on disk, and the digest
/// of what it varies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskPlace {
    /// It was stored until now.
    Forgotten(Option<(Line, Digest)>),
    /// It had left memory already, and may be on disk.
    Evicted(Option<(Line, Digest)>),
    /// The same, and where on disk it is known no more.
    Unknown,
    /// Another one is in its place, here and on disk.
    Replaced,
}

impl Shard {
    /// Forgets one response of a target, if it is still stored; where it is on disk, if it varies.
    pub(crate) fn drop_one(
        &mut self,
        primary: Digest,
        response: &Arc<StoredResponse>,
    ) -> Option<Option<(Line, Digest)>> {
        self.outdate_in_flight(primary, Forgotten::Single);
        let slot = self.slot_of(primary, response)?;
        self.drop_slot(primary, slot)
    }

    fn drop_slot(&mut self, primary: Digest, slot: Slot) -> Option<Option<(Line, Digest)>> {
        let resource = self.index.get(&primary)?;
        let selecting = resource.variant(slot).map(|variant| variant.selecting);
        let on_disk = resource.line().zip(selecting);
        self.forget(primary, slot);
        Some(on_disk)
    }

    /// Forgets one response of a target that is known to be outdated, if it is still stored; where
    /// it is on disk. In its request `selecting` digests what it varies on.
    pub(crate) fn outdate(
        &mut self,
        primary: Digest,
        response: &Arc<StoredResponse>,
        selecting: Option<Digest>,
    ) -> DiskPlace {
        let dropped = self.drop_one(primary, response).or_else(|| {
            let slot = self.slot_of_copy(primary, response, selecting)?;
            self.drop_slot(primary, slot)
        });
        match dropped {
            Some(variant) => DiskPlace::Forgotten(variant),
            None => self.place_of_absent(primary, selecting),
        }
    }

    /// Forgets what look-ups on disk have put in, or are about to, for one response of a target: it
    /// was outdated here first, and on disk since. `selecting` digests what it varies on.
    pub(crate) fn outdate_found(&mut self, primary: Digest, selecting: Option<Digest>) {
        self.outdate_in_flight(primary, Forgotten::Single);
        let slot = match (self.index.get(&primary), selecting) {
            (Some(Resource::Varying(varying)), Some(selecting)) => varying.find(selecting),
            (Some(Resource::Single(slot)), None) => Some(*slot),
            (Some(_), _) | (None, _) => None,
        };
        if let Some(slot) = slot {
            self.forget(primary, slot);
        }
    }

    /// Where on disk a response may be that is not here.
    pub(super) fn place_of_absent(&self, primary: Digest, selecting: Option<Digest>) -> DiskPlace {
        match (self.index.get(&primary), selecting) {
            (None, None) => DiskPlace::Evicted(None),
            (None, Some(_)) => DiskPlace::Unknown,
            (Some(Resource::Varying(varying)), Some(selecting))
                if varying.find(selecting).is_none() =>
            {
                DiskPlace::Evicted(varying.line.map(|line| (line, selecting)))
            }
            (Some(_), _) => DiskPlace::Replaced,
        }
    }

    /// Forgets all that is stored for a target; how many responses that were. In-flight and
    /// expected responses were requested before, and are not stored either: otherwise the end of a
    /// download would undo a purge.
    pub(crate) fn remove(&mut self, primary: Digest) -> usize {
        self.outdate_in_flight(primary, Forgotten::Target);
        let Some(resource) = self.index.remove(&primary) else {
            return 0;
        };
        let slots = resource.slots();
        slots.iter().for_each(|slot| self.free(*slot));
        slots.len()
    }

    /// All that is stored for a target, each with what it varies on, which is about to be written
    /// anew: what is on its way is not stored, and variants that only the disk has are not found
    /// any more.
    pub(crate) fn begin_anew(&mut self, primary: Digest) -> Vec<StoredVariant> {
        self.outdate_in_flight(primary, Forgotten::Target);
        let stored = self.stored(primary);
        if let Some(Resource::Varying(varying)) = self.index.get_mut(&primary) {
            varying.line = Some(Line::begin());
        }
        stored
    }

    /// Forgets what is stored for a target beside `kept`, and what is on its way: look-ups on disk
    /// may have found it meanwhile.
    pub(crate) fn keep_only(&mut self, primary: Digest, kept: &[Arc<StoredResponse>]) {
        self.outdate_in_flight(primary, Forgotten::Target);
        let slots = self.index.get(&primary).map(Resource::slots);
        for slot in slots.unwrap_or_default() {
            let is_kept = |there| kept.iter().any(|it| Arc::ptr_eq(it, &there));
            if !self.response(slot).is_some_and(is_kept) {
                self.forget(primary, slot);
            }
        }
    }

    /// Whatever is arriving for `primary`, and rests on what was forgotten, is not stored when it
    /// has arrived.
    fn outdate_in_flight(&mut self, primary: Digest, forgotten: Forgotten) {
        let id = |number| InFlightId { primary, number };
        for (_, entry) in self.in_flight.range_mut(id(0)..=id(u64::MAX)) {
            entry.forgotten = entry.forgotten.max(forgotten);
        }
    }

    /// Whatever is arriving is not stored when it has arrived.
    pub(crate) fn outdate_all_in_flight(&mut self) {
        for entry in self.in_flight.values_mut() {
            entry.forgotten = Forgotten::Target;
        }
    }

    /// Whether `response` is stored.
    pub(crate) fn holds(&self, primary: Digest, response: &Arc<StoredResponse>) -> bool {
        self.slot_of(primary, response).is_some()
    }

    pub(crate) fn slot_of(&self, primary: Digest, response: &Arc<StoredResponse>) -> Option<Slot> {
        let slots = self.index.get(&primary)?.slots();
        slots.into_iter().find(|slot| {
            let entry = self.entries.get(slot.index()).and_then(Option::as_ref);
            entry.is_some_and(|entry| Arc::ptr_eq(&entry.response, response))
        })
    }

    /// Where another copy of `response` is stored: with its content on disk, since that was written
    /// there; or read from disk again, which rounds the time of its receipt to a second. In its
    /// request `selecting` digests what it varies on.
    fn slot_of_copy(
        &self,
        primary: Digest,
        response: &StoredResponse,
        selecting: Option<Digest>,
    ) -> Option<Slot> {
        let slot = match (self.index.get(&primary)?, selecting) {
            (Resource::Single(slot), None) => *slot,
            (Resource::Varying(varying), Some(selecting)) => varying.find(selecting)?,
            (Resource::Single(_), Some(_)) | (Resource::Varying(_), None) => return None,
        };
        let there = self.response(slot)?;
        let is_copy = there.head == response.head
            && there.entity_tag == response.entity_tag
            && there.complete_length() == response.complete_length();
        is_copy.then_some(slot)
    }

    pub(super) fn forget(&mut self, primary: Digest, slot: Slot) {
        if let Some(resource) = self.index.get_mut(&primary)
            && resource.forget(slot)
        {
            self.index.remove(&primary);
        }
        self.free(slot);
    }

    pub(super) fn free(&mut self, slot: Slot) {
        self.catalog.remove(slot);
        let entry = self.entries.get_mut(slot.index());
        if let Some(entry) = entry.and_then(Option::take) {
            self.leave(entry);
        }
    }

    /// Forgets what is stored in the place of `response` and was received before it: only a more
    /// recent response may be found now (RFC 9111 §4). `selecting` digests what it varies on.
    pub(crate) fn forget_older(
        &mut self,
        primary: Digest,
        selecting: Option<Digest>,
        response: &Arc<StoredResponse>,
    ) {
        let received = response.facts.response_tick;
        for slot in self.slots_in_place(primary, selecting) {
            let is_older = self
                .response(slot)
                .is_some_and(|there| there.facts.response_tick < received);
            if is_older {
                self.forget(primary, slot);
            }
        }
    }

    /// The slots of what a response takes the place of that varies on what `selecting` digests.
    pub(super) fn slots_in_place(&self, primary: Digest, selecting: Option<Digest>) -> Vec<Slot> {
        match (self.index.get(&primary), selecting) {
            (None, _) => Vec::new(),
            (Some(Resource::Varying(varying)), Some(selecting)) => {
                varying.find(selecting).into_iter().collect()
            }
            (Some(resource), _) => resource.slots(),
        }
    }
}
