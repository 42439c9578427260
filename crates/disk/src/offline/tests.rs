use super::*;
use crate::format::testing::of_version;
use crate::format::{
    BodyId, ExtentRef, FORMAT_VERSION, FormatErrorKind, JOURNAL_ENTRY_BYTES, JOURNAL_FILE,
    JOURNAL_MIRROR_FILE, Kind, LOCK_FILE, NewExtent, NewRecord, PAGE_BYTES, PurgeEntry, PurgeScope,
    SUPERBLOCK_FILE, Seal, SegmentHeader, StoreId, Superblock, TableEntry, Trailer, Volume,
    encode_embedded, encode_extent_header, encode_listed, encode_table, segment_file_name,
};
use std::path::Path;
use tempfile::TempDir;
use weir_policy::{Digest, Secret};

const VOLUME: Volume = Volume {
    store: StoreId([7; 16]),
    directory: 0,
};

/// A segment that is written by hand.
struct Hand {
    number: u64,
    bytes: Vec<u8>,
    entries: Vec<TableEntry>,
}

impl Hand {
    fn new(number: u64, purged: u64) -> Self {
        let header = SegmentHeader {
            volume: VOLUME,
            number,
            begun_s: 1,
            generation: 0,
            purged,
            capacity: 1 << 20,
        };
        Self {
            number,
            bytes: header.encode(),
            entries: Vec::new(),
        }
    }

    fn at(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn add(&mut self, bytes: &[u8], key: u64, generation: u64, kind: Option<Kind>) -> u32 {
        let at = u32::try_from(self.at()).unwrap();
        self.entries.push(TableEntry {
            key: Digest(key, 0),
            generation,
            at,
            bytes: u32::try_from(bytes.len()).unwrap(),
            content_bytes: 0,
            kind,
        });
        self.bytes.extend_from_slice(bytes);
        at
    }

    fn small(&mut self, key: u64, generation: u64, content: &[u8]) -> u32 {
        let blocks = [content];
        let extent = NewExtent {
            from: 0,
            content: &blocks,
        };
        let (seal, body) = (VOLUME.segment(self.number), BodyId(generation));
        let new = new_record(key, generation);
        let bytes = encode_embedded(seal, self.at(), &new, body, &[extent]).unwrap();
        self.add(&bytes, key, generation, Some(Kind::Embedded))
    }

    fn extent(&mut self, key: u64, body: u64, from: u64, content: &[u8]) -> ExtentRef {
        let seal = VOLUME.segment(self.number);
        let whose = (Digest(key, 0), BodyId(body));
        let mut bytes = encode_extent_header(seal, self.at(), whose, from, &[content]).unwrap();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        ExtentRef {
            from,
            len: u32::try_from(content.len()).unwrap(),
            at: self.add(&bytes, key, body, None),
            segment: self.number,
            body: BodyId(body),
        }
    }

    fn listed(&mut self, key: u64, generation: u64, extents: &[ExtentRef]) -> u32 {
        let seal = VOLUME.segment(self.number);
        let bytes = encode_listed(seal, self.at(), &new_record(key, generation), extents).unwrap();
        self.add(&bytes, key, generation, Some(Kind::Listed))
    }

    fn sealed(mut self) -> Self {
        let seal = VOLUME.segment(self.number);
        let table_at = self.at();
        let table = encode_table(seal, table_at, &self.entries);
        self.bytes.extend_from_slice(&table);
        let trailer = Trailer {
            table_at: u32::try_from(table_at).unwrap(),
            table_bytes: u32::try_from(table.len()).unwrap(),
            generation: 0,
            purged: 0,
            sealed_s: 2,
        };
        let trailer = trailer.encode(seal, self.at());
        self.bytes.extend(trailer);
        self
    }

    fn write(&self, directory: &Path) {
        std::fs::write(directory.join(segment_file_name(self.number)), &self.bytes).unwrap();
    }
}

fn new_record(key: u64, generation: u64) -> NewRecord<'static> {
    NewRecord {
        key: Digest(key, 0),
        generation,
        purged: 0,
        meta: b"meta",
    }
}

fn store() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let superblock = Superblock {
        volume: VOLUME,
        secret: Secret([1; 16]),
        made_s: 1,
        segment_bytes: 1 << 20,
    };
    let pages = superblock.encode().repeat(2);
    std::fs::write(directory.path().join(SUPERBLOCK_FILE), pages).unwrap();
    directory
}

fn purge(directory: &Path, entries: &[(u64, PurgeScope)]) {
    let bytes = journal(entries, 3);
    std::fs::write(directory.join(JOURNAL_FILE), &bytes).unwrap();
    std::fs::write(directory.join(JOURNAL_MIRROR_FILE), bytes).unwrap();
}

fn journal(entries: &[(u64, PurgeScope)], edition: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (generation, what) in entries {
        let entry = PurgeEntry {
            generation: *generation,
            what: *what,
            segment: 9,
        };
        bytes.extend(entry.encode(VOLUME.journal(), bytes.len() as u64, edition));
    }
    bytes
}

fn states(directory: &Path) -> Vec<(u64, u64, RecordState)> {
    let directory = Directory::open(directory).unwrap();
    let survey = directory.survey().unwrap();
    let state = |found: &StoredItem| {
        (
            found.key.0,
            found.generation,
            survey.state_of(&directory, found),
        )
    };
    survey.records().map(state).collect()
}

fn content(directory: &Path, key: u64) -> Result<Vec<u8>, OfflineError> {
    let directory = Directory::open(directory)?;
    let survey = directory.survey()?;
    let found = survey.live(&directory, Digest(key, 0)).unwrap();
    let stored = directory.read(found)?;
    assert_eq!(stored.meta, b"meta");
    let mut content = Vec::new();
    directory.write_content(&stored, &mut content)?;
    Ok(content)
}

fn problems(directory: &Path) -> Vec<String> {
    let directory = Directory::open(directory).unwrap();
    let survey = directory.survey().unwrap();
    let mut problems = Vec::new();
    directory
        .check(&survey, &mut |problem| problems.push(problem.to_string()))
        .unwrap();
    problems
}

/// Two segments, the second without a table: small responses and a large one that lies in both.
fn example() -> TempDir {
    let directory = store();
    let mut first = Hand::new(1, 0);
    first.small(1, 1, b"one, old");
    let mut extents = vec![first.extent(2, 2, 0, b"two")];
    first.sealed().write(directory.path());
    let mut second = Hand::new(2, 0);
    second.small(1, 4, b"one");
    extents.push(second.extent(2, 3, 3, b" and more"));
    second.listed(2, 3, &extents);
    second.small(3, 5, b"three");
    // a mark: it only says which purges there were
    second.listed(0, 0, &[]);
    second.write(directory.path());
    directory
}

#[test]
fn newest_record_of_a_key_is_the_live_one() {
    let directory = example();
    let expected = [
        (1, 1, RecordState::Superseded),
        (1, 4, RecordState::Live),
        (2, 3, RecordState::Live),
        (3, 5, RecordState::Live),
    ];
    assert_eq!(states(directory.path()), expected);
    assert_eq!(content(directory.path(), 1).unwrap(), b"one");
    assert_eq!(content(directory.path(), 2).unwrap(), b"two and more");
    assert_eq!(problems(directory.path()), Vec::<String>::new());
}

#[test]
fn record_covered_by_a_purge_is_not_live() {
    let directory = example();
    purge(directory.path(), &[(5, PurgeScope::Key(Digest(1, 0)))]);
    let states_now = states(directory.path());
    assert_eq!(states_now[0].2, RecordState::Purged);
    assert_eq!(states_now[1].2, RecordState::Purged);
    assert_eq!(states_now[2].2, RecordState::Live);
    purge(
        directory.path(),
        &[
            (2, PurgeScope::Floor),
            (3, PurgeScope::Key(Digest(9, 0))),
            (4, PurgeScope::All),
        ],
    );
    let live: Vec<u64> = states(directory.path())
        .iter()
        .filter(|(_, _, state)| *state == RecordState::Live)
        .map(|(key, _, _)| *key)
        .collect();
    assert_eq!(live, [3]);
}

#[test]
fn journal_that_lost_entries_makes_all_records_doubtful() {
    let directory = example();
    let mut third = Hand::new(3, 7);
    third.small(4, 9, b"four");
    third.write(directory.path());
    let all_doubtful = || {
        let states = states(directory.path());
        assert!(
            states
                .iter()
                .all(|(_, _, state)| *state == RecordState::Doubtful)
        );
        assert!(
            problems(directory.path())
                .iter()
                .any(|text| text.contains("is lost"))
        );
    };
    all_doubtful();
    let entries = [
        (6, PurgeScope::Key(Digest(1, 0))),
        (7, PurgeScope::Key(Digest(2, 0))),
    ];
    purge(directory.path(), &entries);
    assert_eq!(problems(directory.path()), Vec::<String>::new());
    let paths = [JOURNAL_FILE, JOURNAL_MIRROR_FILE].map(|name| directory.path().join(name));
    let whole = std::fs::read(&paths[0]).unwrap();
    let write_both = |bytes: &[u8]| {
        for path in &paths {
            std::fs::write(path, bytes).unwrap();
        }
    };
    write_both(&whole[..JOURNAL_ENTRY_BYTES + 5]);
    all_doubtful();
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    write_both(&damaged);
    all_doubtful();
    // as version 1 wrote it, without a copy
    std::fs::remove_file(&paths[1]).unwrap();
    std::fs::write(&paths[0], journal(&entries, 0)).unwrap();
    assert_eq!(problems(directory.path()), Vec::<String>::new());
}

#[test]
fn damaged_journal_copy_is_reported_by_name_and_changes_no_record() {
    let directory = example();
    purge(directory.path(), &[(5, PurgeScope::Key(Digest(1, 0)))]);
    let expected = states(directory.path());
    for name in [JOURNAL_FILE, JOURNAL_MIRROR_FILE] {
        let path = directory.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[20] ^= 1;
        for bytes in [&damaged[..], &whole[..7], &[]] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(states(directory.path()), expected);
            let problems = problems(directory.path());
            assert_eq!(problems.len(), 1);
            assert!(
                problems[0].starts_with(&format!("{name} offset 0")),
                "{problems:?}"
            );
        }
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(problems(directory.path()), Vec::<String>::new());
    }
}

#[test]
fn segment_damage_is_reported_with_file_and_offset() {
    let directory = example();
    let path = directory.path().join(segment_file_name(2));
    let whole = std::fs::read(&path).unwrap();
    // every byte behind the header is part of something that is checked
    for place in (PAGE_BYTES..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        std::fs::write(&path, damaged).unwrap();
        let found = problems(directory.path());
        assert!(!found.is_empty(), "byte {place}");
        assert!(
            found[0].starts_with("0000000000000002.seg offset "),
            "{found:?}"
        );
    }
    std::fs::write(&path, &whole[..whole.len() - 16]).unwrap();
    assert_eq!(problems(directory.path()).len(), 1);
}

#[test]
fn export_of_a_damaged_chunk_fails_with_a_checksum_error() {
    let directory = example();
    let path = directory.path().join(segment_file_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.windows(3).position(|three| three == b"two").unwrap();
    bytes[place] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = content(directory.path(), 2).unwrap_err().to_string();
    assert!(error.ends_with("the checksum does not fit"), "{error}");
}

#[test]
fn record_with_evicted_content_is_counted_separately_from_damage() {
    let directory = example();
    let checked = || {
        let directory = Directory::open(directory.path()).unwrap();
        let survey = directory.survey().unwrap();
        directory.check(&survey, &mut |_| {}).unwrap()
    };
    assert_eq!(checked().partly_evicted, 0);
    std::fs::remove_file(directory.path().join(segment_file_name(1))).unwrap();
    assert_eq!(problems(directory.path()), Vec::<String>::new());
    assert_eq!(checked().partly_evicted, 1);
}

#[test]
fn damaged_table_is_reported_and_its_records_are_still_found() {
    let directory = example();
    let path = directory.path().join(segment_file_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    let table = bytes
        .windows(8)
        .position(|eight| eight == b"WEIR-TAB")
        .unwrap();
    bytes[table + 20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(content(directory.path(), 2).unwrap(), b"two and more");
    let found = problems(directory.path());
    assert!(
        found
            .iter()
            .any(|text| text.contains("table: the checksum")),
        "{found:?}"
    );
}

#[test]
fn segment_under_the_name_of_another_is_reported() {
    let directory = example();
    let from = directory.path().join(segment_file_name(2));
    std::fs::rename(from, directory.path().join(segment_file_name(8))).unwrap();
    let found = problems(directory.path());
    assert!(
        found[0].contains("segment number is 2, which cannot be here"),
        "{found:?}"
    );
}

#[test]
fn store_in_use_or_missing_is_refused() {
    let directory = example();
    let open = |path: &Path| Directory::open(path).unwrap_err();
    let lock_path = directory.path().join(LOCK_FILE);
    std::fs::write(&lock_path, "4711\n").unwrap();
    let lock = std::fs::File::open(&lock_path).unwrap();
    lock.try_lock().unwrap();
    let said = open(directory.path()).to_string();
    assert!(said.ends_with("in use by process 4711"), "{said}");
    drop(lock);
    assert!(Directory::open(directory.path()).is_ok());
    let superblock = directory.path().join(SUPERBLOCK_FILE);
    std::fs::remove_file(&superblock).unwrap();
    assert!(matches!(
        open(directory.path()),
        OfflineError::NoStore { .. }
    ));
    assert!(matches!(open(&superblock), OfflineError::Io { .. }));
}

#[test]
fn store_opens_while_one_superblock_page_is_intact() {
    let directory = example();
    let path = directory.path().join(SUPERBLOCK_FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[17] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(Directory::open(directory.path()).is_ok());
    bytes[PAGE_BYTES + 17] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let said = Directory::open(directory.path()).unwrap_err().to_string();
    assert!(said.ends_with("the checksum does not fit"), "{said}");
}

#[test]
fn store_of_a_newer_version_is_refused_whichever_copy_says_so() {
    let directory = example();
    let path = directory.path().join(SUPERBLOCK_FILE);
    let pages = std::fs::read(&path).unwrap();
    let known = pages[..PAGE_BYTES].to_vec();
    let newer = of_version(known.clone(), FORMAT_VERSION + 1, Seal::UNKEYED);
    let damaged = vec![0; PAGE_BYTES];
    for copies in [
        [&newer, &newer],
        [&newer, &known],
        [&newer, &damaged],
        [&damaged, &newer],
    ] {
        std::fs::write(&path, copies.map(|page| &page[..]).concat()).unwrap();
        let Err(OfflineError::Format { error, .. }) = Directory::open(directory.path()) else {
            panic!("a store of a newer version was opened");
        };
        let version = FORMAT_VERSION + 1;
        assert_eq!(error.kind, FormatErrorKind::Newer { version });
    }
    std::fs::write(&path, pages).unwrap();
    assert_eq!(content(directory.path(), 1).unwrap(), b"one");
}

#[test]
fn segment_of_a_newer_version_is_reported_and_not_read() {
    let directory = example();
    let path = directory.path().join(segment_file_name(2));
    let mut bytes = std::fs::read(&path).unwrap();
    let page = bytes[..PAGE_BYTES].to_vec();
    let newer = of_version(page, FORMAT_VERSION + 1, VOLUME.segment(2));
    bytes[..PAGE_BYTES].copy_from_slice(&newer);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(states(directory.path()), [(1, 1, RecordState::Live)]);
    let found = problems(directory.path());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("newer version"), "{found:?}");
}
