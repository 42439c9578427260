//! Bytes of a capture file, and how far in it we are.

use std::io::{self, BufReader, ErrorKind, Read};

/// Read ahead of the packets, bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// A source of bytes.
pub(in crate::import::pcap) struct Input<R> {
    inner: BufReader<R>,
}

impl<R: Read> Input<R> {
    pub(in crate::import::pcap) fn new(inner: R) -> Self {
        Self {
            inner: BufReader::with_capacity(BUFFER_BYTES, inner),
        }
    }

    /// Fills `buf`, or as much of it as there is; says how many bytes that were.
    pub(in crate::import::pcap) fn fill(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.inner.read(&mut buf[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Reads past `count` bytes; says how many there were.
    pub(in crate::import::pcap) fn skip(&mut self, count: u64) -> io::Result<u64> {
        io::copy(&mut self.inner.by_ref().take(count), &mut io::sink())
    }
}
