//! The purge journal: what must not come back, entry by entry, in two files that say the same.
//!
//! An entry that one copy has lost is in the other at the same offset. The *edition* in their
//! entries, how often the journal was rewritten, shows which two copies belong together.

mod copies;

pub use copies::{JournalContents, JournalDamage};

use super::reader::Reader;
use super::writer::Writer;
use super::{FormatError, FormatErrorKind, Item, Seal};
use weir_policy::Digest;

/// Its name in the directory.
pub const JOURNAL_FILE: &str = "purges.journal";

/// The name of its copy.
pub const JOURNAL_MIRROR_FILE: &str = "purges.mirror";

/// One entry. The files are nothing but entries, oldest first; their generations ascend.
pub const JOURNAL_ENTRY_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"WEIR-PUR";

/// What was purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeScope {
    /// Responses of this key that were requested before.
    Key(Digest),
    /// All responses that were requested before.
    All,
    /// Nothing: entries up to this one were dropped, as no segment holds anything they concern.
    Floor,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeEntry {
    /// Its place in the order in which responses were requested.
    pub generation: u64,
    /// What was purged.
    pub what: PurgeScope,
    /// The highest number of a segment until then: once all segments up to it are removed, this
    /// entry is not needed any more.
    pub segment: u64,
}

impl PurgeEntry {
    /// The entry, to be written at `at` in both copies of `edition` of the journal of `seal`
    /// ([`super::Volume::journal`]).
    #[must_use]
    pub fn encode(&self, seal: Seal, at: u64, edition: u64) -> Vec<u8> {
        let (kind, key) = match self.what {
            PurgeScope::Key(key) => (1, key),
            PurgeScope::All => (2, Digest(0, 0)),
            PurgeScope::Floor => (3, Digest(0, 0)),
        };
        let mut writer = Writer::new(at, JOURNAL_ENTRY_BYTES);
        writer.put(&MAGIC);
        writer.u64(self.generation);
        writer.u64(self.segment);
        writer.digest(key);
        writer.u32(kind);
        writer.u64(edition);
        writer.seal(JOURNAL_ENTRY_BYTES, seal)
    }

    /// Reads the entry that begins at `at` in the journal of `seal`, and its edition.
    ///
    /// # Errors
    ///
    /// Damage, or the end of what was written.
    pub fn decode(bytes: &[u8], seal: Seal, at: u64) -> Result<(Self, u64), FormatError> {
        let mut reader = Reader::new(Item::PurgeEntry, at, bytes);
        reader.magic(MAGIC)?;
        reader.check_sum(JOURNAL_ENTRY_BYTES, seal)?;
        let generation = reader.u64()?;
        let segment = reader.u64()?;
        let key = reader.digest()?;
        let what = match reader.u32()? {
            1 => PurgeScope::Key(key),
            2 => PurgeScope::All,
            3 => PurgeScope::Floor,
            value => {
                return Err(reader.error(FormatErrorKind::Contradicts {
                    field: "kind",
                    value: u64::from(value),
                }));
            }
        };
        let edition = reader.u64()?;
        let entry = Self {
            generation,
            what,
            segment,
        };
        Ok((entry, edition))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{VOLUME, any_damage_is_an_error};
    use super::*;

    #[test]
    fn journal_entry_round_trips_with_its_edition_and_damage_is_detected() {
        for what in [
            PurgeScope::Key(Digest(1, 2)),
            PurgeScope::All,
            PurgeScope::Floor,
        ] {
            let entry = PurgeEntry {
                generation: 9,
                what,
                segment: 4,
            };
            let bytes = entry.encode(VOLUME.journal(), 128, 3);
            assert_eq!(bytes.len(), JOURNAL_ENTRY_BYTES);
            let decode = |bytes: &[u8], at| PurgeEntry::decode(bytes, VOLUME.journal(), at);
            assert_eq!(decode(&bytes, 128), Ok((entry, 3)));
            any_damage_is_an_error(&bytes, |bytes| decode(bytes, 128).map(drop));
            assert_eq!(
                decode(&bytes, 64).unwrap_err().kind,
                FormatErrorKind::Checksum
            );
        }
    }
}
