//! The room of a response that is arriving.

use crate::body::BLOCK_BYTES;
use crate::growing::{Growing, Place, charged_for};
use crate::memory::MemoryStore;
use crate::resource::VaryRule;
use crate::stored::StoredResponse;
use std::sync::Arc;
use weir_policy::catalog::Refusal;
use weir_policy::{Digest, Now};

/// Room taken for a response that is arriving; given back when dropped before `commit`.
///
/// It is pinned: once granted it is not taken away for others. A refusal of more leaves what was granted.
#[derive(Debug)]
pub struct Building {
    store: Arc<MemoryStore>,
    primary: Digest,
    number: u64,
    /// Bytes charged beside content.
    head_charge: usize,
    /// Bytes of content that were expected when it began.
    expected: u64,
    /// Bytes of memory granted for content.
    reserved: usize,
    done: bool,
}

impl Building {
    pub(crate) fn new(
        store: Arc<MemoryStore>,
        primary: Digest,
        number: u64,
        head_charge: usize,
        expected: u64,
    ) -> Self {
        Self {
            store,
            primary,
            number,
            head_charge,
            expected,
            reserved: charged_for(expected),
            done: false,
        }
    }

    /// Makes sure that there is room for `content_bytes` in all, from the first one on, before a
    /// [`BodyBuilder`](crate::BodyBuilder) takes them.
    ///
    /// # Errors
    ///
    /// As for [`Self::reserve_held`].
    pub fn reserve(&mut self, now: Now, content_bytes: u64) -> Result<(), Refusal> {
        let _ = now;
        self.store.check_size(content_bytes)?;
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
        self.store.check_size(content.min(complete))?;
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
        self.store.shard(self.primary).extend(self.number, charge)?;
        self.reserved = held_bytes;
        Ok(())
    }

    /// Whether the target was purged or invalidated since this began: it will not be stored, and who asks now must not
    /// get it. Those who read it already may go on.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.store.shard(self.primary).is_outdated(self.number)
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
        self.done = true;
        let response = response.into();
        let mut shard = self.store.shard(self.primary);
        shard.commit(now, self.number, vary, response)
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if !self.done {
            self.store.shard(self.primary).abandon(self.number);
        }
    }
}
