//! Invariant: no bytes make the readers of what frames a store (superblock, segment header, table,
//! trailer, purge entry) panic or take more than their limits; what they accept says the same when
//! it is written again and read.
//!
//! A fuzzer does not guess checksums: the first byte of the input says which item it is and whether
//! its checksum is put right before it is read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_disk::format::{
    JOURNAL_ENTRY_BYTES, JournalContents, PAGE_BYTES, PurgeEntry, Seal, SegmentHeader, StoreId,
    Superblock, TRAILER_BYTES, Trailer, Volume, decode_table, encode_table, table_bytes,
};

const AT: u64 = 1 << 20;

const VOLUME: Volume = Volume {
    store: StoreId([7; 16]),
    directory: 0,
};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else {
        return;
    };
    let mut bytes = text.to_vec();
    let right = choice & 8 == 0;
    let seal = VOLUME.segment(1);
    match choice % 5 {
        0 => table(&mut bytes, right, seal),
        1 => trailer(&mut bytes, right, seal),
        2 => purge_entry(&mut bytes, right),
        3 => segment_header(&mut bytes, right),
        _ => {
            if let Ok(found) = Superblock::decode(&bytes) {
                Superblock::decode(&found.encode()).expect("the same again");
            }
        }
    }
});

fn table(bytes: &mut [u8], right: bool, seal: Seal) {
    if right {
        begin_with(bytes, *b"WEIR-TAB");
        let entries = bytes.get(8..10).map_or(0, |two| usize::from(two[0]) % 16);
        if let Some(count) = bytes.get_mut(8..12) {
            count.copy_from_slice(&(entries as u32).to_le_bytes());
        }
        right_sum(bytes, table_bytes(entries), seal, AT);
    }
    if let Ok(found) = decode_table(bytes, seal, AT) {
        let again = encode_table(seal, AT, &found);
        assert_eq!(decode_table(&again, seal, AT), Ok(found));
    }
}

fn trailer(bytes: &mut [u8], right: bool, seal: Seal) {
    if right {
        begin_with(bytes, *b"WEIR-END");
        right_sum(bytes, TRAILER_BYTES, seal, AT);
    }
    if let Ok(found) = Trailer::decode(bytes, seal, AT) {
        assert_eq!(
            Trailer::decode(&found.encode(seal, AT), seal, AT),
            Ok(found)
        );
    }
}

fn purge_entry(bytes: &mut [u8], right: bool) {
    let seal = VOLUME.journal();
    if right {
        begin_with(bytes, *b"WEIR-PUR");
        right_sum(bytes, JOURNAL_ENTRY_BYTES, seal, AT);
    }
    if let Ok((found, edition)) = PurgeEntry::decode(bytes, seal, AT) {
        assert_eq!(
            PurgeEntry::decode(&found.encode(seal, AT, edition), seal, AT),
            Ok((found, edition))
        );
    }
    // the copies of a journal: whatever they are, what one of them has whole is read
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let both = JournalContents::read([Some(first), Some(second)], seal);
    assert!(both.lost.is_some() || !both.entries.is_empty());
}

/// The input is what stands in the header's first bytes, for it to be short.
fn segment_header(bytes: &mut Vec<u8>, right: bool) {
    bytes.resize(PAGE_BYTES, 0);
    if right {
        begin_with(bytes, *b"WEIR-SEG");
        bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&VOLUME.directory.to_le_bytes());
        bytes[16..32].copy_from_slice(&VOLUME.store.0);
        bytes[32..40].copy_from_slice(&1_u64.to_le_bytes());
        right_sum(bytes, PAGE_BYTES, VOLUME.segment(1), 0);
    }
    if let Ok(found) = SegmentHeader::decode(bytes, VOLUME, 1) {
        assert_eq!(SegmentHeader::decode(&found.encode(), VOLUME, 1), Ok(found));
    }
}

fn begin_with(bytes: &mut [u8], magic: [u8; 8]) {
    if let Some(begin) = bytes.first_chunk_mut() {
        *begin = magic;
    }
}

/// The checksum in the last eight bytes of an item.
fn right_sum(bytes: &mut [u8], length: usize, seal: Seal, at: u64) {
    if let Some(item) = bytes.get_mut(..length) {
        let (covered, sum) = item.split_at_mut(length - 8);
        sum.copy_from_slice(&seal.sum(at, covered).to_le_bytes());
    }
}
