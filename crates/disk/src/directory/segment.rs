//! A file of the log, and all of them.

use crate::files::File;
use crate::format::Seal;
use crate::index::SLOTS_MAX;
use crate::lock::lock;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use weir_policy::Digest;

/// Segments a directory may have: each is an open file, or two once it was read past the page
/// cache.
pub(crate) const SEGMENTS_MAX: usize = 4096;

const _: () = assert!(SEGMENTS_MAX < SLOTS_MAX);

/// A chunk that is shorter is not worth a `sendfile`, in bytes; so a segment remembers few that are
/// verified.
pub(crate) const SEND_BYTES_MIN: u32 = 16 * 1024;

/// An extent that lies outside of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OuterExtent {
    pub(crate) at: u32,
    pub(crate) key: Digest,
}

/// Exists until its last reader is dropped, evicted or not.
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) slot: u16,
    pub(crate) seal: Seal,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    retired: AtomicBool,
    /// Nothing is written to it any more, and all of it is on the device.
    sealed: AtomicBool,
    /// The highest generation of a record in it, as far as it was read.
    generation: AtomicU64,
    /// Bytes that count against the directory's share: while it is being written, all it may come
    /// to have.
    bytes: AtomicU64,
    /// Bytes that were written.
    end: AtomicU64,
    outer_extents: Mutex<Vec<OuterExtent>>,
    /// Offsets of chunks that were verified since they came from the device, or written by this
    /// process.
    verified: Mutex<HashSet<u32>>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment({:x})", self.number)
    }
}

impl Segment {
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Behind the last byte that was written.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    /// The highest generation of a record in it.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn saw_generation(&self, generation: u64) {
        self.generation.fetch_max(generation, Ordering::AcqRel);
    }

    pub(crate) fn add_outer_extent(&self, extent: OuterExtent) {
        let mut extents = lock(&self.outer_extents);
        extents.push(extent);
    }

    pub(crate) fn outer_extents(&self) -> Vec<OuterExtent> {
        let extents = lock(&self.outer_extents);
        extents.clone()
    }

    /// The chunk at `offset` was verified.
    pub(crate) fn verified(&self, offset: u32, len: u32) {
        if len >= SEND_BYTES_MIN {
            let mut verified = lock(&self.verified);
            verified.insert(offset);
        }
    }

    /// The chunk at `offset` is not in the page cache: when it comes back, it must be verified
    /// again.
    pub(crate) fn left_memory(&self, offset: u32) {
        let mut verified = lock(&self.verified);
        verified.remove(&offset);
    }

    pub(crate) fn is_verified(&self, offset: u32) -> bool {
        let verified = lock(&self.verified);
        verified.contains(&offset)
    }
}

/// What a segment is made from.
pub(crate) struct NewSegment {
    pub(crate) number: u64,
    pub(crate) seal: Seal,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) bytes: u64,
    pub(crate) end: u64,
    pub(crate) is_sealed: bool,
}

#[derive(Default)]
struct All {
    numbered: BTreeMap<u64, Arc<Segment>>,
    slots: Vec<Option<Arc<Segment>>>,
}

/// The segments of a directory, by number and by slot.
#[derive(Default)]
pub(crate) struct Segments(RwLock<All>);

impl Segments {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, All> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: there are [`SLOTS_MAX`].
    pub(crate) fn add(&self, new: NewSegment) -> Option<Arc<Segment>> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let free = all.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or(all.slots.len());
        let segment = Arc::new(Segment {
            number: new.number,
            slot: u16::try_from(slot).ok()?,
            seal: new.seal,
            path: new.path,
            file: new.file,
            retired: AtomicBool::new(false),
            sealed: AtomicBool::new(new.is_sealed),
            generation: AtomicU64::new(0),
            bytes: AtomicU64::new(new.bytes),
            end: AtomicU64::new(new.end),
            outer_extents: Mutex::default(),
            verified: Mutex::default(),
        });
        if slot == all.slots.len() {
            all.slots.push(None);
        }
        all.slots[slot] = Some(Arc::clone(&segment));
        all.numbered.insert(new.number, Arc::clone(&segment));
        Some(segment)
    }

    /// No lookup finds it from now on. No entry of the index may point to it any more.
    pub(crate) fn retire(&self, segment: &Segment) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.numbered.remove(&segment.number).is_some() {
            all.slots[usize::from(segment.slot)] = None;
        }
        segment.retired.store(true, Ordering::Release);
    }

    pub(crate) fn in_slot(&self, slot: u16) -> Option<Arc<Segment>> {
        self.read().slots.get(usize::from(slot))?.clone()
    }

    pub(crate) fn numbered(&self, number: u64) -> Option<Arc<Segment>> {
        self.read().numbered.get(&number).cloned()
    }

    pub(crate) fn oldest(&self) -> Option<Arc<Segment>> {
        let all = self.read();
        all.numbered.first_key_value().map(|(_, s)| Arc::clone(s))
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.read().numbered.values().cloned().collect()
    }

    /// How many, and their bytes.
    pub(crate) fn usage(&self) -> (u64, u64) {
        let all = self.read();
        let bytes = all.numbered.values().map(|segment| segment.bytes()).sum();
        (all.numbered.len() as u64, bytes)
    }
}
