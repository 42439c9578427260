//! The first page of a segment, and its file's name.

use super::reader::Reader;
use super::writer::Writer;
use super::{
    FORMAT_VERSION, FORMAT_VERSION_MIN, FormatError, FormatErrorKind, Item, PAGE_BYTES,
    SEGMENT_BYTES_MAX, Seal, StoreId, Volume,
};

const MAGIC: [u8; 8] = *b"WEIR-SEG";

const SUFFIX: &str = ".seg";

/// What a segment says of itself when it is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The directory it was written in.
    pub volume: Volume,
    /// Its number: never used again.
    pub number: u64,
    /// When it was begun, in seconds since 1970.
    pub begun_s: u64,
    /// No generation up to here may be given out again.
    pub generation: u64,
    /// Generation of the newest purge in the journal until then: a journal that ends before it has
    /// lost some.
    pub purged: u64,
    /// Bytes it may have in all.
    pub capacity: u32,
}

impl SegmentHeader {
    /// One page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new(0, PAGE_BYTES);
        writer.put(&MAGIC);
        writer.u32(FORMAT_VERSION);
        writer.u32(self.volume.directory);
        writer.put(&self.volume.store.0);
        writer.u64(self.number);
        writer.u64(self.begun_s);
        writer.u64(self.generation);
        writer.u64(self.purged);
        writer.u32(self.capacity);
        writer.seal(PAGE_BYTES, self.volume.segment(self.number))
    }

    /// Reads the header of segment `number` of `volume`.
    ///
    /// # Errors
    ///
    /// Damage, a newer version, or an intact header of another segment, directory or store:
    /// [`FormatErrorKind::Contradicts`].
    pub fn decode(bytes: &[u8], volume: Volume, number: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(Item::SegmentHeader, 0, bytes);
        reader.magic(MAGIC)?;
        let version = reader.u32()?;
        let found = Self {
            volume: Volume {
                directory: reader.u32()?,
                store: StoreId(reader.take()?),
            },
            number: reader.u64()?,
            begun_s: reader.u64()?,
            generation: reader.u64()?,
            purged: reader.u64()?,
            capacity: reader.u32()?,
        };
        // by its own header: so that a file under another's name is distinguished from a damaged
        // one
        let own: Seal = found.volume.segment(found.number);
        reader.check_sum(PAGE_BYTES, own)?;
        if version > FORMAT_VERSION {
            return Err(reader.error(FormatErrorKind::Newer { version }));
        }
        let is_known = version >= FORMAT_VERSION_MIN;
        reader.expect(is_known, "version", u64::from(version))?;
        reader.expect(found.volume.store == volume.store, "store id", 0)?;
        let directory = found.volume.directory;
        reader.expect(
            directory == volume.directory,
            "directory number",
            u64::from(directory),
        )?;
        reader.expect(found.number == number, "segment number", found.number)?;
        let capacity = u64::from(found.capacity);
        reader.limit("capacity", capacity, u64::from(SEGMENT_BYTES_MAX))?;
        reader.expect(capacity >= PAGE_BYTES as u64, "capacity", capacity)?;
        Ok(found)
    }
}

/// The file of segment `number`: 16 hexadecimal digits and `.seg`, so that names sort as numbers
/// do.
#[must_use]
pub fn segment_file_name(number: u64) -> String {
    format!("{number:016x}{SUFFIX}")
}

/// The number of the segment in a file of this name; `None` for any other file.
#[must_use]
pub fn segment_number(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_suffix(SUFFIX)?;
    let is_ours = digits.len() == 16
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_ours {
        u64::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{VOLUME, any_damage_is_an_error};
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            volume: VOLUME,
            number: 0x1f,
            begun_s: 1_800_000_000,
            generation: 77,
            purged: 3,
            capacity: 64 << 20,
        }
    }

    #[test]
    fn segment_header_round_trips() {
        let found = SegmentHeader::decode(&header().encode(), VOLUME, 0x1f);
        assert_eq!(found, Ok(header()));
    }

    #[test]
    fn damaged_segment_header_is_refused() {
        any_damage_is_an_error(&header().encode(), |bytes| {
            SegmentHeader::decode(bytes, VOLUME, 0x1f).map(drop)
        });
    }

    #[test]
    fn mismatched_segment_header_is_refused_with_the_field_that_differs() {
        let refused = |volume, number| {
            let error = SegmentHeader::decode(&header().encode(), volume, number).unwrap_err();
            match error.kind {
                FormatErrorKind::Contradicts { field, .. } => field,
                kind => panic!("{kind:?}"),
            }
        };
        assert_eq!(refused(VOLUME, 0x20), "segment number");
        let store = StoreId([1; 16]);
        assert_eq!(refused(Volume { store, ..VOLUME }, 0x1f), "store id");
        let directory = 9;
        assert_eq!(
            refused(
                Volume {
                    directory,
                    ..VOLUME
                },
                0x1f
            ),
            "directory number"
        );
    }

    #[test]
    fn segment_number_is_read_only_from_its_canonical_file_name() {
        assert_eq!(segment_file_name(0x1f), "000000000000001f.seg");
        for number in [0, 1, 0x1f, u64::MAX] {
            assert_eq!(segment_number(&segment_file_name(number)), Some(number));
        }
        for name in [
            "store.weir",
            "1f.seg",
            "000000000000001F.seg",
            "+00000000000001f.seg",
            "000000000000001f.seg.aside",
        ] {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }
}
