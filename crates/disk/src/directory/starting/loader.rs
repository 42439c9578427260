//! Fills the index after a start, newest segment first, while the store is already in use.

use crate::Notice;
use crate::directory::Directory;
use crate::directory::segment::{OuterExtent, Segment};
use crate::directory::starting::scan::{Contents, contents};
use crate::directory::writer::plan::MARK;
use crate::files::read_bytes;
use crate::format::{PAGE_BYTES, SegmentHeader};
use crate::index::Place;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct Loader {
    directory: Arc<Directory>,
    /// Oldest first.
    left: Vec<Arc<Segment>>,
    /// The newest purge in the journal when the store was opened.
    journaled: u64,
}

impl Loader {
    pub(crate) fn new(directory: Arc<Directory>, journaled: u64) -> Self {
        let left = directory.segments.all();
        Self {
            directory,
            left,
            journaled,
        }
    }

    /// What the thread does.
    pub(crate) fn run(mut self, is_closing: impl Fn() -> bool) {
        while !is_closing() && self.step() {}
    }

    /// Loads one segment; `false`: there is none left.
    pub(crate) fn step(&mut self) -> bool {
        let directory = Arc::clone(&self.directory);
        let Some(segment) = self.left.pop() else {
            return false;
        };
        if !segment.is_retired() {
            self.load(&segment);
        }
        if self.left.is_empty() {
            directory.is_loading.store(false, Ordering::Release);
            directory.tell(Notice::Ready {
                path: directory.path.clone(),
                entries: directory.index.len(),
                took_ms: directory.clock.now_ms(),
            });
        }
        !self.left.is_empty()
    }

    fn load(&self, segment: &Arc<Segment>) {
        let directory = &self.directory;
        match header(directory, segment) {
            Ok(Ok(header)) if header.purged > self.journaled => {
                self.journal_lacks(header.purged);
            }
            Ok(Ok(_)) => {}
            Ok(Err(why)) => {
                let gate = directory.gate();
                directory.segments.retire(segment);
                drop(gate);
                if let Err(error) = set_aside(directory, &segment.path, &why) {
                    directory.failed("set a segment aside", &error, false);
                }
                return;
            }
            Err(error) => return self.unreadable(&error),
        }
        match contents(segment) {
            Ok(contents) if contents.purged > self.journaled => {
                self.journal_lacks(contents.purged);
            }
            Ok(contents) => self.insert(segment, &contents),
            Err(error) => self.unreadable(&error),
        }
    }

    fn unreadable(&self, error: &io::Error) {
        // what is in it may be found after the next start
        self.directory.is_incomplete.store(true, Ordering::Release);
        self.directory.failed("read a segment", error, true);
    }

    /// The journal ends before a purge that was acknowledged: its key is not known.
    fn journal_lacks(&self, purged: u64) {
        let directory = &self.directory;
        if !directory.must_empty.swap(true, Ordering::AcqRel) {
            let journaled = self.journaled;
            directory.tell(Notice::JournalDamaged {
                path: directory.path.join(crate::format::JOURNAL_FILE),
                why: format!("it ends at {journaled} and a segment tells of {purged}"),
            });
            directory.queue.wake();
        }
    }

    fn insert(&self, segment: &Arc<Segment>, contents: &Contents) {
        let directory = &self.directory;
        let _gate = directory.gate();
        if segment.is_retired() || directory.must_empty.load(Ordering::Acquire) {
            return;
        }
        if directory.forgotten.has_overflowed() {
            // an older record of a forgotten key could not be distinguished from a good one
            directory.is_incomplete.store(true, Ordering::Release);
            return;
        }
        // later records of a key stand behind older ones, and what is in the index already is newer
        // still
        for entry in contents.entries.iter().rev() {
            if entry.kind.is_none() {
                let (at, key) = (entry.at, entry.key);
                segment.add_outer_extent(OuterExtent { at, key });
                continue;
            }
            let (key, generation) = (entry.key, entry.generation);
            if key == MARK || directory.purges.cover(key, generation) {
                continue;
            }
            if generation >= directory.first_generation || directory.forgotten.may_hold(key) {
                // nothing of before can be as young as that
                continue;
            }
            segment.saw_generation(generation);
            let place = Place::new(segment.slot, entry.at, entry.bytes);
            directory.index.insert_new(key, place);
            if directory.purges.cover(key, generation) {
                directory.forgotten.remember(key);
                directory.index.remove_at(key, place);
            }
        }
    }
}

/// The header of a segment, or what is wrong with it.
pub(crate) fn header(
    directory: &Directory,
    segment: &Segment,
) -> io::Result<Result<SegmentHeader, String>> {
    let page = read_bytes(&*segment.file, 0, PAGE_BYTES)?;
    let header = SegmentHeader::decode(&page, directory.volume, segment.number);
    Ok(header.map_err(|error| error.to_string()))
}

/// Renames a segment that cannot be read at all: it is kept for the operator, and not opened again.
pub(crate) fn set_aside(directory: &Directory, segment: &Path, why: &str) -> io::Result<()> {
    let mut name = segment.as_os_str().to_owned();
    name.push(".aside");
    let path = PathBuf::from(name);
    directory.files.rename(segment, &path)?;
    directory.counters.set_aside.add(1);
    directory.tell(Notice::SetAside {
        path,
        why: why.to_owned(),
    });
    Ok(())
}
