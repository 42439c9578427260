//! Files of this machine on a device that has become bad at reading: some sectors cannot be read,
//! or nothing comes back.
//!
//! It stands in for a device mapper (`dm-flakey`, `dm-delay`), which few kernels that tests run on
//! have: it sees the calls and not the blocks, so what it calls unreadable is so for the page
//! cache, too, as if that had been emptied. Everything else, the files, their names, writing and
//! syncing, is the kernel's.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use weir_disk::files::{Access, Batch, File, Files, Lock, Space, SystemFiles};

/// What a device reads or does not read at once, bytes.
const SECTOR_BYTES: u64 = 512;

/// What is wrong with reading.
#[derive(Clone, Debug, Default)]
pub(super) enum ReadFault {
    /// Nothing.
    #[default]
    None,
    /// One sector in so many cannot be read; always the same ones.
    BadSectors(u64),
    /// No read of these files returns until this is over: those whose names begin so.
    Hangs(String),
}

#[derive(Debug, Default)]
struct State {
    fault: ReadFault,
    /// Reads that hang.
    hanging: usize,
    /// No write returns.
    holds_writes: bool,
}

/// A machine with such a device.
#[derive(Clone, Debug, Default)]
pub(super) struct FaultyFiles {
    state: Arc<(Mutex<State>, Condvar)>,
}

impl FaultyFiles {
    /// From now on this is wrong.
    pub(super) fn set(&self, fault: ReadFault) {
        let (state, changed) = &*self.state;
        state.lock().expect("no panic").fault = fault;
        changed.notify_all();
    }

    /// From now on no write returns, or all that have waited do.
    pub(super) fn hold_writes(&self, holds: bool) {
        let (state, changed) = &*self.state;
        state.lock().expect("no panic").holds_writes = holds;
        changed.notify_all();
    }

    fn write(&self) {
        let (state, changed) = &*self.state;
        let state = state.lock().expect("no panic");
        let waited = changed.wait_while(state, |state| state.holds_writes);
        drop(waited.expect("no panic"));
    }

    /// Waits until a read hangs.
    pub(super) fn wait_until_one_hangs(&self) {
        let (state, changed) = &*self.state;
        let state = state.lock().expect("no panic");
        let waited =
            changed.wait_timeout_while(state, crate::support::PATIENCE, |state| state.hanging == 0);
        let (_state, timeout) = waited.expect("no panic");
        assert!(!timeout.timed_out(), "nothing is read");
    }

    /// Returns when the device does, or says why not. `is_patient`: the caller waits for it.
    fn read(&self, path: &Path, offset: u64, bytes: usize, is_patient: bool) -> io::Result<()> {
        let (state, changed) = &*self.state;
        let mut state = state.lock().expect("no panic");
        let hangs = |state: &State| match &state.fault {
            ReadFault::Hangs(begin) => name(path).starts_with(begin.as_str()),
            ReadFault::None | ReadFault::BadSectors(_) => false,
        };
        if hangs(&state) && !is_patient {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        while hangs(&state) {
            state.hanging += 1;
            changed.notify_all();
            state = changed.wait(state).expect("no panic");
            state.hanging -= 1;
        }
        let ReadFault::BadSectors(one_in) = state.fault else {
            return Ok(());
        };
        let last = (offset + bytes.max(1) as u64 - 1) / SECTOR_BYTES;
        let is_bad = |sector| mixed(path, sector).is_multiple_of(one_in);
        if (offset / SECTOR_BYTES..=last).any(is_bad) {
            return Err(rustix::io::Errno::IO.into());
        }
        Ok(())
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// FNV-1a of a file's name and a number.
fn mixed(path: &Path, sector: u64) -> u64 {
    let bytes = name(path).into_bytes();
    let all = bytes.into_iter().chain(sector.to_le_bytes());
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

impl Files for FaultyFiles {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        SystemFiles.create_directory(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        SystemFiles.list(directory)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(FaultyFile {
            files: self.clone(),
            path: path.to_path_buf(),
            file: SystemFiles.open(path, access)?,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemFiles.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        SystemFiles.unlink(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        SystemFiles.sync_directory(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        SystemFiles.space(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        SystemFiles.lock(path)
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        SystemFiles.random(bytes)
    }

    fn wall_s(&self) -> u64 {
        SystemFiles.wall_s()
    }

    // what the kernel does by itself would not be faulty
    fn batch(&self, _max: usize) -> Option<Box<dyn Batch>> {
        None
    }
}

#[derive(Debug)]
struct FaultyFile {
    files: FaultyFiles,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl File for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.files.read(&self.path, offset, bytes.len(), true)?;
        self.file.read_at(bytes, offset)
    }

    fn read_at_now(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.files.read(&self.path, offset, bytes.len(), false)?;
        self.file.read_at_now(bytes, offset)
    }

    fn read_at_direct(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.files.read(&self.path, offset, bytes.len(), true)?;
        self.file.read_at_direct(bytes, offset)
    }

    fn write_at(&self, pieces: &[&[u8]], offset: u64) -> io::Result<usize> {
        self.files.write();
        self.file.write_at(pieces, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    // no `system`: what is sent by the kernel alone would come from sectors that cannot be read
}
