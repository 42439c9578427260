//! What goes out in one call, and what is true when it has.

use super::Writer;
use crate::Refused;
use crate::directory::Directory;
use crate::directory::segment::OuterExtent;
use crate::extent::{Extent, ExtentSource};
use crate::format::{CHUNK_BYTES, ExtentHeader, ExtentRef, PAGE_BYTES, TableEntry};
use crate::index::Place;
use crate::record_writer::Progress;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use weir_policy::Digest;

static PADDING: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// Bytes of an item.
pub(crate) enum Piece {
    Made(Vec<u8>),
    Content(Arc<[u8]>),
    Padding(usize),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Made(bytes) => bytes,
            Self::Content(bytes) => bytes,
            Self::Padding(count) => &PADDING[..*count],
        }
    }
}

/// What becomes of an item once it is written.
pub(crate) enum Effect {
    /// A new record is found from now on.
    Stored {
        charge: usize,
        /// Of a large response: what it lists.
        large: Option<(Arc<Progress>, Vec<Extent>)>,
    },
    /// An extent of a response that arrives can be read.
    Extent {
        charge: usize,
        progress: Arc<Progress>,
        reference: ExtentRef,
        header: Option<ExtentHeader>,
    },
    /// A record has moved.
    Carried { from: Place },
    /// An extent has moved: the record that says so follows.
    CarriedRun,
    /// Nothing is found.
    Mark,
}

struct Item {
    entry: TableEntry,
    effect: Effect,
}

#[derive(Default)]
pub(crate) struct Batch {
    pieces: Vec<Piece>,
    bytes: u64,
    items: Vec<Item>,
    /// Generations of the records in it.
    newest: HashMap<Digest, u64>,
}

impl Batch {
    pub(crate) fn items(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The generation of the record of `key` in it.
    pub(crate) fn generation(&self, key: Digest) -> Option<u64> {
        self.newest.get(&key).copied()
    }

    /// Adds an item behind `gap` bytes of zeros, less than a page.
    pub(crate) fn add(&mut self, gap: u64, pieces: Vec<Piece>, entry: TableEntry, effect: Effect) {
        debug_assert!(gap < PAGE_BYTES as u64, "{gap} bytes");
        let padding = usize::try_from(gap).map_or(PAGE_BYTES, |gap| gap.min(PAGE_BYTES));
        self.bytes += padding as u64 + u64::from(entry.bytes);
        if padding > 0 {
            self.pieces.push(Piece::Padding(padding));
        }
        if entry.kind.is_some() {
            self.newest.insert(entry.key, entry.generation);
        }
        self.pieces.extend(pieces);
        self.items.push(Item { entry, effect });
    }

    fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Nothing of it was written, or an unknown part.
    pub(crate) fn drop_all(&mut self, directory: &Directory) {
        for Item { entry, effect } in self.take().items {
            match effect {
                Effect::Stored { charge, large } => {
                    // it may be on the device all the same; the older record must not be found in
                    // its place
                    directory.forget_key(entry.key);
                    directory.queue.finished(charge, Some(entry.key));
                    directory.counters.lost.add(1);
                    if let Some((progress, _)) = large {
                        progress.fail(Refused::Incomplete);
                    }
                }
                Effect::Extent {
                    charge, progress, ..
                } => {
                    directory.queue.finished(charge, None);
                    progress.fail(Refused::Incomplete);
                }
                Effect::Carried { .. } => directory.forgotten.remember(entry.key),
                Effect::CarriedRun | Effect::Mark => {}
            }
        }
    }
}

impl Writer {
    /// Writes the batch; what it holds is found when this returns.
    pub(in crate::directory) fn flush(&mut self) {
        if self.batch.items.is_empty() {
            return;
        }
        let directory = Arc::clone(&self.directory);
        let Some(active) = &mut self.active else {
            self.batch.drop_all(&directory);
            return;
        };
        let pieces: Vec<&[u8]> = self.batch.pieces.iter().map(Piece::bytes).collect();
        let written = crate::files::write_full(&*active.segment.file, &pieces, active.end);
        if let Err(error) = written {
            directory.failed("write", &error, false);
            self.batch.drop_all(&directory);
            if error.kind() == std::io::ErrorKind::StorageFull {
                self.give_up_oldest();
            }
            return;
        }
        let batch = self.batch.take();
        directory.counters.written_bytes.add(batch.bytes);
        active.end += batch.bytes;
        active.unsynced_bytes += batch.bytes;
        active.segment.set_end(active.end);
        for Item { entry, effect } in batch.items {
            if entry.kind.is_some() {
                // the journal is written before what is planned behind it
                active.purged = self.journal.last;
            }
            active.table.push(entry);
            active.take_effect(&directory, &entry, effect);
        }
    }
}

impl crate::directory::active::Active {
    fn take_effect(&self, directory: &Arc<Directory>, entry: &TableEntry, effect: Effect) {
        let segment = &self.segment;
        let place = Place::new(segment.slot, entry.at, entry.bytes);
        if entry.kind.is_some() {
            // before the index says that it is there: a comparison of generations must not read for
            // nothing
            segment.saw_generation(entry.generation);
        } else {
            let (at, key) = (entry.at, entry.key);
            segment.add_outer_extent(OuterExtent { at, key });
        }
        match effect {
            Effect::Stored { charge, large } => {
                directory.index.insert(entry.key, place);
                if directory.purges.cover(entry.key, entry.generation) {
                    // purged meanwhile: it is on the device, and a purge that looks for it now must
                    // not think that nothing is
                    directory.forgotten.remember(entry.key);
                    directory.index.remove_at(entry.key, place);
                }
                directory.counters.stored.add(1);
                directory
                    .counters
                    .stored_bytes
                    .add(u64::from(entry.content_bytes));
                directory.queue.finished(charge, Some(entry.key));
                if let Some((progress, extents)) = large {
                    progress.committed(extents);
                }
            }
            Effect::Extent {
                charge,
                progress,
                reference,
                header,
            } => {
                directory
                    .counters
                    .stored_bytes
                    .add(u64::from(entry.content_bytes));
                directory.queue.finished(charge, None);
                let extent = self.extent(directory, entry, reference, header);
                progress.wrote(extent, charge);
            }
            Effect::Carried { from } => {
                directory.counters.carried_bytes.add(u64::from(entry.bytes));
                if !directory.index.relocate(entry.key, from, place) {
                    // purged or forgotten meanwhile: the copy is on the device
                    directory.forgotten.remember(entry.key);
                }
            }
            Effect::CarriedRun => {
                directory.counters.carried_bytes.add(u64::from(entry.bytes));
            }
            Effect::Mark => {}
        }
    }

    fn extent(
        &self,
        directory: &Arc<Directory>,
        entry: &TableEntry,
        reference: ExtentRef,
        header: Option<ExtentHeader>,
    ) -> Extent {
        let known = OnceLock::new();
        if let Some(header) = header {
            // it lies in the page cache as it was made here
            let content_at = u64::from(entry.at) + header.header_bytes();
            for index in 0..header.chunks() {
                if let Some((begin, len)) = header.chunk(index) {
                    debug_assert!(len as usize <= CHUNK_BYTES);
                    let at = content_at + u64::from(begin);
                    self.segment
                        .verified(u32::try_from(at).unwrap_or(u32::MAX), len);
                }
            }
            known.get_or_init(|| header);
        }
        Extent::new(ExtentSource {
            directory: Arc::clone(directory),
            segment: Arc::clone(&self.segment),
            key: entry.key,
            reference,
            record: None,
            header: known,
        })
    }
}
