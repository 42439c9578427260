//! What is to be validated, beyond the end of the process: a node that is restarted before it has
//! validated all that it was told to does so with what it reads from disk.
//!
//! The file has one number, the wall clock in seconds: records of responses that were received by
//! then are validated. It is written by a thread of its own, so that no worker waits for the disk;
//! what demands it is answered when it is written. Demands that come meanwhile share one write.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::watch;
use weir_disk::PurgeError;
use weir_semantics::Timestamp;

/// The longest content of the file, bytes: a number of 64 bits.
const BYTES_MAX: u64 = 32;

/// The file, and what is to be in it.
#[derive(Debug)]
pub(crate) struct ValidSinceFile {
    path: PathBuf,
    wanted: AtomicI64,
    /// Whether the thread that writes runs.
    is_writing: Mutex<bool>,
    /// Held while the file is written.
    writing: Mutex<()>,
    /// What was tried last, and whether it was written.
    tried: watch::Sender<(i64, bool)>,
}

impl ValidSinceFile {
    /// The file at `path`, and what it says; damage counts as if it said `now`.
    pub(crate) fn open(path: PathBuf, now: Timestamp) -> (Arc<Self>, Option<Timestamp>) {
        let found = match read(&path) {
            Ok(found) => Some(found.unwrap_or(now)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(now),
        };
        let wanted = found.map_or(i64::MIN, |found| found.0);
        let file = Self {
            path,
            wanted: AtomicI64::new(wanted),
            is_writing: Mutex::new(false),
            writing: Mutex::new(()),
            tried: watch::Sender::new((wanted, true)),
        };
        (Arc::new(file), found)
    }

    /// Has what was received by `then` validated; ready when that survives a crash.
    pub(crate) fn demand(
        self: &Arc<Self>,
        then: Timestamp,
    ) -> impl Future<Output = Result<(), PurgeError>> + Send + use<> {
        let file = Arc::clone(self);
        // another write follows one that has begun
        let wanted = file.wanted.fetch_max(then.0, Ordering::SeqCst).max(then.0);
        file.begin_to_write(wanted);
        async move {
            let mut tried = file.tried.subscribe();
            let tried = tried.wait_for(|(tried, _)| *tried >= wanted).await;
            file.outcome(tried.is_ok_and(|tried| tried.1))
        }
    }

    /// The same for a thread that may wait for the disk.
    pub(crate) fn write_now(&self, then: Timestamp) -> Result<(), PurgeError> {
        self.wanted.fetch_max(then.0, Ordering::SeqCst);
        self.write();
        let is_written = self.tried.borrow().1;
        self.outcome(is_written)
    }

    fn outcome(&self, is_written: bool) -> Result<(), PurgeError> {
        let path = self.path.clone();
        is_written.then_some(()).ok_or(PurgeError { path })
    }

    fn begin_to_write(self: &Arc<Self>, wanted: i64) {
        let mut is_writing = lock(&self.is_writing);
        let (tried, is_written) = *self.tried.borrow();
        if *is_writing || is_written && tried >= wanted {
            return;
        }
        let file = Arc::clone(self);
        let run = move || {
            loop {
                let written = file.write();
                let mut is_writing = lock(&file.is_writing);
                *is_writing = file.wanted.load(Ordering::SeqCst) > written;
                if !*is_writing {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("weir-valid-since".into());
        *is_writing = thread.spawn(run).is_ok();
        if !*is_writing {
            self.tried.send_replace((wanted, false));
        }
    }

    /// Writes what is wanted; what that is.
    fn write(&self) -> i64 {
        let _writing = lock(&self.writing);
        let wanted = self.wanted.load(Ordering::SeqCst);
        let is_written = replace(&self.path, wanted).is_ok();
        self.tried.send_replace((wanted, is_written));
        wanted
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the file says; `None` if it is damaged.
fn read(path: &Path) -> io::Result<Option<Timestamp>> {
    if fs::metadata(path)?.len() > BYTES_MAX {
        return Ok(None);
    }
    let text = fs::read(path)?;
    let number = str::from_utf8(&text)
        .ok()
        .and_then(|text| text.trim_end().parse().ok());
    Ok(number.map(Timestamp))
}

/// Puts a new file in the place of the one before: after a crash there is one of the two.
fn replace(path: &Path, wanted: i64) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    writeln!(file, "{wanted}")?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_demanded_is_read_by_the_next_process_and_damage_is_all_until_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("valid-since");
        let open = |now| ValidSinceFile::open(path.clone(), Timestamp(now));
        let (file, found) = open(7);
        assert_eq!(found, None);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        for then in [40, 42, 41] {
            let written = runtime.block_on(file.demand(Timestamp(then)));
            assert_eq!(written, Ok(()));
        }
        assert_eq!(open(7).1, Some(Timestamp(42)));
        for damaged in ["", "x", &"1".repeat(100)] {
            fs::write(&path, damaged).expect("a file");
            assert_eq!(open(7).1, Some(Timestamp(7)), "{damaged:?}");
        }
        drop(folder);
        let lost = runtime.block_on(file.demand(Timestamp(50)));
        assert!(lost.is_err(), "there is no folder");
    }
}
