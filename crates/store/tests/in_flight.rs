//! Content that grows at several places, beside a reference model: an array with every byte.

mod support;

use std::sync::Arc;
use support::{Random, Shown, content};
use weir_policy::fetch::{ByteSpan, ByteSpans};
use weir_store::{
    BLOCK_BYTES, Block, InFlightContent, InFlightPiece, STORED_SPANS_MAX, StoredContent,
    WritePositionId, allocated_bytes,
};

const BLOCK: u64 = BLOCK_BYTES as u64;

fn span(from: u64, to: u64) -> ByteSpan {
    ByteSpan { from, to }
}

/// Fills `from..to`, as the content of `seed` has it.
fn fill(in_flight: &mut InFlightContent, seed: u64, from: u64, to: u64) {
    let place = in_flight.open(span(from, to));
    push_all(in_flight, place, seed, from, to);
    in_flight.close(place);
}

fn push_all(
    in_flight: &mut InFlightContent,
    place: WritePositionId,
    seed: u64,
    from: u64,
    to: u64,
) {
    let mut at = from;
    while at < to {
        let end = (at + 10_000).min(to);
        in_flight.push(place, content(seed, at..end));
        at = end;
    }
}

fn sealed(in_flight: &InFlightContent, at: u64) -> (Block, usize) {
    match in_flight.read(at) {
        Some(InFlightPiece::Sealed { block, from }) => (block, from),
        other => panic!("{other:?} at {at}"),
    }
}

/// How many pieces there are from `from` to `to`.
fn pieces(body: &StoredContent, from: u64, to: u64) -> usize {
    let (mut at, mut count) = (from, 0);
    while at < to {
        let bytes = body.at(at).len() as u64;
        assert_ne!(bytes, 0, "nothing at {at}");
        at += bytes;
        count += 1;
    }
    count
}

/// Content, and which of it has come.
struct Reference {
    bytes: Vec<u8>,
    has: Vec<bool>,
    present: ByteSpans,
}

impl Reference {
    fn new(length: u64) -> Self {
        let length = usize::try_from(length).expect("a length");
        Self {
            bytes: vec![0; length],
            has: vec![false; length],
            present: ByteSpans::new(),
        }
    }

    /// Takes bytes that begin at `from`; how many are new, which are those at places where nothing
    /// was.
    fn push(&mut self, from: u64, bytes: &[u8]) -> u64 {
        let places = usize::try_from(from).expect("an offset")..self.bytes.len();
        let mut taken = 0;
        for (place, byte) in places.zip(bytes) {
            if !self.has[place] {
                (self.bytes[place], self.has[place]) = (*byte, true);
                taken += 1;
            }
        }
        let to = (from + bytes.len() as u64).min(self.bytes.len() as u64);
        assert_eq!(self.present.insert(span(from, to.max(from))), taken);
        taken
    }

    /// Compares with what is read at each offset.
    fn check<Bytes: AsRef<[u8]>>(&self, what: &str, at: impl Fn(u64) -> Bytes) {
        let mut offset = 0;
        while offset < self.bytes.len() {
            let bytes = at(offset as u64);
            let bytes = bytes.as_ref();
            if bytes.is_empty() {
                let next = self.present.next_present(offset as u64);
                assert_ne!(next, Some(offset as u64), "{what} lacks {offset}");
                let next = next.unwrap_or(self.bytes.len() as u64);
                offset = usize::try_from(next).expect("an offset");
                continue;
            }
            let end = offset + bytes.len();
            assert!(self.present.contains(span(offset as u64, end as u64)));
            assert!(&self.bytes[offset..end] == bytes, "{what} from {offset}");
            offset = end;
        }
        assert!(at(offset as u64).as_ref().is_empty(), "{what} has no end");
    }
}

/// A place, its next byte, and whose bytes it brings: so it matters whose were first.
struct Front {
    place: WritePositionId,
    at: u64,
    source: u64,
}

struct Comparison {
    length: u64,
    is_known: bool,
    in_flight: InFlightContent,
    reference: Reference,
    fronts: Vec<Front>,
}

impl Comparison {
    fn new(random: &mut Random) -> Self {
        let length_max = if random.one_in(4) { 4 * BLOCK } else { 3000 };
        let length = 1 + random.below(length_max);
        let is_known = !random.one_in(3);
        Self {
            length,
            is_known,
            in_flight: InFlightContent::new(is_known.then_some(length), None),
            reference: Reference::new(length),
            fronts: Vec::new(),
        }
    }

    fn step(&mut self, random: &mut Random, step: u64) {
        match random.below(10) {
            0..3 if self.fronts.len() < 6 => {
                let from = random.below(self.length);
                let to = from + 1 + random.below(self.length - from);
                let expected = if random.one_in(3) { u64::MAX } else { to };
                self.fronts.push(Front {
                    place: self.in_flight.open(span(from, expected)),
                    at: from,
                    source: step,
                });
            }
            0..8 if !self.fronts.is_empty() => self.push(random),
            8 if !self.fronts.is_empty() => {
                let index = random.length(self.fronts.len());
                let Front { place, at, .. } = self.fronts.swap_remove(index);
                self.in_flight.close(place);
                assert_eq!(self.in_flight.push(place, content(0, at..at + 1)), 0);
            }
            9 if random.one_in(4) => self.finish(random),
            _ => {}
        }
    }

    fn push(&mut self, random: &mut Random) {
        let index = random.length(self.fronts.len());
        let Front { place, at, source } = &mut self.fronts[index];
        let mut end = *at + 1 + random.below(1 + self.length / 4).min(BLOCK - 1);
        if !self.is_known {
            // nothing is beyond the end where only the next hop knows it
            end = end.min(self.length).max(*at);
        }
        let bytes = content(*source, *at..end);
        let foreseen = self.in_flight.held_after(*place, bytes.len());
        let taken = self.in_flight.push(*place, bytes);
        assert_eq!(taken, self.reference.push(*at, bytes));
        assert_eq!(self.in_flight.held_bytes(), foreseen);
        *at = end;
    }

    /// Makes a body, and goes on with what grew or with another that inherits from it.
    fn finish(&mut self, random: &mut Random) {
        let body = self.in_flight.finish();
        self.reference.check("the body", |at| body.at(at));
        if random.one_in(2) {
            self.fronts.clear();
            let known = self.is_known.then_some(self.length);
            self.in_flight = InFlightContent::new(known, Some(&body));
        }
    }

    fn check(&self) {
        assert_eq!(self.in_flight.present(), self.reference.present);
        assert_eq!(
            self.in_flight.present_bytes(),
            self.reference.present.total()
        );
        let read = |at| self.in_flight.read(at);
        let bytes = |at| read(at).map_or(Vec::new(), |slice| slice.bytes().to_vec());
        self.reference.check("what grows", bytes);
    }
}

#[test]
fn bytes_read_are_the_first_that_were_received_at_each_offset() {
    for seed in 0..400 {
        let _shown = Shown(format!("seed {seed}"));
        let mut random = Random::new(seed);
        let mut comparison = Comparison::new(&mut random);
        for step in 0..80 {
            comparison.step(&mut random, step);
            comparison.check();
        }
    }
}

#[test]
fn block_of_known_length_is_allocated_once_in_its_exact_size() {
    for (length, first) in [(1000, 1000), (BLOCK, BLOCK), (BLOCK + 1, BLOCK)] {
        let mut in_flight = InFlightContent::new(Some(length), None);
        let place = in_flight.open(span(0, u64::MAX));
        let empty = in_flight.held_bytes() as u64;
        in_flight.push(place, content(1, 0..1));
        let held = in_flight.held_bytes() as u64 - empty;
        assert_eq!(
            held,
            allocated_bytes(usize::try_from(first).unwrap() + 16) as u64
        );
        let at = match in_flight.read(0) {
            Some(InFlightPiece::Open(bytes)) => bytes.as_ptr(),
            other => panic!("{other:?}"),
        };
        push_all(&mut in_flight, place, 1, 1, length);
        let (block, from) = sealed(&in_flight, 0);
        assert!(block[from..].as_ptr() == at, "{length} bytes were moved");
        assert_eq!(block.len() as u64, first);
    }
    // a span of a longer content is as long as the span
    let mut in_flight = InFlightContent::new(Some(1 << 40), None);
    fill(&mut in_flight, 1, 5000, 6000);
    assert_eq!(sealed(&in_flight, 5000).0.len(), 1000);
}

#[test]
fn sealed_or_inherited_block_is_shared_without_a_copy() {
    let length = 3 * BLOCK;
    let mut in_flight = InFlightContent::new(Some(length), None);
    fill(&mut in_flight, 1, 0, BLOCK);
    let read = sealed(&in_flight, 77);
    assert_eq!(read.1, 77);
    let body = in_flight.finish();
    assert!(body.at(0).as_ptr() == read.0.as_ptr());

    let mut resumed = InFlightContent::new(None, Some(&body));
    assert_eq!(resumed.complete_length(), Some(length));
    assert_eq!(resumed.held_bytes(), body.charged_bytes());
    fill(&mut resumed, 1, BLOCK, length);
    let whole = resumed.finish();
    assert!(whole.is_whole() && !body.is_whole());
    assert!(Arc::ptr_eq(&sealed(&resumed, 5).0, &read.0));
    assert!(whole.at(0).as_ptr() == read.0.as_ptr());
}

#[test]
fn part_is_inherited_only_for_the_same_complete_length() {
    let mut in_flight = InFlightContent::new(Some(2000), None);
    fill(&mut in_flight, 1, 0, 1000);
    let body = in_flight.finish();
    let of = |length| InFlightContent::new(length, Some(&body)).present_bytes();
    assert_eq!((of(None), of(Some(2000)), of(Some(2001))), (1000, 1000, 0));
    // one that was sent without a length, and cut
    let mut in_flight = InFlightContent::new(None, None);
    fill(&mut in_flight, 1, 0, 1000);
    let body = in_flight.finish();
    let of = |length| InFlightContent::new(length, Some(&body)).present_bytes();
    assert_eq!((of(None), of(Some(1000)), of(Some(999))), (1000, 1000, 0));
}

#[test]
fn small_adjacent_pieces_are_merged_and_large_ones_are_not_copied() {
    let mut in_flight = InFlightContent::new(Some(10 * BLOCK), None);
    // from the last to the first
    for number in (0..500).rev() {
        fill(&mut in_flight, 1, number * 100, number * 100 + 100);
    }
    fill(&mut in_flight, 1, BLOCK, 2 * BLOCK);
    fill(&mut in_flight, 1, 2 * BLOCK, 2 * BLOCK + 10);
    let large = sealed(&in_flight, BLOCK).0;
    let body = in_flight.finish();
    assert_eq!(pieces(&body, 0, 50_000), 1);
    assert_eq!(pieces(&body, BLOCK, 2 * BLOCK + 10), 2);
    assert!(body.at(BLOCK).as_ptr() == large.as_ptr());
    // both sides of what fits a block
    for (second, expected) in [(BLOCK - 1000, 1), (BLOCK - 999, 2)] {
        let mut in_flight = InFlightContent::new(None, None);
        fill(&mut in_flight, 1, 0, 1000);
        fill(&mut in_flight, 1, 1000, 1000 + second);
        assert_eq!(pieces(&in_flight.finish(), 0, 1000 + second), expected);
    }
}

#[test]
fn stored_content_keeps_the_longest_ranges_up_to_the_limit() {
    let max = STORED_SPANS_MAX as u64;
    let mut in_flight = InFlightContent::new(Some(1 << 30), None);
    for number in 0..max {
        fill(&mut in_flight, 1, number * 100, number * 100 + 10 + number);
    }
    let body = in_flight.finish();
    assert_eq!(body.present().len() as u64, max);
    assert_eq!(body.present(), in_flight.present());

    fill(&mut in_flight, 1, 50_000, 50_011);
    let body = in_flight.finish();
    assert_eq!(body.present().len() as u64, max);
    assert!(
        body.holds(span(50_000, 50_011)),
        "it is longer than the first"
    );
    assert!(body.holds(span(100, 111)) && !body.holds(span(0, 1)));
    // who reads meanwhile misses nothing
    assert_eq!(in_flight.present().len() as u64, max + 1);
    assert!(in_flight.read(0).is_some());
}

#[test]
fn bytes_beyond_the_complete_length_are_ignored() {
    let mut in_flight = InFlightContent::new(Some(100), None);
    let place = in_flight.open(span(90, u64::MAX));
    assert_eq!(in_flight.push(place, content(1, 90..110)), 10);
    assert_eq!(in_flight.push(place, content(1, 110..120)), 0);
    assert_eq!(in_flight.read(99).map(|slice| slice.bytes().len()), Some(1));
    assert!(in_flight.read(100).is_none() && !in_flight.is_whole());
    let other = in_flight.open(span(0, 90));
    assert_eq!(in_flight.push(other, content(1, 0..100)), 90);
    assert!(in_flight.is_whole());
}

#[test]
fn content_is_whole_only_once_its_complete_length_is_set() {
    let mut in_flight = InFlightContent::new(None, None);
    fill(&mut in_flight, 1, 0, 5000);
    assert!(!in_flight.is_whole());
    let body = in_flight.finish();
    assert!(!body.is_whole() && body.complete_length().is_none());
    assert_eq!(body.len(), 5000);
    in_flight.set_complete_length(5000);
    assert!(in_flight.is_whole());
    let body = in_flight.finish().with_undelivered(7);
    assert_eq!(
        (body.complete_length(), body.is_whole()),
        (Some(5000), true)
    );
    assert_eq!(body.clone().undelivered_bytes(), 7);
}

#[test]
fn content_made_at_once_equals_content_received_in_steps() {
    for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1] {
        let bytes: Vec<u8> = (0..length).map(|at| content(1, at..at + 1)[0]).collect();
        let mut in_flight = InFlightContent::new(Some(length), None);
        fill(&mut in_flight, 1, 0, length);
        let (one, other) = (StoredContent::from(&bytes[..]), in_flight.finish());
        assert!(one.is_whole() && other.is_whole());
        assert_eq!(one.charged_bytes(), other.charged_bytes());
        for at in [0, length / 2, length] {
            assert_eq!(one.at(at), other.at(at), "{length} bytes from {at}");
        }
    }
}

#[test]
fn blocks_before_the_released_offset_are_freed_once_no_write_is_pending() {
    for is_inherited in [false, true] {
        let mut in_flight = InFlightContent::new(Some(6 * BLOCK), None);
        fill(&mut in_flight, 1, 0, 4 * BLOCK);
        if is_inherited {
            let body = in_flight.finish();
            in_flight = InFlightContent::new(Some(6 * BLOCK), Some(&body));
        }
        in_flight.start_write_behind();
        let blocks: Vec<_> = (0..4)
            .map(|index| Arc::downgrade(&sealed(&in_flight, index * BLOCK).0))
            .collect();
        let alive = || {
            blocks
                .iter()
                .filter(|block| block.strong_count() > 0)
                .count()
        };
        let held_bytes = in_flight.held_bytes();
        // one byte of a block that is wanted keeps it
        in_flight.release_before(3 * BLOCK - 1);
        assert_eq!(alive(), 4, "they are still to be written");
        in_flight.stop_write_behind();
        assert_eq!(alive(), 2);
        assert!(in_flight.held_bytes() <= held_bytes - 2 * BLOCK_BYTES);
        in_flight.release_before(3 * BLOCK);
        assert_eq!(alive(), 1);
        assert!(in_flight.read(0).is_none() && in_flight.read(3 * BLOCK).is_some());
        // they still count as present
        assert_eq!(in_flight.present_bytes(), 4 * BLOCK);
        // what comes now is not written either
        fill(&mut in_flight, 1, 4 * BLOCK, 5 * BLOCK);
        assert!(in_flight.next_unwritten().is_none());
        let last = Arc::downgrade(&sealed(&in_flight, 4 * BLOCK).0);
        in_flight.release_before(5 * BLOCK);
        assert_eq!((alive(), last.strong_count()), (0, 0));
    }
}
