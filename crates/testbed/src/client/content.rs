//! Content as a function of target and offset, so that whoever holds a target can check every byte
//! of a response, of a part of one, or of one put together from parts.
//!
//! A page of 4 KiB is a piece of one table of random bytes; where the piece begins is a hash of
//! target and page. Pages are copied and compared by the platform's fastest routine, also in a
//! build without optimisation, and two pages of all targets are equal once in a million.

use std::sync::OnceLock;

const PAGE_BYTES: u64 = 4096;

/// Places where a page may begin in the table.
const STARTS: u64 = 1 << 20;

/// The content of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    seed: u64,
}

impl Content {
    /// `target` is path and query, as in a request line.
    pub(crate) fn of(target: &str) -> Self {
        // FNV-1a: short, and the same in every run
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let seed = target.bytes().fold(0xcbf2_9ce4_8422_2325, step);
        Self { seed }
    }

    /// Differs for every target: good as an entity tag.
    pub(crate) fn seed(self) -> u64 {
        self.seed
    }

    /// Writes what the content has at `offset`.
    pub(crate) fn fill(self, offset: u64, out: &mut [u8]) {
        let mut filled = 0;
        while filled < out.len() {
            let piece = self.piece(offset + filled as u64);
            let length = piece.len().min(out.len() - filled);
            out[filled..filled + length].copy_from_slice(&piece[..length]);
            filled += length;
        }
    }

    /// Whether these bytes are what the content has at `offset`.
    pub(crate) fn is_at(self, offset: u64, bytes: &[u8]) -> bool {
        let mut checked = 0;
        while checked < bytes.len() {
            let piece = self.piece(offset + checked as u64);
            let length = piece.len().min(bytes.len() - checked);
            if bytes[checked..checked + length] != piece[..length] {
                return false;
            }
            checked += length;
        }
        true
    }

    /// From `offset` to the end of its page.
    fn piece(self, offset: u64) -> &'static [u8] {
        let start = mix(self.seed ^ mix(offset / PAGE_BYTES)) % STARTS;
        let from = index(start + offset % PAGE_BYTES);
        &table()[from..index(start + PAGE_BYTES)]
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a place in the table fits")
}

/// The finaliser of splitmix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let words = (STARTS + PAGE_BYTES) / 8;
        (0..words)
            .flat_map(|word| mix(word).to_le_bytes())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(target: &str, offset: u64, length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        Content::of(target).fill(offset, &mut out);
        out
    }

    #[test]
    fn part_equals_the_same_bytes_of_the_whole_content() {
        let whole = bytes("/a", 0, 20_000);
        for (offset, length) in [(0, 1), (4095, 2), (4096, 4096), (5000, 15_000)] {
            let end = offset + length;
            assert_eq!(bytes("/a", offset as u64, length), whole[offset..end]);
            assert!(Content::of("/a").is_at(offset as u64, &whole[offset..end]));
        }
    }

    #[test]
    fn byte_that_is_wrong_misplaced_or_of_another_target_is_detected() {
        let content = Content::of("/a");
        let mut part = bytes("/a", 8000, 1000);
        assert!(!content.is_at(8001, &part) && !content.is_at(8000 - 4096, &part));
        assert!(!Content::of("/b").is_at(8000, &part));
        part[999] ^= 1;
        assert!(!content.is_at(8000, &part));
    }
}
