//! Invariant: no bytes make the readers of records and extents panic or take more than their
//! limits; what they accept is intact to the last byte, so that any flipped bit of it is refused.
//!
//! A fuzzer does not guess checksums: the first byte of the input says which of them are put right
//! before the bytes are read. The rest is what lies in the segment.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_disk::format::{
    EXTENT_REF_BYTES, RECORD_HEADER_BYTES, Seal, StoreId, Volume, step, verify_extent,
    verify_record,
};

const AT: u64 = 4096;

const TEXT_BYTES_MAX: usize = 256 * 1024;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else {
        return;
    };
    let mut bytes = text[..text.len().min(TEXT_BYTES_MAX)].to_vec();
    let volume = Volume {
        store: StoreId([7; 16]),
        directory: 0,
    };
    let seal = volume.segment(1);
    if choice & 1 == 0 {
        magic(&mut bytes, *b"WEIR-REC");
        if choice & 2 == 0 {
            right_tail(&mut bytes, seal);
        }
        right_sum(&mut bytes, 0, RECORD_HEADER_BYTES, seal);
    } else {
        magic(&mut bytes, *b"WEIR-RUN");
        let chunks = number(&bytes, 40).div_ceil(64 * 1024);
        right_sum(&mut bytes, 0, (56 + 8 * chunks).next_multiple_of(16), seal);
    }
    let _ = step(&bytes, seal, AT);
    if let Ok((header, _)) = verify_record(&bytes, seal, AT) {
        let whole = &mut bytes[..header.bytes as usize];
        refuses_a_flipped_bit(whole, choice, |bytes| {
            verify_record(bytes, seal, AT).is_err()
        });
    }
    if let Ok(header) = verify_extent(&bytes, seal, AT) {
        let whole = &mut bytes[..header.bytes() as usize];
        refuses_a_flipped_bit(whole, choice, |bytes| {
            verify_extent(bytes, seal, AT).is_err()
        });
    }
});

fn refuses_a_flipped_bit(bytes: &mut [u8], choice: u8, refuses: impl Fn(&[u8]) -> bool) {
    let place = usize::from(choice) * 31 % bytes.len();
    bytes[place] ^= 1 << (choice % 8);
    assert!(refuses(bytes), "a flipped bit at {place} was accepted");
    bytes[place] ^= 1 << (choice % 8);
}

fn magic(bytes: &mut [u8], magic: [u8; 8]) {
    if let Some(begin) = bytes.first_chunk_mut() {
        *begin = magic;
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    let field = bytes.get(at..at + 4).unwrap_or(&[0; 4]);
    field
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

/// The checksum of list and meta, and a length that fits them.
fn right_tail(bytes: &mut [u8], seal: Seal) {
    if bytes.len() < RECORD_HEADER_BYTES {
        return;
    }
    let (meta, extents) = (number(bytes, 52) % 512, number(bytes, 56) % 4);
    bytes[52..56].copy_from_slice(&(meta as u32).to_le_bytes());
    bytes[56..60].copy_from_slice(&(extents as u32).to_le_bytes());
    let end = (RECORD_HEADER_BYTES + extents * EXTENT_REF_BYTES + meta).next_multiple_of(16);
    if let Some(tail) = bytes.get(RECORD_HEADER_BYTES..end) {
        let sum = seal.sum(AT + RECORD_HEADER_BYTES as u64, tail);
        bytes[64..72].copy_from_slice(&sum.to_le_bytes());
    }
}

/// The checksum in the last eight bytes of an item.
fn right_sum(bytes: &mut [u8], begin: usize, length: usize, seal: Seal) {
    if let Some(item) = bytes.get_mut(begin..begin + length) {
        let (covered, sum) = item.split_at_mut(length - 8);
        sum.copy_from_slice(&seal.sum(AT + begin as u64, covered).to_le_bytes());
    }
}
