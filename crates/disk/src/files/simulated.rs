//! Files in memory that misbehave on command: deterministic from a seed.
//!
//! What was written and not synced is volatile: [`SimulatedFiles::crash`] keeps, loses or tears it
//! by sectors of 512 bytes, in any order, and keeps the names that were made, changed or removed
//! since the last [`Files::sync_directory`] up to a random point. [`SimulatedFiles::kill`] ends the
//! process only: everything written stays. After both, handles and locks of before are dead.

mod batch;
mod content;
mod device;
mod fault;
mod world;

pub use content::SECTOR_BYTES;
pub use fault::{Fault, Plan, Random};

use super::{Access, Batch, DIRECT_BYTES, File, Files, HeldLock, Lock, Space};
use crate::lock::lock;
use batch::SimulatedBatch;
use device::Device;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use world::{FileId, World};

/// A machine with one file system.
#[derive(Clone, Debug)]
pub struct SimulatedFiles {
    world: Arc<Mutex<World>>,
    device: Arc<Device>,
}

impl SimulatedFiles {
    /// An empty one.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            world: Arc::new(Mutex::new(World::new(seed))),
            device: Arc::default(),
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// What will go wrong from now on; replaces the former plan, and counts operations from 0.
    pub fn plan(&self, plan: Plan) {
        self.world().faults.set(plan);
    }

    /// Operations since the last [`Self::plan`].
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.world().faults.operations()
    }

    /// Bytes that may be in use; beyond, writing fails with `ENOSPC`.
    pub fn limit_space(&self, bytes: u64) {
        self.world().space = bytes;
    }

    /// The device stops: no write and no sync returns until [`Self::resume`].
    pub fn stop(&self) {
        self.device.set_stopped(true);
    }

    /// The device works again.
    pub fn resume(&self) {
        self.device.set_stopped(false);
    }

    /// The power fails and comes back.
    pub fn crash(&self) {
        self.world().crash();
    }

    /// The process is killed: what it has written stays.
    pub fn kill(&self) {
        self.world().end_process();
    }

    /// Files, by path.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.world().names().map(Path::to_path_buf).collect()
    }

    /// Changes the content of a file behind everybody's back: damage.
    ///
    /// # Errors
    /// There is no such file.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut world = self.world();
        world.content(path)?.damage(change);
        Ok(())
    }

    /// The content of a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.world().content(path)?.current().to_vec())
    }
}

impl Files for SimulatedFiles {
    fn create_directory(&self, _path: &Path) -> io::Result<()> {
        // names imply their directories here
        self.world().faults.next().map(drop)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut world = self.world();
        world.faults.next()?;
        let inside = world
            .names()
            .filter(|path| path.parent() == Some(directory));
        let names = inside.filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
        Ok(names.collect())
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let mut world = self.world();
        world.faults.next()?;
        let id = match access {
            Access::Create => world.create(path)?,
            Access::Read | Access::Write => world.find(path)?,
        };
        Ok(Arc::new(SimulatedFile {
            world: self.clone(),
            id,
            epoch: world.epoch,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.faults.next()?;
        world.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.faults.next()?;
        world.unlink(path)
    }

    fn sync_directory(&self, _path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.faults.next()?;
        world.sync_names();
        Ok(())
    }

    fn space(&self, _path: &Path) -> io::Result<Space> {
        let mut world = self.world();
        world.faults.next()?;
        let used = world.used();
        Ok(Space {
            free: world.space.saturating_sub(used),
            total: world.space,
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let mut world = self.world();
        world.faults.next()?;
        if !world.locks.insert(path.to_path_buf()) {
            return Ok(Lock::Taken(Some(1)));
        }
        Ok(Lock::Held(Box::new(SimulatedLock {
            world: self.clone(),
            path: path.to_path_buf(),
            epoch: world.epoch,
        })))
    }

    fn tells_residency(&self, _directory: &Path) -> bool {
        self.world().faults.tells_residency()
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut world = self.world();
        for byte in bytes {
            *byte = world.random.next().to_le_bytes()[0];
        }
        Ok(())
    }

    fn wall_s(&self) -> u64 {
        1_800_000_000
    }

    fn batch(&self, _max: usize) -> Option<Box<dyn Batch>> {
        Some(Box::<SimulatedBatch>::default())
    }
}

#[derive(Debug)]
struct SimulatedLock {
    world: SimulatedFiles,
    path: PathBuf,
    epoch: u64,
}

impl HeldLock for SimulatedLock {
    fn is_of(&self, _path: &Path) -> bool {
        true
    }
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut world = self.world.world();
        if world.epoch == self.epoch {
            world.locks.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct SimulatedFile {
    world: SimulatedFiles,
    id: FileId,
    epoch: u64,
}

impl SimulatedFile {
    /// The world, if this handle is still one of the living process.
    fn world(&self) -> io::Result<MutexGuard<'_, World>> {
        let world = self.world.world();
        if world.epoch == self.epoch {
            Ok(world)
        } else {
            Err(fault::device_error())
        }
    }
}

impl File for SimulatedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = self.world()?;
        let bytes = match world.faults.next_read()? {
            Some(Fault::Short) => {
                let half = bytes.len().div_ceil(2);
                &mut bytes[..half]
            }
            _ => bytes,
        };
        Ok(world.file(self.id).read(bytes, offset))
    }

    fn read_at_now(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = self.world()?;
        if !world.faults.is_cached() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(world.file(self.id).read(bytes, offset))
    }

    fn read_at_direct(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let aligned = |number: usize| number.is_multiple_of(DIRECT_BYTES);
        let place = usize::try_from(offset).unwrap_or(usize::MAX);
        assert!(
            aligned(bytes.as_ptr().addr()) && aligned(bytes.len()) && aligned(place),
            "a read that a device would refuse"
        );
        if !self.world()?.faults.is_direct() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.read_at(bytes, offset)
    }

    fn write_at(&self, pieces: &[&[u8]], offset: u64) -> io::Result<usize> {
        self.world.device.wait();
        let mut world = self.world()?;
        let whole = pieces.concat();
        let fault = world.faults.next_write()?;
        let end = usize::try_from(offset).unwrap_or(usize::MAX) + whole.len();
        let growth = end.saturating_sub(world.file(self.id).current().len());
        if world.used() + growth as u64 > world.space {
            return Err(fault::no_space());
        }
        let count = match fault {
            Some(Fault::Short | Fault::Torn) => whole.len().div_ceil(2),
            _ => whole.len(),
        };
        world.file(self.id).write(&whole[..count], offset);
        if fault == Some(Fault::Torn) {
            return Err(fault::device_error());
        }
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        self.world.device.wait();
        let mut world = self.world()?;
        if let Err(error) = world.faults.next() {
            // as Linux does: the pages count as clean, and their bytes are lost with the next power
            // failure; a failure before the flush may keep any of them
            if !world.faults.has_stopped() {
                world.file(self.id).lose_unsynced();
            }
            return Err(error);
        }
        world.file(self.id).sync();
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut world = self.world()?;
        world.faults.next()?;
        let growth = len.saturating_sub(world.file(self.id).current().len() as u64);
        if world.used() + growth > world.space {
            return Err(fault::no_space());
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut world = self.world()?;
        world.faults.next()?;
        Ok(world.file(self.id).current().len() as u64)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut world = self.world()?;
        world.faults.next()?;
        world.file(self.id).truncate(len);
        Ok(())
    }
}
