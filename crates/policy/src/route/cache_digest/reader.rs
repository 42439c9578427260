//! What a node knows of the digest of another one.

use crate::Digest;
use crate::route::cache_digest::message::{self, Message};
use crate::route::cache_digest::{CacheDigest, DigestError, DigestVersion};
use crate::route::cluster::HoldsIt;

/// The digest of another node, by its messages.
#[derive(Clone, Debug, Default)]
pub struct DigestReader {
    /// `None` before the first whole digest.
    state: Option<(DigestVersion, CacheDigest)>,
}

impl DigestReader {
    /// Takes a message.
    ///
    /// Additions that are known already change nothing.
    ///
    /// # Errors
    /// What is wrong with it; what was known stays.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), DigestError> {
        match message::read(bytes)? {
            Message::Whole { version, digest } => self.state = Some((version, digest)),
            Message::Additions { from, keys } => {
                let Some((version, digest)) = &mut self.state else {
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
        self.state.as_ref().map(|(version, _)| *version)
    }

    /// Whether the node holds the response of `key`.
    #[must_use]
    pub fn holds(&self, key: Digest) -> HoldsIt {
        match &self.state {
            None => HoldsIt::Unknown,
            Some((_, digest)) if digest.may_hold(key) => HoldsIt::Yes,
            Some(_) => HoldsIt::No,
        }
    }
}
