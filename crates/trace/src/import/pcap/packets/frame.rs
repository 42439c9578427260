//! One packet as a capture file has it.

use crate::import::pcap::packets::link::Link;

/// One packet of a capture, its bytes borrowed from the reader.
#[derive(Clone, Copy, Debug)]
pub(in crate::import::pcap) struct Frame<'a> {
    /// When it was captured, microseconds since 1970; `None` where the block has no time (Simple
    /// Packet Block).
    pub(in crate::import::pcap) time_us: Option<i64>,
    /// The format of its first header.
    pub(in crate::import::pcap) link: Link,
    /// How long it was on the wire, bytes; never less than what was captured.
    pub(in crate::import::pcap) wire_bytes: usize,
    /// What was captured of it.
    pub(in crate::import::pcap) bytes: &'a [u8],
}
