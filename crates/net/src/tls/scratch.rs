//! Memory that the connections of a thread share: records are read, written and put together here.

use std::cell::RefCell;
use std::io::IoSlice;

/// Content that is encrypted at once, bytes: as much as one read takes.
pub(super) const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Records that are read at once, bytes. Behind the begin of a record that came before, there is
/// room for a whole one.
pub(super) const READ_BYTES_MAX: usize = 64 * 1024;

/// The largest record: 2^14 bytes of content, 2048 for what its encryption adds (RFC 5246 §6.2.3;
/// RFC 8446 §5.2 has 256), and its head.
pub(super) const RECORD_BYTES_MAX: usize = (1 << 14) + 2048 + 5;

/// More than what the encryption of a record adds to its content, bytes.
const OVERHEAD_BYTES: usize = 64;

/// Content of a record, bytes.
const FRAGMENT_BYTES: usize = 1 << 14;

/// A piece of content of so many bytes has records of its own. Of less, it shares one with what
/// follows, where both are copied side by side.
const OWN_RECORD_BYTES_MIN: usize = FRAGMENT_BYTES / 2;

/// Records that [`WRITE_BYTES_MAX`] make: all but the last two have so much content at least.
const RECORDS_MAX: usize = WRITE_BYTES_MAX / OWN_RECORD_BYTES_MIN + 2;

/// The memory of a thread.
pub(super) struct Scratch {
    /// Records that were read, or content that is put together.
    pub(super) input: Box<[u8]>,
    /// Records that are to be written.
    pub(super) output: Box<[u8]>,
}

impl Scratch {
    fn new() -> Self {
        Self {
            input: vec![0; RECORD_BYTES_MAX + READ_BYTES_MAX].into_boxed_slice(),
            output: vec![0; WRITE_BYTES_MAX + RECORDS_MAX * OVERHEAD_BYTES].into_boxed_slice(),
        }
    }
}

/// Lends the memory of this thread; not to be called again meanwhile.
pub(super) fn with_scratch<T>(use_it: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
    }
    SCRATCH.with_borrow_mut(use_it)
}

/// Content in pieces on its way into records.
pub(super) struct Fragments<'p, 's> {
    pieces: &'p [IoSlice<'s>],
    /// Bytes of the first piece that were taken.
    taken: usize,
    /// Bytes that may be taken.
    left: usize,
}

impl<'p, 's> Fragments<'p, 's> {
    /// The first [`WRITE_BYTES_MAX`] of `pieces`.
    pub(super) fn of(pieces: &'p [IoSlice<'s>]) -> Self {
        Self {
            pieces,
            taken: 0,
            left: WRITE_BYTES_MAX,
        }
    }

    /// What is encrypted next, in records of its own: the rest of a long piece as it is, or short
    /// ones put together in `room`. Empty at the end.
    pub(super) fn next<'r>(&mut self, room: &'r mut [u8]) -> &'r [u8]
    where
        'p: 'r,
    {
        let first = self.first();
        if first.len() >= OWN_RECORD_BYTES_MIN.min(self.left) {
            self.take(first.len());
            return first;
        }
        let mut filled = 0;
        while filled < FRAGMENT_BYTES {
            let piece = self.first();
            let length = piece.len().min(FRAGMENT_BYTES - filled);
            if length == 0 {
                break;
            }
            room[filled..filled + length].copy_from_slice(&piece[..length]);
            self.take(length);
            filled += length;
        }
        &room[..filled]
    }

    /// The rest of the first piece that has one, as far as it may be taken.
    fn first(&mut self) -> &'p [u8] {
        while let [first, rest @ ..] = self.pieces {
            let first: &'p [u8] = &first[self.taken..];
            if !first.is_empty() {
                return &first[..first.len().min(self.left)];
            }
            (self.pieces, self.taken) = (rest, 0);
        }
        &[]
    }

    fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        self.left -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fragments_are_the_pieces_in_order_and_fit_the_room_for_records(
            lengths in prop::collection::vec(prop_oneof![0_usize..20, 0_usize..9000, 0_usize..70_000], 0..20),
        ) {
            let mut next = 0_u8;
            let piece = |length: usize| -> Vec<u8> {
                let bytes = std::iter::repeat_with(|| { next = next.wrapping_mul(5).wrapping_add(7); next });
                bytes.take(length).collect()
            };
            let pieces: Vec<Vec<u8>> = lengths.into_iter().map(piece).collect();
            let all = pieces.concat();
            let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            let mut fragments = Fragments::of(&slices);
            let (mut came, mut records) = (Vec::new(), 0);
            let mut room = vec![0; FRAGMENT_BYTES];
            loop {
                let fragment = fragments.next(&mut room);
                if fragment.is_empty() {
                    break;
                }
                records += fragment.len().div_ceil(FRAGMENT_BYTES);
                came.extend_from_slice(fragment);
            }
            prop_assert_eq!(&came[..], &all[..all.len().min(WRITE_BYTES_MAX)]);
            prop_assert!(records <= RECORDS_MAX, "{} records", records);
        }
    }
}
