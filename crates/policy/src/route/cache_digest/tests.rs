use super::*;
use crate::route::HoldsIt;
use crate::{Digest, KeyHasher, Secret};
use proptest::prelude::*;
use std::collections::BTreeSet;

const SECRET: Secret = Secret([9; 16]);
const SEALED: SealedKey = SealedKey {
    masked: [1; 16],
    check: [2; 16],
};

/// Opens what was sealed so.
fn open(_: u64, key: &SealedKey) -> Option<DigestKeys> {
    (*key == SEALED).then_some(DigestKeys {
        store: SECRET,
        tags: SECRET,
    })
}

fn key(number: u64) -> Digest {
    let mut hasher = KeyHasher::new(&Secret([3; 16]));
    hasher.number(number);
    hasher.finish()
}

fn writer(epoch: u64, keys: std::ops::Range<u64>) -> DigestWriter {
    let mut writer = DigestWriter::new(epoch, SEALED, 1000);
    keys.for_each(|number| writer.add(key(number)));
    writer
}

#[test]
fn of_what_a_full_digest_does_not_have_at_most_1_5_percent_is_taken_for_held() {
    const RESPONSES: u64 = 200_000;
    let mut digest = CacheDigest::with_capacity(RESPONSES);
    (0..RESPONSES).for_each(|number| digest.insert(key(number)));
    assert!((0..RESPONSES).all(|number| digest.may_hold(key(number))));
    let others = RESPONSES..2 * RESPONSES;
    let taken = others
        .filter(|number| digest.may_hold(key(*number)))
        .count();
    assert!(
        taken as u64 * 1000 <= RESPONSES * 15,
        "{taken} of {RESPONSES} are taken for held"
    );
}

#[test]
fn million_responses_have_a_digest_of_1_25_megabytes() {
    let digest = CacheDigest::with_capacity(1_000_000);
    assert_eq!(digest.bytes(), 1_250_048);
    assert!(digest.capacity() >= 1_000_000);
    let largest = CacheDigest::with_capacity(u64::MAX);
    assert_eq!(largest.bytes(), DIGEST_BYTES_MAX);
}

#[test]
fn reader_without_a_digest_knows_nothing_and_is_sent_the_whole() {
    let mut reader = DigestReader::default();
    assert_eq!(reader.holds(key(1)), HoldsIt::Unknown);
    let writer = writer(7, 0..100);
    reader
        .take(&writer.message_for(reader.version()), open)
        .unwrap();
    assert_eq!(reader.version(), Some(writer.version()));
    assert_eq!(reader.holds(key(1)), HoldsIt::Yes);
    assert_eq!(reader.holds(key(100_001)), HoldsIt::No);
}

#[test]
fn reader_of_the_same_epoch_is_sent_what_was_added_since() {
    let mut writer = writer(7, 0..100);
    let mut reader = DigestReader::default();
    reader.take(&writer.message_for(None), open).unwrap();
    writer.add(key(100));
    writer.add(key(101));
    let message = writer.message_for(reader.version());
    assert_eq!(message.len(), 30 + 2 * 16);
    reader.take(&message, open).unwrap();
    assert_eq!(reader.holds(key(101)), HoldsIt::Yes);
    assert_eq!(reader.version(), Some(writer.version()));
    let nothing = writer.message_for(reader.version());
    assert_eq!(nothing.len(), 30);
    reader.take(&nothing, open).unwrap();
}

#[test]
fn reader_that_lacks_more_than_is_remembered_is_sent_the_whole() {
    const ADDED_MAX: u64 = ADDITIONS_MAX as u64;
    let mut writer = DigestWriter::new(7, SEALED, ADDED_MAX);
    let begin = writer.version();
    let mut keys = (0..).map(key);
    let mut add_up_to = |writer: &mut DigestWriter, added| {
        while writer.version().additions < added {
            writer.add(keys.next().expect("keys have no end"));
        }
    };
    add_up_to(&mut writer, ADDED_MAX);
    let additions = writer.message_for(Some(begin));
    assert_eq!(
        (additions[9], additions.len()),
        (1, 30 + 16 * ADDITIONS_MAX)
    );
    add_up_to(&mut writer, ADDED_MAX + 1);
    assert_eq!(writer.message_for(Some(begin))[9], 0, "the whole");
}

#[test]
fn additions_to_another_digest_are_refused_and_change_nothing() {
    let check = |known: Option<DigestWriter>, from: DigestVersion, expected| {
        let mut reader = DigestReader::default();
        if let Some(known) = &known {
            reader.take(&known.message_for(None), open).unwrap();
        }
        let before = reader.version();
        let message = message::write_additions(from, [key(5000)].iter());
        assert_eq!(reader.take(&message, open), expected, "{from:?}");
        if expected.is_err() {
            assert_eq!(reader.version(), before);
            assert_ne!(reader.holds(key(5000)), HoldsIt::Yes);
        }
    };
    let from = |epoch, additions| DigestVersion { epoch, additions };
    check(None, from(7, 0), Err(DigestError::Unconnected));
    check(
        Some(writer(7, 0..10)),
        from(8, 10),
        Err(DigestError::Unconnected),
    );
    check(
        Some(writer(7, 0..10)),
        from(7, 11),
        Err(DigestError::Unconnected),
    );
    check(Some(writer(7, 0..10)), from(7, 10), Ok(()));
    check(Some(writer(7, 0..10)), from(7, 3), Ok(()));
}

#[test]
fn digest_is_made_anew_when_a_twentieth_is_gone_or_there_is_no_room() {
    let mut gone = writer(1, 0..100);
    let added = gone.version().additions;
    assert!(added > 95, "{added}: few keys are taken for held");
    for (held, expected) in [(100, false), (added - 5, false), (added - 6, true)] {
        gone.note_held(held);
        assert_eq!(gone.is_outdated(), expected, "{held}");
    }
    let full = |more| {
        let mut writer = writer(1, 0..0);
        let room = CacheDigest::with_capacity(1000).capacity();
        let mut keys = (0..).map(key);
        while writer.version().additions < room + more {
            writer.add(keys.next().expect("keys have no end"));
        }
        writer.note_held(u64::MAX);
        writer.is_outdated()
    };
    assert!(!full(0));
    assert!(full(1));
}

#[test]
fn malformed_message_is_refused_by_what_is_wrong_with_it() {
    let good = writer(7, 0..10).message_for(None);
    let check = |change: &dyn Fn(&mut Vec<u8>), expected| {
        let mut message = good.clone();
        change(&mut message);
        let mut reader = DigestReader::default();
        assert_eq!(reader.take(&message, open), Err(expected));
        assert_eq!(reader.version(), None);
    };
    let bytes = good.len();
    check(&|message| message[0] = b'W', DigestError::Magic);
    check(&|message| message.truncate(7), DigestError::Magic);
    check(&|message| message[8] = 2, DigestError::Version(2));
    check(&|message| message[9] = 9, DigestError::Kind(9));
    check(&|message| message.truncate(20), DigestError::Length(20));
    check(&|message| message.push(0), DigestError::Length(bytes + 1));
    check(&|message| message[26] += 1, DigestError::Length(bytes));
    check(&|message| message.truncate(40), DigestError::Length(40));
    check(&|message| message[30] += 1, DigestError::Key);
    check(&|message| message[61] += 1, DigestError::Key);
    check(
        &|message| {
            message.truncate(62);
            message[26..30].copy_from_slice(&[0; 4]);
        },
        DigestError::Length(0),
    );
    check(
        &|message| {
            let blocks = DIGEST_BYTES_MAX / 64 + 1;
            message[26..30].copy_from_slice(&u32::try_from(blocks).unwrap().to_le_bytes());
            message.resize(62 + blocks * 64, 0);
        },
        DigestError::TooLarge(DIGEST_BYTES_MAX + 64),
    );
}

#[test]
fn message_that_may_have_fewer_bytes_is_refused_before_its_blocks_have_come() {
    let writer = DigestWriter::new(7, SEALED, 1000);
    let message = writer.message_for(None);
    let blocks = message.len() - 62;
    let check = |blocks_bytes_max, expected| {
        let mut incoming = IncomingDigest::new(blocks_bytes_max);
        assert_eq!(incoming.push(&message[..61]), Ok(()));
        assert_eq!(incoming.push(&message[61..62]), expected);
    };
    check(blocks, Ok(()));
    check(blocks - 1, Err(DigestError::TooLarge(blocks)));
    let additions = |count: usize| {
        let keys = vec![key(1); count];
        let message = message::write_additions(writer.version(), keys.iter());
        IncomingDigest::new(0).push(&message)
    };
    assert_eq!(additions(ADDITIONS_MAX), Ok(()));
    let bytes = (ADDITIONS_MAX + 1) * 16;
    assert_eq!(
        additions(ADDITIONS_MAX + 1),
        Err(DigestError::TooLarge(bytes))
    );
}

#[test]
fn additions_are_applied_in_parts_each_of_which_is_a_version() {
    let mut writer = DigestWriter::new(7, SEALED, 10_000);
    let mut reader = DigestReader::default();
    reader.take(&writer.message_for(None), open).unwrap();
    (0..5000).for_each(|number| writer.add(key(number)));
    let added = writer.version().additions;
    assert!(added > 4900, "{added}: few keys are taken for held");
    let mut incoming = IncomingDigest::new(DIGEST_BYTES_MAX);
    incoming
        .push(&writer.message_for(reader.version()))
        .unwrap();
    let mut update = incoming.finish(open).unwrap();
    for (applied, additions) in [
        (Applied::Part, 2048),
        (Applied::Part, 4096),
        (Applied::Whole, added),
    ] {
        assert_eq!(reader.apply(&mut update), Ok(applied));
        assert_eq!(reader.version().unwrap().additions, additions);
    }
    assert!((0..5000).all(|number| reader.holds(key(number)) == HoldsIt::Yes));
}

proptest! {
    /// Whatever a message has, and wherever it is cut, its pieces say the same as all of it.
    #[test]
    fn message_in_pieces_says_what_it_says_as_a_whole(
        keys in 0..40_u64, is_whole: bool, damage in prop::option::of((0..400_usize, any::<u8>())),
        length in 0..400_usize, pieces in prop::collection::vec(0..100_usize, 0..20),
    ) {
        let writer = writer(7, 0..keys);
        let mut known = DigestReader::default();
        let begin = self::writer(7, 0..0);
        known.take(&begin.message_for(None), open).unwrap();
        let mut message = writer.message_for(known.version().filter(|_| !is_whole));
        if let Some((at, byte)) = damage && at < message.len() {
            message[at] = byte;
            message.truncate(message.len().min(length.max(1)));
        }
        let mut reader = known.clone();
        let whole = reader.take(&message, open);
        let mut incoming = IncomingDigest::new(DIGEST_BYTES_MAX);
        let (mut rest, mut pushed) = (&message[..], Ok(()));
        for piece in pieces {
            let (piece, behind) = rest.split_at(piece.min(rest.len()));
            pushed = pushed.and_then(|()| incoming.push(piece));
            rest = behind;
        }
        pushed = pushed.and_then(|()| incoming.push(rest));
        let in_pieces = pushed.and_then(|()| {
            let mut update = incoming.finish(open)?;
            while known.apply(&mut update)? == Applied::Part {}
            Ok(())
        });
        prop_assert_eq!(in_pieces.is_ok(), whole.is_ok(), "{:?} {:?}", in_pieces, whole);
        prop_assert_eq!(known.version(), reader.version());
        for number in 0..keys {
            prop_assert_eq!(known.holds(key(number)), reader.holds(key(number)));
        }
    }

    /// Against a set: whatever is taken in whichever order, nothing that was added is missing.
    #[test]
    fn reader_that_takes_all_messages_misses_nothing_that_was_added(
        steps in prop::collection::vec((0..500_u64, prop::bool::ANY, prop::bool::ANY), 1..200)
    ) {
        let mut writer = DigestWriter::new(1, SEALED, 1000);
        let mut reader = DigestReader::default();
        let mut held = BTreeSet::new();
        for (number, is_sent, is_new_epoch) in steps {
            if is_new_epoch && writer.is_outdated() {
                writer = DigestWriter::new(writer.version().epoch + 1, SEALED, 1000);
                held.iter().for_each(|number| writer.add(key(*number)));
            }
            if held.insert(number) {
                writer.add(key(number));
            } else {
                held.remove(&number);
            }
            writer.note_held(held.len() as u64);
            if is_sent {
                reader.take(&writer.message_for(reader.version()), open).unwrap();
                prop_assert_eq!(reader.version(), Some(writer.version()));
                for number in &held {
                    prop_assert_eq!(reader.holds(key(*number)), HoldsIt::Yes);
                }
            }
        }
    }
}
