//! Files of the kernel.

use super::ring::Ring;
use super::{Access, Batch, File, Files, Lock, Space, has_each_page, residency, system_lock};
use rustix::fs::{Advice, FallocateFlags, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::OpenOptions;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Pieces in one call; the kernel takes 1024.
const PIECES_MAX: usize = 1024;

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFiles;

/// Opens what has to be a regular file: a pipe of that name would be waited for.
///
/// # Errors
///
/// It cannot be opened, or is something else.
pub(crate) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<std::fs::File> {
    let without_wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.custom_flags(without_wait).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    }
}

impl Files for SystemFiles {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(access != Access::Read)
            .create_new(access == Access::Create)
            .mode(0o600);
        let file = open_regular(&mut options, path)?;
        // only the requested bytes are read from the device: otherwise unverified bytes would be in
        // the page cache
        match rustix::fs::fadvise(&file, 0, None, Advice::Random) {
            Ok(()) | Err(_) => {}
        }
        Ok(Arc::new(SystemFile {
            file: Arc::new(file),
            direct: OnceLock::new(),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let directory = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(rustix::fs::fsync(directory)?)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let all = rustix::fs::statvfs(path)?;
        Ok(Space {
            free: all.f_bavail.saturating_mul(all.f_frsize),
            total: all.f_blocks.saturating_mul(all.f_frsize),
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        system_lock::try_lock(path)
    }

    fn lock_by(&self, path: &Path, until: Instant) -> io::Result<Lock> {
        system_lock::lock_by(path, until)
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        std::fs::File::open("/dev/urandom")?.read_exact(bytes)
    }

    fn wall_s(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    }

    fn tells_residency(&self, directory: &Path) -> bool {
        // a directory that cannot be opened is reported elsewhere
        std::fs::File::open(directory)
            .map_or(true, |file| residency::is_resident(&file, 0, 1).is_some())
    }

    fn batch(&self, max: usize) -> Option<Box<dyn Batch>> {
        Some(Box::new(Ring::new(max)?))
    }
}

#[derive(Debug)]
struct SystemFile {
    file: Arc<std::fs::File>,
    /// The same file opened to be read past the page cache, once it was: or that it cannot be.
    direct: OnceLock<Option<std::fs::File>>,
}

impl SystemFile {
    /// Opens the file again: how it is read belongs to what was opened. By its descriptor: it may
    /// have no name any more.
    fn open_direct(&self) -> Option<std::fs::File> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        opened.ok().map(std::fs::File::from)
    }
}

impl File for SystemFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn read_at_now(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut slices = [IoSliceMut::new(bytes)];
        match rustix::io::preadv2(&*self.file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            // a file system that does not know the flag is one that always waits
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            other => Ok(other?),
        }
    }

    fn is_resident(&self, offset: u64, len: u64) -> bool {
        residency::is_resident(&self.file, offset, len)
            .unwrap_or_else(|| has_each_page(self, offset, len))
    }

    fn read_at_direct(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let direct = self.system_direct().ok_or(io::ErrorKind::Unsupported)?;
        match rustix::io::pread(direct, bytes, offset) {
            // sectors longer than a page, or a file system that only notices now
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
            other => Ok(other?),
        }
    }

    fn write_at(&self, pieces: &[&[u8]], offset: u64) -> io::Result<usize> {
        let slices: Vec<IoSlice<'_>> = pieces
            .iter()
            .filter(|piece| !piece.is_empty())
            .take(PIECES_MAX)
            .map(|piece| IoSlice::new(piece))
            .collect();
        Ok(rustix::io::pwritev(&*self.file, &slices, offset)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&*self.file, FallocateFlags::KEEP_SIZE, 0, len) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn system(&self) -> Option<&Arc<std::fs::File>> {
        Some(&self.file)
    }

    fn system_direct(&self) -> Option<&std::fs::File> {
        self.direct.get_or_init(|| self.open_direct()).as_ref()
    }
}
