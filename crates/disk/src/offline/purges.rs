//! What was purged.

use super::error::{OfflineError, Problem};
use crate::format::{
    JOURNAL_ENTRY_BYTES, JOURNAL_FILE, JOURNAL_MIRROR_FILE, JournalContents, JournalDamage,
    PurgeEntry, PurgeScope, Volume,
};
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::Path;
use weir_policy::Digest;

/// Bytes of a copy that are read: more is no journal of a store that compacts it.
const BYTES_MAX: u64 = 1 << 28;

/// The purge journal as far as it is intact.
#[derive(Clone, Debug, Default)]
pub struct Purges {
    keys: HashMap<Digest, u64>,
    all: u64,
    newest: u64,
    entries: u64,
    problem: Option<Problem>,
    recovered: Option<Problem>,
}

impl Purges {
    /// Reads both copies of the journal in `directory`; if both are missing it is empty.
    pub(super) fn read(directory: &Path, volume: Volume) -> Result<Self, OfflineError> {
        let first = read_copy(&directory.join(JOURNAL_FILE))?;
        let second = read_copy(&directory.join(JOURNAL_MIRROR_FILE))?;
        let mut purges = Self::default();
        if first.is_none() && second.is_none() {
            return Ok(purges);
        }
        let copies = [first.as_deref(), second.as_deref()];
        let contents = JournalContents::read(copies, volume.journal());
        for entry in &contents.entries {
            if !purges.take(entry) {
                return Ok(purges);
            }
        }
        let problem = |it: JournalDamage| Problem::of(it.file, &it.error);
        purges.problem = contents.lost.map(problem);
        let recovered = contents.recovered;
        purges.recovered = contents.damage.map(|damage| {
            let mut problem = problem(damage);
            let more =
                format!("; the other copy has it, and all of {recovered} that are lost here");
            problem.what.push_str(&more);
            problem
        });
        Ok(purges)
    }

    /// `false`: it cannot be where it is.
    fn take(&mut self, entry: &PurgeEntry) -> bool {
        if entry.generation < self.newest {
            let what = format!(
                "generation {} behind generation {}",
                entry.generation, self.newest
            );
            let at = self.entries * JOURNAL_ENTRY_BYTES as u64;
            self.problem = Some(Problem::new(JOURNAL_FILE, at, what));
            return false;
        }
        self.entries += 1;
        self.newest = entry.generation;
        match entry.what {
            PurgeScope::Key(key) => drop(self.keys.insert(key, entry.generation)),
            PurgeScope::All => self.all = entry.generation,
            PurgeScope::Floor => {}
        }
        true
    }

    /// Whether a response of `key` that was requested at `generation` was purged since.
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

    /// The first entry that one copy has lost and the other has.
    #[must_use]
    pub const fn recovered(&self) -> Option<&Problem> {
        self.recovered.as_ref()
    }

    /// The first entry that neither copy has; those behind it count as lost too.
    #[must_use]
    pub const fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }
}

/// `None` if there is none.
fn read_copy(path: &Path) -> Result<Option<Vec<u8>>, OfflineError> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OfflineError::io(path, error)),
    };
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| OfflineError::io(path, error))?;
    Ok(Some(bytes))
}
