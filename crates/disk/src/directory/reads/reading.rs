//! How a read is done: at once if the page cache is looked into and has it, else while others are,
//! through the page cache or past it.

use crate::directory::Directory;
use crate::directory::reads::reader::{ReadFault, ReadMode};
use crate::directory::segment::Segment;
use crate::lock::lock;
use crate::{Notice, ReadError};
use std::future::Future;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use weir_policy::page_cache::{PageCache, ReadPath, Volumes};

impl Directory {
    /// Does `read` of something in `segment`. It uses the buffer of
    /// [`Buffer::with`](super::buffer::Buffer::with), and fails with [`ReadFault::WouldWait`] if
    /// it would have to wait: then it is called again when it need not.
    pub(crate) fn read<T, F>(
        &self,
        segment: &Segment,
        read: F,
    ) -> impl Future<Output = Result<T, ReadError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(ReadMode) -> Result<T, ReadFault> + Send + 'static,
    {
        let read = move |mode| ReadFault::finished(read(mode));
        let read_path = self.read_path(segment);
        let now = match read_path {
            ReadPath::Through => self.look(segment, read(ReadMode::PageCache)),
            ReadPath::Past => None,
        };
        let done = match now {
            Some(done) => Ok(done),
            None => Err(self
                .pool
                .submit(move || read(ReadMode::Buffered(read_path)))),
        };
        async move {
            match done {
                Ok(done) => done,
                Err(waiting) => waiting.await,
            }
        }
    }

    fn read_path(&self, segment: &Segment) -> ReadPath {
        // what is not yet on the device would have to be written first
        if !segment.is_sealed() || !self.can_read_past() {
            return ReadPath::Through;
        }
        self.page_cache().next()
    }

    /// Notes whether a look into the page cache succeeded.
    fn look<T>(
        &self,
        segment: &Segment,
        found: Option<Result<T, ReadError>>,
    ) -> Option<Result<T, ReadError>> {
        // what was just written is there whatever else is, and an error says nothing of it
        if segment.is_sealed() && !matches!(found, Some(Err(_))) {
            let was_there = found.is_some();
            self.page_cache().looked(was_there, || self.volumes());
        }
        found
    }

    pub(crate) fn page_cache(&self) -> MutexGuard<'_, PageCache> {
        lock(&self.page_cache)
    }

    fn volumes(&self) -> Volumes {
        let (_, stored_bytes) = self.segments.usage();
        Volumes {
            passed_bytes: self.counters.passed_bytes(),
            stored_bytes,
        }
    }

    /// Nothing said yet that reads past the page cache cannot be had.
    pub(crate) fn can_read_past(&self) -> bool {
        !self.is_indirect.load(Ordering::Relaxed)
    }

    /// Reads past the page cache cannot be had: from now on all go through it.
    pub(crate) fn cannot_read_past(&self) {
        if !self.is_indirect.swap(true, Ordering::Relaxed) {
            self.tell(Notice::Indirect {
                path: self.path.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
