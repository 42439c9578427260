//! One shard: index, entries and catalog behind one lock. Plain data structure work; nothing here
//! waits.

mod check;
mod forgetting;
mod room;

pub(crate) use forgetting::DiskPlace;
pub(crate) use room::shard_bytes_for;

use crate::piece_memory::GivenBack;
use crate::record::Line;
use crate::resource::{Resource, VaryRule, variant_charge};
use crate::stored::StoredResponse;
use room::in_use;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use weir_policy::catalog::{Catalog, PromotionDecision, Refusal, Slot};
use weir_policy::{Digest, Missing};

/// Bytes of index and entry table for each slot of the catalog, taken or vacant, as neither table
/// shrinks while slots stay. The entry table is as long as the catalog. The hash table holds
/// (digest, resource) and a control byte in a power of two of buckets, is filled to 7/8 and
/// doubles, with no more than half of that in use where many left their mark: at worst there are
/// 32/7 buckets for each that ever was in use at a time.
const SLOT_BYTES: usize =
    (size_of::<(Digest, Resource)>() + 1) * 32 / 7 + size_of::<Option<Entry>>();

/// Places for victims that are kept for the next time.
const VICTIMS_KEPT: usize = 256;

/// Bytes of memory of the entry of an in-flight response: its share of a tree's node, which holds
/// at least five of eleven.
pub(crate) const IN_FLIGHT_BYTES: usize = 128;

/// Result of looking for a stored response.
#[derive(Clone, Debug)]
pub enum LookupResult {
    /// One was chosen.
    Found(Arc<StoredResponse>),
    /// None could be chosen.
    Missing(Missing),
}

/// A stored response, and what it varies on: the digest is that of these fields in its request.
pub type StoredVariant = (Option<(VaryRule, Digest)>, Arc<StoredResponse>);

#[derive(Debug)]
pub(crate) struct Entry {
    primary: Digest,
    response: Arc<StoredResponse>,
}

/// Names an in-flight or expected response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InFlightId {
    /// First, so that those of one target stand together.
    primary: Digest,
    number: u64,
}

impl InFlightId {
    /// Of which target.
    pub(crate) const fn primary(self) -> Digest {
        self.primary
    }
}

/// An in-flight or expected response.
#[derive(Clone, Copy, Debug)]
struct InFlightEntry {
    /// Bytes it holds or has reserved.
    held: u64,
    /// It validates or completes a stored response of its target, and is of no use without that.
    rests_on_stored: bool,
    /// It is the content of a stored response of its target, which is read from disk or moved.
    is_load: bool,
    /// What was forgotten of its target meanwhile.
    forgotten: Forgotten,
    /// The line of its variants on disk, if it turned out to vary.
    line: Option<Line>,
}

/// What was dropped of a target since a response was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Forgotten {
    Nothing,
    /// One stored response or more, each by itself; which ones is not recorded, as a further
    /// request costs little.
    Single,
    /// All of it.
    Target,
}

impl InFlightEntry {
    fn is_outdated(&self) -> bool {
        match self.forgotten {
            Forgotten::Nothing => false,
            Forgotten::Single => self.rests_on_stored,
            Forgotten::Target => true,
        }
    }
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

/// What a response takes of the budget.
fn charge_of(vary: Option<&(VaryRule, Digest)>, response: &StoredResponse) -> u64 {
    let rule = vary.map(|(rule, _)| rule);
    (response.charged_bytes() + variant_charge(rule)) as u64
}

#[derive(Debug)]
pub(crate) struct Shard {
    index: HashMap<Digest, Resource, BuildHasherDefault<DigestHasher>>,
    entries: Vec<Option<Entry>>,
    catalog: Catalog,
    victims: Vec<Slot>,
    /// In-flight responses. They have no slot: to the catalog their bytes are in use by a
    /// non-resident, and cannot be evicted.
    in_flight: BTreeMap<InFlightId, InFlightEntry>,
    next_in_flight: u64,
    evictions: u64,
    /// Bytes of responses that are not stored any more, or were refused, and are still read.
    lingering_bytes: u64,
    /// Responses with content in a file that have left: giving its memory back takes the kernel too
    /// long to be done under the lock of the shard.
    leaving: Vec<Arc<StoredResponse>>,
    /// What they have given back since that was last taken out of the account.
    given_back: GivenBack,
}

impl Shard {
    pub(crate) fn new(catalog: Catalog) -> Self {
        Self {
            index: HashMap::default(),
            entries: Vec::new(),
            catalog: catalog.with_slot_overhead(SLOT_BYTES as u64),
            victims: Vec::new(),
            in_flight: BTreeMap::new(),
            next_in_flight: 0,
            evictions: 0,
            lingering_bytes: 0,
            leaving: Vec::new(),
            given_back: GivenBack::default(),
        }
    }

    pub(crate) fn find(
        &mut self,
        primary: Digest,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> LookupResult {
        let slot = match self.slot(primary, selecting) {
            Ok(slot) => slot,
            Err(missing) => return LookupResult::Missing(missing),
        };
        match self.response(slot) {
            // its content is not on disk any more
            Some(response) if response.body.is_retired() => {
                self.forget(primary, slot);
                LookupResult::Missing(Missing::Target)
            }
            Some(response) => {
                self.catalog.touch(slot);
                LookupResult::Found(response)
            }
            None => LookupResult::Missing(Missing::Target),
        }
    }

    /// The slot of what [`Shard::find`] looks for.
    #[inline(always)]
    fn slot(
        &self,
        primary: Digest,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> Result<Slot, Missing> {
        match self.index.get(&primary) {
            None => Err(Missing::Target),
            Some(Resource::Single(slot)) => Ok(*slot),
            Some(Resource::Varying(varying)) => {
                let mut rules = varying.rules.iter();
                let slot = rules.find_map(|rule| varying.find(selecting(rule)));
                slot.ok_or(Missing::Variant)
            }
        }
    }

    /// What [`Shard::find`] would find, or `find_variant` if it is `of_variants`; no use is noted,
    /// and nothing is forgotten.
    pub(crate) fn peek(
        &self,
        primary: Digest,
        of_variants: bool,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> LookupResult {
        let is_single = matches!(self.index.get(&primary), Some(Resource::Single(_)));
        if of_variants && is_single {
            return LookupResult::Missing(Missing::Variant);
        }
        match self
            .slot(primary, selecting)
            .map(|slot| self.response(slot))
        {
            Ok(Some(response)) if !response.body.is_retired() => LookupResult::Found(response),
            Ok(_) => LookupResult::Missing(Missing::Target),
            Err(missing) => LookupResult::Missing(missing),
        }
    }

    /// The line on disk of the variants of a target, where there is one.
    pub(crate) fn stored_line(&self, primary: Digest) -> Option<Line> {
        self.index.get(&primary).and_then(Resource::line)
    }

    /// The same; a response that varies on nothing is another variant.
    pub(crate) fn find_variant(
        &mut self,
        primary: Digest,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> LookupResult {
        match self.index.get(&primary) {
            Some(Resource::Single(_)) => LookupResult::Missing(Missing::Variant),
            _ => self.find(primary, selecting),
        }
    }

    /// All that is stored for a target, each with what it varies on, the oldest first.
    pub(crate) fn stored(&self, primary: Digest) -> Vec<StoredVariant> {
        let Some(resource) = self.index.get(&primary) else {
            return Vec::new();
        };
        let slots = resource.slots().into_iter();
        let stored = slots.filter_map(|slot| {
            let variant = resource.variant(slot);
            let vary = variant.map(|variant| (variant.rule.clone(), variant.selecting));
            Some((vary, self.response(slot)?))
        });
        stored.collect()
    }

    fn response(&self, slot: Slot) -> Option<Arc<StoredResponse>> {
        let entry = self.entries.get(slot.index())?.as_ref()?;
        Some(Arc::clone(&entry.response))
    }

    /// A response for `primary` is requested.
    pub(crate) fn expect(&mut self, primary: Digest) -> Result<InFlightId, Refusal> {
        let held = IN_FLIGHT_BYTES as u64;
        self.check_share(held, 0)?;
        self.hold(held)?;
        let number = self.next_in_flight;
        self.next_in_flight += 1;
        let id = InFlightId { primary, number };
        let entry = InFlightEntry {
            held,
            rests_on_stored: false,
            is_load: false,
            forgotten: Forgotten::Nothing,
            line: None,
        };
        self.in_flight.insert(id, entry);
        Ok(id)
    }

    /// A response for `primary` is requested that will validate or complete `stored`, which was
    /// chosen a moment ago: if that is not stored any more, it may have been purged in between.
    pub(crate) fn expect_for(
        &mut self,
        primary: Digest,
        stored: &Arc<StoredResponse>,
    ) -> Result<InFlightId, Refusal> {
        let is_stored = self.holds(primary, stored);
        let id = self.expect(primary)?;
        self.rest_on_stored(id, true);
        if !is_stored && let Some(entry) = self.in_flight.get_mut(&id) {
            entry.forgotten = Forgotten::Single;
        }
        Ok(id)
    }

    /// The content of `stored`, which is stored, will be read from disk or moved.
    pub(crate) fn expect_load(
        &mut self,
        primary: Digest,
        stored: &Arc<StoredResponse>,
    ) -> Result<InFlightId, Refusal> {
        let id = self.expect_for(primary, stored)?;
        if let Some(entry) = self.in_flight.get_mut(&id) {
            entry.is_load = true;
        }
        Ok(id)
    }

    /// Whether content of a response of `primary` is being read from disk into memory, or moved.
    pub(crate) fn is_loading(&self, primary: Digest) -> bool {
        let id = |number| InFlightId { primary, number };
        let mut of_target = self.in_flight.range(id(0)..=id(u64::MAX));
        of_target.any(|(_, entry)| entry.is_load)
    }

    /// Whether a response that validates or completes a stored one of `primary` is requested,
    /// beside `own`: it knows that one by its place in memory.
    pub(crate) fn is_validated(&self, primary: Digest, own: Option<InFlightId>) -> bool {
        let id = |number| InFlightId { primary, number };
        let mut of_target = self.in_flight.range(id(0)..=id(u64::MAX));
        of_target.any(|(id, entry)| entry.rests_on_stored && Some(*id) != own)
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Whether it is of no use without the response that was stored when it was requested.
    pub(crate) fn rest_on_stored(&mut self, id: InFlightId, rests: bool) {
        if let Some(entry) = self.in_flight.get_mut(&id) {
            entry.rests_on_stored = rests;
        }
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

    /// One that is arriving holds only `held` bytes any more.
    pub(crate) fn give_back(&mut self, id: InFlightId, held: u64) {
        if let Some(entry) = self.in_flight.get_mut(&id)
            && held < entry.held
        {
            let less = entry.held - held;
            entry.held = held;
            self.catalog.release(less);
        }
    }

    /// Takes more room for one that is arriving, `held` bytes in all. Also for one whose target was
    /// purged: it is still read.
    pub(crate) fn extend(&mut self, id: InFlightId, held: u64) -> Result<(), Refusal> {
        let former = self.in_flight.get(&id).map_or(0, |known| known.held);
        self.check_share(held, former)?;
        if self.in_flight.contains_key(&id) {
            self.hold(held.saturating_sub(former))?;
        }
        if let Some(entry) = self.in_flight.get_mut(&id) {
            entry.held = held.max(former);
        }
        Ok(())
    }

    /// Takes more room for one whose content will be in memory, if the eviction algorithm admits a
    /// response of `held` bytes.
    pub(crate) fn extend_newcomer(&mut self, id: InFlightId, held: u64) -> Result<(), Refusal> {
        self.catalog.check_newcomer(id.primary, held)?;
        self.extend(id, held)
    }

    /// Whether its target, or the stored response that it rests on, was dropped since it was
    /// requested.
    pub(crate) fn is_outdated(&self, id: InFlightId) -> bool {
        self.in_flight
            .get(&id)
            .is_none_or(InFlightEntry::is_outdated)
    }

    /// Whether a stored response that is not here any more was evicted and not dropped since `id`
    /// was requested, and may be on disk under a known key. In its request `selecting` digests what
    /// it varies on.
    pub(crate) fn was_evicted(&self, id: InFlightId, selecting: Option<Digest>) -> bool {
        let place = self.place_of_absent(id.primary, selecting);
        !self.is_outdated(id) && matches!(place, DiskPlace::Evicted(_))
    }

    /// The line on which the variant `id` is found on disk: that of the others of its target, of
    /// those that are stored and of those that arrive; else the one that is `known` from disk; else
    /// another one. It stays the same from the first call on: its key on disk is made with it.
    pub(crate) fn line(&mut self, id: InFlightId, known: Option<Line>) -> Line {
        let primary = id.primary;
        if let Some(line) = self.in_flight.get(&id).and_then(|entry| entry.line) {
            return line;
        }
        let of = |number| InFlightId { primary, number };
        let stored = self.index.get(&primary).and_then(Resource::line);
        let others = self.in_flight.range(of(0)..=of(u64::MAX));
        let mut others = others.map(|(_, entry)| entry);
        let line = stored
            .or_else(|| others.find_map(|other| other.line.filter(|_| !other.is_outdated())))
            .or(known)
            .unwrap_or_else(Line::begin);
        if let Some(entry) = self.in_flight.get_mut(&id) {
            entry.line = Some(line);
        }
        line
    }

    /// The rules by which the variants of `primary` are found, newest first.
    pub(crate) fn rules(&self, primary: Digest) -> Vec<VaryRule> {
        match self.index.get(&primary) {
            Some(Resource::Varying(varying)) => varying.rules.clone(),
            Some(Resource::Single(_)) | None => Vec::new(),
        }
    }

    /// Puts in what was found on disk, unless there is one already: then that is the answer. `None`
    /// if its target was forgotten since it was looked for, or it is outdated: what is stored here
    /// shows that, or it is not the newest record on disk.
    pub(crate) fn insert_from_disk(
        &mut self,
        id: InFlightId,
        vary: Option<(VaryRule, Digest, Line)>,
        response: Arc<StoredResponse>,
        is_newest: bool,
    ) -> Option<Arc<StoredResponse>> {
        if self.is_outdated(id) {
            return None;
        }
        let there = match (self.index.get(&id.primary), &vary) {
            (None, _) => None,
            // it varies by now, or no longer
            (Some(Resource::Varying(_)), None) | (Some(Resource::Single(_)), Some(_)) => {
                return None;
            }
            (Some(Resource::Single(slot)), None) => Some(*slot),
            (Some(Resource::Varying(varying)), Some((_, selecting, line))) => {
                if varying.line.is_some_and(|known| known != *line) {
                    return None;
                }
                varying.find(*selecting)
            }
        };
        if let Some(there) = there.and_then(|slot| self.response(slot)) {
            return Some(there);
        }
        if !is_newest {
            return None;
        }
        let line = vary.as_ref().map(|(_, _, line)| *line);
        let vary = vary.map(|(rule, selecting, _)| (rule, selecting));
        // one whose content stays on disk takes little, and a variant is recognised by its entry
        // here
        let charge = charge_of(vary.as_ref(), &response);
        if vary.is_none()
            && response.body.is_in_memory()
            && self.catalog.judge_promotion(id.primary, charge) == PromotionDecision::FirstRequest
        {
            return Some(response);
        }
        // without room it is served this once
        let _ = self.admit(id.primary, vary, line, Arc::clone(&response), false);
        Some(response)
    }

    /// Makes a response that has arrived findable, as a copy of what another node keeps if
    /// `is_copy`; whether the rules by which its target's variants are found are others now.
    /// Whatever comes of it, it is no longer arriving.
    pub(crate) fn commit(
        &mut self,
        id: InFlightId,
        vary: Option<(VaryRule, Digest)>,
        response: Arc<StoredResponse>,
        is_copy: bool,
    ) -> Result<bool, Refusal> {
        let is_outdated = self.is_outdated(id);
        let line = self.in_flight.get(&id).and_then(|entry| entry.line);
        let primary = id.primary;
        self.abandon(id);
        let selecting = vary.as_ref().map(|(_, selecting)| *selecting);
        let admitted = if is_outdated || self.is_outdone(primary, selecting, &response) {
            Err(Refusal::NotResident)
        } else {
            let admitted = self.admit(primary, vary, line, Arc::clone(&response), is_copy);
            if admitted.is_err() {
                self.forget_older(primary, selecting, &response);
            }
            admitted
        };
        if admitted.is_err() {
            self.linger(&response);
        }
        admitted
    }

    fn admit(
        &mut self,
        primary: Digest,
        vary: Option<(VaryRule, Digest)>,
        line: Option<Line>,
        response: Arc<StoredResponse>,
        is_copy: bool,
    ) -> Result<bool, Refusal> {
        let charge = charge_of(vary.as_ref(), &response);
        if is_copy {
            self.begin_copies()?;
        }
        self.take_given_back();
        let (entries, victims) = (&self.entries, &mut self.victims);
        let in_use = |slot| in_use(entries, slot);
        let room = self.catalog.make_room_to_admit(charge, victims, &in_use);
        self.drop_victims();
        room?;
        let admitted = match is_copy {
            true => self.catalog.admit_copy(primary, charge, &mut self.victims),
            false => self.catalog.admit(primary, charge, &mut self.victims),
        };
        let slot = admitted.inspect_err(|_| debug_assert!(self.victims.is_empty()))?;
        // the slot may have been a victim's: that one first
        self.drop_victims();
        self.entries[slot.index()] = Some(Entry { primary, response });
        Ok(match vary {
            None => {
                self.put_single(primary, slot);
                false
            }
            Some((rule, selecting)) => self.put_variant(primary, slot, &rule, selecting, line),
        })
    }

    /// Whether what `response` would take the place of was received after it: of two the most
    /// recent one is used (RFC 9111 §4). Unless that is a part of the same representation, and
    /// `response` is all of it.
    fn is_outdone(
        &self,
        primary: Digest,
        selecting: Option<Digest>,
        response: &StoredResponse,
    ) -> bool {
        let former = self.slots_in_place(primary, selecting);
        former.into_iter().any(|slot| {
            self.response(slot).is_some_and(|former| {
                let joins = former.is_part()
                    && !response.is_part()
                    && former.facts.can_be_joined()
                    && former.entity_tag == response.entity_tag;
                former.facts.response_tick > response.facts.response_tick && !joins
            })
        })
    }

    /// Gives up on a response that was arriving; its bytes are given back.
    pub(crate) fn abandon(&mut self, id: InFlightId) {
        if let Some(gone) = self.in_flight.remove(&id) {
            self.catalog.release(gone.held);
        }
    }

    /// A response that varies on nothing stands alone: what varied before is outdated by it.
    fn put_single(&mut self, primary: Digest, slot: Slot) {
        if let Some(before) = self.index.insert(primary, Resource::Single(slot)) {
            before.slots().into_iter().for_each(|old| self.free(old));
        }
    }

    /// A response that varies joins the variants, and replaces the one for the same request.
    /// Whether the rules are others now.
    fn put_variant(
        &mut self,
        primary: Digest,
        slot: Slot,
        rule: &VaryRule,
        selecting: Digest,
        line: Option<Line>,
    ) -> bool {
        let mut varying = match self.index.remove(&primary) {
            Some(Resource::Varying(varying)) => varying,
            Some(Resource::Single(old)) => {
                self.free(old);
                Box::default()
            }
            None => Box::default(),
        };
        // on disk the others are not found any more if this one began another line
        let changes =
            varying.rules.first() != Some(rule) || line.is_some_and(|_| varying.line != line);
        varying.line = line.or(varying.line);
        let leaving = varying.put(rule, selecting, slot);
        self.index.insert(primary, Resource::Varying(varying));
        leaving.into_iter().for_each(|old| self.free(old));
        changes
    }

    /// Puts `new` where `old` is stored, if it still is.
    pub(crate) fn replace(
        &mut self,
        primary: Digest,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
    ) -> bool {
        let Some(slot) = self.slot_of(primary, old) else {
            return false;
        };
        let resource = self.index.get(&primary);
        let variant = resource.and_then(|resource| resource.variant(slot));
        let beside = variant_charge(variant.map(|variant| &variant.rule));
        let charge = (new.charged_bytes() + beside) as u64;
        let former = self.catalog.size_bytes(slot).unwrap_or(0);
        let room = self.make_room(charge.saturating_sub(former));
        if self.slot_of(primary, old) != Some(slot) {
            return false;
        }
        let resized = self.catalog.resize(slot, charge, &mut self.victims);
        self.drop_victims();
        if room.is_err() || resized.is_err() {
            self.forget(primary, slot);
            return false;
        }
        let entry = self.entries.get_mut(slot.index());
        let Some(entry) = entry.and_then(Option::as_mut) else {
            return false;
        };
        let shares = |memory| {
            let own = new.body.memory();
            own.is_some_and(|own| Arc::ptr_eq(own, memory))
        };
        let is_shared = old.body.memory().is_some_and(shares);
        entry.response = new;
        if !is_shared {
            self.linger(old);
        }
        true
    }

    /// The catalog chose victims: drops their bytes and their places in the index.
    fn drop_victims(&mut self) {
        while let Some(slot) = self.victims.pop() {
            self.evictions += 1;
            let Some(entry) = self.entries.get_mut(slot.index()).and_then(Option::take) else {
                continue;
            };
            if let Some(resource) = self.index.get_mut(&entry.primary)
                && resource.forget(slot)
            {
                self.index.remove(&entry.primary);
            }
            self.leave(entry);
        }
        self.victims.shrink_to(VICTIMS_KEPT);
        self.follow_slots();
    }

    pub(crate) fn entries(&self) -> u64 {
        self.catalog.len() as u64
    }

    pub(crate) fn primaries(&self) -> Vec<Digest> {
        self.index.keys().copied().collect()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.len() as u64
    }

    pub(crate) fn evictions(&self) -> u64 {
        self.evictions
    }

    pub(crate) fn clear(&mut self) {
        let primaries: Vec<Digest> = self.index.keys().copied().collect();
        for primary in primaries {
            self.remove(primary);
        }
        self.outdate_all_in_flight();
    }
}

#[cfg(test)]
mod tests;
