//! Bytes of a capture file, and how far in it we are.

use std::io::{self, BufReader, ErrorKind, Read};

/// Read ahead of the packets, bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// A source of bytes that says whether it ended where something could begin.
pub(in crate::import::pcap) struct Input<R> {
    inner: BufReader<R>,
}

/// The result of a read.
#[derive(Debug)]
pub(in crate::import::pcap) enum ReadResult {
    /// All of them.
    All,
    /// None: the input is at its end.
    Nothing,
    /// Only so many of them.
    Part(usize),
}

impl<R: Read> Input<R> {
    pub(in crate::import::pcap) fn new(inner: R) -> Self {
        Self {
            inner: BufReader::with_capacity(BUFFER_BYTES, inner),
        }
    }

    /// Fills `buf`, if there is that much.
    pub(in crate::import::pcap) fn fill(&mut self, buf: &mut [u8]) -> io::Result<ReadResult> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.inner.read(&mut buf[filled..]) {
                Ok(0) if filled == 0 => return Ok(ReadResult::Nothing),
                Ok(0) => return Ok(ReadResult::Part(filled)),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ReadResult::All)
    }

    /// Reads past `count` bytes; says how many there were.
    pub(in crate::import::pcap) fn skip(&mut self, count: u64) -> io::Result<u64> {
        io::copy(&mut self.inner.by_ref().take(count), &mut io::sink())
    }
}
