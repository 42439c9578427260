//! Puts fields one after the other, and closes them with a checksum.

use super::Seal;
use super::reader::SUM_BYTES;
use weir_policy::Digest;

/// An item under construction.
pub(super) struct Writer {
    bytes: Vec<u8>,
    at: u64,
}

impl Writer {
    /// An item of about `capacity` bytes that will begin at `at` in its file.
    pub(super) fn new(at: u64, capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
            at,
        }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    pub(super) fn digest(&mut self, digest: Digest) {
        self.u64(digest.0);
        self.u64(digest.1);
    }

    fn fill(&mut self, bytes: usize) {
        self.bytes.resize(bytes.max(self.bytes.len()), 0);
    }

    /// What was put, and zeros up to `bytes` in all.
    pub(super) fn padded(mut self, bytes: usize) -> Vec<u8> {
        self.fill(bytes);
        self.bytes
    }

    /// The item of `bytes` in all: zeros, then the checksum of everything before it.
    pub(super) fn seal(mut self, bytes: usize, seal: Seal) -> Vec<u8> {
        self.fill(bytes - SUM_BYTES);
        let sum = seal.sum(self.at, &self.bytes);
        self.u64(sum);
        self.bytes
    }
}
