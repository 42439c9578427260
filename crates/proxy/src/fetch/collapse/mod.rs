//! The collapsed requests of the proxy: which one is forwarded, and which ones wait for its
//! response or read it (RFC 9211 §2.6).
//!
//! Decisions are `weir_policy::collapse`'s. This module keeps their state behind locks, one for
//! each part of the targets, with the commands and wakers of the requests that wait. A lock is held
//! for one event; wakers are woken after it is released. Lock order: that of an in-flight response
//! first, then this one.

mod follower;
mod leader;
mod slots;

pub(crate) use follower::{Follower, WaitResult};
pub(crate) use leader::Leader;

use crate::fetch::in_flight::InFlightResponse;
use slots::{SlotId, Slots};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_policy::collapse::{Collapse, Command, GroupId, Passes, Selection, Terms};
use weir_policy::{Digest, Now};

/// Parts of the table, so that workers seldom meet at a lock.
const SHARDS: usize = 64;

type Policy = Collapse<Digest, SlotId, Arc<InFlightResponse>, Digest>;
type Commands = Vec<(SlotId, Command<Arc<InFlightResponse>>)>;

/// All collapsed requests of the proxy.
#[derive(Debug)]
pub(crate) struct CollapsedRequests {
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug)]
struct Shard {
    policy: Policy,
    slots: Slots,
}

/// How a request that must be forwarded is handled.
pub(crate) enum Decision {
    /// Forward the request, for its followers too.
    Lead(Leader),
    /// Wait for the response of another request.
    Wait(Follower),
    /// Read the in-flight response of this group.
    Read(GroupId, Arc<InFlightResponse>),
    /// Forward the request, for itself only.
    Bypass,
}

impl Default for CollapsedRequests {
    fn default() -> Self {
        let shard = || Shard {
            policy: Collapse::part_of(SHARDS),
            slots: Slots::default(),
        };
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
        }
    }
}

impl CollapsedRequests {
    /// Finds a group for a request, or begins one. `passes` counts the groups it was in already;
    /// `select` is true for an in-flight response that is the variant for it.
    pub(crate) fn want(
        self: &Arc<Self>,
        now: Now,
        key: Digest,
        terms: Terms,
        passes: &mut Passes<Digest>,
        select: &dyn Fn(&InFlightResponse) -> Selection<Digest>,
    ) -> Decision {
        let mut shard = self.shard(key);
        let Shard { policy, slots } = &mut *shard;
        let slot = slots.take();
        let select = |response: &Arc<InFlightResponse>| select(response);
        let command = policy.want(now, key, slot, terms, passes, select);
        match command {
            Command::Lead(group) | Command::TakeOver(group) => {
                Decision::Lead(Leader::new(Arc::clone(self), key, group, slot))
            }
            Command::Wait(id) => Decision::Wait(Follower::new(Arc::clone(self), key, id, slot)),
            Command::Read(group, response) => {
                slots.give_back(slot);
                Decision::Read(group, response)
            }
            Command::LookUp(_) | Command::Bypass | Command::NotAwaited => {
                slots.give_back(slot);
                Decision::Bypass
            }
        }
    }

    /// Newcomers may read a response that no request waits for.
    pub(crate) fn publish(
        self: &Arc<Self>,
        key: Digest,
        response: &Arc<InFlightResponse>,
    ) -> Option<CollapsedGroup> {
        let id = self.shard(key).policy.publish(key, Arc::clone(response))?;
        Some(CollapsedGroup::new(Arc::clone(self), key, id))
    }

    /// A response of this target answers other requests.
    pub(crate) fn shared(&self, key: Digest) {
        self.shard(key).policy.shared(key);
    }

    /// Whether the target is hit-for-miss.
    pub(crate) fn is_uncollapsible(&self, now: Now, key: Digest) -> bool {
        self.shard(key).policy.is_uncollapsible(now, key)
    }

    /// The target was purged or invalidated.
    pub(crate) fn forget(&self, key: Digest) {
        self.shard(key).policy.forget(key);
    }

    /// Everything was purged.
    pub(crate) fn forget_all(&self) {
        for shard in &self.shards {
            lock(shard).policy.forget_all();
        }
    }

    /// Passes an event to the policy, and wakes the requests that it has commands for. `slot` is
    /// unlocked.
    fn report(
        &self,
        key: Digest,
        slot: Option<SlotId>,
        event: impl FnOnce(&mut Policy, &mut Commands),
    ) {
        let mut commands = Commands::new();
        let mut shard = self.shard(key);
        event(&mut shard.policy, &mut commands);
        let unread = slot.and_then(|slot| shard.slots.give_back(slot));
        let woken = shard.slots.tell(commands);
        drop(shard);
        drop((woken, unread));
    }

    fn shard(&self, key: Digest) -> MutexGuard<'_, Shard> {
        let at = usize::try_from(key.1).unwrap_or(0) & (SHARDS - 1);
        lock(&self.shards[at])
    }
}

/// Every operation completes its change of the table before anything that can fail.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The group of an in-flight response.
#[derive(Debug)]
pub(crate) struct CollapsedGroup {
    requests: Arc<CollapsedRequests>,
    key: Digest,
    id: GroupId,
}

impl CollapsedGroup {
    const fn new(requests: Arc<CollapsedRequests>, key: Digest, id: GroupId) -> Self {
        Self { requests, key, id }
    }

    /// Whether requests are about to read the response that waited for it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.requests.shard(self.key).policy.is_awaited(self.id)
    }

    /// The response is not for newcomers any more; those that waited stay.
    pub(crate) fn withdraw(&self) {
        self.requests.shard(self.key).policy.withdraw(self.id);
    }

    /// The response is over.
    pub(crate) fn close(self) {
        let response = self.requests.shard(self.key).policy.close(self.id);
        drop(response);
    }
}

#[cfg(test)]
mod tests;
