//! The last bytes of a sealed segment: where its table is.

use super::reader::Reader;
use super::writer::Writer;
use super::{FormatError, Item, PAGE_BYTES, Seal};

const MAGIC: [u8; 8] = *b"WEIR-END";

/// It takes the last bytes of the file.
pub const TRAILER_BYTES: usize = 64;

/// What a segment says of itself when it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Where its table begins.
    pub table_at: u32,
    /// Bytes of the table.
    pub table_bytes: u32,
    /// No generation up to here may be given out again.
    pub generation: u64,
    /// Generation of the newest purge in the journal until then.
    pub purged: u64,
    /// When it was sealed, in seconds since 1970.
    pub sealed_s: u64,
}

impl Trailer {
    /// The trailer, to be written at `at` in the segment of `seal`.
    #[must_use]
    pub fn encode(&self, seal: Seal, at: u64) -> Vec<u8> {
        let mut writer = Writer::new(at, TRAILER_BYTES);
        writer.put(&MAGIC);
        writer.u64(seal.number());
        writer.u32(self.table_at);
        writer.u32(self.table_bytes);
        writer.u64(self.generation);
        writer.u64(self.purged);
        writer.u64(self.sealed_s);
        writer.seal(TRAILER_BYTES, seal)
    }

    /// Reads the trailer that begins at `at` in the segment of `seal`.
    ///
    /// # Errors
    ///
    /// The segment was not sealed, or this is damaged.
    pub fn decode(bytes: &[u8], seal: Seal, at: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(Item::Trailer, at, bytes);
        reader.magic(MAGIC)?;
        reader.check_sum(TRAILER_BYTES, seal)?;
        let number = reader.u64()?;
        reader.expect(number == seal.number(), "segment number", number)?;
        let found = Self {
            table_at: reader.u32()?,
            table_bytes: reader.u32()?,
            generation: reader.u64()?,
            purged: reader.u64()?,
            sealed_s: reader.u64()?,
        };
        let (begin, bytes) = (u64::from(found.table_at), u64::from(found.table_bytes));
        reader.expect(begin >= PAGE_BYTES as u64, "offset of the table", begin)?;
        reader.expect(begin + bytes <= at, "length of the table", bytes)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FormatErrorKind;
    use super::super::testing::{any_damage_is_an_error, seal};
    use super::*;

    const AT: u64 = 8192;

    const TRAILER: Trailer = Trailer {
        table_at: 8000,
        table_bytes: 192,
        generation: 5,
        purged: 4,
        sealed_s: 1_800_000_000,
    };

    #[test]
    fn segment_trailer_round_trips() {
        let found = Trailer::decode(&TRAILER.encode(seal(), AT), seal(), AT);
        assert_eq!(found, Ok(TRAILER));
    }

    #[test]
    fn damaged_segment_trailer_is_refused() {
        any_damage_is_an_error(&TRAILER.encode(seal(), AT), |bytes| {
            Trailer::decode(bytes, seal(), AT).map(drop)
        });
    }

    #[test]
    fn trailer_with_a_table_outside_the_segment_is_refused() {
        for (table_at, table_bytes) in [(8000, 193), (0, 64), (u32::MAX, u32::MAX)] {
            let trailer = Trailer {
                table_at,
                table_bytes,
                ..TRAILER
            };
            let error = Trailer::decode(&trailer.encode(seal(), AT), seal(), AT).unwrap_err();
            assert!(
                matches!(error.kind, FormatErrorKind::Contradicts { .. }),
                "{error}"
            );
        }
    }
}
