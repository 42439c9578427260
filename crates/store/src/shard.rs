//! One shard: index, entries and catalog behind one lock. Plain data structure work; nothing here waits.

use crate::resource::{Resource, VARIANTS_MAX, Variant, VaryRule, Varying};
use crate::stored::StoredResponse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use weir_policy::catalog::{Catalog, Refusal, Slot};
use weir_policy::{Digest, Missing, Now};

/// Bytes an entry costs in the index and the entry table, their slack at the worst load included: the hash
/// table holds (digest, resource) at a load of at least 7/16, the entry vector at one half.
pub(crate) const INDEX_BYTES: usize =
    (size_of::<(Digest, Resource)>() + 1) * 16 / 7 + 2 * size_of::<Option<Entry>>();

/// Bytes a variant costs beside: its place in the list, and its share of the list and of the rule.
pub(crate) const VARIANT_BYTES: usize = 2 * size_of::<Variant>() + size_of::<Varying>() + 256;

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
    next_building: u64,
    evictions: u64,
}

impl Shard {
    pub(crate) fn new(catalog: Catalog) -> Self {
        Self {
            index: HashMap::default(),
            entries: Vec::new(),
            catalog,
            victims: Vec::new(),
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

    /// Takes room for a response that begins to arrive; the number tells it from a later use of the slot.
    pub(crate) fn begin(
        &mut self,
        now: Now,
        primary: Digest,
        charge: u64,
    ) -> Result<(Slot, u64), Refusal> {
        let slot = self
            .catalog
            .admit(now, primary, charge, &mut self.victims)
            .inspect_err(|_| debug_assert!(self.victims.is_empty()))?;
        self.let_go();
        let number = self.next_building;
        self.next_building += 1;
        let at = slot.0 as usize;
        if self.entries.len() <= at {
            self.entries.resize_with(at + 1, || None);
        }
        self.entries[at] = Some(Entry {
            primary,
            state: State::Building(number),
        });
        Ok((slot, number))
    }

    /// Takes or gives back room for one that is arriving.
    pub(crate) fn resize(
        &mut self,
        now: Now,
        slot: Slot,
        number: u64,
        charge: u64,
    ) -> Result<(), Refusal> {
        if !self.is_building(slot, number) {
            return Err(Refusal::NotResident);
        }
        let resized = self.catalog.resize(now, slot, charge, &mut self.victims);
        self.let_go();
        resized
    }

    /// Makes a response that has arrived findable.
    pub(crate) fn commit(
        &mut self,
        now: Now,
        (slot, number): (Slot, u64),
        vary: Option<(VaryRule, Digest)>,
        response: StoredResponse,
        charge: u64,
    ) -> Result<(), Refusal> {
        self.resize(now, slot, number, charge)?;
        if !self.is_building(slot, number) {
            return Err(Refusal::NotResident);
        }
        let Some(Some(entry)) = self.entries.get_mut(slot.0 as usize) else {
            return Err(Refusal::NotResident);
        };
        entry.state = State::Response(Arc::new(response));
        let primary = entry.primary;
        match vary {
            None => self.put_single(primary, slot),
            Some((rule, selecting)) => self.put_variant(primary, slot, &rule, selecting),
        }
        Ok(())
    }

    /// Gives up on a response that was arriving.
    pub(crate) fn abandon(&mut self, slot: Slot, number: u64) {
        if self.is_building(slot, number) {
            self.free(slot);
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
        varying.promote(rule);
        let mut leaving: Vec<Slot> = Vec::new();
        varying.variants.retain(|variant| {
            let same = variant.selecting == selecting;
            if same {
                leaving.push(variant.slot);
            }
            !same
        });
        if varying.variants.len() >= VARIANTS_MAX {
            leaving.push(varying.variants.remove(0).slot);
        }
        varying.variants.push(Variant { selecting, slot });
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
        charge: u64,
    ) -> bool {
        let Some(slot) = self.slot_of(primary, old) else {
            return false;
        };
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

    /// Forgets all that is stored for a target; how many responses that were.
    pub(crate) fn remove(&mut self, primary: Digest) -> usize {
        let Some(resource) = self.index.remove(&primary) else {
            return 0;
        };
        let slots = resource.slots();
        slots.iter().for_each(|slot| self.free(*slot));
        slots.len()
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

    /// The catalog chose victims: drop their bytes and their place in the index.
    fn let_go(&mut self) {
        while let Some(slot) = self.victims.pop() {
            self.evictions += 1;
            let Some(entry) = self.entries.get_mut(slot.0 as usize).and_then(Option::take) else {
                continue;
            };
            if matches!(entry.state, State::Response(_))
                && let Some(resource) = self.index.get_mut(&entry.primary)
                && resource.forget(slot)
            {
                self.index.remove(&entry.primary);
            }
        }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.catalog.used_bytes()
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

    pub(crate) fn clear(&mut self) {
        let primaries: Vec<Digest> = self.index.keys().copied().collect();
        for primary in primaries {
            self.remove(primary);
        }
    }
}
