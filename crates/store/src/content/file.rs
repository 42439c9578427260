//! Content in a file that only memory holds (`memfd_create`), whose pages the kernel sends without
//! a copy.
//!
//! `sendfile` hands pages of the file to a socket, which keeps them until the client has
//! acknowledged them. A page that is written to meanwhile reaches the client changed. So the bytes
//! of a range are written once, before a reader can have them, and a range ends as a hole: that
//! takes its pages out of the file, and leaves them to the sockets that have them still. What is
//! written at the same place later are other pages.

mod free_ranges;

use self::free_ranges::FreeRanges;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file is as long as so many budgets of the store: holes take address space and no memory, and
/// what is asked for finds room in one piece.
const LENGTH_BUDGETS: u64 = 4;

/// The file is at least so long, bytes.
const LENGTH_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Bytes of memory of a free range, of which there is at most one behind each range: its share of a
/// tree's node, which holds at least five of eleven.
pub(crate) const FREE_RANGE_BYTES: usize = 48;

/// A file in memory, with its mapping.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: OwnedFd,
    mapping: Mapping,
    page_bytes: u64,
    free: Mutex<FreeRanges>,
}

/// Bytes of a [`MemoryFile`] that do not change. When this is dropped they are a hole.
#[derive(Debug)]
pub(crate) struct FileRange {
    file: Arc<MemoryFile>,
    first_page: u64,
    /// Bytes.
    len: usize,
}

impl MemoryFile {
    /// A file for a store of `budget_bytes`.
    ///
    /// # Errors
    ///
    /// The kernel, a filter of system calls or a limit of the process refuses it.
    pub(crate) fn new(budget_bytes: u64) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size() as u64;
        let wanted = budget_bytes.saturating_mul(LENGTH_BUDGETS);
        let pages = wanted.max(LENGTH_BYTES_MIN) / page_bytes;
        let len = pages * page_bytes;
        // beyond this limit the kernel would end the process
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
        if limit.current.is_some_and(|limit| limit < len) {
            return Err(io::Error::new(
                ErrorKind::FileTooLarge,
                "RLIMIT_FSIZE is less than the file would be long",
            ));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("weir content", flags)?;
        rustix::fs::ftruncate(&file, len)?;
        // what is mapped must not end before the mapping does
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        let mapping = Mapping::of(file.as_fd(), len)?;
        let free = Mutex::new(FreeRanges::new(pages));
        Ok(Self {
            file,
            mapping,
            page_bytes,
            free,
        })
    }

    /// Bytes of memory that a range of `len` bytes takes in the file.
    pub(crate) fn charged_bytes(&self, len: u64) -> u64 {
        len.div_ceil(self.page_bytes) * self.page_bytes
    }

    /// Bytes of memory that all ranges take.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.free().taken() * self.page_bytes
    }

    /// Copies `parts`, `len` bytes in all, into a range of its own; `None` if there is no room, or
    /// no memory.
    pub(crate) fn store<'p>(
        self: &Arc<Self>,
        len: usize,
        parts: impl Iterator<Item = &'p [u8]>,
    ) -> Option<FileRange> {
        let pages = (len as u64).div_ceil(self.page_bytes);
        let first_page = self.free().take(pages)?;
        let range = FileRange {
            file: Arc::clone(self),
            first_page,
            len,
        };
        let mut at = range.offset();
        for mut part in parts {
            while !part.is_empty() {
                match rustix::io::pwrite(&self.file, part, at) {
                    Ok(written @ 1..) => {
                        part = &part[written..];
                        at += written as u64;
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Ok(0) | Err(_) => return None,
                }
            }
        }
        debug_assert_eq!(at, range.offset() + len as u64);
        (at == range.offset() + len as u64).then_some(range)
    }

    fn free(&self) -> MutexGuard<'_, FreeRanges> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileRange {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // a range is within the file, and so is the mapping
        let offset = usize::try_from(self.offset()).unwrap_or(usize::MAX);
        self.file.mapping.slice(offset, self.len)
    }

    /// The file that it is in.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.file.as_fd()
    }

    /// Where in the file it begins, bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.first_page * self.file.page_bytes
    }

    /// Bytes of memory that it takes.
    pub(crate) fn charged_bytes(&self) -> u64 {
        self.file.charged_bytes(self.len as u64)
    }
}

impl Drop for FileRange {
    fn drop(&mut self) {
        let bytes = self.charged_bytes();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = loop {
            match rustix::fs::fallocate(&self.file.file, flags, self.offset(), bytes) {
                Err(rustix::io::Errno::INTR) => {}
                punched => break punched,
            }
        };
        // pages that are still there are never written to again: a socket may have them
        if punched.is_ok() {
            let pages = bytes / self.file.page_bytes;
            self.file.free().give(self.first_page, pages);
        }
    }
}

/// All of a file in the address space, to be read.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

#[expect(unsafe_code, reason = "neither std nor rustix has a safe mapping")]
mod mapping {
    use super::{Advice, BorrowedFd, MapFlags, Mapping, NonNull, ProtFlags, io};

    // SAFETY: it is memory that only `FileRange`s read, which share it as `&[u8]` is shared, and it
    // is not bound to a thread.
    unsafe impl Send for Mapping {}
    // SAFETY: as above; nothing of it changes through a shared reference.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        pub(super) fn of(file: BorrowedFd<'_>, len: u64) -> io::Result<Self> {
            let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
            let (read, shared) = (ProtFlags::READ, MapFlags::SHARED | MapFlags::NORESERVE);
            // SAFETY: the kernel chooses the place, so nothing that is mapped already is touched.
            let start =
                unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, read, shared, file, 0)? };
            // a dump of the process need not have the cache; without it, it has
            // SAFETY: it is the mapping that was just made, and the advice changes no byte.
            let _ = unsafe { rustix::mm::madvise(start, len, Advice::LinuxDontDump) };
            let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Self { start, len })
        }

        /// The bytes of a range, which are not written to while the caller has it.
        ///
        /// # Panics
        ///
        /// If they are not within the mapping.
        pub(super) fn slice(&self, offset: usize, len: usize) -> &[u8] {
            let end = offset.checked_add(len);
            assert!(end.is_some_and(|end| end <= self.len), "beyond the file");
            // SAFETY: the bytes are within the mapping, which lives as long as `self` and ends
            // before the file does, as that is sealed. They were written before the range could be
            // read, and are written again only once it was dropped; no writable mapping exists.
            unsafe { std::slice::from_raw_parts(self.start.add(offset).as_ptr(), len) }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: it was mapped with this length, and what borrows from it borrows `self`.
            let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(file: &Arc<MemoryFile>, bytes: &[u8]) -> FileRange {
        let parts = bytes.chunks(5000);
        file.store(bytes.len(), parts).unwrap()
    }

    /// Blocks of 512 bytes that the file has, as the kernel says.
    fn blocks(file: &MemoryFile) -> i64 {
        rustix::fs::fstat(&file.file).unwrap().st_blocks
    }

    #[test]
    fn bytes_of_a_range_are_those_that_were_stored() {
        let file = Arc::new(MemoryFile::new(1 << 20).unwrap());
        let (first, second) = (vec![1; 10_000], vec![2; 70_001]);
        let (a, b) = (stored(&file, &first), stored(&file, &second));
        assert_eq!((a.bytes(), b.bytes()), (&first[..], &second[..]));
        drop(a);
        assert_eq!(b.bytes(), &second[..]);
    }

    #[test]
    fn memory_of_a_range_is_given_back_when_it_is_dropped() {
        let file = Arc::new(MemoryFile::new(1 << 20).unwrap());
        let range = stored(&file, &[3; 100_001]);
        let charged = i64::try_from(range.charged_bytes()).unwrap();
        assert_eq!((blocks(&file) * 512, file.used_bytes()), (charged, 102_400));
        drop(range);
        assert_eq!((blocks(&file), file.used_bytes()), (0, 0));
    }

    #[test]
    fn bytes_that_a_socket_has_are_unchanged_after_their_place_is_used_again() {
        use std::io::Read;
        use std::os::unix::net::UnixStream;
        let file = Arc::new(MemoryFile::new(0).unwrap());
        let (mut reader, socket) = UnixStream::pair().unwrap();
        let range = stored(&file, &[4; 16_384]);
        let place = range.offset();
        let mut offset = place;
        let sent = rustix::fs::sendfile(&socket, range.fd(), Some(&mut offset), 16_384).unwrap();
        drop(range);
        // all of the file, so that the place is among what is written
        let mut others = Vec::new();
        while let Some(other) = file.store(1 << 20, std::iter::once(&[5; 1 << 20][..])) {
            others.push(other);
        }
        assert!(others.iter().any(|other| other.offset() == place));
        let mut received = vec![0; sent];
        reader.read_exact(&mut received).unwrap();
        assert!(received.iter().all(|byte| *byte == 4));
    }

    #[test]
    fn file_without_room_takes_nothing() {
        let file = Arc::new(MemoryFile::new(0).unwrap());
        let len = usize::try_from(LENGTH_BYTES_MIN).unwrap();
        assert!(file.store(len + 1, std::iter::empty()).is_none());
        assert_eq!(file.used_bytes(), 0);
    }
}
