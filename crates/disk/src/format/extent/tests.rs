use super::super::testing::{any_damage_is_an_error, seal};
use super::super::verify_extent;
use super::*;
use proptest::prelude::*;

const AT: u64 = 8192;
const KEY: Digest = Digest(1, 2);

fn extent(from: u64, content: &[&[u8]]) -> Vec<u8> {
    let mut bytes = encode_extent_header(seal(), AT, (KEY, BodyId(7)), from, content).unwrap();
    for block in content {
        bytes.extend_from_slice(block);
    }
    bytes.resize(padded(bytes.len()), 0);
    bytes
}

#[test]
fn damaged_run_is_refused() {
    for len in [1, 15, 16, 17] {
        let content = vec![0xa5; len];
        any_damage_is_an_error(&extent(5, &[&content]), |bytes| {
            verify_extent(bytes, seal(), AT).map(drop)
        });
    }
}

#[test]
fn run_chunk_is_checked_against_the_checksum_of_its_own_place() {
    let content: Vec<u8> = vec![0; CHUNK_BYTES * 2 + 1];
    let bytes = extent(0, &[&content]);
    let header = ExtentHeader::decode(&bytes, seal(), AT).unwrap();
    assert_eq!(header.chunks(), 3);
    assert_eq!(header.chunk(2), Some((131_072, 1)));
    assert_eq!(header.chunk(3), None);
    assert_eq!(header.chunk(usize::MAX), None);
    // the same bytes in another place of the file have another checksum
    assert_ne!(header.sums[0], header.sums[1]);
    let chunk = &content[..CHUNK_BYTES];
    assert_eq!(header.check_chunk(seal(), AT, 0, chunk), Ok(()));
    assert_eq!(header.check_chunk(seal(), AT, 1, chunk), Ok(()));
    assert_eq!(header.check_chunk(seal(), AT, 2, chunk), Ok(()));
    for (index, chunk) in [(3, chunk), (1, &chunk[1..]), (2, &[][..]), (2, &[1][..])] {
        let checked = header.check_chunk(seal(), AT, index, chunk);
        assert!(checked.is_err(), "{index}");
    }
}

#[test]
fn run_of_another_key_body_id_or_range_is_refused() {
    let bytes = extent(5, &[b"content"]);
    let header = ExtentHeader::decode(&bytes, seal(), AT).unwrap();
    let meant = ExtentRef {
        from: 5,
        len: 7,
        at: 8192,
        segment: seal().number(),
        body: BodyId(7),
    };
    assert_eq!(header.check_reference(KEY, &meant), Ok(()));
    let refused = |key, meant: ExtentRef| header.check_reference(key, &meant).unwrap_err();
    refused(Digest(1, 3), meant);
    refused(Digest(2, 2), meant);
    let body = BodyId(8);
    refused(KEY, ExtentRef { body, ..meant });
    refused(KEY, ExtentRef { from: 6, ..meant });
    refused(KEY, ExtentRef { len: 6, ..meant });
}

#[test]
fn run_without_content_or_over_the_length_limit_is_refused() {
    let made = |content: &[&[u8]]| encode_extent_header(seal(), AT, (KEY, BodyId(7)), 0, content);
    assert!(made(&[]).is_err());
    assert!(made(&[b"", b""]).is_err());
    let most = vec![0; EXTENT_BYTES_MAX as usize];
    assert_eq!(made(&[&most]).unwrap().len(), EXTENT_HEADER_BYTES_MAX);
    assert!(made(&[&most, b"x"]).is_err());
}

proptest! {
    #[test]
    fn run_header_round_trips_for_any_block_boundaries(
        from in 0..u64::MAX >> 1,
        sizes in prop::collection::vec(0..100_000_usize, 1..8),
        byte in any::<u8>(),
    ) {
        let content: Vec<Vec<u8>> = sizes.iter().map(|size| vec![byte; *size]).collect();
        let blocks: Vec<&[u8]> = content.iter().map(Vec::as_slice).collect();
        let bytes: usize = sizes.iter().sum();
        prop_assume!(bytes > 0);
        let whole = extent(from, &blocks);
        let header = verify_extent(&whole, seal(), AT).unwrap();
        prop_assert_eq!(header.bytes(), whole.len() as u64);
        prop_assert_eq!((header.key, header.body, header.from), (KEY, BodyId(7), from));
        prop_assert_eq!(header.len as usize, bytes);
        let in_one = extent(from, &[&content.concat()]);
        prop_assert_eq!(in_one, whole);
    }

    #[test]
    fn run_reader_returns_an_error_for_arbitrary_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..300), magic: bool) {
        if magic && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&MAGIC);
        }
        prop_assert!(verify_extent(&bytes, seal(), AT).is_err());
    }

    #[test]
    fn flipped_bit_in_a_run_of_two_chunks_is_detected(bit in 0..(CHUNK_BYTES + 100) * 8) {
        let content = vec![0x5a; CHUNK_BYTES + 10];
        let mut bytes = extent(0, &[&content]);
        prop_assume!(bit < bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(verify_extent(&bytes, seal(), AT).is_err());
    }
}
