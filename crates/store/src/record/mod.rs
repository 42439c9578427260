//! What is written of a stored response beside its content, and how it is read back: head, facts,
//! validators, and what it varies on.
//!
//! A version and a kind, then numbers (little endian) and byte strings behind their lengths;
//! nothing else fits. Ticks mean nothing to another process, so the time of receipt is written by
//! the wall clock ([`StoredFacts::received`](weir_policy::StoredFacts::received)).
//!
//! **What varies** (RFC 9111 §4.1) cannot be found by one key alone: which fields count is known
//! only from what is stored. So a target whose responses vary has a record of *rules* under its own
//! key: the sets of nominated fields, newest first, and the *line* of its variants, a number. Each
//! variant is a record of its own under the digest of target, line and nominated fields
//! ([`variant_key`]). A purge of the target's key takes the rules, and without them the variants
//! are not found: rules that are written later begin another line. So one entry in the journal of
//! purges is enough, however many variants there are, and also if they are not known.

mod error;
mod reader;
mod response;
mod rules;

pub use error::RecordError;
pub use response::ResponseRecord;
pub use rules::{Line, RulesRecord, variant_key};

use crate::stored::StoredResponse;
use reader::Reader;
use weir_policy::{Digest, Now};

use crate::resource::VaryRule;

/// Version of what is written here; a reader refuses every other.
pub const VERSION: u8 = 1;

/// What a record holds beside content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A response.
    Response(ResponseRecord),
    /// What the responses of a target vary on.
    Rules(RulesRecord),
}

/// Which of the two it is, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Response = 1,
    Rules = 2,
}

impl Record {
    /// Reads what [`encode`] or [`RulesRecord::encode`] wrote.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn decode(meta: &[u8], now: Now) -> Result<Self, RecordError> {
        let mut reader = Reader::new(meta);
        let version = reader.byte("version")?;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let kind = reader.byte("kind")?;
        let record = if kind == Kind::Response as u8 {
            Self::Response(ResponseRecord::read(&mut reader, now)?)
        } else if kind == Kind::Rules as u8 {
            Self::Rules(RulesRecord::read(&mut reader)?)
        } else {
            return Err(RecordError::Kind(kind));
        };
        reader.end()?;
        Ok(record)
    }
}

/// What is written of `response` beside its content; `vary` is what it varies on, and the digest of
/// these fields in the request it answers; `target` is its URL, for tools that read the store.
#[must_use]
pub fn encode(
    response: &StoredResponse,
    vary: Option<&(VaryRule, Digest)>,
    target: Option<&str>,
    now: Now,
) -> Vec<u8> {
    let mut meta = vec![VERSION, Kind::Response as u8];
    response::write(response, vary, target, now, &mut meta);
    meta
}

#[cfg(test)]
mod tests;
