//! The first file of a directory: which store it belongs to.

use super::reader::Reader;
use super::writer::Writer;
use super::{
    FORMAT_VERSION, FORMAT_VERSION_MIN, FormatError, FormatErrorKind, Item, PAGE_BYTES,
    SEGMENT_BYTES_MAX, Seal, StoreId, Volume,
};
use weir_policy::Secret;

/// Its name in the directory.
pub const SUPERBLOCK_FILE: &str = "store.weir";

/// The file that a process holds locked (`flock`) while it uses the directory; the process id is in
/// it.
pub const LOCK_FILE: &str = "lock";

const MAGIC: [u8; 8] = *b"WEIRSTOR";

/// What a directory says of itself. Readable by its owner only: with the secret one can choose keys
/// that collide.
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

    /// Reads it. Magic and checksum stand at the same places in every version: so damage is not
    /// taken for novelty.
    ///
    /// # Errors
    ///
    /// [`FormatErrorKind::Newer`] for a store that must be refused; anything else is damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::decode_versioned(bytes).map(|(superblock, _)| superblock)
    }

    /// Reads it, and the version of the format that wrote it.
    ///
    /// # Errors
    ///
    /// As for [`Self::decode`].
    pub fn decode_versioned(bytes: &[u8]) -> Result<(Self, u32), FormatError> {
        let mut reader = Reader::new(Item::Superblock, 0, bytes);
        reader.magic(MAGIC)?;
        reader.check_sum(PAGE_BYTES, Seal::UNKEYED)?;
        let version = reader.u32()?;
        if version > FORMAT_VERSION {
            return Err(reader.error(FormatErrorKind::Newer { version }));
        }
        let is_known = version >= FORMAT_VERSION_MIN;
        reader.expect(is_known, "version", u64::from(version))?;
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
        let superblock = Self {
            volume: Volume { store, directory },
            secret,
            made_s,
            segment_bytes,
        };
        Ok((superblock, version))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, VOLUME, any_damage_is_an_error};
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
    fn superblock_round_trips() {
        let found = Superblock::decode(&superblock().encode()).unwrap();
        assert_eq!(format!("{found:?}"), format!("{:?}", superblock()));
        assert_eq!(found.volume, VOLUME);
        assert_eq!(found.secret.0, [3; 16]);
    }

    #[test]
    fn damaged_superblock_is_refused() {
        any_damage_is_an_error(&superblock().encode(), |bytes| {
            Superblock::decode(bytes).map(drop)
        });
    }

    fn of_version(version: u32) -> Vec<u8> {
        testing::of_version(superblock().encode(), version, Seal::UNKEYED)
    }

    #[test]
    fn newer_superblock_version_is_distinguished_from_damage() {
        let newer = FORMAT_VERSION + 1;
        let mut bytes = superblock().encode();
        bytes[8] = newer.to_le_bytes()[0];
        assert_eq!(
            Superblock::decode(&bytes).unwrap_err().kind,
            FormatErrorKind::Checksum
        );
        let error = Superblock::decode(&of_version(newer)).unwrap_err();
        assert_eq!(error.kind, FormatErrorKind::Newer { version: newer });
        assert!(error.to_string().contains("newer version"), "{error}");
    }

    #[test]
    fn superblock_versions_from_minimum_to_current_are_read_and_older_refused() {
        for version in FORMAT_VERSION_MIN..=FORMAT_VERSION {
            let (found, of) = Superblock::decode_versioned(&of_version(version)).unwrap();
            assert_eq!((found.volume, of), (VOLUME, version));
        }
        let error = Superblock::decode(&of_version(FORMAT_VERSION_MIN - 1)).unwrap_err();
        assert!(matches!(
            error.kind,
            FormatErrorKind::Contradicts {
                field: "version",
                ..
            }
        ));
    }
}
