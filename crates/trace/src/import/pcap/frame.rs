//! One packet as a capture file has it.

use super::link::Link;

/// One packet of a capture, its bytes borrowed from the reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// When it was captured, microseconds since 1970; `None` where the block has no time (Simple
    /// Packet Block).
    pub(super) time_us: Option<i64>,
    /// How its first header is to be read.
    pub(super) link: Link,
    /// How long it was on the wire, bytes; never less than what was captured.
    pub(super) wire_bytes: usize,
    /// What was captured of it.
    pub(super) bytes: &'a [u8],
}
