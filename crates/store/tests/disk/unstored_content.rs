//! Content that passes by: it went to disk as it came, and is stored no more. What its readers have
//! behind them is freed, every block of it, also those that wait to be written.

use super::{Tiers, Transfer, content, until};
use std::sync::{Arc, Weak};
use weir_store::{BLOCK_BYTES, InFlightPiece};

const BLOCK: u64 = BLOCK_BYTES as u64;
const LENGTH: u64 = 12 << 20;

/// Bytes that are on their way to disk when it begins to pass by.
const BEFORE: u64 = 4 << 20;

impl Transfer {
    /// Pushes up to `to`; no room is reserved for what passes by.
    fn pass_to(&mut self, to: u64) {
        let bytes = content(self.number, self.at..to);
        self.in_flight.push(self.place, bytes);
        self.at = to;
    }

    /// The blocks in memory from `from` on, and where each ends.
    fn blocks(&self, from: u64) -> Vec<(u64, Weak<[u8]>)> {
        let starts = (from..self.at).step_by(BLOCK_BYTES);
        let sealed = starts.filter_map(|at| match self.in_flight.read(at) {
            Some(InFlightPiece::Sealed { block, .. }) => Some((at + BLOCK, Arc::downgrade(&block))),
            _ => None,
        });
        sealed.collect()
    }
}

/// Those of `blocks` that end at `to` or before and are in memory nevertheless.
fn alive(blocks: &[(u64, Weak<[u8]>)], to: u64) -> Vec<u64> {
    let ended = blocks.iter().filter(|(end, _)| *end <= to);
    let alive = ended.filter(|(_, block)| block.strong_count() > 0);
    alive.map(|(end, _)| *end).collect()
}

#[test]
fn blocks_of_content_no_longer_stored_are_freed_behind_its_readers() {
    let tiers = Tiers::new();
    let used_bytes = tiers.used_bytes();
    let mut transfer = tiers.begin(1, 1, LENGTH, (0, LENGTH), None);
    transfer.push_to(BEFORE);
    let before = transfer.blocks(0);
    assert!(!before.is_empty(), "nothing of it is in memory");
    let mut blocks = Vec::new();
    while transfer.at < LENGTH {
        let from = transfer.at;
        transfer.pass_to(from + BLOCK);
        let read = from - BLOCK;
        transfer.in_flight.release_before(read);
        transfer.reservation.pass(&mut transfer.in_flight);
        blocks.extend(transfer.blocks(from));
        assert_eq!(alive(&blocks, read), [], "at {from}");
        // what is not read yet stays
        assert_eq!(&transfer.in_flight.read(read).map(|_| ()), &Some(()));
    }
    assert!(blocks.len() as u64 >= (LENGTH - BEFORE) / BLOCK - 1);
    // what was handed over before is freed when the device has it
    until("the writer", || alive(&before, BEFORE).is_empty());
    transfer.in_flight.release_before(LENGTH);
    transfer.reservation.pass(&mut transfer.in_flight);
    assert_eq!(alive(&blocks, LENGTH), []);
    drop(transfer);
    assert_eq!(tiers.used_bytes(), used_bytes);
}
