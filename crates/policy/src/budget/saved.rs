//! What of a link outlives a process, and how it is written: a sector of a file.
//!
//! ```text
//! 0    magic `weirlink`, version (8 bytes)
//! 16   digest of the link's name (8), sequence (8), wall time (8), flags (8)
//! 48   present period: start, end, booked bytes, bytes since entered (32)
//! 80   bytes since a clock step (8), begin of the last forgotten period or -2^63 (8),
//!      former periods (8)
//! 104  former periods: start, end, bytes (24 each)
//! 504  checksum (8)
//! ```
//!
//! Numbers are little-endian.

use super::period::Period;
use super::spending::{FORMER_PERIODS_MAX, PeriodBytes, Spending};
use crate::digest::{KeyHasher, Secret};
use alloc::vec::Vec;
use weir_semantics::Timestamp;

/// Bytes of a written state: a sector, so that a write is whole or not there on most devices.
pub const SAVED_BYTES: usize = 512;

const MAGIC_BYTES: [u8; 8] = *b"weirlink";
const MAGIC: u64 = u64::from_le_bytes(MAGIC_BYTES);
const VERSION: u64 = 1;
const CLEAN: u64 = 1;
const AFTER_CLOCK_STEP: u64 = 2;
/// No time.
const NONE: Timestamp = Timestamp(i64::MIN);
const CHECKSUM_AT: usize = SAVED_BYTES - 8;
/// A larger number of a write is none that this program gave: at a write each microsecond it takes
/// 290 000 years, and one more is always a number.
const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// The state of a link as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedLink {
    /// Number of the write; a later one has a larger number.
    pub sequence: u64,
    /// The wall clock at the write.
    pub wall: Timestamp,
    /// The process ended as it should: what is booked is what was spent.
    pub is_clean: bool,
    /// A step of the wall clock was not confirmed at the write.
    pub is_after_clock_step: bool,
    /// What was spent; of the present period, what was booked.
    pub(super) spending: Spending,
}

impl SavedLink {
    /// Bytes that are booked in the present period: a process that finds this takes them as spent.
    #[must_use]
    pub const fn booked_bytes(&self) -> u64 {
        self.spending.current.bytes
    }

    /// The bytes to write for the link called `name`.
    #[must_use]
    pub fn encode(&self, name: &str) -> [u8; SAVED_BYTES] {
        let mut out = [0; SAVED_BYTES];
        let mut words = out.chunks_exact_mut(8);
        let mut put = |word: u64| {
            if let Some(place) = words.next() {
                place.copy_from_slice(&word.to_le_bytes());
            }
        };
        let spending = &self.spending;
        put(MAGIC);
        put(VERSION);
        put(digest_of(name.as_bytes()));
        put(self.sequence);
        put(self.wall.0.cast_unsigned());
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        put(flag(self.is_clean, CLEAN) | flag(self.is_after_clock_step, AFTER_CLOCK_STEP));
        put(spending.current.period.start.0.cast_unsigned());
        put(spending.current.period.end.0.cast_unsigned());
        put(spending.current.bytes);
        put(spending.entered_bytes);
        put(spending.clock_step_bytes);
        put(spending.forgotten.unwrap_or(NONE).0.cast_unsigned());
        let former = spending.former.iter().take(FORMER_PERIODS_MAX);
        put(former.len() as u64);
        for period in former {
            put(period.period.start.0.cast_unsigned());
            put(period.period.end.0.cast_unsigned());
            put(period.bytes);
        }
        let checksum = digest_of(&out[..CHECKSUM_AT]);
        out[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads what was written for the link called `name`; `None` if this is something else, or
    /// damaged.
    #[must_use]
    pub fn decode(bytes: &[u8; SAVED_BYTES], name: &str) -> Option<Self> {
        let words = bytes.chunks_exact(8);
        let mut words = words.map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        let checksum = words.next_back()?;
        if checksum != digest_of(&bytes[..CHECKSUM_AT]) {
            return None;
        }
        let mut next = || words.next();
        let is_ours = [next()?, next()?, next()?] == [MAGIC, VERSION, digest_of(name.as_bytes())];
        if !is_ours {
            return None;
        }
        let (sequence, wall, flags) = (next()?, time(next()?), next()?);
        if sequence > SEQUENCE_MAX {
            return None;
        }
        let period = read_period(&mut next)?;
        let current = PeriodBytes {
            period,
            bytes: next()?,
        };
        let (entered_bytes, clock_step_bytes) = (next()?, next()?);
        let forgotten = Some(time(next()?)).filter(|start| *start != NONE);
        let count = usize::try_from(next()?).ok()?;
        if count > FORMER_PERIODS_MAX {
            return None;
        }
        let mut former = Vec::with_capacity(count);
        for _ in 0..count {
            former.push(PeriodBytes {
                period: read_period(&mut next)?,
                bytes: next()?,
            });
        }
        Some(Self {
            sequence,
            wall,
            is_clean: flags & CLEAN != 0,
            is_after_clock_step: flags & AFTER_CLOCK_STEP != 0,
            spending: Spending {
                current,
                entered_bytes,
                clock_step_bytes,
                former,
                forgotten,
            },
        })
    }
}

/// What a sector is to a link, by its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorKind {
    /// The state of this link, which may be damaged; or a write of one that a crash has cut.
    Own,
    /// The whole state of a link with another name.
    OfOther,
    /// Something else.
    Foreign,
}

impl SectorKind {
    /// What `bytes` are to the link called `name`.
    #[must_use]
    pub fn of(bytes: &[u8; SAVED_BYTES], name: &str) -> Self {
        if !bytes.starts_with(&MAGIC_BYTES) {
            return Self::Foreign;
        }
        let word = |at: usize| {
            let word = bytes[at..].first_chunk().copied();
            word.map_or(0, u64::from_le_bytes)
        };
        let is_whole = word(CHECKSUM_AT) == digest_of(&bytes[..CHECKSUM_AT]);
        if is_whole && word(16) != digest_of(name.as_bytes()) {
            return Self::OfOther;
        }
        Self::Own
    }
}

/// A period; `None` if it ends before it begins.
fn read_period(mut next: impl FnMut() -> Option<u64>) -> Option<Period> {
    let period = Period {
        start: time(next()?),
        end: time(next()?),
    };
    (period.start < period.end).then_some(period)
}

const fn time(word: u64) -> Timestamp {
    Timestamp(word.cast_signed())
}

/// It guards against damage and mistakes and not against forgery: the key is no secret.
fn digest_of(bytes: &[u8]) -> u64 {
    let mut hasher = KeyHasher::new(&Secret(*b"weir link budget"));
    hasher.part(bytes);
    hasher.finish().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn period_bytes() -> impl Strategy<Value = PeriodBytes> {
        (any::<i32>(), 1..i32::MAX, any::<u64>()).prop_map(|(start, length, bytes)| {
            let start = Timestamp(i64::from(start));
            let end = Timestamp(start.0 + i64::from(length));
            let period = Period { start, end };
            PeriodBytes { period, bytes }
        })
    }

    fn saved() -> impl Strategy<Value = SavedLink> {
        let former = proptest::collection::vec(period_bytes(), 0..=FORMER_PERIODS_MAX);
        let numbers = any::<(u64, i64, (bool, bool), u64, u64, Option<i32>)>();
        (period_bytes(), former, numbers).prop_map(|(current, former, numbers)| {
            let (sequence, wall, flags, entered_bytes, clock_step_bytes, forgotten) = numbers;
            SavedLink {
                sequence: sequence.min(SEQUENCE_MAX),
                wall: Timestamp(wall),
                is_clean: flags.0,
                is_after_clock_step: flags.1,
                spending: Spending {
                    current,
                    entered_bytes,
                    clock_step_bytes,
                    former,
                    forgotten: forgotten.map(|start| Timestamp(i64::from(start))),
                },
            }
        })
    }

    proptest! {
        #[test]
        fn written_state_is_read_as_it_was(saved in saved()) {
            let bytes = saved.encode("satellite");
            prop_assert_eq!(SavedLink::decode(&bytes, "satellite"), Some(saved));
            prop_assert_eq!(SectorKind::of(&bytes, "satellite"), SectorKind::Own);
            prop_assert_eq!(SavedLink::decode(&bytes, "other"), None);
            prop_assert_eq!(SectorKind::of(&bytes, "other"), SectorKind::OfOther);
        }

        #[test]
        fn damaged_state_is_not_read(saved in saved(), at in 0..SAVED_BYTES, by in 1..=255_u8) {
            let mut bytes = saved.encode("satellite");
            bytes[at] ^= by;
            prop_assert_eq!(SavedLink::decode(&bytes, "satellite"), None);
        }

        #[test]
        fn state_after_which_there_is_no_number_for_a_write_is_not_read(
            saved in saved(),
            sequence in prop_oneof![Just(u64::MAX), Just(u64::MAX - 1), SEQUENCE_MAX + 1..u64::MAX],
        ) {
            let last = SavedLink { sequence: SEQUENCE_MAX, ..saved };
            let bytes = last.encode("satellite");
            prop_assert_eq!(SavedLink::decode(&bytes, "satellite"), Some(last.clone()));
            let bytes = SavedLink { sequence, ..last }.encode("satellite");
            prop_assert_eq!(SavedLink::decode(&bytes, "satellite"), None);
        }
    }

    #[test]
    fn empty_sector_is_no_state() {
        assert_eq!(SavedLink::decode(&[0; SAVED_BYTES], "satellite"), None);
        assert_eq!(SavedLink::decode(&[255; SAVED_BYTES], "satellite"), None);
        let foreign = SectorKind::of(&[255; SAVED_BYTES], "satellite");
        assert_eq!(foreign, SectorKind::Foreign);
    }
}
