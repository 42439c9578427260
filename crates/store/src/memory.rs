//! The memory tier: shards by digest, one budget.

use crate::body::{BLOCK_BYTES, charged_for};
use crate::resource::VaryRule;
use crate::shard::{ARRIVING_BYTES, Lookup, Shard};
use crate::stored::StoredResponse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_policy::catalog::{Catalog, Refusal, Slot};
use weir_policy::eviction::EvictionKind;
use weir_policy::{Digest, Now, Secret};

/// A shard smaller than this would refuse responses that the whole could hold.
const SHARD_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Stored responses in memory, shared by all workers.
///
/// The budget covers all that the store holds on the heap, as an allocator rounds it: heads, entity tags, content,
/// rules of Vary, the tables of index and catalog with their slack; responses that are arriving, up to the block they
/// are at, also from their eviction until the driver notices. It does not cover a response that has left while it is
/// being sent: its bytes are the sender's until the last of them lets go.
#[derive(Debug)]
pub struct MemoryStore {
    shards: Box<[Mutex<Shard>]>,
    secret: Secret,
    largest_response: u64,
}

/// What the memory tier holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes charged: heads, content, index and its slack, allocator rounding; at most the budget.
    pub used_bytes: u64,
    /// Responses stored or arriving.
    pub entries: u64,
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
        let by_size = usize::try_from(budget_bytes / SHARD_BYTES_MIN).unwrap_or(usize::MAX);
        let count = shards_max.min(by_size).clamp(1, 1024);
        let count = if count.is_power_of_two() {
            count
        } else {
            count.next_power_of_two() / 2
        };
        let share = budget_bytes / count as u64;
        let shards = (0..count)
            .map(|_| Mutex::new(Shard::new(Catalog::new(share, eviction))))
            .collect();
        Self {
            shards,
            secret,
            largest_response,
        }
    }

    /// The secret digests are keyed with.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Looks for the response stored for `primary`; `selecting` digests the request's nominated fields under a rule
    /// and is called with the shard locked, so it must be quick and must not call back.
    pub fn find(
        &self,
        now: Now,
        primary: Digest,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> Lookup {
        self.shard(primary).find(now, primary, selecting)
    }

    /// Takes room for a response of `head_bytes` and, if known, `content_bytes`. The head's are all that is held beside
    /// content while it arrives: with [`VaryRule::charged_bytes`] and an entity tag of more than 64 bytes.
    ///
    /// # Errors
    ///
    /// The catalog's reason for not taking it.
    pub fn begin(
        self: &Arc<Self>,
        now: Now,
        primary: Digest,
        head_bytes: usize,
        content_bytes: Option<u64>,
    ) -> Result<Building, Refusal> {
        let head_charge = StoredResponse::charged_head(head_bytes, 64) + ARRIVING_BYTES;
        let content = content_bytes.unwrap_or(0);
        self.check_size(content)?;
        let charge = (head_charge + charged_for(content)) as u64;
        let held_content = content.min(BLOCK_BYTES as u64);
        let held = (head_charge + charged_for(held_content)) as u64;
        let (slot, number) = self.shard(primary).begin(now, primary, charge, held)?;
        Ok(Building {
            store: Arc::clone(self),
            primary,
            slot,
            number,
            head_charge,
            charged_content: content,
            held_content,
            done: false,
        })
    }

    fn check_size(&self, content: u64) -> Result<(), Refusal> {
        if content > self.largest_response {
            return Err(Refusal::TooLarge {
                size_bytes: content,
                size_max_bytes: self.largest_response,
            });
        }
        Ok(())
    }

    /// Puts `new` where `old` is stored (RFC 9111 §4.3.4); `false` if `old` has left.
    pub fn replace(
        &self,
        now: Now,
        primary: Digest,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
    ) -> bool {
        self.shard(primary).replace(now, primary, old, new)
    }

    /// Forgets one response.
    pub fn drop_one(&self, primary: Digest, response: &Arc<StoredResponse>) -> bool {
        self.shard(primary).drop_one(primary, response)
    }

    /// Forgets all that is stored for a target; returns how many responses left.
    pub fn remove(&self, primary: Digest) -> usize {
        self.shard(primary).remove(primary)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for shard in &self.shards {
            lock(shard).clear();
        }
    }

    /// Changes the budget; what no longer fits leaves.
    pub fn set_budget(&self, budget_bytes: u64) {
        let share = budget_bytes / self.shards.len() as u64;
        for shard in &self.shards {
            lock(shard).set_budget(share);
        }
    }

    /// What is held now.
    #[must_use]
    pub fn memory_use(&self) -> MemoryUse {
        let mut sum = MemoryUse::default();
        for shard in &self.shards {
            let shard = lock(shard);
            sum.used_bytes += shard.used_bytes();
            sum.entries += shard.entries();
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

    fn shard(&self, primary: Digest) -> MutexGuard<'_, Shard> {
        // the second half: the first one places within the shard's table
        let at = usize::try_from(primary.1).unwrap_or(0) & (self.shards.len() - 1);
        lock(&self.shards[at])
    }
}

/// A panic elsewhere while the lock was held leaves the table usable: every operation leaves it consistent
/// before anything that can fail.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Room taken for a response that is arriving; given back when dropped before `commit`.
#[derive(Debug)]
pub struct Building {
    store: Arc<MemoryStore>,
    primary: Digest,
    slot: Slot,
    number: u64,
    head_charge: usize,
    charged_content: u64,
    held_content: u64,
    done: bool,
}

/// Room for content of unknown length is taken in steps of this many bytes, and what has arrived is told in them: the
/// builder holds whole blocks.
const STEP_BYTES: u64 = BLOCK_BYTES as u64;

impl Building {
    /// Makes sure that there is room for `content_bytes` in all, before they are pushed.
    ///
    /// # Errors
    ///
    /// The catalog's reason: too large, or evicted meanwhile. The response cannot be stored then, and what was kept of
    /// it should go.
    pub fn reserve(&mut self, now: Now, content_bytes: u64) -> Result<(), Refusal> {
        if content_bytes <= self.held_content {
            return Ok(());
        }
        self.store.check_size(content_bytes)?;
        let steps = content_bytes.div_ceil(STEP_BYTES) * STEP_BYTES;
        let content = if content_bytes <= self.charged_content {
            self.charged_content
        } else {
            steps
        };
        let held_content = steps.min(content);
        let charge_of = |content| (self.head_charge + charged_for(content)) as u64;
        self.store.shard(self.primary).resize(
            now,
            (self.slot, self.number),
            charge_of(content),
            charge_of(held_content),
        )?;
        self.charged_content = content;
        self.held_content = held_content;
        Ok(())
    }

    /// The response is whole: from now on it is found.
    ///
    /// # Errors
    ///
    /// The catalog's reason for letting it go after all.
    pub fn commit(
        mut self,
        now: Now,
        vary: Option<(VaryRule, Digest)>,
        response: StoredResponse,
    ) -> Result<(), Refusal> {
        self.done = true;
        let mut shard = self.store.shard(self.primary);
        let at = (self.slot, self.number);
        let committed = shard.commit(now, at, vary, response);
        if committed.is_err() {
            shard.abandon(self.slot, self.number);
        }
        committed
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if !self.done {
            self.store
                .shard(self.primary)
                .abandon(self.slot, self.number);
        }
    }
}
