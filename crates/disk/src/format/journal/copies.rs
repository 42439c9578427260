//! What the two copies of a journal say together.

use super::{JOURNAL_ENTRY_BYTES, JOURNAL_FILE, JOURNAL_MIRROR_FILE, PurgeEntry};
use crate::format::{FormatError, FormatErrorKind, Item, Seal};

/// The names of the copies, in the order in which they are given to [`JournalContents::read`].
const NAMES: [&str; 2] = [JOURNAL_FILE, JOURNAL_MIRROR_FILE];

/// Something that one copy lacks, or that both do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalDamage {
    /// The copy's file.
    pub file: &'static str,
    /// What is wrong in it.
    pub error: FormatError,
}

/// A journal that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalContents {
    /// Its entries, oldest first; those before the first that is lost.
    pub entries: Vec<PurgeEntry>,
    /// How often it was rewritten; 0: by version 1 of the format, which had no copy. The highest in
    /// either copy.
    pub edition: u64,
    /// Entries that one copy only has.
    pub recovered: u64,
    /// The first of these in the copy that lacks it.
    pub damage: Option<JournalDamage>,
    /// The first entry that no copy has: what it was, and what came behind it, is not known.
    pub lost: Option<JournalDamage>,
    /// Both copies are there and say the same.
    pub is_mirrored: bool,
}

impl JournalContents {
    /// Reads both copies; `None` is one that is not there, or that the device does not give.
    ///
    /// Of copies of different editions the older one counts for nothing: the power failed between
    /// the renames that put the newer ones into place, and the newer one says all that is needed.
    #[must_use]
    pub fn read(copies: [Option<&[u8]>; 2], seal: Seal) -> Self {
        let editions = copies.map(|copy| edition(copy?, seal));
        let Some(edition) = editions.into_iter().flatten().max() else {
            let bytes = copies[0].or(copies[1]).unwrap_or_default();
            let error = entry(Some(bytes), 0, seal, None).err();
            return Self {
                lost: damage(0, error),
                ..Self::default()
            };
        };
        // a copy without a readable edition should have the same entries, unless that version had
        // no copy
        let is_older = editions.map(|it| it.is_some_and(|it| it < edition));
        let mut journal = Self {
            edition,
            is_mirrored: edition > 0 && !is_older.contains(&true),
            ..Self::default()
        };
        let used = [0, 1].map(|copy| copies[copy].filter(|_| !is_older[copy]));
        let bytes = used.into_iter().flatten().map(<[u8]>::len).max();
        for place in 0..bytes.unwrap_or_default().div_ceil(JOURNAL_ENTRY_BYTES) {
            let found = used.map(|copy| entry(copy, place, seal, Some(edition)));
            if !journal.take(found, is_older) {
                break;
            }
        }
        journal
    }

    /// Takes what the copies say at one place; `false`: neither says anything.
    fn take(&mut self, found: [Result<PurgeEntry, FormatError>; 2], is_older: [bool; 2]) -> bool {
        match found {
            [Ok(entry), Ok(_)] => self.entries.push(entry),
            [Ok(entry), Err(error)] | [Err(error), Ok(entry)] => {
                self.entries.push(entry);
                let lacking = usize::from(found[0].is_ok());
                if self.edition > 0 && !is_older[lacking] {
                    self.is_mirrored = false;
                    self.recovered += 1;
                    let here = damage(lacking, Some(error));
                    self.damage = self.damage.take().or(here);
                }
            }
            [Err(error), Err(other)] => {
                let is_first_used = !is_older[0] && error.kind != FormatErrorKind::Absent;
                self.lost = if is_first_used {
                    damage(0, Some(error))
                } else {
                    damage(1, Some(other))
                };
                self.is_mirrored = false;
                return false;
            }
        }
        true
    }
}

fn damage(copy: usize, error: Option<FormatError>) -> Option<JournalDamage> {
    let file = NAMES[copy];
    error.map(|error| JournalDamage { file, error })
}

/// The edition of the first entry that can be read.
fn edition(copy: &[u8], seal: Seal) -> Option<u64> {
    let mut entries = copy.chunks(JOURNAL_ENTRY_BYTES).zip(0_u64..);
    entries.find_map(|(bytes, place)| {
        let at = place * JOURNAL_ENTRY_BYTES as u64;
        let (_, edition) = PurgeEntry::decode(bytes, seal, at).ok()?;
        Some(edition)
    })
}

/// What a copy says at a place, if it is of `edition`.
fn entry(
    copy: Option<&[u8]>,
    place: usize,
    seal: Seal,
    edition: Option<u64>,
) -> Result<PurgeEntry, FormatError> {
    let begin = place * JOURNAL_ENTRY_BYTES;
    let at = begin as u64;
    let error = |kind| FormatError {
        item: Item::PurgeEntry,
        at,
        kind,
    };
    let bytes = copy.ok_or(error(FormatErrorKind::Absent))?;
    let end = bytes.len().min(begin + JOURNAL_ENTRY_BYTES);
    let bytes = bytes.get(begin..end).unwrap_or_default();
    let (entry, found) = PurgeEntry::decode(bytes, seal, at)?;
    match edition {
        Some(edition) if edition != found => Err(error(FormatErrorKind::Contradicts {
            field: "edition",
            value: found,
        })),
        _ => Ok(entry),
    }
}

#[cfg(test)]
mod tests;
