//! Takes fields off a stretch of bytes, one after the other.

use super::{FormatError, FormatErrorKind, Item, Seal};
use weir_policy::Digest;

/// A checksum stands in the last eight bytes of what it covers.
pub(super) const SUM_BYTES: usize = 8;

/// The bytes of one item.
pub(super) struct Reader<'a> {
    item: Item,
    at: u64,
    bytes: &'a [u8],
    taken: usize,
}

impl<'a> Reader<'a> {
    /// The item begins with `bytes`, at `at` in its file.
    pub(super) fn new(item: Item, at: u64, bytes: &'a [u8]) -> Self {
        Self {
            item,
            at,
            bytes,
            taken: 0,
        }
    }

    pub(super) fn error(&self, kind: FormatErrorKind) -> FormatError {
        FormatError {
            item: self.item,
            at: self.at,
            kind,
        }
    }

    /// The first `count` bytes.
    pub(super) fn whole(&self, count: usize) -> Result<&'a [u8], FormatError> {
        self.bytes.get(..count).ok_or_else(|| {
            self.error(FormatErrorKind::Cut {
                needed: count as u64,
                there: self.bytes.len() as u64,
            })
        })
    }

    /// Whether the checksum at the end of the first `count` bytes fits the rest of them.
    pub(super) fn check_sum(&self, count: usize, seal: Seal) -> Result<(), FormatError> {
        let whole = self.whole(count)?;
        let fits = whole
            .split_last_chunk::<SUM_BYTES>()
            .is_some_and(|(covered, sum)| seal.sum(self.at, covered) == u64::from_le_bytes(*sum));
        if fits {
            Ok(())
        } else {
            Err(self.error(FormatErrorKind::Checksum))
        }
    }

    pub(super) fn magic(&mut self, expected: [u8; 8]) -> Result<(), FormatError> {
        if self.take::<8>()? == expected {
            Ok(())
        } else {
            Err(self.error(FormatErrorKind::Absent))
        }
    }

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((field, _)) = rest.split_first_chunk::<N>() else {
            return Err(self.error(FormatErrorKind::Cut {
                needed: (self.taken + N) as u64,
                there: self.bytes.len() as u64,
            }));
        };
        self.taken += N;
        Ok(*field)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn digest(&mut self) -> Result<Digest, FormatError> {
        Ok(Digest(self.u64()?, self.u64()?))
    }

    pub(super) fn limit(
        &self,
        field: &'static str,
        value: u64,
        max: u64,
    ) -> Result<(), FormatError> {
        if value <= max {
            Ok(())
        } else {
            Err(self.error(FormatErrorKind::Beyond { field, value, max }))
        }
    }

    /// What must hold of an intact item.
    pub(super) fn expect(
        &self,
        holds: bool,
        field: &'static str,
        value: u64,
    ) -> Result<(), FormatError> {
        if holds {
            Ok(())
        } else {
            Err(self.error(FormatErrorKind::Contradicts { field, value }))
        }
    }
}
