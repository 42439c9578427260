//! Whether a file is what was written: Parquet as such does not notice a flipped bit in a number.
//!
//! Each column chunk has a checksum (the lower half of XXH3), all of them in order in the file's
//! metadata; and over everything in the footer that is used to read the file (lengths, places,
//! checksums, what the trace says about itself) goes the seal. A reader checks the seal when it
//! opens the file and each chunk before it decodes it. Another program that rewrites the file
//! writes its own name into it, and then there is no seal to check.

use super::schema::WRITTEN_BY_US;
use crate::error::Wrong;
use parquet::basic::CompressionCodec;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, RowGroupMetaData,
};
use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

const CHECKSUMS: &str = "weir.checksums";
const SEAL: &str = "weir.seal";

/// Hex digits of a checksum.
const DIGITS: usize = 8;

/// Checksum of a column chunk as it is in the file.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let hash = XxHash3_64::oneshot(bytes);
    u32::try_from(hash & u64::from(u32::MAX)).unwrap_or(0)
}

/// The checksums of a file: for each row group, for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Checksums(Vec<u32>);

impl Checksums {
    /// Adds the next column chunk in the order of the file.
    pub(super) fn push(&mut self, checksum: u32) {
        self.0.push(checksum);
    }

    /// The checksum of a chunk, if the file has any.
    pub(super) fn get(&self, group: usize, columns: usize, column: usize) -> Option<u32> {
        self.0.get(group * columns + column).copied()
    }

    fn write(&self) -> String {
        self.0
            .iter()
            .fold(String::new(), |text, sum| text + &format!("{sum:08x}"))
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes().chunks(DIGITS);
        let sums = digits.map(|digits| {
            let digits = str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.len() == DIGITS)?;
            u32::from_str_radix(digits, 16).ok()
        });
        sums.collect::<Option<Vec<u32>>>().map(Self)
    }
}

/// What is added to the metadata of a file with these row groups, which says `pairs` of itself.
pub(super) fn pairs(
    checksums: &Checksums,
    groups: &[RowGroupMetaData],
    pairs: &[(String, String)],
) -> [(String, String); 2] {
    let sums = (CHECKSUMS.to_owned(), checksums.write());
    let all = pairs.iter().chain([&sums]);
    let seal = seal(
        groups,
        all.map(|(key, value)| (key.as_str(), value.as_str())),
    );
    [sums, (SEAL.to_owned(), seal)]
}

/// Checks the seal.
///
/// # Errors
/// The file was sealed, and is not what was sealed.
pub(super) fn check(metadata: &ParquetMetaData) -> Result<Checksums, Wrong> {
    let file = metadata.file_metadata();
    if !is_ours(file) {
        return Ok(Checksums::default());
    }
    let pairs: Vec<(&str, &str)> = file
        .key_value_metadata()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.key.as_str(), pair.value.as_deref()?)))
        .collect();
    let find = |name| {
        pairs
            .iter()
            .find(|(key, _)| *key == name)
            .map(|pair| pair.1)
    };
    let (Some(sums), Some(said)) = (find(CHECKSUMS), find(SEAL)) else {
        return Err(Wrong::damaged("it has no seal"));
    };
    let others = pairs.iter().copied().filter(|(key, _)| *key != SEAL);
    if seal(metadata.row_groups(), others) != said {
        return Err(Wrong::damaged("its footer is not the one that was sealed"));
    }
    Checksums::parse(sums).ok_or_else(|| Wrong::damaged("its checksums are no numbers"))
}

fn is_ours(file: &FileMetaData) -> bool {
    file.created_by()
        .is_some_and(|by| by.starts_with(WRITTEN_BY_US))
}

fn seal<'a>(
    groups: &[RowGroupMetaData],
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut hasher = XxHash3_64::with_seed(0);
    for group in groups {
        hasher.write_i64(group.num_rows());
        for chunk in group.columns() {
            add(&mut hasher, chunk);
        }
    }
    for (key, value) in pairs {
        for text in [key, value] {
            hasher.write_u64(text.len() as u64);
            hasher.write(text.as_bytes());
        }
    }
    format!("{:016x}", hasher.finish())
}

/// Everything of a chunk's metadata that matters for reading it.
fn add(hasher: &mut XxHash3_64, chunk: &ColumnChunkMetaData) {
    let description = chunk.column_descr();
    hasher.write(description.name().as_bytes());
    hasher.write_i16(description.max_def_level());
    hasher.write_u8(match chunk.compression_codec() {
        CompressionCodec::UNCOMPRESSED => 0,
        CompressionCodec::SNAPPY => 1,
        _ => u8::MAX,
    });
    hasher.write_i64(chunk.dictionary_page_offset().unwrap_or(-1));
    hasher.write_i64(chunk.data_page_offset());
    hasher.write_i64(chunk.compressed_size());
    hasher.write_i64(chunk.num_values());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_parse_as_written_and_malformed_ones_are_refused() {
        let mut sums = Checksums::default();
        sums.push(7);
        sums.push(u32::MAX);
        assert_eq!(sums.write(), "00000007ffffffff");
        assert_eq!(Checksums::parse(&sums.write()), Some(sums.clone()));
        assert_eq!(sums.get(0, 1, 0), Some(7));
        assert_eq!(sums.get(1, 1, 0), Some(u32::MAX));
        assert_eq!(sums.get(1, 2, 0), None);
        for text in ["0000000", "0000000g", "00000007f"] {
            assert_eq!(Checksums::parse(text), None, "{text}");
        }
    }
}
