use super::super::testing::{
    OTHER_DIRECTORY, OTHER_STORE, SEGMENT, VOLUME, any_damage_is_an_error, seal,
};
use super::super::{EXTENT_BYTES_MAX, Step, step, verify_record};
use super::*;
use proptest::prelude::*;

const AT: u64 = 8192;

const NEW: NewRecord<'_> = NewRecord {
    key: Digest(1, 2),
    generation: 9,
    purged: 4,
    meta: b"HTTP/1.1 200 OK\r\n\r\n",
};

fn reference(from: u64, len: u32) -> ExtentRef {
    ExtentRef {
        from,
        len,
        at: 4096,
        segment: 3,
        body: BodyId(7),
    }
}

#[test]
fn damaged_record_is_refused() {
    let extents = [
        NewExtent {
            from: 0,
            content: &[b"con", b"tent"],
        },
        NewExtent {
            from: 10,
            content: &[b"more"],
        },
    ];
    let whole = encode_embedded(seal(), AT, &NEW, BodyId(7), &extents).unwrap();
    assert_eq!(whole.len() as u64, embedded_bytes(19, &[7, 4]));
    any_damage_is_an_error(&whole, |bytes| verify_record(bytes, seal(), AT).map(drop));
    let listed = [reference(0, 7), reference(10, 4)];
    let whole = encode_listed(seal(), AT, &NEW, &listed).unwrap();
    assert_eq!(whole.len() as u64, listed_bytes(19, 2));
    any_damage_is_an_error(&whole, |bytes| verify_record(bytes, seal(), AT).map(drop));
}

#[test]
fn record_at_another_place_or_of_another_store_fails_its_checksum() {
    let whole = encode_listed(seal(), AT, &NEW, &[]).unwrap();
    assert!(verify_record(&whole, seal(), AT).is_ok());
    for (seal, at) in [
        (seal(), AT + 16),
        (VOLUME.segment(SEGMENT + 1), AT),
        (VOLUME.journal(), AT),
        (OTHER_STORE.segment(SEGMENT), AT),
        (OTHER_DIRECTORY.segment(SEGMENT), AT),
    ] {
        let error = verify_record(&whole, seal, at).unwrap_err();
        assert_eq!(error.kind, FormatErrorKind::Checksum);
    }
}

#[test]
fn record_length_is_known_from_its_header() {
    let whole = encode_listed(seal(), AT, &NEW, &[reference(0, 7)]).unwrap();
    let found = step(&whole[..RECORD_HEADER_BYTES], seal(), AT).unwrap();
    assert_eq!(found.bytes(), whole.len() as u64);
    assert!(matches!(found, Step::Record(header) if header.kind == Kind::Listed));
    let error = step(&whole[16..], seal(), AT + 16).unwrap_err();
    assert_eq!(error.kind, FormatErrorKind::Absent);
}

#[test]
fn encoding_refuses_overlapping_or_unordered_runs_and_oversized_meta() {
    let made = |extents: &[ExtentRef]| encode_listed(seal(), AT, &NEW, extents);
    assert!(made(&[reference(0, 7), reference(7, 1)]).is_ok());
    assert!(made(&[reference(0, 7), reference(6, 1)]).is_err());
    assert!(made(&[reference(7, 1), reference(0, 7)]).is_err());
    assert!(made(&[reference(u64::MAX, 1)]).is_err());
    let meta = vec![0; META_BYTES_MAX as usize + 1];
    let new = NewRecord { meta: &meta, ..NEW };
    let error = encode_listed(seal(), AT, &new, &[]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("meta length is 1048577, more than 1048576"),
        "{text}"
    );
}

#[test]
fn run_over_the_length_limit_is_not_embedded() {
    let content = vec![0; EXTENT_BYTES_MAX as usize + 1];
    let extents = [NewExtent {
        from: 0,
        content: &[&content],
    }];
    assert!(encode_embedded(seal(), AT, &NEW, BodyId(7), &extents).is_err());
}

proptest! {
    #[test]
    fn record_fields_and_run_list_round_trip(
        key in any::<(u64, u64)>(),
        generation: u64,
        purged: u64,
        meta in prop::collection::vec(any::<u8>(), 0..500),
        lengths in prop::collection::vec((0..1000_u64, 1..3000_usize), 0..5),
        at in 256..1000_u64,
    ) {
        let at = at * 16;
        let new = NewRecord { key: Digest(key.0, key.1), generation, purged, meta: &meta };
        let content = vec![0x33; 3000];
        let mut from = 0;
        let mut extents = Vec::new();
        for (gap, len) in lengths {
            extents.push((from + gap, [&content[..len]]));
            from += gap + len as u64;
        }
        let extents: Vec<NewExtent<'_>> = extents.iter().map(|(from, content)| NewExtent { from: *from, content }).collect();
        let whole = encode_embedded(seal(), at, &new, BodyId(5), &extents).unwrap();
        let (header, list) = verify_record(&whole, seal(), at).unwrap();
        prop_assert_eq!(u64::from(header.bytes), whole.len() as u64);
        prop_assert_eq!((header.key, header.generation, header.purged), (new.key, generation, purged));
        prop_assert_eq!(header.tail(&whole, seal(), at).unwrap().1, &meta[..]);
        prop_assert_eq!(list.len(), extents.len());
        for (found, meant) in list.iter().zip(&extents) {
            prop_assert_eq!((found.from, found.len as usize), (meant.from, meant.content[0].len()));
        }
        let listed = encode_listed(seal(), at, &new, &list).unwrap();
        let (header, again) = verify_record(&listed, seal(), at).unwrap();
        prop_assert_eq!(header.kind, Kind::Listed);
        prop_assert_eq!(again, list);
    }

    #[test]
    fn record_reader_returns_an_error_for_arbitrary_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..400), magic: bool) {
        if magic && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&MAGIC);
        }
        prop_assert!(verify_record(&bytes, seal(), AT).is_err());
        prop_assert!(step(&bytes, seal(), AT).is_err());
    }

    #[test]
    fn record_reader_does_not_panic_on_arbitrary_fields_with_valid_checksums(
        mut bytes in prop::collection::vec(any::<u8>(), RECORD_HEADER_BYTES..400),
        small: bool,
        (extents, meta) in (0..4_u32, 0..64_u32),
    ) {
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[60..64].copy_from_slice(&1_u32.to_le_bytes());
        if small {
            bytes[48..52].copy_from_slice(&160_u32.to_le_bytes());
            bytes[52..56].copy_from_slice(&meta.to_le_bytes());
            bytes[56..60].copy_from_slice(&extents.to_le_bytes());
            let end = (RECORD_HEADER_BYTES + extents as usize * EXTENT_REF_BYTES + meta as usize).next_multiple_of(16);
            if end <= bytes.len() {
                let sum = seal().sum(AT + 80, &bytes[80..end]);
                bytes[64..72].copy_from_slice(&sum.to_le_bytes());
            }
        }
        let sum = seal().sum(AT, &bytes[..72]);
        bytes[72..80].copy_from_slice(&sum.to_le_bytes());
        let _ = verify_record(&bytes, seal(), AT);
    }
}
