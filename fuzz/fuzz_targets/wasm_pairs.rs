//! Invariant: bytes that a module hands over as a map of fields are refused, or are a map within
//! its limits that has the same bytes when it is written again (an empty one has several forms); no
//! field that is added, replaced or removed takes a map beyond its limits.
//!
//! The input is read whole; then its halves are a name and a value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wasm::{PAIRS_BYTES_MAX, PAIRS_MAX, Pairs};

fn check_limits(pairs: &Pairs) {
    let bytes = pairs.encode();
    assert_eq!(bytes.len(), pairs.encoded_len());
    assert!(bytes.len() <= PAIRS_BYTES_MAX && pairs.len() <= PAIRS_MAX);
    assert_eq!(Pairs::decode(&bytes).as_ref(), Ok(pairs));
}

fuzz_target!(|input: &[u8]| {
    let mut pairs = match Pairs::decode(input) {
        Ok(pairs) if pairs.is_empty() => {
            assert!(input.len() <= 4 && input.iter().all(|&byte| byte == 0));
            pairs
        }
        Ok(pairs) => {
            assert_eq!(pairs.encode(), input);
            pairs
        }
        Err(_) => Pairs::new(),
    };
    check_limits(&pairs);
    let (name, value) = input.split_at(input.len() / 2);
    if pairs.add(name, value).is_ok() {
        assert!(pairs.get(name).is_some());
    }
    check_limits(&pairs);
    if pairs.replace(name, name).is_ok() {
        assert_eq!(pairs.get(name), Some(name));
    }
    check_limits(&pairs);
    pairs.remove(name);
    assert_eq!(pairs.get(name), None);
    check_limits(&pairs);
});
