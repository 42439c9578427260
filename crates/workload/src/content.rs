//! Content as a function of seed, target, version and offset, so that a client that knows its
//! request can check every byte of the response, of a part of it, or of one put together from
//! parts, and neither side stores any.
//!
//! A page of 4 KiB is a piece of one table of random bytes; where the piece begins is a hash of
//! target, version and page. So bytes are made by the platform's copy and checked by its comparison
//! (one hash and one `memcmp` a page), and content may be of any length. Two pages of different
//! content are equal once in a million; a body of two pages once in 10^12.
//!
//! The Wisconsin Proxy Benchmark filled its bodies with `aaa[filenum]`. Ours differ at every byte
//! instead, since a body that repeats a short text hides a swapped or repeated block, and
//! compresses.

use crate::chance::mix;
use crate::target::Target;
use std::sync::OnceLock;

/// The content of one version of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    hash: u64,
}

impl Content {
    /// The content that this version of the target has under this seed. It has no end: how long the
    /// representation is says [`Site::describe`](crate::Site::describe).
    #[must_use]
    pub fn of(seed: u64, target: Target, version: u64) -> Self {
        Self {
            hash: mix(target.digest(seed) ^ mix(version)),
        }
    }

    /// Writes what the content has at `offset`.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        let mut filled = 0;
        while filled < out.len() {
            let piece = self.piece(offset.wrapping_add(filled as u64));
            let length = piece.len().min(out.len() - filled);
            out[filled..filled + length].copy_from_slice(&piece[..length]);
            filled += length;
        }
    }

    /// The offset in the content of the first of `bytes` that is not what the content has there, if
    /// they stood at `offset`; nothing if all are right.
    #[must_use]
    pub fn differs_at(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        let mut checked = 0;
        while checked < bytes.len() {
            let at = offset.wrapping_add(checked as u64);
            let piece = self.piece(at);
            let length = piece.len().min(bytes.len() - checked);
            let (found, right) = (&bytes[checked..checked + length], &piece[..length]);
            if found != right {
                let same = found.iter().zip(right).take_while(|(a, b)| a == b).count();
                return Some(at.wrapping_add(same as u64));
            }
            checked += length;
        }
        None
    }

    /// From `offset` to the end of its page.
    fn piece(&self, offset: u64) -> &'static [u8] {
        let start = index(mix(self.hash ^ mix(offset / PAGE_BYTES)) % STARTS);
        let within = index(offset % PAGE_BYTES);
        &table()[start + within..start + index(PAGE_BYTES)]
    }
}

const PAGE_BYTES: u64 = 4096;

/// Places where a page may begin in the table, one a byte. A power of two, and small enough that
/// the table stays in the second-level cache of most processors.
const STARTS: u64 = 1 << 20;

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a place in the table fits")
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
    use proptest::prelude::*;

    const TARGET: Target = Target {
        server: 1,
        number: 17,
    };

    fn bytes(content: Content, offset: u64, length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        content.fill(offset, &mut out);
        out
    }

    proptest! {
        #[test]
        fn part_equals_the_whole_content_at_the_same_offset(seed: u64, version: u64, from in 0_usize..9000, length in 0_usize..9000) {
            let content = Content::of(seed, TARGET, version);
            let whole = bytes(content, 0, from + length);
            let part = bytes(content, from as u64, length);
            prop_assert_eq!(&part, &whole[from..]);
            prop_assert_eq!(content.differs_at(from as u64, &part), None);
        }

        #[test]
        fn first_corrupt_byte_is_located_at_its_offset(offset in 0_u64..1 << 50, length in 1_usize..20_000, at: prop::sample::Index, flip in 1_u8..) {
            let content = Content::of(1, TARGET, 0);
            let mut part = bytes(content, offset, length);
            let at = at.index(length);
            part[at] ^= flip;
            prop_assert_eq!(content.differs_at(offset, &part), Some(offset + at as u64));
            // what follows may be as wrong as it likes
            part[at + 1..].iter_mut().for_each(|byte| *byte ^= flip);
            prop_assert_eq!(content.differs_at(offset, &part), Some(offset + at as u64));
        }

        #[test]
        fn content_differs_by_version_target_and_seed(seed: u64, server: u32, number: u64, version: u64, step in 1_u64..1000) {
            let target = Target { server, number };
            let here = bytes(Content::of(seed, target, version), 0, 64);
            let others = [
                Content::of(seed, target, version.wrapping_add(step)),
                Content::of(seed.wrapping_add(step), target, version),
                Content::of(seed, Target { server, number: number.wrapping_add(step) }, version),
                Content::of(seed, Target { server: server.wrapping_add(1), number }, version),
            ];
            for other in others {
                prop_assert!(other.differs_at(0, &here).is_some());
            }
        }
    }

    #[test]
    fn content_near_the_largest_offset_fills_without_overflow() {
        let content = Content::of(1, TARGET, 1);
        assert_eq!(bytes(content, u64::MAX - 3, 8).len(), 8);
    }
}
