use super::*;
use crate::format::PurgeScope;
use crate::format::testing::VOLUME;
use weir_policy::Digest;

fn entries() -> Vec<PurgeEntry> {
    let what = [
        PurgeScope::Floor,
        PurgeScope::Key(Digest(1, 2)),
        PurgeScope::All,
        PurgeScope::Key(Digest(3, 4)),
        PurgeScope::Key(Digest(5, 6)),
    ];
    let generations = (10..).step_by(10);
    what.into_iter()
        .zip(generations)
        .map(|(what, generation)| PurgeEntry {
            generation,
            what,
            segment: 3,
        })
        .collect()
}

fn copy(entries: &[PurgeEntry], edition: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend(entry.encode(VOLUME.journal(), bytes.len() as u64, edition));
    }
    bytes
}

fn read(first: Option<&[u8]>, second: Option<&[u8]>) -> JournalContents {
    JournalContents::read([first, second], VOLUME.journal())
}

#[test]
fn identical_journal_copies_are_read_as_mirrored_and_undamaged() {
    let bytes = copy(&entries(), 7);
    let expected = JournalContents {
        entries: entries(),
        edition: 7,
        is_mirrored: true,
        ..JournalContents::default()
    };
    assert_eq!(read(Some(&bytes), Some(&bytes)), expected);
}

/// Whatever happens to one copy, the other has it.
fn nothing_is_lost(good: &[u8], bad: &[u8], recovered: u64) {
    for (journal, file) in [
        (read(Some(good), Some(bad)), JOURNAL_MIRROR_FILE),
        (read(Some(bad), Some(good)), JOURNAL_FILE),
    ] {
        assert_eq!(journal.entries, entries());
        assert_eq!(journal.lost, None);
        assert_eq!((journal.edition, journal.recovered), (7, recovered));
        assert_eq!(journal.damage.unwrap().file, file);
        assert!(!journal.is_mirrored);
    }
}

#[test]
fn flipped_bit_in_one_journal_copy_loses_no_entry() {
    let good = copy(&entries(), 7);
    let mut bad = good.clone();
    for bit in 0..good.len() * 8 {
        bad[bit / 8] ^= 1 << (bit % 8);
        nothing_is_lost(&good, &bad, 1);
        bad[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn truncation_of_one_journal_copy_loses_no_entry() {
    let good = copy(&entries(), 7);
    for len in 0..good.len() {
        let whole = len / JOURNAL_ENTRY_BYTES;
        nothing_is_lost(&good, &good[..len], (entries().len() - whole) as u64);
    }
}

#[test]
fn missing_or_zeroed_journal_copy_loses_no_entry() {
    let good = copy(&entries(), 7);
    nothing_is_lost(&good, &vec![0; good.len()], 5);
    for journal in [read(Some(&good), None), read(None, Some(&good))] {
        assert_eq!((journal.entries, journal.recovered), (entries(), 5));
        assert!(journal.lost.is_none() && !journal.is_mirrored);
    }
}

#[test]
fn damage_to_different_entries_of_both_journal_copies_loses_no_entry() {
    let good = copy(&entries(), 7);
    for (one, other) in [(0, 1), (0, 4), (3, 2), (4, 0)] {
        let (mut first, mut second) = (good.clone(), good.clone());
        first[one * JOURNAL_ENTRY_BYTES + 9] ^= 1;
        second[other * JOURNAL_ENTRY_BYTES + 60] ^= 128;
        let journal = read(Some(&first), Some(&second));
        assert_eq!((journal.entries, journal.recovered), (entries(), 2));
        assert_eq!(journal.lost, None);
    }
}

#[test]
fn entry_damaged_in_both_journal_copies_is_reported_lost() {
    let good = copy(&entries(), 7);
    for place in 0..entries().len() {
        let (mut first, mut second) = (good.clone(), good.clone());
        let at = place * JOURNAL_ENTRY_BYTES;
        first[at] ^= 1;
        second[at + 63] ^= 1;
        let journal = read(Some(&first), Some(&second));
        assert_eq!(journal.entries, entries()[..place]);
        assert_eq!(journal.lost.unwrap().error.at, at as u64);
        // a copy that is cut off has lost it too
        let journal = read(Some(&first), Some(&good[..at + 1]));
        assert_eq!(journal.entries, entries()[..place]);
        assert!(journal.lost.is_some());
    }
    assert!(read(Some(&[]), Some(&[])).lost.is_some());
    assert!(read(None, Some(&[0; 640])).lost.is_some());
}

#[test]
fn older_journal_edition_is_ignored() {
    let newer = copy(&entries()[2..], 8);
    let older = copy(&entries(), 7);
    for (first, second) in [(&newer, &older), (&older, &newer)] {
        let journal = read(Some(first), Some(second));
        assert_eq!(journal.entries, entries()[2..]);
        assert_eq!((journal.edition, journal.recovered), (8, 0));
        assert!(journal.lost.is_none() && !journal.is_mirrored);
        // nor does it make good what the newer one has lost
        let mut bad = newer.clone();
        bad[9] ^= 1;
        let journal = if first == &newer {
            read(Some(&bad), Some(second))
        } else {
            read(Some(first), Some(&bad))
        };
        assert!(journal.entries.is_empty() && journal.lost.is_some());
    }
}

#[test]
fn version_1_journal_is_read_without_a_second_copy() {
    let bytes = copy(&entries(), 0);
    let journal = read(Some(&bytes), None);
    assert_eq!((journal.entries, journal.recovered), (entries(), 0));
    assert!(journal.lost.is_none() && !journal.is_mirrored);
    let mut bad = bytes;
    bad[70] ^= 1;
    let journal = read(Some(&bad), None);
    assert_eq!(journal.entries, entries()[..1]);
    assert!(journal.lost.is_some());
}
