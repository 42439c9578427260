//! Content in a file that only memory holds (`memfd_create`), whose pages the kernel sends without
//! a copy.
//!
//! `sendfile` hands pages of the file to a socket, which keeps them until the client has
//! acknowledged them. A page that is written to meanwhile reaches the client changed. So the bytes
//! of a range are written once, before a reader can have them, and a range ends as a hole: that
//! takes its pages out of the file, and leaves them to the sockets that have them still. What is
//! written at the same place later are other pages.
//!
//! That is so of pages, and not of huge ones: of these a hole in the middle is filled with zeros in
//! place. So nothing is written while the kernel may give a file in memory huge pages
//! ([`SHMEM_SETTINGS`]).

mod free_ranges;

use self::free_ranges::FreeRanges;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The file is as long as so many budgets of the store: holes take address space and no memory, and
/// what is asked for finds room in one piece.
const LENGTH_BUDGETS: u64 = 4;

/// The file is at least so long, bytes.
const LENGTH_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Bytes of memory of a free range, of which there is at most one behind each range: its share of a
/// tree's node, which holds at least five of eleven.
pub(crate) const FREE_RANGE_BYTES: usize = 48;

/// Says whether files in memory get huge pages, for all sizes; beside it are folders for each.
const SHMEM_SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

const HUGE_PAGES: &str =
    "it may have huge pages, as shmem_enabled in /sys/kernel/mm/transparent_hugepage says";

/// Between two looks at whether content may be stored, and after it could not be.
const LOOK: Duration = Duration::from_secs(1);

/// A file in memory, with its mapping.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: OwnedFd,
    mapping: Mapping,
    page_bytes: u64,
    free: Mutex<FreeRanges>,
    use_of_it: Mutex<Use>,
}

/// Whether content may be stored.
#[derive(Debug)]
struct Use {
    is_possible: bool,
    /// When that is looked at again.
    until: Instant,
    fault: Option<FileFault>,
    /// What [`MemoryFile::take_news`] has said last.
    told: Option<FileFault>,
}

/// Why no content moves to the file any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// The system may give it huge pages now; when it does not any more, content moves again.
    HugePages,
    /// A hole could not be made: what sockets have might be written to.
    NoHole,
}

impl fmt::Display for FileFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::HugePages => HUGE_PAGES,
            Self::NoHole => {
                "the system does not take pages out of it; it is not used again before a restart"
            }
        })
    }
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
        if !has_small_pages(Path::new(SHMEM_SETTINGS)) {
            return Err(io::Error::new(ErrorKind::Unsupported, HUGE_PAGES));
        }
        try_send(file.as_fd())?;
        try_hole(file.as_fd(), page_bytes)?;
        let mapping = Mapping::of(file.as_fd(), len)?;
        let free = Mutex::new(FreeRanges::new(pages));
        let use_of_it = Mutex::new(Use {
            is_possible: true,
            until: Instant::now() + LOOK,
            fault: None,
            told: None,
        });
        Ok(Self {
            file,
            mapping,
            page_bytes,
            free,
            use_of_it,
        })
    }

    /// Whether content may be stored now.
    pub(crate) fn is_usable(&self) -> bool {
        let mut use_of_it = self.use_of_it();
        let now = Instant::now();
        if now >= use_of_it.until {
            use_of_it.until = now + LOOK;
            use_of_it.look(has_small_pages(Path::new(SHMEM_SETTINGS)));
        }
        use_of_it.is_possible && use_of_it.fault.is_none()
    }

    /// Why no content is stored any more, or `None` inside if it is again: once for each change.
    pub(crate) fn take_news(&self) -> Option<Option<FileFault>> {
        let mut use_of_it = self.use_of_it();
        let is_new = use_of_it.told != use_of_it.fault;
        use_of_it.told = use_of_it.fault;
        is_new.then_some(use_of_it.fault)
    }

    fn use_of_it(&self) -> MutexGuard<'_, Use> {
        self.use_of_it
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
    /// no memory: then it is not usable for a moment.
    pub(crate) fn store<'p>(
        self: &Arc<Self>,
        len: usize,
        parts: impl Iterator<Item = &'p [u8]>,
    ) -> Option<FileRange> {
        let stored = self.write(len, parts);
        if stored.is_none() {
            let mut use_of_it = self.use_of_it();
            use_of_it.until = Instant::now() + LOOK;
            use_of_it.is_possible = false;
        }
        stored
    }

    fn write<'p>(
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

impl Use {
    /// What the settings of the system say now.
    fn look(&mut self, has_small_pages: bool) {
        self.is_possible = has_small_pages;
        if self.fault != Some(FileFault::NoHole) {
            self.fault = (!has_small_pages).then_some(FileFault::HugePages);
        }
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
        match make_hole(self.file.file.as_fd(), self.offset(), bytes) {
            Ok(()) => {
                let pages = bytes / self.file.page_bytes;
                self.file.free().give(self.first_page, pages);
            }
            // pages that are still there are never written to again: a socket may have them. As
            // they are memory that nothing accounts for, there will be no more of them
            Err(_) => self.file.use_of_it().fault = Some(FileFault::NoHole),
        }
    }
}

/// Takes the pages of `bytes` at `offset` out of a file.
fn make_hole(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> rustix::io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    loop {
        match rustix::fs::fallocate(file, flags, offset, bytes) {
            Err(rustix::io::Errno::INTR) => {}
            made => return made,
        }
    }
}

/// Whether the system sends from such a file: a filter of system calls may refuse that.
fn try_send(file: BorrowedFd<'_>) -> io::Result<()> {
    let (socket, _other) = UnixStream::pair()?;
    rustix::io::pwrite(file, &[1], 0)?;
    match rustix::fs::sendfile(&socket, file, Some(&mut 0), 1) {
        Ok(1) => Ok(()),
        Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) => Err(io::Error::other(format!("sendfile: {error}"))),
    }
}

/// Whether the system gives back the memory of a hole: some that imitate a kernel do not.
fn try_hole(file: BorrowedFd<'_>, page_bytes: u64) -> io::Result<()> {
    rustix::io::pwrite(file, &[1], 0)?;
    make_hole(file, 0, page_bytes)?;
    match rustix::fs::fstat(file)?.st_blocks {
        0 => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::Unsupported,
            "a hole in it keeps its memory",
        )),
    }
}

/// Whether the `shmem_enabled` files of `settings` give files in memory no huge pages unasked.
/// Where there are none, the kernel has no huge pages.
fn has_small_pages(settings: &Path) -> bool {
    let are_small = |file: &Path| {
        let Ok(text) = std::fs::read_to_string(file) else {
            return true;
        };
        let huge = ["[always]", "[within_size]", "[force]"];
        !huge.iter().any(|word| text.contains(word))
    };
    let sizes = std::fs::read_dir(settings).into_iter().flatten().flatten();
    are_small(&settings.join("shmem_enabled"))
        && sizes
            .into_iter()
            .all(|size| are_small(&size.path().join("shmem_enabled")))
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
    fn pages_are_small_unless_a_setting_gives_huge_ones() {
        let settings = tempfile::tempdir().unwrap();
        let path = settings.path();
        assert!(has_small_pages(path));
        let check = |file: &str, text: &str, expected: bool| {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            assert_eq!(has_small_pages(path), expected, "{text}");
        };
        check(
            "shmem_enabled",
            "[always] within_size advise never deny force",
            false,
        );
        check(
            "shmem_enabled",
            "always within_size advise never deny [force]",
            false,
        );
        check(
            "shmem_enabled",
            "always within_size [advise] never deny force",
            true,
        );
        check(
            "hugepages-64kB/shmem_enabled",
            "always [within_size] advise never",
            false,
        );
        check(
            "hugepages-64kB/shmem_enabled",
            "always inherit advise [never]",
            true,
        );
        check(
            "shmem_enabled",
            "always within_size advise [never] deny force",
            true,
        );
    }

    #[test]
    fn file_without_room_is_not_usable_for_a_moment() {
        let file = Arc::new(MemoryFile::new(0).unwrap());
        assert!(file.is_usable());
        let len = usize::try_from(LENGTH_BYTES_MIN).unwrap();
        assert!(file.store(len + 1, std::iter::empty()).is_none());
        assert!(!file.is_usable());
        file.use_of_it().until = Instant::now();
        assert!(file.is_usable());
    }

    #[test]
    fn change_of_whether_the_file_is_used_is_told_once() {
        let file = MemoryFile::new(0).unwrap();
        assert_eq!(file.take_news(), None);
        file.use_of_it().look(false);
        assert_eq!(file.take_news(), Some(Some(FileFault::HugePages)));
        file.use_of_it().look(false);
        assert_eq!(file.take_news(), None);
        file.use_of_it().look(true);
        assert_eq!(file.take_news(), Some(None));
        file.use_of_it().fault = Some(FileFault::NoHole);
        file.use_of_it().look(true);
        assert_eq!(file.take_news(), Some(Some(FileFault::NoHole)));
        assert!(!file.is_usable());
    }

    #[test]
    fn file_without_room_takes_nothing() {
        let file = Arc::new(MemoryFile::new(0).unwrap());
        let len = usize::try_from(LENGTH_BYTES_MIN).unwrap();
        assert!(file.store(len + 1, std::iter::empty()).is_none());
        assert_eq!(file.used_bytes(), 0);
    }
}
