//! Reads numbers and byte strings off the front of a record.

use super::error::RecordError;
use weir_policy::Digest;

/// The rest of a record.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `count` bytes.
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], RecordError> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(RecordError::Short { what, at: self.at })?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], RecordError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, RecordError> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, RecordError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, RecordError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, RecordError> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, RecordError> {
        self.array(what).map(i64::from_le_bytes)
    }

    pub(super) fn digest(&mut self, what: &'static str) -> Result<Digest, RecordError> {
        Ok(Digest(self.u64(what)?, self.u64(what)?))
    }

    /// A byte string behind its length.
    pub(super) fn string(&mut self, what: &'static str) -> Result<&'a [u8], RecordError> {
        let length = self.u32(what)?;
        let length = usize::try_from(length).map_err(|_| self.wrong(what))?;
        self.take(length, what)
    }

    /// What was read last cannot be.
    pub(super) fn wrong(&self, what: &'static str) -> RecordError {
        RecordError::Value { what, at: self.at }
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Result<(), RecordError> {
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(RecordError::Surplus { at: self.at })
        }
    }
}

/// Writes a byte string behind its length; one beyond 4 GiB, which no head is, is cut.
pub(super) fn put_string(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&bytes[..length as usize]);
}

pub(super) fn put_digest(digest: Digest, out: &mut Vec<u8>) {
    out.extend_from_slice(&digest.0.to_le_bytes());
    out.extend_from_slice(&digest.1.to_le_bytes());
}
