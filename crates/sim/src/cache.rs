//! What is stored: the facts of responses, their validators and lengths, under the budget of
//! `policy::catalog`.
//!
//! What varies (RFC 9111 §4.1) is kept under the target, as the live store has it: a response
//! without Vary replaces all variants, one with Vary replaces a response without. A row names the
//! nominated fields and what the request said in them by two hashes.

mod in_use;

use crate::facts::{Ask, Validators};
use crate::hashing::{ByNumber, mix};
use in_use::{InUse, key_in_use};
use std::collections::hash_map::Entry as Place;
use weir_policy::admission::{Admission, Admissions, Rule};
use weir_policy::catalog::{self, Catalog, Refusal, Slot, check_in_flight};
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::{ByteSpan, ByteSpans};
use weir_policy::{Digest, Missing, StoredFacts};
use weir_semantics::{Fits, ResponseFacts};
use weir_trace::Row;

pub(crate) use in_use::ContentId;

/// Variants kept for one target; the oldest is dropped for the next. As the live store has it.
const VARIANTS_MAX: usize = 64;

/// A stored response.
#[derive(Clone, Debug)]
pub(crate) struct StoredResponse {
    pub(crate) target: u64,
    pub(crate) vary: u64,
    pub(crate) variant: u64,
    pub(crate) facts: StoredFacts,
    /// What its head says: a 304 updates it field by field.
    pub(crate) response: ResponseFacts,
    pub(crate) validators: Validators,
    pub(crate) head_bytes: u32,
    /// Length of the whole, if it is known.
    pub(crate) complete_length: Option<u64>,
    /// What is there of it; nothing: all.
    pub(crate) part: Option<Box<ByteSpans>>,
}

impl StoredResponse {
    /// Whether all of `wanted` is stored.
    pub(crate) fn covers(&self, wanted: ByteSpan) -> bool {
        match &self.part {
            None => true,
            Some(part) => wanted.from >= wanted.to || part.contains(wanted),
        }
    }

    /// Whether the 200 to HEAD that `ask` has in its trace is about this response: as
    /// `weir_semantics::StoredValidators` says it of field lines. Values that the trace does not
    /// have decide nothing.
    pub(crate) fn compared_with(&self, ask: &Ask) -> Fits {
        let (ours, theirs) = (self.validators, ask.validators);
        let same_tag = match (ours.etag, theirs.etag) {
            (_, None) => true,
            (Some(tag), Some(other)) => tag == other && ours.etag_is_weak == theirs.etag_is_weak,
            (None, Some(_)) => !ours.are_all,
        };
        let same_date = match (ours.last_modified_s, theirs.last_modified_s) {
            (_, None) => true,
            (Some(date), Some(other)) => date == other,
            (None, Some(_)) => !ours.are_all,
        };
        let same_length = match (self.complete_length, ask.whole_bytes) {
            (Some(length), Some(other)) => length == other,
            _ => true,
        };
        let has_validator = theirs.etag.is_some() || theirs.last_modified_s.is_some();
        match (same_tag && same_date && same_length, has_validator) {
            (true, true) => Fits::Same,
            (true, false) if theirs.are_all => Fits::Unknown,
            // the trace does not have its validators
            (true, false) => Fits::Same,
            (false, _) => Fits::Other,
        }
    }

    pub(crate) fn content_bytes(&self) -> u64 {
        match &self.part {
            None => self.complete_length.unwrap_or(0),
            Some(part) => part.total(),
        }
    }

    fn charge_bytes(&self) -> u64 {
        u64::from(self.head_bytes) + self.content_bytes()
    }
}

/// [`Catalog::make_room_to_hold`] or [`Catalog::make_room_to_admit`].
type MakeRoom = fn(&mut Catalog, u64, &mut Vec<Slot>, catalog::InUse<'_>) -> Result<(), Refusal>;

/// Which stored response: a slot is used again, a number is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Which {
    slot: Slot,
    number: u64,
}

/// What came of storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    Done(Which),
    /// The rule of admission did not let it in.
    NotAdmitted(Admission),
    Refused(Refusal),
}

/// All stored responses.
#[derive(Debug)]
pub(crate) struct Cache {
    catalog: Catalog,
    admissions: Admissions,
    entries: Vec<Option<Entry>>,
    index: ByNumber<Variants>,
    victims: Vec<Slot>,
    numbers: u64,
    in_use: ByNumber<InUse>,
    /// Held for readers of what is not stored any more, bytes.
    lingering_bytes: u64,
    pub(crate) evictions: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    content: ContentId,
    stored: Box<StoredResponse>,
}

#[derive(Debug)]
enum Variants {
    /// One response that varies on nothing.
    Single(Slot),
    /// Oldest first.
    Varying(Vec<Slot>),
}

/// A key of the catalog.
pub(crate) fn digest(target: u64, variant: u64) -> Digest {
    Digest(mix(target ^ mix(variant)), mix(target))
}

impl Cache {
    pub(crate) fn new(budget_bytes: u64, kind: EvictionKind, rule: Rule) -> Self {
        Self {
            catalog: Catalog::new(budget_bytes, kind),
            admissions: Admissions::new(rule),
            entries: Vec::new(),
            index: ByNumber::default(),
            victims: Vec::new(),
            numbers: 0,
            in_use: ByNumber::default(),
            lingering_bytes: 0,
            evictions: 0,
        }
    }

    /// The stored response for a request, which counts as requested.
    pub(crate) fn find(&mut self, ask: &Ask) -> Result<Which, Missing> {
        let kept = self.index.get(&ask.target).ok_or(Missing::Target)?;
        let slot = match kept {
            Variants::Single(slot) => *slot,
            Variants::Varying(slots) => {
                let is_for =
                    |slot: &&Slot| self.at(**slot).is_some_and(|it| is_for(&it.stored, ask));
                *slots.iter().rev().find(is_for).ok_or(Missing::Variant)?
            }
        };
        let number = self.at(slot).ok_or(Missing::Target)?.number;
        let which = Which { slot, number };
        self.catalog.touch(slot);
        Ok(which)
    }

    /// The response, if it is still there.
    pub(crate) fn get(&self, which: Which) -> Option<&StoredResponse> {
        let entry = self.at(which.slot)?;
        (entry.number == which.number).then_some(&*entry.stored)
    }

    /// Takes room for a response that is about to arrive: others leave for it now, and it is
    /// not evicted. How much it holds, to be [given back](Self::give_back) before it is stored.
    pub(crate) fn take_room(
        &mut self,
        target: u64,
        content_bytes: u64,
        head_bytes: u32,
    ) -> Result<u64, Refusal> {
        let wanted = content_bytes.saturating_add(u64::from(head_bytes));
        self.catalog.check_newcomer(digest(target, 0), wanted)?;
        check_in_flight(
            self.catalog.budget_bytes(),
            self.catalog.held_bytes() - self.lingering_bytes,
            wanted,
        )?;
        self.make_room(wanted, Catalog::make_room_to_hold)?;
        self.catalog.hold(wanted, &mut self.victims);
        self.forget_victims();
        Ok(wanted)
    }

    /// Makes others leave, none of those that are read.
    fn make_room(&mut self, size_bytes: u64, make: MakeRoom) -> Result<(), Refusal> {
        let (entries, reads) = (&self.entries, &self.in_use);
        let in_use = |slot| key_in_use(entries, reads, slot);
        let room = make(&mut self.catalog, size_bytes, &mut self.victims, &in_use);
        self.forget_victims();
        room
    }

    /// Room that was taken is not needed any more.
    pub(crate) fn give_back(&mut self, held: u64) {
        self.catalog.release(held);
    }

    /// Stores a response in the place of what it replaces.
    pub(crate) fn store(&mut self, stored: StoredResponse) -> Stores {
        let key = digest(stored.target, stored.variant);
        match self.admissions.judge(key, Some(stored.content_bytes())) {
            Admission::Admitted => {}
            refused => return Stores::NotAdmitted(refused),
        }
        if self.is_outdone(&stored) {
            return Stores::Refused(Refusal::NotResident);
        }
        let size_bytes = stored.charge_bytes();
        // all variants of a target are one to the memory of evictions
        let key = digest(stored.target, 0);
        if let Err(refusal) = self.make_room(size_bytes, Catalog::make_room_to_admit) {
            return Stores::Refused(refusal);
        }
        let placed = self.catalog.admit(key, size_bytes, &mut self.victims);
        // before the index is touched: victims may be of this very target
        self.forget_victims();
        let slot = match placed {
            Ok(slot) => slot,
            Err(refusal) => return Stores::Refused(refusal),
        };
        self.displace(&stored);
        Stores::Done(self.put(slot, stored))
    }

    /// Whether what `stored` would take the place of was received after it: of two the most recent
    /// one is used (RFC 9111 §4). Unless that is a part of the same representation, and `stored` is
    /// all of it.
    fn is_outdone(&self, stored: &StoredResponse) -> bool {
        self.replaced_by(stored).into_iter().any(|slot| {
            self.at(slot).is_some_and(|Entry { stored: former, .. }| {
                let joins = former.part.is_some()
                    && stored.part.is_none()
                    && former.validators.same_strongly(stored.validators);
                former.facts.response_tick > stored.facts.response_tick && !joins
            })
        })
    }

    /// Whose place a response takes: a response without Vary that of all, one with Vary that of its
    /// variant, or of one without.
    fn replaced_by(&self, stored: &StoredResponse) -> Vec<Slot> {
        let is_same = |slot: &Slot| {
            let same = |it: &StoredResponse| it.vary == stored.vary && it.variant == stored.variant;
            self.at(*slot).is_some_and(|it| same(&it.stored))
        };
        match self.index.get(&stored.target) {
            None => Vec::new(),
            Some(Variants::Single(slot)) => vec![*slot],
            Some(Variants::Varying(slots)) if stored.vary == Row::VARY_NONE => slots.clone(),
            Some(Variants::Varying(slots)) => slots.iter().copied().filter(is_same).collect(),
        }
    }

    /// Makes room under the target for a response, or for one variant more.
    fn displace(&mut self, stored: &StoredResponse) {
        for slot in self.replaced_by(stored) {
            self.remove(slot);
        }
        if let Some(Variants::Varying(slots)) = self.index.get(&stored.target)
            && slots.len() >= VARIANTS_MAX
        {
            self.remove(slots[0]);
        }
    }

    fn put(&mut self, slot: Slot, stored: StoredResponse) -> Which {
        self.numbers += 1;
        let (target, varies) = (stored.target, stored.vary != Row::VARY_NONE);
        if self.entries.len() <= slot.index() {
            self.entries.resize_with(slot.index() + 1, || None);
        }
        self.entries[slot.index()] = Some(Entry {
            number: self.numbers,
            content: ContentId(self.numbers),
            stored: Box::new(stored),
        });
        match self.index.entry(target) {
            Place::Vacant(place) => {
                place.insert(if varies {
                    Variants::Varying(vec![slot])
                } else {
                    Variants::Single(slot)
                });
            }
            Place::Occupied(mut place) => {
                if let Variants::Varying(slots) = place.get_mut() {
                    slots.push(slot);
                }
            }
        }
        let number = self.numbers;
        Which { slot, number }
    }

    /// New facts and validators for a stored response (RFC 9111 §4.3.4). It is another one from now
    /// on: what others were told about the one before does not touch it.
    pub(crate) fn freshen(&mut self, which: Which, fresh: &StoredResponse) {
        if let Some(Some(entry)) = self.entries.get_mut(which.slot.index())
            && entry.number == which.number
        {
            self.numbers += 1;
            entry.number = self.numbers;
            let stored = &mut entry.stored;
            stored.facts = fresh.facts;
            stored.response = fresh.response;
            stored.validators = fresh.validators;
        }
    }

    /// Forgets one response.
    pub(crate) fn drop_one(&mut self, which: Which) {
        if self.get(which).is_some() {
            self.remove(which.slot);
        }
    }

    /// Forgets all that is stored for a target (RFC 9111 §4.4).
    pub(crate) fn invalidate(&mut self, target: u64) {
        let slots = match self.index.get(&target) {
            None => return,
            Some(Variants::Single(slot)) => vec![*slot],
            Some(Variants::Varying(slots)) => slots.clone(),
        };
        for slot in slots {
            self.remove(slot);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.catalog.len()
    }

    pub(crate) const fn used_bytes(&self) -> u64 {
        self.catalog.used_bytes()
    }

    fn at(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot.index())?.as_ref()
    }

    fn remove(&mut self, slot: Slot) {
        self.catalog.remove(slot);
        self.forget(slot);
    }

    fn forget_victims(&mut self) {
        self.evictions += self.victims.len() as u64;
        while let Some(slot) = self.victims.pop() {
            self.forget(slot);
        }
    }

    fn forget(&mut self, slot: Slot) {
        let Some(entry) = self.entries.get_mut(slot.index()).and_then(Option::take) else {
            return;
        };
        let stored = entry.stored;
        self.leave(entry.content);
        let Place::Occupied(mut place) = self.index.entry(stored.target) else {
            return;
        };
        let is_empty = match place.get_mut() {
            Variants::Single(only) => *only == slot,
            Variants::Varying(slots) => {
                slots.retain(|other| *other != slot);
                slots.is_empty()
            }
        };
        if is_empty {
            place.remove();
        }
    }
}

/// Whether a variant is for this request. A row that names no fields tells by the hash of what it
/// said alone.
fn is_for(stored: &StoredResponse, ask: &Ask) -> bool {
    stored.variant == ask.variant && (ask.vary == Row::VARY_NONE || stored.vary == ask.vary)
}

#[cfg(test)]
mod tests;
