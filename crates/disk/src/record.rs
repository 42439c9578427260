//! What goes in and what comes out.

use crate::Extent;
use crate::directory::segment::Segment;
use crate::index::Place;
use std::sync::Arc;
use weir_policy::Digest;

/// When a response was requested, in the order of all tickets and purges of the store. Taken before
/// the request is sent to the next hop; a purge takes one too, so a response that was requested
/// before a purge is never stored after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(crate) u64);

impl Ticket {
    /// Its place in that order.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Content bytes and their place in the content.
#[derive(Clone, Debug)]
pub struct BodyBlock {
    /// Offset of the first byte in the content.
    pub from: u64,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// A small response, whole or in part, that is in memory.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// What it is found by.
    pub key: Digest,
    /// When it was requested.
    pub ticket: Ticket,
    /// What its owner needs back: head, facts, validators. Opaque here.
    pub meta: Vec<u8>,
    /// Content in ascending order, without overlaps; gaps make it a part.
    pub body: Vec<BodyBlock>,
}

/// One record among all that ever were in this process: its segment and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId {
    pub(crate) directory: u16,
    pub(crate) segment: u64,
    pub(crate) offset: u32,
}

#[cfg(feature = "simulated")]
impl RecordId {
    /// The number of its segment, and its first byte there.
    pub fn place(self) -> (u64, u64) {
        (self.segment, u64::from(self.offset))
    }
}

/// Where the index says that a record may lie. It may turn out to be another key's (the index keeps
/// 64 bits of a key). Keeps the segment readable.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub(crate) key: Digest,
    pub(crate) directory: u16,
    pub(crate) segment: Arc<Segment>,
    pub(crate) place: Place,
}

impl Candidate {
    /// The record it points to.
    #[must_use]
    pub fn record(&self) -> RecordId {
        RecordId {
            directory: self.directory,
            segment: self.segment.number,
            offset: self.place.offset(),
        }
    }

    /// About how many bytes the record has, by at most an eighth too many; content that lies
    /// elsewhere not counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.place.class.bytes()
    }
}

/// A record that was read and verified.
#[derive(Clone, Debug)]
pub struct LoadedRecord {
    /// Its key.
    pub key: Digest,
    /// When it was requested.
    pub ticket: Ticket,
    /// What its owner stored.
    pub meta: Box<[u8]>,
    /// The content that is still there, ascending, without overlaps. Fewer than were stored if
    /// segments left meanwhile: the owner compares with the length it knows.
    pub extents: Vec<Extent>,
    /// The whole content, verified, where it is one small embedded extent from offset 0; `extents`
    /// says the same then.
    pub inline: Option<Arc<[u8]>>,
    /// For [`crate::Disk::forget`].
    pub record: RecordId,
}
