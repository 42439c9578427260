//! The memory tier: shards by digest, one budget; and the disk tier behind it, if there is one.

mod moving;

use crate::content::file::MemoryFile;
use crate::expected_response::ExpectedResponse;
use crate::in_flight::write_behind::WriteBehind;
use crate::record::{Line, variant_key};
use crate::resource::VaryRule;
use crate::shard::{DiskPlace, LookupResult, Shard, StoredVariant, shard_bytes_for};
use crate::stored::StoredResponse;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_disk::{Disk, PurgeError, Ticket};
use weir_policy::admission::{Admission, Admissions, Rule};
use weir_policy::catalog::{Catalog, Refusal};
use weir_policy::eviction::EvictionKind;
use weir_policy::{Digest, Secret};
use weir_semantics::Timestamp;

/// A shard smaller than this, or than holds the largest response while it arrives, would refuse
/// responses that the whole could hold.
const SHARD_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Stored responses in memory, shared by all workers.
///
/// The budget covers all that the store holds on the heap, as an allocator rounds it, and in a file
/// in memory ([`MemoryStore::open_file`]), by pages: heads, entity
/// tags, content, rules of Vary, the tables of index and catalog with their slack; responses that
/// are arriving, with what is set aside for them; content of more than one block that was purged or
/// replaced, until its last reader drops it. While such content is read it is not evicted: that
/// would free nothing.
///
/// In-flight responses are never evicted, so that their readers lose nothing. All of them together
/// may come to [`IN_FLIGHT_PERCENT_MAX`](crate::IN_FLIGHT_PERCENT_MAX) of the budget, the large
/// ones to an eighth less; a reservation beyond that is refused, which concerns only its own fetch.
#[derive(Debug)]
pub struct MemoryStore {
    shards: Box<[Mutex<Shard>]>,
    secret: Secret,
    largest_response: u64,
    pub(crate) disk: Option<Arc<Disk>>,
    /// Held while what is stored is purged or given another expiration, in both tiers: so that the
    /// second never undoes the first.
    pub(crate) changing: Mutex<()>,
    largest_on_disk: u64,
    admissions: Mutex<Admissions>,
    pub(crate) write_behind: WriteBehind,
    /// What is read from disk is to be validated if its ticket has at most this number.
    validated_ticket: AtomicU64,
    /// Or if it was received by then, by the wall clock.
    validated_until: AtomicI64,
    /// Bytes of content that are being read from disk to be in memory.
    pub(crate) loading_bytes: AtomicU64,
    /// Where content is that is sent without a copy, if the system has given one.
    pub(crate) file: Option<Arc<MemoryFile>>,
}

/// What the memory tier holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes charged: heads, content, index and its slack, allocator rounding, what is arriving; at
    /// most the budget.
    pub used_bytes: u64,
    /// Responses stored.
    pub entries: u64,
    /// Responses in flight, or expected.
    pub in_flight: u64,
    /// Bytes of `used_bytes` that those in flight hold or have reserved.
    pub in_flight_bytes: u64,
    /// Bytes of `used_bytes` of responses that were evicted or refused, and are still read.
    pub lingering_bytes: u64,
    /// Bytes of `used_bytes` of content in a file in memory, which is sent without a copy.
    pub file_bytes: u64,
    /// Responses that left to make room, since start.
    pub evictions: u64,
}

impl MemoryStore {
    /// A store of `budget_bytes` in at most `shards_max` shards.
    #[must_use]
    pub fn new(
        budget_bytes: u64,
        eviction: EvictionKind,
        shards_max: usize,
        largest_response: u64,
        secret: Secret,
    ) -> Self {
        let shard_bytes_min = SHARD_BYTES_MIN.max(shard_bytes_for(largest_response));
        let by_size = usize::try_from(budget_bytes / shard_bytes_min).unwrap_or(usize::MAX);
        let count = 1 << shards_max.min(by_size).clamp(1, 1024).ilog2();
        let share = budget_bytes / count as u64;
        let shards = (0..count)
            .map(|_| Mutex::new(Shard::new(Catalog::new(share, eviction))))
            .collect();
        Self {
            shards,
            secret,
            largest_response,
            disk: None,
            changing: Mutex::default(),
            largest_on_disk: 0,
            admissions: Mutex::new(Admissions::new(Rule::Always)),
            write_behind: WriteBehind::default(),
            validated_ticket: AtomicU64::new(0),
            validated_until: AtomicI64::new(i64::MIN),
            loading_bytes: AtomicU64::new(0),
            file: None,
        }
    }

    /// Its budget, bytes.
    pub(crate) fn budget_bytes(&self) -> u64 {
        let shards = self.shards.iter();
        shards
            .map(|shard| lock(shard).catalog().budget_bytes())
            .sum()
    }

    /// What is read from disk is validated at each use if its ticket has at most this number, or if
    /// it was received by `then`, until it was validated. The second is for what is written again
    /// and was not validated: that has a newer ticket.
    pub fn validate_stored_by(&self, ticket: u64, then: Timestamp) {
        self.validated_ticket.fetch_max(ticket, Ordering::Relaxed);
        self.validated_until.fetch_max(then.0, Ordering::Relaxed);
    }

    /// What is on disk by now is validated at each use, until it was validated; the number of the
    /// ticket that says what that is. `None` if there is no disk.
    pub fn validate_on_disk(&self) -> Option<u64> {
        let ticket = self.disk.as_ref()?.ticket().number();
        self.validated_ticket.fetch_max(ticket, Ordering::Relaxed);
        Some(ticket)
    }

    /// Whether what was requested with `ticket` and received at that time is to be validated.
    pub(crate) fn must_validate(&self, ticket: Ticket, received: Timestamp) -> bool {
        ticket.number() <= self.validated_ticket.load(Ordering::Relaxed)
            || received.0 <= self.validated_until.load(Ordering::Relaxed)
    }

    /// The same in front of `disk`, whose secret it takes. What is written there is what `rule`
    /// says, and content of more than `largest_response` bytes is not.
    #[must_use]
    pub fn with_disk(self, disk: Arc<Disk>, rule: Rule, largest_response: u64) -> Self {
        Self {
            secret: disk.secret(),
            disk: Some(disk),
            largest_on_disk: largest_response,
            admissions: Mutex::new(Admissions::new(rule)),
            ..self
        }
    }

    /// The largest response, head and bookkeeping included, that a shard admits at its first
    /// request, bytes.
    #[must_use]
    pub fn newcomer_max_bytes(&self) -> u64 {
        // shards are alike, and no key is remembered by an empty one
        self.shard(Digest(0, 0)).newcomer_max_bytes(Digest(0, 0))
    }

    /// The disk tier behind it.
    #[must_use]
    pub fn disk(&self) -> Option<&Arc<Disk>> {
        self.disk.as_ref()
    }

    /// The secret digests are keyed with.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The first 64 bits of the keys of all that is stored, in memory or on disk, each once. Walks
    /// all of both, a shard after the other: for a thread that nothing waits for. No lock is held
    /// while one is visited.
    pub fn tags(&self, mut visit: impl FnMut(u64)) {
        let disk = self.disk.as_ref();
        for shard in &self.shards {
            let primaries = lock(shard).primaries();
            for primary in primaries {
                if disk.is_none_or(|disk| !disk.may_hold(primary)) {
                    visit(primary.0);
                }
            }
        }
        if let Some(disk) = disk {
            disk.tags(visit);
        }
    }

    /// Looks for the response stored for `primary`; `selecting` digests the request's nominated
    /// fields under a rule and is called with the shard locked, so it must be quick and must not
    /// call back.
    pub fn find(&self, primary: Digest, selecting: &dyn Fn(&VaryRule) -> Digest) -> LookupResult {
        self.shard(primary).find(primary, selecting)
    }

    /// The same for a request whose response modules may change before it is stored: one that
    /// varies on nothing was stored without them.
    pub fn find_variant(
        &self,
        primary: Digest,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> LookupResult {
        self.shard(primary).find_variant(primary, selecting)
    }

    /// What [`MemoryStore::find`] would find, or [`MemoryStore::find_variant`] if it is
    /// `of_variants`. It changes nothing: no use of it is noted.
    pub fn peek(
        &self,
        primary: Digest,
        of_variants: bool,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> LookupResult {
        self.shard(primary).peek(primary, of_variants, selecting)
    }

    /// Whether the disk has a record of what is stored in memory for a target; of a variant by the
    /// digest of its nominated fields.
    #[must_use]
    pub fn is_on_disk(&self, primary: Digest, selecting: Option<Digest>) -> bool {
        let Some(disk) = &self.disk else {
            return false;
        };
        let line = self.shard(primary).stored_line(primary);
        let key = match (line, selecting) {
            (Some(line), Some(selecting)) => Some(self.disk_key(primary, Some((line, selecting)))),
            (None, Some(_)) => None,
            (_, None) => Some(primary),
        };
        key.is_some_and(|key| disk.find(key).is_some())
    }

    /// All that is stored for a target in memory, each with what it varies on, the oldest first: at
    /// most [`VARIANTS_MAX`](crate::VARIANTS_MAX). What only the disk has is not among them.
    #[must_use]
    pub fn variants(&self, primary: Digest) -> Vec<StoredVariant> {
        self.shard(primary).stored(primary)
    }

    /// Whether the disk may have a response that memory lacks.
    #[must_use]
    pub fn may_be_on_disk(&self, primary: Digest) -> bool {
        let disk = self.disk.as_ref();
        disk.is_some_and(|disk| disk.may_hold(primary))
    }

    /// A response for `primary` is requested, and may have to be stored.
    #[must_use]
    pub fn expect(self: &Arc<Self>, primary: Digest) -> ExpectedResponse {
        ExpectedResponse::new(Arc::clone(self), primary)
    }

    /// The same of a response that will validate or complete `stored`, which was chosen a moment
    /// ago: of what is purged from the choice on nothing comes back by it.
    #[must_use]
    pub fn expect_for(
        self: &Arc<Self>,
        primary: Digest,
        stored: &Arc<StoredResponse>,
    ) -> ExpectedResponse {
        ExpectedResponse::resting_on(Arc::clone(self), primary, stored)
    }

    /// Whether content of so many bytes may be written to disk.
    pub(crate) fn is_for_disk(&self, content: u64) -> bool {
        content <= self.largest_on_disk
    }

    /// Whether a response under `key` with so many bytes of content, of which `came` are there, is
    /// written to disk. What is there already is replaced in any case.
    pub(crate) fn admits(&self, disk: &Disk, key: Digest, content: Option<u64>, came: u64) -> bool {
        let judge = || lock(&self.admissions).judge(key, content);
        self.is_for_disk(content.unwrap_or(came))
            && (disk.may_hold(key) || judge() == Admission::Admitted)
    }

    /// Refuses content larger than the largest response.
    pub(crate) fn check_size(&self, content: u64) -> Result<(), Refusal> {
        if content > self.largest_response {
            return Err(Refusal::TooLarge {
                size_bytes: content,
                size_max_bytes: self.largest_response,
            });
        }
        Ok(())
    }

    /// Puts `new` where `old` is stored (RFC 9111 §4.3.4); `false` if `old` is not stored any more.
    pub fn replace(
        &self,
        primary: Digest,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
    ) -> bool {
        self.shard(primary).replace(primary, old, new)
    }

    /// Forgets one response, here and on disk. On disk it is whatever is found under the key: it
    /// may forget.
    pub fn drop_one(&self, primary: Digest, response: &Arc<StoredResponse>) -> bool {
        let dropped = self.shard(primary).drop_one(primary, response);
        if let Some(disk) = &self.disk {
            let variant = dropped.flatten();
            disk.forget_key(self.disk_key(primary, variant));
            if dropped.is_some() {
                let selecting = variant.map(|(_, selecting)| selecting);
                self.shard(primary).outdate_found(primary, selecting);
            }
        }
        dropped.is_some()
    }

    /// The key on disk of a response; of a variant by its line there and what it varies on.
    fn disk_key(&self, primary: Digest, variant: Option<(Line, Digest)>) -> Digest {
        variant.map_or(primary, |(line, selecting)| {
            variant_key(&self.secret, primary, line, selecting)
        })
    }

    /// Forgets one response that is known to be outdated, here and on disk, as [`Self::purge`]
    /// does: responses requested before are not found on disk any more, also after a crash.
    /// `selecting` digests what it varies on in its request.
    ///
    /// If another response has replaced it, nothing is dropped; if its key on disk is not known,
    /// all of the target is.
    pub fn purge_one(
        &self,
        primary: Digest,
        response: &Arc<StoredResponse>,
        selecting: Option<Digest>,
    ) -> Purge {
        let _order = lock(&self.changing);
        let place = self.shard(primary).outdate(primary, response, selecting);
        let (removed, variant) = match place {
            DiskPlace::Forgotten(variant) => (1, variant),
            DiskPlace::Evicted(variant) => (0, variant),
            DiskPlace::Replaced => return Purge::default(),
            DiskPlace::Unknown => return self.purge_target(primary),
        };
        let key = self.disk_key(primary, variant);
        let purge = self.purge_on_disk(removed, |disk| Box::pin(disk.purge(key)));
        if self.disk.is_some() {
            let selecting = variant.map(|(_, selecting)| selecting);
            self.shard(primary).outdate_found(primary, selecting);
        }
        purge
    }

    /// Forgets all that is stored for a target in memory; returns how many responses left.
    pub fn remove(&self, primary: Digest) -> usize {
        self.shard(primary).remove(primary)
    }

    /// Forgets all that is stored for a target, here and on disk, and what is on its way to either.
    pub fn purge(&self, primary: Digest) -> Purge {
        let _order = lock(&self.changing);
        self.purge_target(primary)
    }

    fn purge_target(&self, primary: Digest) -> Purge {
        let disk = self.disk.as_ref();
        let is_on_disk = disk.is_some_and(|disk| disk.is_held(primary));
        let may_be_more = !is_on_disk && disk.is_some_and(|disk| disk.is_incomplete());
        // a response in both tiers counts once
        let removed = self.remove(primary).max(usize::from(is_on_disk));
        let purge = self.purge_on_disk(removed, |disk| Box::pin(disk.purge(primary)));
        if self.disk.is_some() {
            self.remove(primary);
        }
        Purge {
            may_be_more,
            ..purge
        }
    }

    /// Forgets everything, here and on disk.
    pub fn purge_all(&self) -> Purge {
        let _order = lock(&self.changing);
        let disk = self.disk.as_ref();
        let may_be_more = disk.is_some_and(|disk| disk.is_incomplete());
        // most responses in memory are on disk, too
        let on_disk = disk.map_or(0, |disk| disk.entries());
        let removed = self.memory_use().entries.max(on_disk);
        let removed = usize::try_from(removed).unwrap_or(usize::MAX);
        self.clear();
        let purge = self.purge_on_disk(removed, |disk| Box::pin(disk.purge_all()));
        if self.disk.is_some() {
            self.clear();
        }
        Purge {
            may_be_more,
            ..purge
        }
    }

    /// To be called between two purges of memory. Without the first, what is arriving could be
    /// written after the purge of the disk; without the second, a look-up that began after the
    /// first and found the response on disk would put it back into memory.
    pub(crate) fn purge_on_disk(
        &self,
        removed: usize,
        purge: impl FnOnce(&Disk) -> Durable,
    ) -> Purge {
        Purge {
            removed,
            may_be_more: false,
            durable: self.disk.as_deref().map(purge),
        }
    }

    /// Forgets everything in memory.
    pub fn clear(&self) {
        for shard in &self.shards {
            ShardGuard::of(shard).clear();
        }
    }

    /// Nothing that was requested by now is stored when it has arrived; what is stored stays.
    pub fn outdate_in_flight(&self) {
        for shard in &self.shards {
            lock(shard).outdate_all_in_flight();
        }
    }

    /// Changes the budget; evicts what does not fit any more.
    pub fn set_budget(&self, budget_bytes: u64) {
        let share = budget_bytes / self.shards.len() as u64;
        for shard in &self.shards {
            ShardGuard::of(shard).set_budget(share);
        }
    }

    /// Gives back the memory of what was written to disk since it was stored. Store operations and
    /// disk lookups do so too.
    pub fn settle(&self) {
        self.write_behind.settle(self);
    }

    /// What is held now.
    #[must_use]
    pub fn memory_use(&self) -> MemoryUse {
        let mut sum = MemoryUse {
            file_bytes: self.file.as_ref().map_or(0, |file| file.used_bytes()),
            ..MemoryUse::default()
        };
        for shard in &self.shards {
            let shard = lock(shard);
            sum.used_bytes += shard.used_bytes();
            sum.entries += shard.entries();
            sum.in_flight += shard.in_flight();
            sum.in_flight_bytes += shard.in_flight_bytes();
            sum.lingering_bytes += shard.lingering_bytes();
            sum.evictions += shard.evictions();
        }
        sum
    }

    /// Walks the whole store; for tests.
    ///
    /// # Panics
    ///
    /// If an invariant is broken, first of all that the budget is kept.
    pub fn debug_check(&self) {
        for shard in &self.shards {
            lock(shard).debug_check();
        }
    }

    pub(crate) fn shard(&self, primary: Digest) -> ShardGuard<'_> {
        // the second half: the first one places within the shard's table
        let at = usize::try_from(primary.1).unwrap_or(0) & (self.shards.len() - 1);
        ShardGuard::of(&self.shards[at])
    }
}

/// A shard with its lock. What leaves it is dropped behind the lock.
pub(crate) struct ShardGuard<'s>(Option<MutexGuard<'s, Shard>>);

impl<'s> ShardGuard<'s> {
    fn of(shard: &'s Mutex<Shard>) -> Self {
        Self(Some(lock(shard)))
    }
}

impl Deref for ShardGuard<'_> {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        self.0.as_ref().expect("held until it is dropped")
    }
}

impl DerefMut for ShardGuard<'_> {
    fn deref_mut(&mut self) -> &mut Shard {
        self.0.as_mut().expect("held until it is dropped")
    }
}

impl Drop for ShardGuard<'_> {
    fn drop(&mut self) {
        let leaving = self.0.as_mut().map(|shard| shard.take_leaving());
        self.0 = None;
        drop(leaving);
    }
}

/// Ready when it survives a crash.
type Durable = Pin<Box<dyn Future<Output = Result<(), PurgeError>> + Send>>;

/// A purge that is in force. It may be acknowledged once it is durable.
#[derive(Default)]
#[must_use]
pub struct Purge {
    /// How many responses left, as far as that is known: of variants that only the disk has, it is
    /// not.
    pub removed: usize,
    /// Further ones may have left the disk, whose index is not complete.
    pub may_be_more: bool,
    durable: Option<Durable>,
}

impl Purge {
    /// A purge that drops nothing, and survives a crash once `durable` is ready.
    pub fn lasting(durable: impl Future<Output = Result<(), PurgeError>> + Send + 'static) -> Self {
        Self {
            removed: 0,
            may_be_more: false,
            durable: Some(Box::pin(durable)),
        }
    }

    /// Waits until it survives a crash.
    ///
    /// # Errors
    ///
    /// It might not survive one.
    pub async fn durable(self) -> Result<(), PurgeError> {
        match self.durable {
            Some(durable) => durable.await,
            None => Ok(()),
        }
    }
}

/// After a panic while a lock is held the store is usable: every operation makes it consistent
/// before anything that can fail.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
