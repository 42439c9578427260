//! What the store says about itself.

/// Complaints kept by a check.
pub const COMPLAINTS_MAX: usize = 100;

/// A snapshot, summed over directories. Counters count since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskUse {
    /// Bytes of the segments.
    pub bytes: u64,
    /// Bytes they may have.
    pub bytes_max: u64,
    /// Stored responses in the index.
    pub entries: u64,
    /// Memory of the index, in bytes, slack counted.
    pub index_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Purges in force that are remembered.
    pub purges: u64,
    /// Bytes that wait to be written.
    pub queue_bytes: u64,
    /// Reads that wait for a thread.
    pub reads_waiting: u64,
    /// Directories whose index is still being read.
    pub loading: u64,
    /// Directories that rest after errors.
    pub fenced: u64,
    /// Records written: responses stored.
    pub stored: u64,
    /// Content bytes written for them.
    pub stored_bytes: u64,
    /// All bytes written to the device: heads, tables and what is carried forward counted.
    pub written_bytes: u64,
    /// Bytes carried forward from segments that were evicted.
    pub carried_bytes: u64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Reads that were done by a thread because the page cache did not have them, or was not looked
    /// into.
    pub waited_reads: u64,
    /// Appends refused: queue full.
    pub refused_busy: u64,
    /// Appends refused: everything else.
    pub refused_other: u64,
    /// Appends that were accepted and then not written: an error, or outdated meanwhile.
    pub lost: u64,
    /// Records that left with their segment.
    pub evicted: u64,
    /// Purges made durable.
    pub purged: u64,
    /// Entries of purge journals that one copy had lost, and the other had.
    pub purges_recovered: u64,
    /// Records and chunks that did not verify.
    pub damaged: u64,
    /// Errors of the device when reading.
    pub read_errors: u64,
    /// Errors of the device when writing or syncing.
    pub write_errors: u64,
    /// Segments set aside.
    pub set_aside: u64,
    /// Bytes verified by the scrub.
    pub scrubbed_bytes: u64,
}

/// What a check looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Index entries.
    pub entries: u64,
    /// Records read and verified, extents included.
    pub records: u64,
    /// Content bytes verified.
    pub bytes: u64,
}
