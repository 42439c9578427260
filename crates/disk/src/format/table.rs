//! The table of a sealed segment: what lies where, so that an index can be filled without reading
//! content.

use super::reader::{Reader, SUM_BYTES};
use super::writer::Writer;
use super::{
    ALIGN_BYTES, FormatError, FormatErrorKind, Item, Kind, PAGE_BYTES, RECORD_HEADER_BYTES,
    SEGMENT_BYTES_MAX, Seal, padded,
};
use weir_policy::Digest;

const MAGIC: [u8; 8] = *b"WEIR-TAB";

/// Bytes before the first entry.
const FIXED_BYTES: usize = 16;

/// One entry.
pub const TABLE_ENTRY_BYTES: usize = 40;

/// A segment cannot hold more records than headers of records.
#[expect(clippy::cast_possible_truncation, reason = "a small number")]
pub const TABLE_RECORDS_MAX: u32 = SEGMENT_BYTES_MAX / RECORD_HEADER_BYTES as u32;

/// A record or an extent of a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Its key.
    pub key: Digest,
    /// A record's generation, or the number of an extent's body.
    pub generation: u64,
    /// Where it begins in the segment.
    pub at: u32,
    /// Bytes from there to where the next item may begin.
    pub bytes: u32,
    /// Bytes of content inside.
    pub content_bytes: u32,
    /// The kind of record; `None` for an extent outside of a record.
    pub kind: Option<Kind>,
}

/// The table, to be written at `at` in the segment of `seal`.
#[must_use]
pub fn encode_table(seal: Seal, at: u64, entries: &[TableEntry]) -> Vec<u8> {
    let bytes = table_bytes(entries.len());
    let mut writer = Writer::new(at, bytes);
    writer.put(&MAGIC);
    writer.u32(u32::try_from(entries.len()).unwrap_or(u32::MAX));
    writer.u32(0);
    for entry in entries {
        writer.digest(entry.key);
        writer.u64(entry.generation);
        writer.u32(entry.at);
        writer.u32(entry.bytes);
        writer.u32(entry.content_bytes);
        writer.u32(match entry.kind {
            Some(Kind::Embedded) => 1,
            Some(Kind::Listed) => 2,
            None => 3,
        });
    }
    writer.seal(bytes, seal)
}

/// Reads the table that begins at `at` in the segment of `seal`; entries are in the order of their
/// places.
///
/// # Errors
///
/// [`FormatErrorKind::Cut`] says how many bytes are needed.
pub fn decode_table(bytes: &[u8], seal: Seal, at: u64) -> Result<Vec<TableEntry>, FormatError> {
    let mut reader = Reader::new(Item::Table, at, bytes);
    reader.magic(MAGIC)?;
    let records = reader.u32()?;
    let _reserved = reader.u32()?;
    reader.limit("records", u64::from(records), u64::from(TABLE_RECORDS_MAX))?;
    reader.check_sum(table_bytes(records as usize), seal)?;
    let mut entries = Vec::with_capacity(records as usize);
    let mut next = PAGE_BYTES as u64;
    for _ in 0..records {
        let entry = decode_entry(&mut reader)?;
        let (begin, bytes) = (u64::from(entry.at), u64::from(entry.bytes));
        let aligned = begin.is_multiple_of(ALIGN_BYTES as u64);
        reader.expect(aligned && begin >= next, "offset in the segment", begin)?;
        reader.expect(bytes > 0 && begin + bytes <= at, "length", bytes)?;
        next = begin + bytes;
        entries.push(entry);
    }
    Ok(entries)
}

fn decode_entry(reader: &mut Reader<'_>) -> Result<TableEntry, FormatError> {
    Ok(TableEntry {
        key: reader.digest()?,
        generation: reader.u64()?,
        at: reader.u32()?,
        bytes: reader.u32()?,
        content_bytes: reader.u32()?,
        kind: match reader.u32()? {
            1 => Some(Kind::Embedded),
            2 => Some(Kind::Listed),
            3 => None,
            value => {
                return Err(reader.error(FormatErrorKind::Contradicts {
                    field: "kind",
                    value: u64::from(value),
                }));
            }
        },
    })
}

/// Bytes of a table of so many entries.
#[must_use]
pub const fn table_bytes(entries: usize) -> usize {
    padded(FIXED_BYTES + entries * TABLE_ENTRY_BYTES + SUM_BYTES)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{any_damage_is_an_error, seal};
    use super::*;

    const AT: u64 = 1 << 20;

    fn entry(at: u32, bytes: u32, kind: Option<Kind>) -> TableEntry {
        TableEntry {
            key: Digest(1, 2),
            generation: 3,
            at,
            bytes,
            content_bytes: 5,
            kind,
        }
    }

    fn entries() -> Vec<TableEntry> {
        vec![
            entry(4096, 160, Some(Kind::Embedded)),
            entry(4256, 16, Some(Kind::Listed)),
            entry(8192, 4096, None),
        ]
    }

    #[test]
    fn record_table_round_trips() {
        for entries in [Vec::new(), entries()] {
            let bytes = encode_table(seal(), AT, &entries);
            assert_eq!(bytes.len(), table_bytes(entries.len()));
            assert_eq!(decode_table(&bytes, seal(), AT), Ok(entries));
        }
    }

    #[test]
    fn damaged_record_table_is_refused() {
        any_damage_is_an_error(&encode_table(seal(), AT, &entries()), |bytes| {
            decode_table(bytes, seal(), AT).map(drop)
        });
    }

    #[test]
    fn record_table_at_another_offset_is_refused() {
        let bytes = encode_table(seal(), AT, &entries());
        let error = decode_table(&bytes, seal(), AT + 16).unwrap_err();
        assert_eq!(error.kind, FormatErrorKind::Checksum);
    }

    #[test]
    fn overlapping_unaligned_empty_or_out_of_bounds_table_entries_are_refused() {
        let refused = |entries: &[TableEntry]| {
            let error = decode_table(&encode_table(seal(), AT, entries), seal(), AT).unwrap_err();
            assert!(
                matches!(error.kind, FormatErrorKind::Contradicts { .. }),
                "{error}"
            );
        };
        refused(&[entry(0, 16, None)]);
        refused(&[entry(4096, 32, None), entry(4112, 16, None)]);
        refused(&[entry(4100, 32, None)]);
        refused(&[entry(4096, 0, None)]);
        refused(&[entry(4096, 1 << 20, None)]);
    }

    #[test]
    fn table_entry_count_beyond_the_limit_or_the_length_is_refused() {
        let mut bytes = encode_table(seal(), AT, &entries());
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = decode_table(&bytes, seal(), AT).unwrap_err();
        assert!(matches!(
            error.kind,
            FormatErrorKind::Beyond {
                field: "records",
                ..
            }
        ));
        bytes[8..12].copy_from_slice(&TABLE_RECORDS_MAX.to_le_bytes());
        let error = decode_table(&bytes, seal(), AT).unwrap_err();
        assert!(matches!(error.kind, FormatErrorKind::Cut { .. }));
    }
}
