//! What a node knows of the digest of another one.

use crate::route::cache_digest::message::{self, Message};
use crate::route::cache_digest::{CacheDigest, DigestError, DigestVersion, SealedKey};
use crate::route::cluster::HoldsIt;
use crate::{Digest, Secret};

/// The digest of another node, by its messages.
#[derive(Clone, Debug, Default)]
pub struct DigestReader {
    /// `None` before the first whole digest.
    state: Option<State>,
}

#[derive(Clone, Debug)]
struct State {
    version: DigestVersion,
    /// The secret of the node's store.
    secret: Secret,
    digest: CacheDigest,
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
        open: impl FnOnce(u64, &SealedKey) -> Option<Secret>,
    ) -> Result<(), DigestError> {
        match message::read(bytes)? {
            Message::Whole {
                version,
                key,
                digest,
            } => {
                let secret = open(version.epoch, &key).ok_or(DigestError::Key)?;
                self.state = Some(State {
                    version,
                    secret,
                    digest,
                });
            }
            Message::Additions { from, keys } => {
                let Some(State {
                    version, digest, ..
                }) = &mut self.state
                else {
                    return Err(DigestError::Unconnected);
                };
                if from.epoch != version.epoch || from.additions > version.additions {
                    return Err(DigestError::Unconnected);
                }
                let end = from
                    .additions
                    .checked_add(keys.len() as u64)
                    .ok_or(DigestError::Length(bytes.len()))?;
                for key in keys {
                    digest.insert(key);
                }
                version.additions = version.additions.max(end);
            }
        }
        Ok(())
    }

    /// What to ask for additions to; `None`: the whole.
    #[must_use]
    pub fn version(&self) -> Option<DigestVersion> {
        self.state.as_ref().map(|state| state.version)
    }

    /// The secret of the node's store, to make keys of targets with.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        self.state.as_ref().map(|state| &state.secret)
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
