//! What a node knows of the digest of another one.

use crate::Digest;
use crate::route::cache_digest::incoming::Update;
use crate::route::cache_digest::{
    CacheDigest, DIGEST_BYTES_MAX, DigestError, DigestKeys, DigestUpdate, DigestVersion,
    IncomingDigest, SealedKey,
};
use crate::route::cluster::HoldsIt;
use alloc::vec::IntoIter;

/// The digest of another node, by its messages.
#[derive(Clone, Debug, Default)]
pub struct DigestReader {
    /// `None` before the first whole digest.
    state: Option<State>,
}

#[derive(Clone, Debug)]
struct State {
    version: DigestVersion,
    keys: DigestKeys,
    digest: CacheDigest,
}

/// The most keys that are applied at once.
const APPLIED_AT_ONCE_MAX: usize = 2048;

/// How much of an update was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All of it.
    Whole,
    /// A part: the next is to be applied.
    Part,
}

impl State {
    /// Adds the first of `keys`, and takes them away.
    fn add(
        &mut self,
        from: &mut DigestVersion,
        keys: &mut IntoIter<Digest>,
    ) -> Result<Applied, DigestError> {
        let Self {
            version, digest, ..
        } = self;
        if from.epoch != version.epoch || from.additions > version.additions {
            return Err(DigestError::Unconnected);
        }
        let all = from.additions.checked_add(keys.len() as u64);
        let all = all.ok_or(DigestError::Unconnected)?;
        keys.by_ref()
            .take(APPLIED_AT_ONCE_MAX)
            .for_each(|key| digest.insert(key));
        from.additions = all - keys.len() as u64;
        version.additions = version.additions.max(from.additions);
        Ok(match keys.len() {
            0 => Applied::Whole,
            1.. => Applied::Part,
        })
    }
}

impl DigestReader {
    /// Takes a message. `open` opens the key of a whole digest of this epoch; `None` if it is
    /// sealed with another secret.
    ///
    /// Additions that are known already change nothing.
    ///
    /// # Errors
    /// What is wrong with it; what was known stays.
    pub fn take(
        &mut self,
        bytes: &[u8],
        open: impl FnOnce(u64, &SealedKey) -> Option<DigestKeys>,
    ) -> Result<(), DigestError> {
        let mut incoming = IncomingDigest::new(DIGEST_BYTES_MAX);
        incoming.push(bytes)?;
        let mut update = incoming.finish(open)?;
        while self.apply(&mut update)? == Applied::Part {}
        Ok(())
    }

    /// Applies an update, or 2048 keys of it, so that a lock on this reader is
    /// held for a fraction of a millisecond. The update has then what is left to do, or what was
    /// replaced: to be dropped without a lock.
    ///
    /// # Errors
    /// It adds to another digest; what was known stays.
    pub fn apply(&mut self, update: &mut DigestUpdate) -> Result<Applied, DigestError> {
        match &mut update.0 {
            Update::Whole {
                version,
                keys,
                digest,
            } => match &mut self.state {
                Some(state) => {
                    state.version = *version;
                    state.keys = *keys;
                    core::mem::swap(&mut state.digest, digest);
                }
                None => {
                    let digest = core::mem::replace(digest, CacheDigest::with_capacity(0));
                    self.state = Some(State {
                        version: *version,
                        keys: *keys,
                        digest,
                    });
                }
            },
            Update::Additions { from, keys } => {
                let state = self.state.as_mut().ok_or(DigestError::Unconnected)?;
                return state.add(from, keys);
            }
        }
        Ok(Applied::Whole)
    }

    /// What to ask for additions to; `None`: the whole.
    #[must_use]
    pub fn version(&self) -> Option<DigestVersion> {
        self.state.as_ref().map(|state| state.version)
    }

    /// The keys to make those of targets with.
    #[must_use]
    pub fn keys(&self) -> Option<&DigestKeys> {
        self.state.as_ref().map(|state| &state.keys)
    }

    /// Bytes of the digest.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.digest.bytes())
    }

    /// Whether the node holds the response of `key`.
    #[must_use]
    pub fn holds(&self, key: Digest) -> HoldsIt {
        match &self.state {
            None => HoldsIt::Unknown,
            Some(state) if state.digest.may_hold(key) => HoldsIt::Yes,
            Some(_) => HoldsIt::No,
        }
    }
}
