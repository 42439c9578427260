//! The first file of a directory: which store it belongs to.

use super::reader::Reader;
use super::writer::Writer;
use super::{
    FORMAT_VERSION, FormatError, Item, PAGE_BYTES, SEGMENT_BYTES_MAX, Seal, StoreId, Volume, Wrong,
};
use weir_policy::Secret;

/// Its name in the directory.
pub const SUPERBLOCK_FILE: &str = "store.weir";

/// The file that a process holds locked (`flock`) while it uses the directory; the process id is in it.
pub const LOCK_FILE: &str = "lock";

const MAGIC: [u8; 8] = *b"WEIRSTOR";

/// What a directory says of itself. Readable by its owner only: who knows the secret can choose keys that collide.
#[derive(Clone, Copy, Debug)]
pub struct Superblock {
    /// The store and the directory's number in it.
    pub volume: Volume,
    /// The secret of the digests that are the records' keys.
    pub secret: Secret,
    /// When it was made, in seconds since 1970.
    pub made_s: u64,
    /// Size of the segments that are made here, bytes.
    pub segment_bytes: u32,
}

impl Superblock {
    /// One page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new(0, PAGE_BYTES);
        writer.put(&MAGIC);
        writer.u32(FORMAT_VERSION);
        writer.u32(self.volume.directory);
        writer.put(&self.volume.store.0);
        writer.put(&self.secret.0);
        writer.u64(self.made_s);
        writer.u32(self.segment_bytes);
        writer.seal(PAGE_BYTES, Seal::UNKEYED)
    }

    /// Reads it. Magic and checksum stand at the same places in every version: so damage is not taken for novelty.
    ///
    /// # Errors
    ///
    /// [`Wrong::Newer`] for a store that must be refused; anything else is damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(Item::Superblock, 0, bytes);
        reader.magic(MAGIC)?;
        reader.check_sum(PAGE_BYTES, Seal::UNKEYED)?;
        match reader.u32()? {
            FORMAT_VERSION => {}
            version if version > FORMAT_VERSION => {
                return Err(reader.error(Wrong::Newer { version }));
            }
            version => reader.expect(false, "version", u64::from(version))?,
        }
        let directory = reader.u32()?;
        let store = StoreId(reader.take()?);
        let secret = Secret(reader.take()?);
        let made_s = reader.u64()?;
        let segment_bytes = reader.u32()?;
        reader.limit(
            "segment bytes",
            u64::from(segment_bytes),
            u64::from(SEGMENT_BYTES_MAX),
        )?;
        Ok(Self {
            volume: Volume { store, directory },
            secret,
            made_s,
            segment_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{VOLUME, any_damage_is_an_error};
    use super::*;

    fn superblock() -> Superblock {
        Superblock {
            volume: VOLUME,
            secret: Secret([3; 16]),
            made_s: 1_800_000_000,
            segment_bytes: 64 << 20,
        }
    }

    #[test]
    fn superblock_changes_on_its_way() {
        let found = Superblock::decode(&superblock().encode()).unwrap();
        assert_eq!(format!("{found:?}"), format!("{:?}", superblock()));
        assert_eq!(found.volume, VOLUME);
        assert_eq!(found.secret.0, [3; 16]);
    }

    #[test]
    fn damaged_superblock_is_read() {
        any_damage_is_an_error(&superblock().encode(), |bytes| {
            Superblock::decode(bytes).map(drop)
        });
    }

    #[test]
    fn newer_version_is_taken_for_damage_or_damage_for_a_newer_version() {
        let mut bytes = superblock().encode();
        bytes[8] = 2;
        assert_eq!(
            Superblock::decode(&bytes).unwrap_err().wrong,
            Wrong::Checksum
        );
        let sum = Seal::UNKEYED.sum(0, &bytes[..PAGE_BYTES - 8]);
        bytes[PAGE_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
        let error = Superblock::decode(&bytes).unwrap_err();
        assert_eq!(error.wrong, Wrong::Newer { version: 2 });
        assert!(error.to_string().contains("newer version"), "{error}");
    }
}
