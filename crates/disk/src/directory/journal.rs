//! The purge journal on disk: appended to and synced before a purge is acknowledged.
//!
//! An entry never straddles a sector, so a crash leaves it whole or not at all; what is there and cannot be read was
//! damaged, and then nobody knows what was purged. Every segment and record says how far the journal went when it was
//! written: so one that lost its end is noticed too.

use crate::files::{Access, File, Files, read_full, write_full};
use crate::format::{JOURNAL_ENTRY_BYTES, JOURNAL_FILE, PurgeEntry, Seal};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries beyond those in force until the file is written anew.
const SUPERFLUOUS_MAX: u64 = 4096;

/// Bytes of a journal that is read: beyond is not one of ours. Twice what [`super::purges::PURGES_MAX`] needs.
const BYTES_MAX: u64 = 2 * (super::purges::PURGES_MAX * JOURNAL_ENTRY_BYTES) as u64 + (1 << 20);

/// Entries that are encoded and written at once.
const ENTRIES_AT_ONCE: usize = 4096;

#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    seal: Seal,
    file: Option<Arc<dyn File>>,
    end: u64,
    /// The highest generation in it.
    pub(crate) last: u64,
}

/// What a journal says.
#[derive(Debug)]
pub(crate) enum Found {
    /// There is none.
    Absent,
    /// These entries.
    Entries(Vec<PurgeEntry>),
    /// Something, but what is not known.
    Damaged(String),
}

impl Journal {
    /// One that was not read.
    pub(crate) fn new(directory: &Path, seal: Seal) -> Self {
        Self {
            directory: directory.to_path_buf(),
            seal,
            file: None,
            end: 0,
            last: 0,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(JOURNAL_FILE)
    }

    /// Reads it, to be appended to afterwards.
    pub(crate) fn read(&mut self, files: &dyn Files) -> io::Result<Found> {
        let file = match files.open(&self.path(), Access::Write) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(error) => return Err(error),
        };
        let len = file.len()?;
        if len > BYTES_MAX {
            return Ok(Found::Damaged(format!("it has {len} bytes")));
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
        let there = read_full(&*file, &mut bytes, 0)?;
        if !there.is_multiple_of(JOURNAL_ENTRY_BYTES) {
            return Ok(Found::Damaged(format!("it is cut off after {there} bytes")));
        }
        let mut entries = Vec::with_capacity(there / JOURNAL_ENTRY_BYTES);
        for entry in bytes[..there].chunks_exact(JOURNAL_ENTRY_BYTES) {
            let at = (entries.len() * JOURNAL_ENTRY_BYTES) as u64;
            match PurgeEntry::decode(entry, self.seal, at) {
                Ok(entry) => entries.push(entry),
                Err(error) => return Ok(Found::Damaged(error.to_string())),
            }
        }
        if entries.is_empty() {
            // one is written with its first entry
            return Ok(Found::Damaged("it is empty".to_owned()));
        }
        let last = entries.iter().map(|entry| entry.generation).max();
        self.last = last.unwrap_or_default();
        self.end = there as u64;
        self.file = Some(file);
        Ok(Found::Entries(entries))
    }

    /// Adds entries; when this returns they are on the device. After an error it must be written anew.
    pub(crate) fn append(&mut self, entries: &[PurgeEntry]) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let bytes = encode(self.seal, self.end, entries);
        write_full(&*file, &[&bytes], self.end)?;
        file.sync()?;
        self.end += bytes.len() as u64;
        self.saw(entries);
        self.file = Some(file);
        Ok(())
    }

    fn saw(&mut self, entries: &[PurgeEntry]) {
        let last = entries.iter().map(|entry| entry.generation).max();
        self.last = self.last.max(last.unwrap_or_default());
    }

    /// Writes a new one in place of the old: the old one stays until the new one is on the device.
    pub(crate) fn rewrite(&mut self, files: &dyn Files, entries: &[PurgeEntry]) -> io::Result<()> {
        let new = self.directory.join("purges.journal.new");
        match files.unlink(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = files.open(&new, Access::Create)?;
        let mut end = 0;
        for some in entries.chunks(ENTRIES_AT_ONCE) {
            let bytes = encode(self.seal, end, some);
            write_full(&*file, &[&bytes], end)?;
            end += bytes.len() as u64;
        }
        file.sync()?;
        files.rename(&new, &self.path())?;
        // which of the two is there after a crash is not known until this is done
        self.file = None;
        files.sync_directory(&self.directory)?;
        self.end = end;
        self.saw(entries);
        self.file = Some(file);
        Ok(())
    }

    /// Whether it can be appended to.
    pub(crate) fn is_good(&self) -> bool {
        self.file.is_some()
    }

    /// Whether it is worth writing anew when `in_force` entries are all that is needed.
    pub(crate) fn is_bloated(&self, in_force: u64) -> bool {
        let entries = self.end / JOURNAL_ENTRY_BYTES as u64;
        entries > 2 * in_force + SUPERFLUOUS_MAX
    }
}

fn encode(seal: Seal, at: u64, entries: &[PurgeEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * JOURNAL_ENTRY_BYTES);
    for entry in entries {
        let at = at + bytes.len() as u64;
        bytes.extend(entry.encode(seal, at));
    }
    bytes
}
