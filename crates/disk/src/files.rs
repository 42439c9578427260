//! The one seam to the file system: everything the store does to files goes through [`Files`] and
//! [`File`].
//!
//! Two worlds implement it: [`SystemFiles`] over the kernel, and `SimulatedFiles` in memory
//! (feature `simulated`), which fails, tears, reorders and crashes on command. Transfers may be
//! short and may be interrupted; [`read_full`], [`Progress`] and [`write_full`] cope.

mod batch;
mod memory;
mod progress;
mod residency;
mod ring;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
mod system;
mod system_lock;

pub use batch::{Batch, Interrupter, Transfer, TransferResult};
pub use memory::Memory;
pub use progress::Progress;
pub use system::SystemFiles;
pub(crate) use system::open_regular;

use crate::format::PAGE_BYTES;
#[cfg(test)]
pub(crate) use batch::tests as batch_tests;
use progress::TRANSFERS_MAX;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It must exist.
    Read,
    /// It must exist.
    Write,
    /// It must not exist.
    Create,
}

/// Room on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that may still be used.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
}

/// What an exclusive lock of a directory came to.
#[derive(Debug)]
pub enum Lock {
    /// Ours until the value is dropped.
    Held(Box<dyn HeldLock>),
    /// Another process's, with its id if that could be read.
    Taken(Option<u32>),
}

/// An exclusive lock of a directory.
pub trait HeldLock: Send + Sync + Debug {
    /// Whether its file is still the one at `path`: it may have been removed, and another process
    /// may have made one of its own.
    fn is_of(&self, path: &Path) -> bool;
}

/// A file system.
pub trait Files: Send + Sync + Debug {
    /// Creates a directory and those above it; it may exist. Only its owner may look into a new
    /// one.
    ///
    /// # Errors
    /// What the system says.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Names of the files in a directory, in no order; names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Opens a file; a created one is readable by its owner only.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;

    /// Renames a file, replacing what has the new name. Durable after [`Self::sync_directory`].
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name.
    ///
    /// # Errors
    /// What the system says.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Makes created, renamed and removed names durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Room on the device of `path`.
    ///
    /// # Errors
    /// What the system says.
    fn space(&self, path: &Path) -> io::Result<Space>;

    /// Locks the file `path` for this process (`flock`), creating it if need be, and writes the
    /// process id into it. The directory that it is in is locked, too, where that can be: the file
    /// may be removed.
    ///
    /// # Errors
    /// What the system says.
    fn lock(&self, path: &Path) -> io::Result<Lock>;

    /// The same; the lock of a process that has ended is waited for until then. The kernel gives it
    /// back some time after a `kill -9`, once what was under way to the device is done.
    ///
    /// # Errors
    /// What the system says.
    fn lock_by(&self, path: &Path, _until: Instant) -> io::Result<Lock> {
        self.lock(path)
    }

    /// Fills `bytes` from the system's source of randomness.
    ///
    /// # Errors
    /// What the system says.
    fn random(&self, bytes: &mut [u8]) -> io::Result<()>;

    /// Wall clock, in seconds since 1970: written into headers for people, decides nothing.
    fn wall_s(&self) -> u64;

    /// Whether it is known without a read what the page cache has of the files in `directory`.
    fn tells_residency(&self, directory: &Path) -> bool {
        let _ = directory;
        true
    }

    /// For reads of this thread side by side, at most `max` at once; `None` if the system has no
    /// such thing.
    fn batch(&self, max: usize) -> Option<Box<dyn Batch>>;
}

/// An open file. All offsets are in bytes; there is no position.
#[expect(
    clippy::len_without_is_empty,
    reason = "a call to the system, that may fail"
)]
pub trait File: Send + Sync + Debug {
    /// Reads at `offset`; 0 is the end of the file. May read less.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads at `offset` what the page cache has; [`io::ErrorKind::WouldBlock`] if that is nothing.
    ///
    /// # Errors
    /// What the system says.
    fn read_at_now(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Whether the page cache has all of `len` bytes at `offset`. A page that is being read into it
    /// may count as there.
    fn is_resident(&self, offset: u64, len: u64) -> bool {
        has_each_page(self, offset, len)
    }

    /// Reads at `offset` past the page cache; 0 is the end of the file. May read less. The address
    /// of `bytes`, their number and `offset` are multiples of [`DIRECT_BYTES`].
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if that cannot be had for this file, now or later; else what
    /// the system says.
    fn read_at_direct(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes the pieces one after the other. May write less.
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&self, pieces: &[&[u8]], offset: u64) -> io::Result<usize>;

    /// Returns when content and length are on the device (`fdatasync`).
    ///
    /// # Errors
    /// What the system says. What was written before may then be lost, whatever a later call says.
    fn sync(&self) -> io::Result<()>;

    /// Reserves room for the first `len` bytes without changing the length.
    ///
    /// # Errors
    /// What the system says; a file system that cannot reserve is no error.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// The kernel's file, if there is one: what `sendfile` needs.
    fn system(&self) -> Option<&Arc<std::fs::File>> {
        None
    }

    /// The same opened to be read past the page cache, if that can be had.
    fn system_direct(&self) -> Option<&std::fs::File> {
        None
    }
}

/// Whether a byte of each page can be read without waiting: a quarter of the cost of copying them
/// all.
fn has_each_page<F: File + ?Sized>(file: &F, offset: u64, len: u64) -> bool {
    let page = PAGE_BYTES as u64;
    let end = offset + len;
    let mut at = offset;
    while at < end {
        if !matches!(file.read_at_now(&mut [0], at), Ok(1)) {
            return false;
        }
        at = (at / page + 1) * page;
    }
    true
}

/// What a read past the page cache counts in, in bytes: no device has longer sectors, and a page is
/// this long.
pub const DIRECT_BYTES: usize = 4096;

/// Reads until `bytes` is full or the file ends; returns how many bytes there were.
///
/// # Errors
/// What the system says.
pub fn read_full(file: &dyn File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let progress = Progress::through(bytes.len());
    finish(progress, bytes, offset, |bytes, offset| {
        file.read_at(bytes, offset)
    })
}

/// At most `len` bytes at `offset`: fewer where the file ends.
///
/// # Errors
/// What the system says.
pub fn read_bytes(file: &dyn File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let there = read_full(file, &mut bytes, offset)?;
    bytes.truncate(there);
    Ok(bytes)
}

/// [`read_full`] past the page cache, of a file that has `end` bytes: with alignments as for
/// [`File::read_at_direct`].
///
/// # Errors
/// As for [`read_full`].
pub fn read_full_direct(
    file: &dyn File,
    bytes: &mut [u8],
    offset: u64,
    end: u64,
) -> io::Result<usize> {
    let progress = Progress::past(bytes.len(), offset, end);
    finish(progress, bytes, offset, |bytes, offset| {
        file.read_at_direct(bytes, offset)
    })
}

fn finish(
    mut progress: Progress,
    bytes: &mut [u8],
    offset: u64,
    mut transfer: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    if progress.is_empty() {
        return Ok(0);
    }
    loop {
        let next = progress.next();
        let came = transfer(&mut bytes[next..], offset + next as u64);
        if let Some(ended) = progress.advance(came) {
            return ended;
        }
    }
}

/// Writes all pieces.
///
/// # Errors
/// What the system says; how much was written is not known then.
pub fn write_full(file: &dyn File, pieces: &[&[u8]], offset: u64) -> io::Result<()> {
    let total: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut done = 0;
    let mut rest: Vec<&[u8]>;
    let mut left = pieces;
    for _ in 0..TRANSFERS_MAX {
        if done == total {
            return Ok(());
        }
        match file.write_at(left, offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if done < total {
            rest = behind(pieces, done);
            left = &rest;
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// What is left of `pieces` behind the first `skip` bytes.
fn behind<'a>(pieces: &[&'a [u8]], mut skip: usize) -> Vec<&'a [u8]> {
    let mut rest = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let cut = skip.min(piece.len());
        skip -= cut;
        if cut < piece.len() {
            rest.push(&piece[cut..]);
        }
    }
    rest
}
