//! One shard: index, entries and catalog behind one lock. Plain data structure work; nothing here waits.

use crate::resource::{Resource, VaryRule, variant_charge};
use crate::stored::StoredResponse;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use weir_policy::catalog::{Catalog, Refusal, Slot};
use weir_policy::{Digest, Missing, Now};

/// Bytes of index and entry table for each slot of the catalog, taken or vacant, as neither table shrinks while slots
/// stay. The entry table is as long as the catalog. The hash table holds (digest, resource) and a control byte in a
/// power of two of buckets, is filled to 7/8 and doubles, with no more than half of that in use where many left
/// their mark: at worst there are 32/7 buckets for each that ever was in use at a time.
const SLOT_BYTES: usize =
    (size_of::<(Digest, Resource)>() + 1) * 32 / 7 + size_of::<Option<Entry>>();

/// Places for victims that are kept for the next time.
const VICTIMS_KEPT: usize = 256;

/// Bytes by which an arriving response is known: its share of a tree's node.
pub(crate) const ARRIVING_BYTES: usize = 64;

/// A stored response that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The response.
    pub response: Arc<StoredResponse>,
}

/// Result of looking for a stored response.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// One was chosen.
    Found(Found),
    /// None could be chosen.
    Missing(Missing),
}

#[derive(Debug)]
pub(crate) struct Entry {
    primary: Digest,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Room is taken; the response is still arriving. The number tells this use of the slot from the next.
    Building(u64),
    Response(Arc<StoredResponse>),
}

/// One that is arriving.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    /// Its place, unless it was evicted.
    slot: Slot,
    /// Bytes it holds by now.
    held: u64,
}

/// Digests are keyed hashes already: their first half is the hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 ^= value;
    }
}

#[derive(Debug)]
pub(crate) struct Shard {
    index: HashMap<Digest, Resource, BuildHasherDefault<DigestHasher>>,
    entries: Vec<Option<Entry>>,
    catalog: Catalog,
    victims: Vec<Slot>,
    /// Those who are arriving, by number; also those who were evicted and do not know yet.
    arriving: BTreeMap<u64, Arriving>,
    next_building: u64,
    evictions: u64,
}

impl Shard {
    pub(crate) fn new(catalog: Catalog) -> Self {
        Self {
            index: HashMap::default(),
            entries: Vec::new(),
            catalog: catalog.with_beside(SLOT_BYTES as u64),
            victims: Vec::new(),
            arriving: BTreeMap::new(),
            next_building: 0,
            evictions: 0,
        }
    }

    pub(crate) fn find(
        &mut self,
        now: Now,
        primary: Digest,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> Lookup {
        let slot = match self.index.get(&primary) {
            None => return Lookup::Missing(Missing::Target),
            Some(Resource::Single(slot)) => Some(*slot),
            Some(Resource::Varying(varying)) => varying
                .rules
                .iter()
                .find_map(|rule| varying.find(selecting(rule))),
        };
        let Some(slot) = slot else {
            return Lookup::Missing(Missing::Variant);
        };
        match self.response(slot) {
            Some(response) => {
                self.catalog.touch(now, slot);
                Lookup::Found(Found { response })
            }
            None => Lookup::Missing(Missing::Target),
        }
    }

    fn response(&self, slot: Slot) -> Option<Arc<StoredResponse>> {
        match self.entries.get(slot.0 as usize)? {
            Some(Entry {
                state: State::Response(response),
                ..
            }) => Some(Arc::clone(response)),
            _ => None,
        }
    }

    /// Takes room for a response that begins to arrive and holds `held` of its `charge` at first; the number tells it
    /// from a later use of the slot.
    pub(crate) fn begin(
        &mut self,
        now: Now,
        primary: Digest,
        charge: u64,
        held: u64,
    ) -> Result<(Slot, u64), Refusal> {
        let slot = self
            .catalog
            .admit(now, primary, charge, &mut self.victims)
            .inspect_err(|_| debug_assert!(self.victims.is_empty()))?;
        // the slot may have been a victim's: that one first
        let held_by_victims = self.drop_victims();
        self.follow_slots();
        let number = self.next_building;
        self.next_building += 1;
        self.entries[slot.index()] = Some(Entry {
            primary,
            state: State::Building(number),
        });
        self.arriving.insert(number, Arriving { slot, held });
        self.catalog.hold(held_by_victims, &mut self.victims);
        self.let_go();
        if self.is_building(slot, number) {
            return Ok((slot, number));
        }
        self.abandon(slot, number);
        Err(Refusal::NotResident)
    }

    /// The entry table is as long as the catalog, and not longer.
    fn follow_slots(&mut self) {
        let slots = self.catalog.slots();
        if slots > self.entries.len() {
            self.entries.reserve_exact(slots - self.entries.len());
            self.entries.resize_with(slots, || None);
        } else if slots < self.entries.len() {
            self.entries.truncate(slots);
            self.entries.shrink_to_fit();
            self.index.shrink_to_fit();
        }
    }

    /// Takes or gives back room for one that is arriving, and will hold `held` bytes.
    pub(crate) fn resize(
        &mut self,
        now: Now,
        (slot, number): (Slot, u64),
        charge: u64,
        held: u64,
    ) -> Result<(), Refusal> {
        if !self.is_building(slot, number) {
            return Err(Refusal::NotResident);
        }
        if self.catalog.size_bytes(slot) != Some(charge) {
            self.catalog.resize(now, slot, charge, &mut self.victims)?;
        }
        self.arriving.insert(number, Arriving { slot, held });
        self.let_go();
        if self.is_building(slot, number) {
            Ok(())
        } else {
            Err(Refusal::NotResident)
        }
    }

    /// Makes a response that has arrived findable.
    pub(crate) fn commit(
        &mut self,
        now: Now,
        (slot, number): (Slot, u64),
        vary: Option<(VaryRule, Digest)>,
        response: StoredResponse,
    ) -> Result<(), Refusal> {
        let rule = vary.as_ref().map(|(rule, _)| rule);
        let charge = (response.charged_bytes() + variant_charge(rule)) as u64;
        self.resize(now, (slot, number), charge, charge)?;
        let Some(Some(entry)) = self.entries.get_mut(slot.0 as usize) else {
            return Err(Refusal::NotResident);
        };
        self.arriving.remove(&number);
        entry.state = State::Response(Arc::new(response));
        let primary = entry.primary;
        match vary {
            None => self.put_single(primary, slot),
            Some((rule, selecting)) => self.put_variant(primary, slot, &rule, selecting),
        }
        Ok(())
    }

    /// Gives up on a response that was arriving; its bytes are given back.
    pub(crate) fn abandon(&mut self, slot: Slot, number: u64) {
        let held = self.arriving.remove(&number).map_or(0, |gone| gone.held);
        if self.is_building(slot, number) {
            self.free(slot);
        } else {
            self.catalog.release(held);
        }
    }

    fn is_building(&self, slot: Slot, number: u64) -> bool {
        matches!(
            self.entries.get(slot.0 as usize),
            Some(Some(Entry { state: State::Building(known), .. })) if *known == number
        )
    }

    /// A response that varies on nothing stands alone: what varied before is outdated by it.
    fn put_single(&mut self, primary: Digest, slot: Slot) {
        if let Some(before) = self.index.insert(primary, Resource::Single(slot)) {
            before.slots().into_iter().for_each(|old| self.free(old));
        }
    }

    /// A response that varies joins the variants, and replaces the one for the same request.
    fn put_variant(&mut self, primary: Digest, slot: Slot, rule: &VaryRule, selecting: Digest) {
        let mut varying = match self.index.remove(&primary) {
            Some(Resource::Varying(varying)) => varying,
            Some(Resource::Single(old)) => {
                self.free(old);
                Box::default()
            }
            None => Box::default(),
        };
        let leaving = varying.put(rule, selecting, slot);
        self.index.insert(primary, Resource::Varying(varying));
        leaving.into_iter().for_each(|old| self.free(old));
    }

    /// Puts `new` where `old` is stored, if it still is.
    pub(crate) fn replace(
        &mut self,
        now: Now,
        primary: Digest,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
    ) -> bool {
        let Some(slot) = self.slot_of(primary, old) else {
            return false;
        };
        let resource = self.index.get(&primary);
        let beside = variant_charge(resource.and_then(|resource| resource.rule_of(slot)));
        let charge = (new.charged_bytes() + beside) as u64;
        let resized = self.catalog.resize(now, slot, charge, &mut self.victims);
        self.let_go();
        if resized.is_err() {
            self.forget(primary, slot);
            return false;
        }
        match self.entries.get_mut(slot.0 as usize) {
            Some(Some(entry)) => {
                entry.state = State::Response(new);
                true
            }
            _ => false,
        }
    }

    /// Forgets one response of a target, if it is still stored.
    pub(crate) fn drop_one(&mut self, primary: Digest, response: &Arc<StoredResponse>) -> bool {
        let Some(slot) = self.slot_of(primary, response) else {
            return false;
        };
        self.forget(primary, slot);
        true
    }

    /// Forgets all that is stored for a target; how many responses that were. What is still arriving for it was asked
    /// for before, and is not stored either: a purge would otherwise be undone by the end of a download.
    pub(crate) fn remove(&mut self, primary: Digest) -> usize {
        self.outdate_arriving(primary);
        let Some(resource) = self.index.remove(&primary) else {
            return 0;
        };
        let slots = resource.slots();
        slots.iter().for_each(|slot| self.free(*slot));
        slots.len()
    }

    /// Takes its room from everybody who is arriving for `primary`; they notice at their next step.
    fn outdate_arriving(&mut self, primary: Digest) {
        let is_outdated = |(number, arriving): &(&u64, &Arriving)| {
            let entry = self.entries.get(arriving.slot.index());
            matches!(
                entry,
                Some(Some(Entry { primary: of, state: State::Building(known) }))
                    if *of == primary && *known == **number
            )
        };
        let outdated = self.arriving.iter().filter(is_outdated);
        let outdated: Vec<Arriving> = outdated.map(|(_, arriving)| *arriving).collect();
        for arriving in outdated {
            self.free(arriving.slot);
            self.catalog.hold(arriving.held, &mut self.victims);
            self.let_go();
        }
    }

    fn slot_of(&self, primary: Digest, response: &Arc<StoredResponse>) -> Option<Slot> {
        let slots = self.index.get(&primary)?.slots();
        slots.into_iter().find(|slot| {
            matches!(
                self.entries.get(slot.0 as usize),
                Some(Some(Entry { state: State::Response(known), .. })) if Arc::ptr_eq(known, response)
            )
        })
    }

    fn forget(&mut self, primary: Digest, slot: Slot) {
        if let Some(resource) = self.index.get_mut(&primary)
            && resource.forget(slot)
        {
            self.index.remove(&primary);
        }
        self.free(slot);
    }

    fn free(&mut self, slot: Slot) {
        self.catalog.remove(slot);
        if let Some(entry) = self.entries.get_mut(slot.0 as usize) {
            *entry = None;
        }
    }

    /// The catalog chose victims. What one who was arriving holds stays until it gives up, and others leave for it.
    fn let_go(&mut self) {
        while !self.victims.is_empty() {
            let held = self.drop_victims();
            self.catalog.hold(held, &mut self.victims);
        }
        self.victims.shrink_to(VICTIMS_KEPT);
        self.follow_slots();
    }

    /// Drops the victims' bytes and their places in the index; returns what those who were arriving still hold.
    fn drop_victims(&mut self) -> u64 {
        let mut held = 0;
        while let Some(slot) = self.victims.pop() {
            self.evictions += 1;
            let Some(entry) = self.entries.get_mut(slot.0 as usize).and_then(Option::take) else {
                continue;
            };
            match entry.state {
                State::Building(number) => {
                    held += self.arriving.get(&number).map_or(0, |gone| gone.held);
                }
                State::Response(_) => {
                    if let Some(resource) = self.index.get_mut(&entry.primary)
                        && resource.forget(slot)
                    {
                        self.index.remove(&entry.primary);
                    }
                }
            }
        }
        held
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.catalog.used_bytes() + self.catalog.overhead_bytes() + self.catalog.held_bytes()
    }

    pub(crate) fn entries(&self) -> u64 {
        self.catalog.len() as u64
    }

    pub(crate) fn evictions(&self) -> u64 {
        self.evictions
    }

    pub(crate) fn set_budget(&mut self, budget_bytes: u64) {
        self.catalog.set_budget(budget_bytes, &mut self.victims);
        self.let_go();
    }

    /// See `MemoryStore::debug_check`.
    pub(crate) fn debug_check(&self) {
        self.catalog.debug_check();
        assert_eq!(self.entries.len(), self.catalog.slots());
        let mut findable = 0;
        for (primary, resource) in &self.index {
            let slots = resource.slots();
            assert!(!slots.is_empty(), "a target without responses");
            findable += slots.len();
            for slot in slots {
                let entry = self.entries[slot.index()].as_ref().expect("a vacant slot");
                assert_eq!(entry.primary, *primary, "another target's response");
                assert!(matches!(entry.state, State::Response(_)), "not yet whole");
            }
        }
        let is_building = |entry: &&Entry| matches!(entry.state, State::Building(_));
        let building = self.entries.iter().flatten().filter(is_building).count();
        assert_eq!(findable + building, self.catalog.len(), "entries are lost");
        assert!(building <= self.arriving.len(), "an arrival is lost");
    }

    pub(crate) fn clear(&mut self) {
        let primaries: Vec<Digest> = self.index.keys().copied().collect();
        for primary in primaries {
            self.remove(primary);
        }
        let building =
            |entry: &Entry| matches!(entry.state, State::Building(_)).then_some(entry.primary);
        let arriving: Vec<Digest> = self.entries.iter().flatten().filter_map(building).collect();
        for primary in arriving {
            self.outdate_arriving(primary);
        }
    }
}
