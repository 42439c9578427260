//! The purge journal on disk: both copies are appended to and synced before a purge is
//! acknowledged.
//!
//! An entry never straddles a sector, so after a crash it is there as a whole or not at all. What
//! one copy has lost the other has; an entry that both copies have lost was a purge of an unknown
//! key. Every segment and record says how far the journal went when it was written: so a journal
//! that lost its end is noticed too.

use crate::files::{Access, File, Files, read_bytes, write_full};
use crate::format::{
    JOURNAL_ENTRY_BYTES, JOURNAL_FILE, JOURNAL_MIRROR_FILE, JournalContents, PurgeEntry, Seal,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries beyond those in force until the files are rewritten.
const SUPERFLUOUS_MAX: u64 = 4096;

/// Bytes of a copy that are read: beyond is not one of ours. Twice what
/// [`super::purges::PURGES_MAX`] needs.
const BYTES_MAX: u64 = 2 * (super::purges::PURGES_MAX * JOURNAL_ENTRY_BYTES) as u64 + (1 << 20);

/// Entries that are encoded and written at once.
const ENTRIES_AT_ONCE: usize = 4096;

#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    seal: Seal,
    /// Both copies, if they say the same and can be appended to.
    files: Option<[Arc<dyn File>; 2]>,
    end: u64,
    /// How often it was rewritten.
    edition: u64,
    /// The highest generation in it.
    pub(crate) last: u64,
}

/// What a journal says.
#[derive(Debug)]
pub(crate) enum JournalState {
    /// There is none.
    Absent,
    /// These entries.
    Entries(JournalEntries),
    /// Something, but what is not known.
    Damaged(String),
}

/// All entries of a journal.
#[derive(Debug)]
pub(crate) struct JournalEntries {
    pub(crate) entries: Vec<PurgeEntry>,
    /// How many of them one copy only had.
    pub(crate) recovered: u64,
    /// What was wrong with the other.
    pub(crate) damage: String,
}

impl Journal {
    /// One that was not read.
    pub(crate) fn new(directory: &Path, seal: Seal) -> Self {
        Self {
            directory: directory.to_path_buf(),
            seal,
            files: None,
            end: 0,
            edition: 0,
            last: 0,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(JOURNAL_FILE)
    }

    fn mirror_path(&self) -> PathBuf {
        self.directory.join(JOURNAL_MIRROR_FILE)
    }

    /// Reads it, to append afterwards; if the copies differ, it must be rewritten before
    /// ([`Self::is_good`]).
    pub(crate) fn read(&mut self, files: &dyn Files) -> io::Result<JournalState> {
        let copies = [self.path(), self.mirror_path()].map(|path| Copy::read(files, &path));
        let (one, other) = match copies {
            [Ok(None), Ok(None)] => return Ok(JournalState::Absent),
            // one that the device does not give any more is one that is lost
            [Err(error), Ok(None) | Err(_)] | [Ok(None), Err(error)] => return Err(error),
            [one, other] => (one.unwrap_or_default(), other.unwrap_or_default()),
        };
        let copies = [&one, &other].map(|copy| copy.as_ref().map(|copy| &copy.bytes[..]));
        let contents = JournalContents::read(copies, self.seal);
        self.edition = contents.edition;
        let too_long = [&one, &other]
            .into_iter()
            .flatten()
            .find(|it| it.is_too_long);
        if let Some(copy) = too_long {
            let len = copy.bytes.len();
            return Ok(JournalState::Damaged(format!(
                "it has more than {len} bytes"
            )));
        }
        if let Some(lost) = contents.lost {
            let what = format!("{}: {}", lost.file, lost.error);
            return Ok(JournalState::Damaged(what));
        }
        let entries = contents.entries;
        let last = entries.iter().map(|entry| entry.generation).max();
        self.last = last.unwrap_or_default();
        self.end = (entries.len() * JOURNAL_ENTRY_BYTES) as u64;
        if contents.is_mirrored {
            self.files = one.zip(other).map(|(one, other)| [one.file, other.file]);
        }
        let damage = contents
            .damage
            .map(|it| format!("{}: {}", it.file, it.error));
        Ok(JournalState::Entries(JournalEntries {
            entries,
            recovered: contents.recovered,
            damage: damage.unwrap_or_default(),
        }))
    }

    /// Adds entries; when this returns they are on the device, twice. After an error it must be
    /// rewritten.
    pub(crate) fn append(&mut self, entries: &[PurgeEntry]) -> io::Result<()> {
        let Some(copies) = self.files.take() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let bytes = encode(self.seal, self.end, self.edition, entries);
        for copy in &copies {
            write_full(&**copy, &[&bytes], self.end)?;
        }
        for copy in &copies {
            copy.sync()?;
        }
        self.end += bytes.len() as u64;
        self.saw(entries);
        self.files = Some(copies);
        Ok(())
    }

    fn saw(&mut self, entries: &[PurgeEntry]) {
        let last = entries.iter().map(|entry| entry.generation).max();
        self.last = self.last.max(last.unwrap_or_default());
    }

    /// Writes a new edition in place of the old: the old one stays until the new one is on the
    /// device.
    pub(crate) fn rewrite(&mut self, files: &dyn Files, entries: &[PurgeEntry]) -> io::Result<()> {
        let edition = self.edition + 1;
        let new = [JOURNAL_FILE, JOURNAL_MIRROR_FILE]
            .map(|name| self.directory.join(format!("{name}.new")));
        let copies = [
            self.write_copy(files, &new[0], edition, entries)?,
            self.write_copy(files, &new[1], edition, entries)?,
        ];
        // which of them are there after a crash is not known until all of this is done
        self.files = None;
        self.edition = edition;
        // a journal of version 1, which has no mirror, is never seen without one from here on
        files.rename(&new[1], &self.mirror_path())?;
        files.rename(&new[0], &self.path())?;
        files.sync_directory(&self.directory)?;
        self.end = (entries.len() * JOURNAL_ENTRY_BYTES) as u64;
        self.saw(entries);
        self.files = Some(copies);
        Ok(())
    }

    /// Writes a copy under another name; when this returns it is on the device.
    fn write_copy(
        &self,
        files: &dyn Files,
        path: &Path,
        edition: u64,
        entries: &[PurgeEntry],
    ) -> io::Result<Arc<dyn File>> {
        match files.unlink(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = files.open(path, Access::Create)?;
        let mut end = 0;
        for some in entries.chunks(ENTRIES_AT_ONCE) {
            let bytes = encode(self.seal, end, edition, some);
            write_full(&*file, &[&bytes], end)?;
            end += bytes.len() as u64;
        }
        file.sync()?;
        Ok(file)
    }

    /// Whether it can be appended to.
    pub(crate) fn is_good(&self) -> bool {
        self.files.is_some()
    }

    /// Whether it should be rewritten when only `in_force` entries are needed.
    pub(crate) fn is_bloated(&self, in_force: u64) -> bool {
        let entries = self.end / JOURNAL_ENTRY_BYTES as u64;
        entries > 2 * in_force + SUPERFLUOUS_MAX
    }
}

/// A copy that was read.
struct Copy {
    file: Arc<dyn File>,
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Copy {
    /// `None`: there is none.
    fn read(files: &dyn Files, path: &Path) -> io::Result<Option<Self>> {
        let file = match files.open(path, Access::Write) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = file.len()?;
        let most = usize::try_from(len.min(BYTES_MAX)).unwrap_or_default();
        let bytes = read_bytes(&*file, 0, most)?;
        Ok(Some(Self {
            file,
            bytes,
            is_too_long: len > BYTES_MAX,
        }))
    }
}

fn encode(seal: Seal, at: u64, edition: u64, entries: &[PurgeEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * JOURNAL_ENTRY_BYTES);
    for entry in entries {
        let at = at + bytes.len() as u64;
        bytes.extend(entry.encode(seal, at, edition));
    }
    bytes
}
