use super::*;

#[test]
fn value_of_two_parts_is_one_value_and_keeps_the_limits() {
    let mut pairs = Pairs::of([("a", "1")]).unwrap();
    pairs.add_joined(b"b", [b"host", b":80"]).unwrap();
    assert_eq!(pairs, Pairs::of([("a", "1"), ("b", "host:80")]).unwrap());
    assert_eq!(Pairs::decode(&pairs.encode()), Ok(pairs.clone()));
    let half = vec![b'x'; PAIRS_BYTES_MAX / 2];
    let before = pairs.clone();
    assert!(pairs.add_joined(b"c", [&half, &half]).is_err());
    assert_eq!(pairs, before);
}

#[test]
fn form_is_written_only_into_a_place_of_its_size() {
    let pairs = Pairs::of([("a", "1"), ("", "")]).unwrap();
    for len in [0, pairs.encoded_len() - 1, pairs.encoded_len() + 1] {
        assert_eq!(pairs.encode_into(&mut vec![0; len]), None);
    }
    let mut place = vec![0xff; pairs.encoded_len()];
    assert_eq!(pairs.encode_into(&mut place), Some(()));
    assert_eq!(place, pairs.encode());
    assert_eq!(Pairs::new().encode_into(&mut []), Some(()));
}
use proptest::prelude::*;

/// `{"a": "1", "b": "22"}`, as the Rust SDK writes it.
const EXAMPLE: &[u8] = &[
    2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, b'a', 0, b'1', 0, b'b', 0, b'2',
    b'2', 0,
];

fn example() -> Pairs {
    Pairs::of([("a", "1"), ("b", "22")]).unwrap()
}

fn fields(pairs: &Pairs) -> Vec<(&str, &str)> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    pairs.iter().map(|(n, v)| (text(n), text(v))).collect()
}

#[test]
fn map_has_the_bytes_of_the_sdk() {
    assert_eq!(example().encode(), EXAMPLE);
    assert_eq!(example().encoded_len(), EXAMPLE.len());
    assert_eq!(Pairs::decode(EXAMPLE), Ok(example()));
}

#[test]
fn empty_map_is_no_byte_or_one_zero_or_a_count_of_zero() {
    for bytes in [&[][..], &[0], &[0, 0, 0, 0]] {
        assert_eq!(Pairs::decode(bytes), Ok(Pairs::new()));
    }
    assert!(Pairs::new().encode().is_empty());
}

#[test]
fn every_beginning_of_a_map_is_refused() {
    for end in 2..EXAMPLE.len() {
        let error = Pairs::decode(&EXAMPLE[..end]).unwrap_err();
        assert!(matches!(error, PairsError::Truncated { .. }), "{end}");
    }
}

#[test]
fn missing_terminator_and_trailing_bytes_are_refused() {
    let mut bytes = EXAMPLE.to_vec();
    bytes[21] = 1;
    assert_eq!(
        Pairs::decode(&bytes),
        Err(PairsError::Unterminated { at: 21 })
    );
    let longer = [EXAMPLE, &[0]].concat();
    assert_eq!(
        Pairs::decode(&longer),
        Err(PairsError::Trailing { at: EXAMPLE.len() })
    );
}

#[test]
fn count_and_lengths_beyond_the_bytes_are_refused() {
    let million = 1_000_000_u32.to_le_bytes();
    assert_eq!(
        Pairs::decode(&million),
        Err(PairsError::TooMany { count: 1_000_000 })
    );
    let mut bytes = EXAMPLE.to_vec();
    bytes[4..8].fill(0xff);
    assert_eq!(
        Pairs::decode(&bytes),
        Err(PairsError::Truncated {
            at: 20,
            len: 0xffff_ffff
        })
    );
}

#[test]
fn field_beyond_the_count_is_refused() {
    let mut pairs = Pairs::new();
    for number in 0..PAIRS_MAX {
        pairs.add(number.to_string().as_bytes(), b"").unwrap();
    }
    assert_eq!(Pairs::decode(&pairs.encode()), Ok(pairs.clone()));
    let before = pairs.clone();
    assert_eq!(
        pairs.add(b"x", b""),
        Err(PairsError::TooMany {
            count: PAIRS_MAX + 1
        })
    );
    assert_eq!(pairs, before);
    pairs.replace(b"0", b"1").unwrap();
}

#[test]
fn field_beyond_the_size_is_refused() {
    let largest = PAIRS_BYTES_MAX - COUNT_BYTES - PAIR_EXTRA_BYTES - 1;
    let mut pairs = Pairs::new();
    pairs.add(b"a", &vec![b'x'; largest]).unwrap();
    assert_eq!(pairs.encode().len(), PAIRS_BYTES_MAX);
    assert_eq!(Pairs::decode(&pairs.encode()), Ok(pairs.clone()));
    let bytes = PAIRS_BYTES_MAX + 1;
    let more = vec![b'x'; largest + 1];
    assert_eq!(
        pairs.replace(b"a", &more),
        Err(PairsError::TooLarge { bytes })
    );
    assert_eq!(
        Pairs::new().add(b"a", &more),
        Err(PairsError::TooLarge { bytes })
    );
    pairs.replace(b"A", b"y").unwrap();
    assert_eq!(fields(&pairs), [("A", "y")]);
}

#[test]
fn replaced_field_is_one_and_stays_in_its_place() {
    let mut pairs = Pairs::of([("a", "1"), ("b", "2"), ("A", "3"), ("c", "4")]).unwrap();
    pairs.replace(b"a", b"5").unwrap();
    assert_eq!(fields(&pairs), [("a", "5"), ("b", "2"), ("c", "4")]);
    pairs.replace(b"d", b"6").unwrap();
    assert_eq!(pairs.get(b"D"), Some(&b"6"[..]));
    assert!(pairs.remove(b"B"));
    assert!(!pairs.remove(b"b"));
    assert_eq!(fields(&pairs), [("a", "5"), ("c", "4"), ("d", "6")]);
    assert_eq!(pairs.encode().len(), pairs.encoded_len());
}

proptest! {
    #[test]
    fn what_is_decoded_has_the_same_bytes_again(
        bytes in proptest::collection::vec(prop_oneof![Just(0_u8), 0_u8..8, any::<u8>()], 0..80),
    ) {
        if let Ok(pairs) = Pairs::decode(&bytes) {
            if pairs.is_empty() {
                prop_assert!(bytes.iter().all(|&byte| byte == 0) && bytes.len() <= 4);
            } else {
                prop_assert_eq!(pairs.encode(), bytes);
            }
        }
    }

    #[test]
    fn damaged_map_is_refused_or_has_the_same_bytes_again(at in 0..EXAMPLE.len(), byte: u8) {
        let mut bytes = EXAMPLE.to_vec();
        bytes[at] = byte;
        if let Ok(pairs) = Pairs::decode(&bytes) {
            prop_assert_eq!(pairs.encode(), bytes);
        }
    }
}

#[test]
fn field_that_is_replaced_again_and_again_takes_bounded_memory() {
    let mut pairs = Pairs::of([("x-a", "1"), ("x-b", "2")]).unwrap();
    let value = vec![b'v'; 1000];
    for _ in 0..1000 {
        pairs.replace(b"X-A", &value).unwrap();
        assert!(pairs.bytes.len() <= 2 * UNUSED_BYTES_MAX);
    }
    let expected = [(&b"X-A"[..], &value[..]), (b"x-b", b"2")];
    assert!(pairs.iter().eq(expected));
    assert_eq!(pairs, Pairs::of(expected).unwrap());
}

#[test]
fn cleared_map_is_as_a_new_one_and_names_can_be_lowered() {
    let mut pairs = Pairs::of([("a", "1")]).unwrap();
    pairs.clear();
    assert_eq!(pairs, Pairs::new());
    pairs.add_in_lower_case(b"X-A", b"VALUE").unwrap();
    assert_eq!(pairs, Pairs::of([("x-a", "VALUE")]).unwrap());
}
