//! Everything that lies in a directory, and what of it is live.

use super::directory::Directory;
use super::error::{OfflineError, Problem};
use super::segment::{Segment, State, StoredItem};
use crate::format::segment_file_name;
use std::collections::HashMap;
use weir_policy::Digest;

/// Whether a record may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// It is what the store holds for its key.
    Live,
    /// Its key, or everything, was purged since it was requested.
    Purged,
    /// There is a newer record of the key, or the same one elsewhere.
    Superseded,
    /// The purge journal has lost entries, and one of them may have been for this record.
    Doubtful,
    /// The process that uses the store does not find it any more, as it was damaged or outdated: it
    /// may be live again after a restart.
    Forgotten,
}

impl RecordState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Purged => "purged",
            Self::Superseded => "superseded",
            Self::Doubtful => "doubtful",
            Self::Forgotten => "forgotten",
        }
    }
}

/// A segment that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Its number.
    pub number: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// How it ended.
    pub state: State,
    /// Records in it, live or not.
    pub records: u64,
}

/// Everything that lies in a directory.
#[derive(Debug, Default)]
pub struct Survey {
    /// Records and extents, by segment and place.
    pub found: Vec<StoredItem>,
    /// Segments that could be read.
    pub segments: Vec<SegmentSummary>,
    /// What is wrong with the frame of it: content was not looked at.
    pub problems: Vec<Problem>,
    newest: HashMap<Digest, (u64, u64, u32)>,
    is_journal_short: bool,
}

impl Directory {
    /// Looks at all segments: at their tables, and at headers where there is none. Content is not
    /// read.
    ///
    /// # Errors
    ///
    /// The file system says no; damage is among [`Survey::problems`].
    pub fn survey(&self) -> Result<Survey, OfflineError> {
        let mut survey = Survey::default();
        survey.problems.extend(self.purges().problem().cloned());
        survey.problems.extend(self.purges().recovered().cloned());
        let mut purged = 0;
        for &number in self.segments() {
            let segment = match Segment::open(self.segment_source(), number) {
                Ok(segment) => segment,
                Err(OfflineError::Format { error, .. }) => {
                    let name = segment_file_name(number);
                    survey.problems.push(Problem::of(&name, &error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let contents = segment.contents()?;
            purged = purged.max(contents.purged);
            let records = contents.found.iter().filter(|found| found.is_response());
            survey.segments.push(SegmentSummary {
                number,
                bytes: segment.len,
                state: contents.state,
                records: records.count() as u64,
            });
            survey.problems.extend(contents.problems);
            survey.found.extend(contents.found);
        }
        if purged > self.purges().newest() {
            survey.is_journal_short = true;
            let what = format!(
                "ends at generation {}, but a purge of generation {purged} was written: what it was for is lost",
                self.purges().newest()
            );
            let file = crate::format::JOURNAL_FILE;
            survey.problems.push(Problem::new(file, 0, what));
        }
        survey.find_newest();
        Ok(survey)
    }
}

impl Survey {
    fn find_newest(&mut self) {
        for found in self.found.iter().filter(|found| found.is_response()) {
            let this = (found.generation, found.segment, found.at);
            let newest = self.newest.entry(found.key).or_insert(this);
            *newest = (*newest).max(this);
        }
    }

    /// The stored responses, live or not.
    pub fn records(&self) -> impl Iterator<Item = &StoredItem> {
        self.found.iter().filter(|found| found.is_response())
    }

    /// Whether a record of `directory` may be used.
    #[must_use]
    pub fn state_of(&self, directory: &Directory, record: &StoredItem) -> RecordState {
        let this = (record.generation, record.segment, record.at);
        if self.is_journal_short {
            RecordState::Doubtful
        } else if directory.purges().covers(record.key, record.generation) {
            RecordState::Purged
        } else if self.newest.get(&record.key) == Some(&this) {
            RecordState::Live
        } else {
            RecordState::Superseded
        }
    }

    /// Whether a record of `directory` is what the store holds for its key.
    #[must_use]
    pub fn is_live(&self, directory: &Directory, record: &StoredItem) -> bool {
        self.state_of(directory, record) == RecordState::Live
    }

    /// What the store holds for `key`.
    #[must_use]
    pub fn live(&self, directory: &Directory, key: Digest) -> Option<&StoredItem> {
        self.records()
            .find(|found| found.key == key && self.state_of(directory, found) == RecordState::Live)
    }
}
