//! What was purged.

use super::error::{OfflineError, Problem};
use crate::format::{JOURNAL_ENTRY_BYTES, JOURNAL_FILE, PurgeEntry, Purged, Volume};
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::Path;
use weir_policy::Digest;

/// Entries at most: more is no journal of a store that compacts it. 1 GiB of file.
const ENTRIES_MAX: u64 = 1 << 24;

/// The purge journal as far as it is intact.
#[derive(Clone, Debug, Default)]
pub struct Purges {
    keys: HashMap<Digest, u64>,
    all: u64,
    newest: u64,
    entries: u64,
    problem: Option<Problem>,
}

impl Purges {
    /// Reads the journal in `directory`; a missing one is empty.
    pub(super) fn read(directory: &Path, volume: Volume) -> Result<Self, OfflineError> {
        let path = directory.join(JOURNAL_FILE);
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(OfflineError::io(&path, error)),
        };
        let mut reader = std::io::BufReader::new(file);
        let mut purges = Self::default();
        let mut bytes = [0; JOURNAL_ENTRY_BYTES];
        while purges.problem.is_none() && purges.entries < ENTRIES_MAX {
            match reader.read_exact(&mut bytes) {
                Ok(()) => purges.take(&bytes, volume),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(OfflineError::io(&path, error)),
            }
        }
        Ok(purges)
    }

    fn take(&mut self, bytes: &[u8], volume: Volume) {
        let at = self.entries * JOURNAL_ENTRY_BYTES as u64;
        match PurgeEntry::decode(bytes, volume.journal(), at) {
            Ok(entry) if entry.generation < self.newest => {
                let what = format!(
                    "generation {} behind generation {}",
                    entry.generation, self.newest
                );
                self.problem = Some(Problem::new(JOURNAL_FILE, at, what));
            }
            Ok(entry) => {
                self.entries += 1;
                self.newest = entry.generation;
                match entry.what {
                    Purged::Key(key) => drop(self.keys.insert(key, entry.generation)),
                    Purged::All => self.all = entry.generation,
                    Purged::Floor => {}
                }
            }
            Err(error) => self.problem = Some(Problem::of(JOURNAL_FILE, &error)),
        }
    }

    /// Whether a response of `key` that was asked for at `generation` was purged since.
    #[must_use]
    pub fn covers(&self, key: Digest, generation: u64) -> bool {
        generation <= self.all || self.keys.get(&key).is_some_and(|at| generation <= *at)
    }

    /// Generation of the newest intact entry; 0 if there is none.
    #[must_use]
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// How many intact entries there are.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// The first entry that cannot be read; those behind it count as lost too.
    #[must_use]
    pub const fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }
}
