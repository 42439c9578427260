//! Invariant: a message of a node about what it holds is refused and changes nothing, or the
//! reader's version is at least the one from before in the same epoch, and every key of its
//! additions is held then.
//!
//! The input is two messages after each other: the first byte says how long the first one is, in
//! parts of 256.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_policy::route::{DigestKeys, DigestReader, HoldsIt, SealedKey};
use weir_policy::{Digest, Secret};

/// Bytes in front of the keys of a message with additions.
const HEAD_BYTES: usize = 30;
/// The place of the kind; 1: additions.
const KIND: usize = 9;

fn check(reader: &mut DigestReader, message: &[u8]) {
    let before = reader.version();
    let open = |_, key: &SealedKey| {
        let [store, tags] = [Secret(key.masked); 2];
        (key.check == [0; 16]).then_some(DigestKeys { store, tags })
    };
    match reader.take(message, open) {
        Err(_) => assert_eq!(reader.version(), before),
        Ok(()) => {
            let version = reader.version().expect("a digest was taken");
            if message[KIND] == 1 {
                let before = before.expect("additions have a digest before them");
                assert_eq!(version.epoch, before.epoch);
                assert!(version.additions >= before.additions);
                for key in message[HEAD_BYTES..].as_chunks::<16>().0 {
                    let (numbers, _) = key.as_chunks::<8>();
                    let [a, b] = [0, 1].map(|place| u64::from_le_bytes(numbers[place]));
                    assert_eq!(reader.holds(Digest(a, b)), HoldsIt::Yes);
                }
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&share, messages)) = input.split_first() else {
        return;
    };
    let mut reader = DigestReader::default();
    let (first, second) = messages.split_at(messages.len() * usize::from(share) / 256);
    check(&mut reader, first);
    check(&mut reader, second);
});
