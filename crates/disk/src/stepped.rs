//! A store without threads, for tests: its owner steps writers and loaders, and sets the clock.
//!
//! Only with the feature `simulated`. On simulated files a run of such a store depends on nothing
//! but its seed.

use crate::directory::scrub::scrub;
use crate::directory::starting::loader::Loader;
use crate::directory::writer::Writer;
use crate::directory::{Clock, Directory};
use crate::disk::assemble_stepped;
use crate::files::Files;
use crate::{Disk, DiskConfig, NoticeHandler, OpenError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_policy::page_cache::{PageCache, ReadPath};

/// What of one directory is stepped by hand.
pub struct SteppedDirectory {
    directory: Arc<Directory>,
    writer: Writer,
    loader: Loader,
}

/// Opens a store whose clock stands at 0 ms and whose directories do nothing by themselves.
///
/// # Errors
///
/// As for [`Disk::open`].
pub fn open(
    config: &DiskConfig,
    files: &Arc<dyn Files>,
    listener: &NoticeHandler,
) -> Result<(Arc<Disk>, Vec<SteppedDirectory>), OpenError> {
    let (disk, parts) = assemble_stepped(config, files, listener)?;
    let stepped = parts
        .into_iter()
        .map(|(directory, writer, loader)| SteppedDirectory {
            directory,
            writer,
            loader,
        });
    Ok((disk, stepped.collect()))
}

impl SteppedDirectory {
    /// Sets the clock, milliseconds since the store was opened.
    pub fn set_clock_ms(&self, now_ms: u64) {
        if let Clock::Manual(ms) = &self.directory.clock {
            ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Moves the clock on, milliseconds.
    pub fn advance_clock_ms(&self, by_ms: u64) {
        if let Clock::Manual(ms) = &self.directory.clock {
            ms.fetch_add(by_ms, Ordering::Relaxed);
        }
    }

    /// Forgets what was learnt about the page cache, and reads by `read_path` until more is learnt.
    pub fn read(&self, read_path: ReadPath) {
        *self.directory.page_cache() = PageCache::new(read_path);
    }

    /// Writes what waits.
    pub fn write(&mut self) {
        self.writer.step();
    }

    /// Loads a piece of the index; `false` if all of it is loaded.
    pub fn load(&mut self) -> bool {
        self.loader.step()
    }

    /// Verifies everything as the background scrub does; the bytes for which that would have
    /// rested. `None` if it was stopped.
    pub fn scrub(&self) -> Option<u64> {
        let mut rested_bytes = 0;
        for segment in self.directory.segments.all() {
            let is_done = scrub(&self.directory, &segment, |bytes| {
                rested_bytes += bytes;
                true
            });
            if !is_done {
                return None;
            }
        }
        Some(rested_bytes)
    }

    /// Number and bytes of each segment.
    pub fn segments(&self) -> Vec<(u64, u64)> {
        let segments = self.directory.segments.all();
        let sizes = segments.iter().map(|it| (it.number, it.bytes()));
        sizes.collect()
    }

    /// Bytes of a full segment.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.directory.limits.segment_bytes)
    }

    /// Ends the writer as [`Disk::close`] does; what waits is written first if `write_waiting`.
    pub fn close(mut self, write_waiting: bool) {
        self.directory.queue.close();
        while write_waiting && self.directory.queue.wait(Duration::ZERO) {
            self.writer.step();
        }
        self.writer.finish();
    }
}
