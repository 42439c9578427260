//! The digest of a node's own responses.

use crate::Digest;
use crate::route::cache_digest::{
    CacheDigest, DIGEST_BYTES_MAX, DigestVersion, SealedKey, message,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The latest additions that a node remembers: 1 MiB. A reader that lacks more gets the whole.
pub const ADDITIONS_MAX: usize = 65_536;

/// A new epoch begins when one in this many of the digest's responses is not held any more.
const GONE_SHARE: u64 = 20;

/// The digest of what a node holds, and what was added last.
#[derive(Clone, Debug)]
pub struct DigestWriter {
    epoch: u64,
    key: SealedKey,
    digest: CacheDigest,
    /// Keys added since the epoch began.
    additions: u64,
    /// The last of them, at most [`ADDITIONS_MAX`].
    latest: VecDeque<Digest>,
    /// Responses that the node held when it was last asked.
    held: u64,
}

impl DigestWriter {
    /// An empty digest with room for `responses`. No two digests of a node may have one `epoch`, a
    /// restart between them included.
    #[must_use]
    pub fn new(epoch: u64, key: SealedKey, responses: u64) -> Self {
        Self {
            epoch,
            key,
            digest: CacheDigest::with_capacity(responses),
            additions: 0,
            latest: VecDeque::new(),
            held: 0,
        }
    }

    /// A response is stored. What the digest has already, or takes for held, changes nothing.
    pub fn add(&mut self, key: Digest) {
        if self.digest.may_hold(key) {
            return;
        }
        self.digest.insert(key);
        self.additions += 1;
        if self.latest.len() == ADDITIONS_MAX {
            self.latest.pop_front();
        }
        self.latest.push_back(key);
    }

    /// The node holds so many responses, all of which were added.
    pub const fn note_held(&mut self, responses: u64) {
        self.held = responses;
    }

    /// Whether the digest is to be made anew, in another epoch, from what the node holds: a
    /// twentieth of it is gone, or it has more than it has room for and could have more room.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        let gone = self.additions.saturating_sub(self.held);
        let is_full = self.additions > self.digest.capacity();
        gone * GONE_SHARE > self.additions || is_full && self.digest.bytes() < DIGEST_BYTES_MAX
    }

    /// What a reader needs that has `known`: additions, or the whole if it has nothing, another
    /// epoch, or lacks more than is remembered.
    #[must_use]
    pub fn message_for(&self, known: Option<DigestVersion>) -> Vec<u8> {
        let missing = known
            .filter(|known| known.epoch == self.epoch)
            .and_then(|known| self.additions.checked_sub(known.additions))
            .and_then(|missing| usize::try_from(missing).ok())
            .filter(|missing| *missing <= self.latest.len());
        match (missing, known) {
            (Some(missing), Some(from)) => {
                let known = self.latest.len() - missing;
                message::write_additions(from, self.latest.range(known..))
            }
            _ => message::write_whole(self.version(), &self.key, &self.digest),
        }
    }

    /// Bytes of the digest and of what it remembers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.digest.bytes() + self.latest.capacity() * size_of::<Digest>()
    }

    /// The state that a reader has that took every message.
    #[must_use]
    pub fn version(&self) -> DigestVersion {
        DigestVersion {
            epoch: self.epoch,
            additions: self.additions,
        }
    }
}
