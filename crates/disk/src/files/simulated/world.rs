//! Names, files, locks, and what becomes of them.

use super::content::{Content, Loss};
use super::fault::{Faults, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A file, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(u64);

#[derive(Clone, Debug)]
enum Naming {
    Create(PathBuf, FileId),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) faults: Faults,
    pub(super) random: Random,
    pub(super) locks: BTreeSet<PathBuf>,
    /// Raised when the process ends: handles of before are dead.
    pub(super) epoch: u64,
    pub(super) space: u64,
    names: BTreeMap<PathBuf, FileId>,
    durable_names: BTreeMap<PathBuf, FileId>,
    unsynced: Vec<Naming>,
    files: BTreeMap<FileId, Content>,
    next: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            faults: Faults::default(),
            random: Random(seed),
            locks: BTreeSet::new(),
            epoch: 0,
            space: u64::MAX,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced: Vec::new(),
            files: BTreeMap::new(),
            next: 0,
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Path> {
        self.names.keys().map(PathBuf::as_path)
    }

    pub(super) fn used(&self) -> u64 {
        let files = self.names.values().filter_map(|id| self.files.get(id));
        files.map(|file| file.current().len() as u64).sum()
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<FileId> {
        let found = self.names.get(path).copied();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn content(&mut self, path: &Path) -> io::Result<&mut Content> {
        let id = self.find(path)?;
        Ok(self.file(id))
    }

    /// An unlinked file exists until its last handle is closed.
    pub(super) fn file(&mut self, id: FileId) -> &mut Content {
        self.files.entry(id).or_default()
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<FileId> {
        if self.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = FileId(self.next);
        self.next += 1;
        self.files.insert(id, Content::default());
        self.change(Naming::Create(path.to_path_buf(), id));
        Ok(id)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.find(from)?;
        self.change(Naming::Rename(from.to_path_buf(), to.to_path_buf()));
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        self.change(Naming::Unlink(path.to_path_buf()));
        Ok(())
    }

    fn change(&mut self, naming: Naming) {
        apply(&mut self.names, &naming);
        self.unsynced.push(naming);
    }

    pub(super) fn sync_names(&mut self) {
        for naming in std::mem::take(&mut self.unsynced) {
            apply(&mut self.durable_names, &naming);
        }
    }

    pub(super) fn end_process(&mut self) {
        self.epoch += 1;
        self.locks.clear();
    }

    pub(super) fn crash(&mut self) {
        self.end_process();
        let unsynced = std::mem::take(&mut self.unsynced);
        let kept = usize::try_from(self.random.below(unsynced.len() as u64 + 1)).unwrap_or(0);
        for naming in &unsynced[..kept] {
            apply(&mut self.durable_names, naming);
        }
        self.names.clone_from(&self.durable_names);
        let names = &self.names;
        self.files
            .retain(|id, _| names.values().any(|named| named == id));
        let loss = match self.random.below(4) {
            0 => Loss::All,
            1 => Loss::None,
            2 => Loss::Writes,
            _ => Loss::Sectors,
        };
        for file in self.files.values_mut() {
            file.crash(loss, &mut self.random);
        }
    }
}

fn apply(names: &mut BTreeMap<PathBuf, FileId>, naming: &Naming) {
    match naming {
        Naming::Create(path, id) => {
            names.insert(path.clone(), *id);
        }
        Naming::Rename(from, to) => {
            if let Some(id) = names.remove(from) {
                names.insert(to.clone(), id);
            }
        }
        Naming::Unlink(path) => {
            names.remove(path);
        }
    }
}
