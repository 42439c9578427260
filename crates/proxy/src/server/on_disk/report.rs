//! What operators are shown of a store on disk: by `weir store`, whether it reads the files itself
//! or asks the proxy that uses them.

use super::OnDisk;
use serde::{Deserialize, Serialize};
use weir_disk::offline::{IntactRecord, OfflineError, RecordState, StoredItem, VerifyReport};

/// A stored response, or what the responses of a target vary on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordReport {
    /// Its key: 32 hexadecimal digits.
    pub key: String,
    /// When it was requested, in the order of all requests and purges.
    pub generation: u64,
    /// The number of its segment: 16 hexadecimal digits.
    pub segment: String,
    /// Where it begins in the segment, in bytes.
    pub offset: u32,
    /// Whether it may be used: a word of [`RecordState`].
    pub state: String,
    /// Bytes of content that are stored; `None` if it is damaged.
    pub content_bytes: Option<u64>,
    /// What it is.
    #[serde(flatten)]
    pub what: RecordKind,
}

/// What a record is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RecordKind {
    /// A response.
    Response {
        /// Its status code.
        status: u16,
        /// Its media type, without control characters.
        content_type: Option<String>,
        /// The URL it answers, if it was written with it.
        url: Option<String>,
    },
    /// What the responses of a target vary on.
    Rules {
        /// Names of fields, set by set, newest first.
        fields: Vec<Vec<String>>,
    },
    /// Not one that this version can read.
    Unknown {
        /// Why.
        why: String,
    },
    /// It is not what was written.
    Damaged {
        /// What is wrong, and where.
        why: String,
    },
}

impl RecordReport {
    /// Of the record `found`, that was read.
    ///
    /// # Errors
    ///
    /// It could not be read, for another reason than that it is damaged.
    pub fn of(
        found: &StoredItem,
        state: RecordState,
        read: Result<IntactRecord, OfflineError>,
    ) -> Result<Self, OfflineError> {
        let (content_bytes, what) = match read {
            Ok(stored) => {
                let what = RecordKind::of(&stored.meta);
                (Some(stored.header.content_bytes), what)
            }
            Err(OfflineError::Format { path, error }) => {
                let why = format!("{}: {error}", path.display());
                (None, RecordKind::Damaged { why })
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            key: found.key_text(),
            generation: found.generation,
            segment: format!("{:016x}", found.segment),
            offset: found.at,
            state: state.as_str().to_owned(),
            content_bytes,
            what,
        })
    }
}

impl RecordKind {
    fn of(meta: &[u8]) -> Self {
        match OnDisk::read(meta) {
            Ok(OnDisk::Response(response)) => Self::Response {
                status: response.status,
                content_type: content_type(&response.head),
                url: response.target.map(Into::into),
            },
            Ok(OnDisk::Rules(rules)) => Self::Rules {
                fields: rules.fields,
            },
            Err(why) => Self::Unknown { why },
        }
    }
}

fn content_type(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut types = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let (_, value) = types.next()?;
    // what an origin sent is not let loose on a terminal
    let visible = value.trim().chars().filter(|c| !c.is_control());
    Some(visible.collect())
}

/// How many records or extents there are, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// How many.
    pub count: u64,
    /// Bytes they take.
    pub bytes: u64,
}

impl Totals {
    /// Counts one more.
    pub fn add(&mut self, item: &StoredItem) {
        self.count += 1;
        self.bytes += u64::from(item.bytes);
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// How much is in a directory, and in what state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryStats {
    /// Where it is.
    pub path: String,
    /// Its number in the store.
    pub directory: u32,
    /// Segments.
    pub segments: u64,
    /// Bytes of their files.
    pub segment_bytes: u64,
    /// Segments without a table: being written, or their writer was stopped.
    pub open_segments: u64,
    /// Records that may be used.
    pub live: Totals,
    /// Records that were purged.
    pub purged: Totals,
    /// Records with a newer one of their key.
    pub superseded: Totals,
    /// Records of which it is not known whether they were purged.
    pub doubtful: Totals,
    /// Records that the proxy does not find any more.
    pub forgotten: Totals,
    /// Content of large responses.
    pub extents: Totals,
    /// Entries of the purge journal.
    pub purges: u64,
    /// The generation of the newest of them.
    pub newest_purge: u64,
    /// Segments that were set aside as they could not be read.
    pub set_aside: u64,
    /// Things that are wrong, content not looked at.
    pub problems: u64,
}

impl DirectoryStats {
    /// The records in this state.
    pub const fn of_state(&mut self, state: RecordState) -> &mut Totals {
        match state {
            RecordState::Live => &mut self.live,
            RecordState::Purged => &mut self.purged,
            RecordState::Superseded => &mut self.superseded,
            RecordState::Doubtful => &mut self.doubtful,
            RecordState::Forgotten => &mut self.forgotten,
        }
    }

    /// Adds what was found in further segments of the same directory.
    pub fn merge(&mut self, more: &Self) {
        self.segments += more.segments;
        self.segment_bytes += more.segment_bytes;
        self.open_segments += more.open_segments;
        self.live.merge(more.live);
        self.purged.merge(more.purged);
        self.superseded.merge(more.superseded);
        self.doubtful.merge(more.doubtful);
        self.forgotten.merge(more.forgotten);
        self.extents.merge(more.extents);
        self.problems += more.problems;
    }
}

/// What was verified of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryCheck {
    /// Where it is.
    pub path: String,
    /// Segments.
    pub segments: u64,
    /// Records, live or not.
    pub records: u64,
    /// Of these, the live ones.
    pub live: u64,
    /// Live records with some of their content evicted with its segment: no damage.
    pub partly_evicted: u64,
    /// Extents outside of records.
    pub extents: u64,
    /// Bytes of records and extents.
    pub bytes: u64,
    /// What is wrong, a file and an offset each.
    pub problems: Vec<String>,
}

impl DirectoryCheck {
    /// Of what was verified in the directory at `path`.
    #[must_use]
    pub fn of(path: String, checked: VerifyReport) -> Self {
        Self {
            path,
            segments: checked.segments,
            records: checked.records,
            live: checked.live,
            partly_evicted: checked.partly_evicted,
            extents: checked.extents,
            bytes: checked.bytes,
            problems: Vec::new(),
        }
    }

    /// Adds the numbers of further segments of the same directory.
    pub fn add(&mut self, more: &Self) {
        self.segments += more.segments;
        self.records += more.records;
        self.live += more.live;
        self.partly_evicted += more.partly_evicted;
        self.extents += more.extents;
        self.bytes += more.bytes;
    }
}

/// A stored response that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageReport {
    /// Its record.
    #[serde(flatten)]
    pub record: RecordReport,
    /// Where the proxy finds it.
    pub at: String,
    /// Bytes of its head, the empty line included.
    pub head_bytes: u64,
    /// Its content is there from its beginning on without a gap.
    pub is_contiguous: bool,
    /// The complete length of its content in bytes, if that is known.
    pub complete_bytes: Option<u64>,
}

/// A part of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorePage<T> {
    /// What there is of it.
    pub items: Vec<T>,
    /// Where the next page begins; `None` if this was the last one.
    pub next: Option<String>,
}
