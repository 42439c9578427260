//! The room of a response that is arriving, from the moment it is asked for.

use crate::body::BLOCK_BYTES;
use crate::growing::{Growing, Place, charged_for};
use crate::memory::MemoryStore;
use crate::resource::VaryRule;
use crate::shard::{ARRIVING_BYTES, ArrivingId, Shard};
use crate::stored::StoredResponse;
use std::sync::{Arc, MutexGuard};
use weir_policy::catalog::Refusal;
use weir_policy::{Digest, Now};

/// A response that is asked for, and may come: what is purged or invalidated from now on is so for it too.
///
/// To be taken before the request is sent. Nothing is stored without it: a response may not undo a purge that it was asked
/// for before.
#[derive(Debug)]
pub struct Expected {
    store: Arc<MemoryStore>,
    primary: Digest,
    /// What it is known by, or why there is no room even to know it.
    id: Result<ArrivingId, Refusal>,
    done: bool,
}

impl Expected {
    pub(crate) fn new(store: Arc<MemoryStore>, primary: Digest) -> Self {
        let id = store.shard(primary).expect(primary);
        Self {
            store,
            primary,
            id,
            done: false,
        }
    }

    /// Takes room for a response of `head_bytes` and, if known, `content_bytes` that are expected to arrive: of a part,
    /// those that are missing. The head's are all that is held beside content while it arrives: with
    /// [`VaryRule::charged_bytes`] and an entity tag of more than 64 bytes.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`] for more than the largest response, or than may arrive at all; [`Refusal::NoRoomArriving`]
    /// if others that arrive leave too little.
    pub fn begin(
        self,
        now: Now,
        head_bytes: usize,
        content_bytes: Option<u64>,
    ) -> Result<Building, Refusal> {
        let _ = now;
        let id = self.id?;
        let expected = content_bytes.unwrap_or(0);
        self.store.check_size(expected)?;
        let head_charge = StoredResponse::charged_head(head_bytes, 64) + ARRIVING_BYTES;
        let reserved = charged_for(expected);
        let charge = (head_charge + reserved) as u64;
        self.store.shard(self.primary).extend(id, charge)?;
        Ok(Building {
            id,
            head_charge,
            expected,
            reserved,
            place: self,
        })
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        if let (Ok(id), false) = (self.id, self.done) {
            self.store.shard(self.primary).abandon(id);
        }
    }
}

/// Room taken for a response that is arriving; given back when dropped before `commit`.
///
/// It is pinned: once granted it is not taken away for others. A refusal of more leaves what was granted.
#[derive(Debug)]
pub struct Building {
    place: Expected,
    id: ArrivingId,
    /// Bytes charged beside content.
    head_charge: usize,
    /// Bytes of content that were expected when it began.
    expected: u64,
    /// Bytes of memory granted for content.
    reserved: usize,
}

impl Building {
    /// Makes sure that there is room for `content_bytes` in all, from the first one on, before a
    /// [`BodyBuilder`](crate::BodyBuilder) takes them.
    ///
    /// # Errors
    ///
    /// As for [`Self::reserve_held`].
    pub fn reserve(&mut self, now: Now, content_bytes: u64) -> Result<(), Refusal> {
        let _ = now;
        self.place.store.check_size(content_bytes)?;
        let beyond = content_bytes.saturating_sub(self.expected);
        let beyond = beyond.next_multiple_of(BLOCK_BYTES as u64);
        self.reserve_held(charged_for(self.expected) + charged_for(beyond))
    }

    /// Makes sure that there is room for `bytes` more at `place`, before they are pushed.
    ///
    /// # Errors
    ///
    /// As for [`Self::reserve_held`].
    pub fn reserve_push(
        &mut self,
        growing: &Growing,
        place: Place,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let content = growing.present_bytes().saturating_add(bytes as u64);
        let complete = growing.complete_length().unwrap_or(u64::MAX);
        self.place.store.check_size(content.min(complete))?;
        self.reserve_held(growing.held_after(place, bytes))
    }

    /// Makes sure that there is room for content that holds `held_bytes` of memory ([`Growing::held_bytes`]). Cheap
    /// while that is not more than was granted before.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`] and [`Refusal::NoRoomArriving`]; what was granted before stays.
    pub fn reserve_held(&mut self, held_bytes: usize) -> Result<(), Refusal> {
        if held_bytes <= self.reserved {
            return Ok(());
        }
        let charge = (self.head_charge + held_bytes) as u64;
        self.shard().extend(self.id, charge)?;
        self.reserved = held_bytes;
        Ok(())
    }

    /// Whether the target was purged or invalidated since it was asked for: it will not be stored, and who asks now must not
    /// get it. Those who read it already may go on.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.shard().is_outdated(self.id)
    }

    /// The response is whole, or a part that is worth keeping: from now on it is found. It takes the place of what was
    /// stored for the same request.
    ///
    /// # Errors
    ///
    /// The catalog's reason for letting it go after all, [`Refusal::NotResident`] for [`Self::is_outdated`].
    pub fn commit(
        mut self,
        now: Now,
        vary: Option<(VaryRule, Digest)>,
        response: impl Into<Arc<StoredResponse>>,
    ) -> Result<(), Refusal> {
        self.place.done = true;
        let response = response.into();
        self.shard().commit(now, self.id, vary, response)
    }

    fn shard(&self) -> MutexGuard<'_, Shard> {
        self.place.store.shard(self.place.primary)
    }
}
