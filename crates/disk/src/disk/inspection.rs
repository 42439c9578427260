//! Looks into a store that this process uses, a segment at a time.
//!
//! What lies in a segment is what the reader of [`offline`](crate::offline) finds in its file; what
//! of it is live is what the index has, a look-up a record. So nothing of it grows with the store,
//! and no lock is held for longer than a look-up. What waits to be written is not there yet.

use super::Disk;
use crate::directory::Directory;
use crate::directory::segment::Segment;
use crate::format::{JOURNAL_ENTRY_BYTES, JOURNAL_FILE};
use crate::index::Place;
use crate::offline::check::check_item;
use crate::offline::content::{content_piece, item_at, read_record};
use crate::offline::directory::list;
use crate::offline::segment::{Contents, Segment as SegmentFile, SegmentSource};
use crate::offline::{
    IntactRecord, OfflineError, Problem, RecordState, State, StoredItem, VerifyReport,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_policy::Digest;

/// A directory of a store that this process uses.
#[derive(Debug)]
pub struct DirectoryInUse(Arc<Directory>);

/// A segment of it, opened a second time to read.
#[derive(Debug)]
pub struct SegmentInUse {
    directory: Arc<Directory>,
    segment: Arc<Segment>,
    file: SegmentFile,
    file_bytes: u64,
    is_sealed: bool,
}

/// What lies in a segment.
#[derive(Debug)]
pub struct SegmentContents {
    /// Records and extents, by place.
    pub found: Vec<StoredItem>,
    /// How it ended.
    pub state: State,
    /// Bytes of its file.
    pub bytes: u64,
    /// What is wrong with its frame: content was not looked at.
    pub problems: Vec<Problem>,
}

impl Disk {
    /// The first directory of the configuration at `position` or behind, and its position.
    #[must_use]
    pub fn directory_from(&self, position: u16) -> Option<(u16, DirectoryInUse)> {
        let behind = self.directories.iter().filter(|it| it.position >= position);
        let first = behind.min_by_key(|it| it.position)?;
        Some((first.position, DirectoryInUse(Arc::clone(first))))
    }

    /// The record that is found for `key`, in the segment where it lies; a request is not noted.
    ///
    /// # Errors
    ///
    /// It is damaged, or cannot be read.
    pub fn live_record(
        &self,
        key: Digest,
    ) -> Result<Option<(SegmentInUse, StoredItem)>, OfflineError> {
        let home = DirectoryInUse(Arc::clone(self.home(key)));
        let Some((place, _)) = home.0.index.peek(key) else {
            return Ok(None);
        };
        let Some(segment) = home.0.segments.in_slot(place.slot) else {
            return Ok(None);
        };
        let Some(segment) = home.open(segment)? else {
            return Ok(None);
        };
        let item = item_at(&segment.file, place.offset())?;
        Ok((item.key == key).then_some((segment, item)))
    }
}

impl DirectoryInUse {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Its number in the store.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.volume.directory
    }

    /// Its place in the configuration.
    #[must_use]
    pub fn position(&self) -> u16 {
        self.0.position
    }

    /// The index is still being read: what is live is not known of all that is there.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.0.is_loading.load(Ordering::Acquire)
    }

    /// Entries of its purge journal, and the generation of the newest.
    #[must_use]
    pub fn purges(&self) -> (u64, u64) {
        let bytes = std::fs::metadata(self.0.path.join(JOURNAL_FILE)).map_or(0, |it| it.len());
        let entries = bytes / JOURNAL_ENTRY_BYTES as u64;
        (entries, self.0.purges.newest_journaled())
    }

    /// How many segments were set aside.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn set_aside(&self) -> Result<u64, OfflineError> {
        list(&self.0.path).map(|(_, aside)| aside.len() as u64)
    }

    /// The oldest segment whose number is `number` or higher.
    ///
    /// # Errors
    ///
    /// It cannot be read, or its first page is damaged: then its number is there, too.
    pub fn segment_from(&self, number: u64) -> Result<Option<SegmentInUse>, (u64, OfflineError)> {
        let mut behind = self.0.segments.all().into_iter();
        // the oldest leave at any time
        while let Some(segment) = behind.find(|it| it.number >= number) {
            let number = segment.number;
            match self.open(segment) {
                Ok(None) => {}
                opened => return opened.map_err(|error| (number, error)),
            }
        }
        Ok(None)
    }

    /// `None` if it has left.
    fn open(&self, segment: Arc<Segment>) -> Result<Option<SegmentInUse>, OfflineError> {
        // before its length is read: one that is sealed meanwhile is read as one that is open
        let (is_sealed, end) = (segment.is_sealed(), segment.end());
        match SegmentFile::open(segment_source(&self.0), segment.number) {
            Ok(mut file) => {
                let file_bytes = file.len;
                if !is_sealed {
                    file.len = file.len.min(end);
                }
                Ok(Some(SegmentInUse {
                    directory: Arc::clone(&self.0),
                    segment,
                    file,
                    file_bytes,
                    is_sealed,
                }))
            }
            Err(_) if segment.is_retired() => Ok(None),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn segment_source(directory: &Directory) -> SegmentSource<'_> {
    SegmentSource {
        path: &directory.path,
        volume: directory.volume,
    }
}

impl SegmentInUse {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.segment.number
    }

    /// Its directory's place in the configuration.
    #[must_use]
    pub fn directory(&self) -> u16 {
        self.directory.position
    }

    /// It was evicted: what is read of it proves nothing.
    #[must_use]
    pub fn is_evicted(&self) -> bool {
        self.segment.is_retired()
    }

    /// What lies in it: by its table, or step by step up to what is written by now.
    ///
    /// # Errors
    ///
    /// The file system says no.
    pub fn contents(&self) -> Result<SegmentContents, OfflineError> {
        let contents: Contents = if self.is_sealed {
            self.file.contents()?
        } else {
            self.file.by_steps()?
        };
        Ok(SegmentContents {
            found: contents.found,
            state: contents.state,
            bytes: self.file_bytes,
            problems: contents.problems,
        })
    }

    /// Whether a record in it may be used.
    #[must_use]
    pub fn state_of(&self, record: &StoredItem) -> RecordState {
        let directory = &self.directory;
        if directory.purges.cover(record.key, record.generation) {
            return RecordState::Purged;
        }
        let here = Place::new(self.segment.slot, record.at, record.bytes);
        match directory.index.peek(record.key) {
            Some((place, _)) if place.is_at(here) && !self.is_evicted() => RecordState::Live,
            Some(_) => RecordState::Superseded,
            None => RecordState::Forgotten,
        }
    }

    /// The record at `at`, if it is of `key`.
    ///
    /// # Errors
    ///
    /// What lies there is no record, or cannot be read.
    pub fn item_at(&self, key: Digest, at: u32) -> Result<Option<StoredItem>, OfflineError> {
        let item = item_at(&self.file, at)?;
        Ok((item.key == key).then_some(item))
    }

    /// Reads a record in it; its content is not looked at.
    ///
    /// # Errors
    ///
    /// Something of it is damaged, or it is not what its table says.
    pub fn read(&self, record: &StoredItem) -> Result<IntactRecord, OfflineError> {
        read_record(&self.file, record)
    }

    /// The content of a record in it from `from` on, verified: `bytes_max` bytes, fewer at its end.
    ///
    /// # Errors
    ///
    /// Something of it is damaged, or has left.
    pub fn content(
        &self,
        stored: &IntactRecord,
        from: u64,
        bytes_max: usize,
    ) -> Result<Vec<u8>, OfflineError> {
        content_piece(segment_source(&self.directory), stored, from, bytes_max)
    }

    /// Verifies every byte of a record or extent in it, and counts it in `checked`. `tell` is
    /// called for each thing that is wrong, unless it is that the segment has left.
    ///
    /// # Errors
    ///
    /// The file system says no.
    pub fn check(
        &self,
        item: &StoredItem,
        checked: &mut VerifyReport,
        tell: &mut dyn FnMut(&Problem),
    ) -> Result<(), OfflineError> {
        let is_live = item.is_response() && self.state_of(item) == RecordState::Live;
        let place = (segment_source(&self.directory), &self.file);
        let mut problems = Vec::new();
        check_item(place, item, is_live, checked, &mut |problem| {
            problems.push(problem.clone());
        })?;
        if !self.is_evicted() {
            problems.iter().for_each(tell);
        }
        Ok(())
    }
}
