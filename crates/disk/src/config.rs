//! What an operator can say about the disk tier.

use std::path::PathBuf;

/// Segment size if nothing else is said: large enough that a rotating disk seeks rarely, small
/// enough that eviction does not come in gulps.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;

/// Fewest segments a directory is cut into. A segment is evicted as a whole, and if the oldest were
/// short, two are evicted for a new one: so at most a 64th of the directory is evicted at once. In
/// the second phase of the Wisconsin benchmark eight segments cost 0.8 points of hit ratio against
/// this many.
pub const SEGMENTS_MIN: u64 = 128;

/// Smallest segment, in bytes: a block of content, which lies in one piece, takes half of it.
pub const SEGMENT_BYTES_MIN: u64 = 128 * 1024;

/// One directory, normally one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryConfig {
    /// Where the files lie; created if it is not there.
    pub path: PathBuf,
    /// Bytes that the files may take.
    pub bytes: u64,
}

/// When bytes are verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// When they come from the device: what was verified and stayed in memory is sent as it is.
    #[default]
    FromDevice,
    /// Whenever they are used; nothing is sent without being looked at, so there is no `sendfile`.
    Always,
}

/// The whole tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// At least one; a key lives in one of them.
    pub directories: Vec<DirectoryConfig>,
    /// Bytes of a segment; made smaller where a directory would otherwise have fewer than
    /// `segments_min`. At most 256 MiB.
    pub segment_bytes: u64,
    /// Fewest segments a directory is cut into; [`SEGMENTS_MIN`].
    pub segments_min: u64,
    /// Bytes of the smallest segment; a directory that is too small for `segments_min` of them is
    /// refused. [`SEGMENT_BYTES_MIN`].
    pub segment_bytes_min: u64,
    /// Bytes that may wait to be written, a directory; beyond that an append is refused
    /// ([`crate::Refused::Busy`]).
    pub queue_bytes_max: usize,
    /// Threads that read, a directory, where the system does no reads side by side; else one does.
    pub readers: usize,
    /// Reads that may wait to begin, a directory; beyond that a read fails
    /// ([`crate::ReadError::Busy`]).
    pub reads_waiting_max: usize,
    /// When bytes are verified.
    pub verify: Verify,
    /// Bytes a second that a background scrub reads and verifies, a directory; 0 is off.
    pub scrub_bytes_per_s: u64,
    /// Longest time that a stored response is not yet on the device, in milliseconds.
    pub sync_interval_ms: u64,
}

impl DiskConfig {
    /// The defaults for these directories.
    #[must_use]
    pub fn new(directories: Vec<DirectoryConfig>) -> Self {
        Self {
            directories,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            segments_min: SEGMENTS_MIN,
            segment_bytes_min: SEGMENT_BYTES_MIN,
            queue_bytes_max: 32 << 20,
            readers: 4,
            reads_waiting_max: 1024,
            verify: Verify::FromDevice,
            scrub_bytes_per_s: 0,
            sync_interval_ms: 1000,
        }
    }
}
