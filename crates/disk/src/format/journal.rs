//! The purge journal: what must not come back, entry by entry.

use super::reader::Reader;
use super::writer::Writer;
use super::{FormatError, Item, Seal, Wrong};
use weir_policy::Digest;

/// Its name in the directory.
pub const JOURNAL_FILE: &str = "purges.journal";

/// One entry. The file is nothing but entries, oldest first; their generations ascend.
pub const JOURNAL_ENTRY_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"WEIR-PUR";

/// What was purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// Responses of this key that were asked for before.
    Key(Digest),
    /// All responses that were asked for before.
    All,
    /// Nothing: entries up to this one were dropped, as no segment holds anything they concern.
    Floor,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeEntry {
    /// Its place in the order in which responses were asked for.
    pub generation: u64,
    /// What was purged.
    pub what: Purged,
    /// The highest number of a segment until then: once all up to it are gone, so is what this entry concerns.
    pub segment: u64,
}

impl PurgeEntry {
    /// The entry, to be written at `at` in the journal of `seal` ([`super::Volume::journal`]).
    #[must_use]
    pub fn encode(&self, seal: Seal, at: u64) -> Vec<u8> {
        let (kind, key) = match self.what {
            Purged::Key(key) => (1, key),
            Purged::All => (2, Digest(0, 0)),
            Purged::Floor => (3, Digest(0, 0)),
        };
        let mut writer = Writer::new(at, JOURNAL_ENTRY_BYTES);
        writer.put(&MAGIC);
        writer.u64(self.generation);
        writer.u64(self.segment);
        writer.digest(key);
        writer.u32(kind);
        writer.seal(JOURNAL_ENTRY_BYTES, seal)
    }

    /// Reads the entry that begins at `at` in the journal of `seal`.
    ///
    /// # Errors
    ///
    /// Damage, or the end of what was written.
    pub fn decode(bytes: &[u8], seal: Seal, at: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(Item::PurgeEntry, at, bytes);
        reader.magic(MAGIC)?;
        reader.check_sum(JOURNAL_ENTRY_BYTES, seal)?;
        let generation = reader.u64()?;
        let segment = reader.u64()?;
        let key = reader.digest()?;
        let what = match reader.u32()? {
            1 => Purged::Key(key),
            2 => Purged::All,
            3 => Purged::Floor,
            value => {
                return Err(reader.error(Wrong::Contradicts {
                    field: "kind",
                    value: u64::from(value),
                }));
            }
        };
        Ok(Self {
            generation,
            what,
            segment,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{VOLUME, any_damage_is_an_error};
    use super::*;

    #[test]
    fn entry_changes_on_its_way() {
        for what in [Purged::Key(Digest(1, 2)), Purged::All, Purged::Floor] {
            let entry = PurgeEntry {
                generation: 9,
                what,
                segment: 4,
            };
            let bytes = entry.encode(VOLUME.journal(), 128);
            assert_eq!(bytes.len(), JOURNAL_ENTRY_BYTES);
            assert_eq!(PurgeEntry::decode(&bytes, VOLUME.journal(), 128), Ok(entry));
            any_damage_is_an_error(&bytes, |bytes| {
                PurgeEntry::decode(bytes, VOLUME.journal(), 128).map(drop)
            });
            let elsewhere = PurgeEntry::decode(&bytes, VOLUME.journal(), 64);
            assert_eq!(elsewhere.unwrap_err().wrong, Wrong::Checksum);
        }
    }
}
