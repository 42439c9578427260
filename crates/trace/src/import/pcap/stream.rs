//! One direction of a connection, put together again (RFC 9293 §3.4).
//!
//! Places in it are offsets from its first byte, in 64 bits: sequence numbers wrap every 4 GiB.
//! What was seen first of a byte counts; what comes again is ignored. A hole is not skipped here
//! unless the caller says so.

use std::collections::{BTreeMap, VecDeque};

use super::limits::{AHEAD_BYTES_MAX, PIECE_BYTES, RESET_BYTES_MAX};

/// Bytes that came together, or are known not to have been captured.
#[derive(Debug)]
pub(super) struct Piece {
    /// When they could be read in order, microseconds since 1970.
    pub(super) time_us: i64,
    /// What their segment acknowledged of the other direction, a sequence number.
    pub(super) acknowledgement: Option<u32>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The bytes, and how many of them were used already.
    Captured {
        bytes: Vec<u8>,
        used: usize,
    },
    Missing(u64),
}

/// What is next in a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many that were not captured.
    Missing(u64),
}

/// How a segment's data relates to earlier data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// There was something new in it, or nothing at all.
    Fresh,
    /// All of it was there before: a retransmission, a keep-alive probe.
    Again,
    /// It is of another connection.
    Foreign,
}

/// One side's FIN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fin {
    /// The other side acknowledges it with this, or more.
    pub(super) acknowledged_by: u32,
    /// What it acknowledges itself.
    pub(super) acknowledges: Option<u32>,
}

impl Fin {
    /// Whether its sender had received the other one.
    pub(super) fn follows(&self, other: &Self) -> bool {
        self.acknowledges
            .is_some_and(|number| number.wrapping_sub(other.acknowledged_by).cast_signed() >= 0)
    }
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Whether any segment of its sender was captured.
    pub(super) was_seen: bool,
    /// The sender's first FIN.
    pub(super) fin: Option<Fin>,
    /// The sequence number of the first byte; `None` until it is known.
    base: Option<u32>,
    /// All before this offset is in `ready`, or was.
    next: u64,
    /// All before this offset was used.
    used: u64,
    ready: VecDeque<Piece>,
    /// Beyond a hole, by offset.
    ahead: BTreeMap<u64, Piece>,
    /// Where it ends, if a FIN was seen.
    end: Option<u64>,
    /// How far the other side has it.
    acknowledged: Option<u64>,
    /// Captured bytes in `ready` and `ahead`, and [`PIECE_BYTES`] for each piece.
    held_bytes: usize,
    /// When the latest byte of those in order came.
    latest_us: i64,
}

impl Stream {
    /// The first byte has this sequence number. Only the first call counts.
    pub(super) fn begin_at(&mut self, sequence: u32) {
        self.base.get_or_insert(sequence);
    }

    /// Forgets its beginning and its data.
    pub(super) fn forget_data(&mut self) {
        *self = Self {
            was_seen: self.was_seen,
            fin: self.fin,
            ..Self::default()
        };
    }

    /// Whether anything of it has come.
    pub(super) fn has_data(&self) -> bool {
        self.next > 0 || !self.ahead.is_empty()
    }

    /// Whether it is known where the stream begins.
    pub(super) const fn has_begun(&self) -> bool {
        self.base.is_some()
    }

    /// How many bytes it holds for later.
    pub(super) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The sequence number of what is [next](Self::front).
    pub(super) fn front_sequence(&self) -> u32 {
        self.sequence_of(self.used)
    }

    /// What has been used, and from where on something is missing: while both stay, nothing moves.
    pub(super) fn standing(&self) -> (u64, u64) {
        let hole = if self.hole_bytes().is_some() {
            self.next
        } else {
            0
        };
        (self.used, hole)
    }

    /// Whether the first byte has this sequence number.
    pub(super) fn begins_at(&self, sequence: u32) -> bool {
        self.base == Some(sequence)
    }

    /// Whether a sequence number is one that a reset of this connection would have.
    pub(super) fn is_near(&self, sequence: u32) -> bool {
        self.distance(sequence)
            .is_some_and(|distance| distance.unsigned_abs() <= RESET_BYTES_MAX)
    }

    /// Takes a segment's data: `bytes`, then `cut_bytes` that were not captured.
    pub(super) fn insert(
        &mut self,
        sequence: u32,
        bytes: &[u8],
        cut_bytes: u32,
        time_us: i64,
        acknowledgement: Option<u32>,
    ) -> SegmentKind {
        let Some(distance) = self.distance(sequence) else {
            return SegmentKind::Foreign;
        };
        let (known, start) = if distance < 0 {
            (distance.unsigned_abs(), self.next)
        } else {
            (0, self.next + distance.unsigned_abs())
        };
        let captured = bytes.len() as u64;
        let total = captured + u64::from(cut_bytes);
        if total == 0 {
            return SegmentKind::Fresh;
        }
        if known >= total {
            return SegmentKind::Again;
        }
        let mut is_new = false;
        let piece = |content| Piece {
            time_us,
            acknowledgement,
            content,
        };
        // what of the data is new lies at `start`; the captured part comes first
        if known < captured {
            let new = &bytes[usize::try_from(known).unwrap_or(bytes.len())..];
            is_new |= self.place(start, start + new.len() as u64, |from, to| {
                piece(Content::captured(
                    &new[index(from - start)..index(to - start)],
                ))
            });
        }
        let missing_start = start + captured.saturating_sub(known);
        let missing = total - captured.max(known);
        if missing > 0 {
            is_new |= self.place(missing_start, missing_start + missing, |from, to| {
                piece(Content::Missing(to - from))
            });
        }
        self.draw();
        if is_new {
            SegmentKind::Fresh
        } else {
            SegmentKind::Again
        }
    }

    /// The sender has no more after this sequence number.
    pub(super) fn finish_at(&mut self, sequence: u32) {
        if let Some(distance) = self.distance(sequence)
            && distance >= 0
        {
            self.end = Some(self.next + distance.unsigned_abs());
        }
    }

    /// Whether the sender has said that it is done.
    pub(super) const fn is_finished(&self) -> bool {
        self.end.is_some()
    }

    /// Whether it is done and all of it was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.ready.is_empty() && self.end.is_some_and(|end| self.next >= end)
    }

    /// The other side has everything before this sequence number.
    pub(super) fn acknowledge(&mut self, sequence: u32) {
        if let Some(distance) = self.distance(sequence) {
            let offset = if distance < 0 {
                self.next.saturating_sub(distance.unsigned_abs())
            } else {
                self.next + distance.unsigned_abs()
            };
            self.acknowledged = self.acknowledged.max(Some(offset));
        }
    }

    /// How many bytes are missing before those that are held or before the end; `None` if nothing
    /// is known to be.
    pub(super) fn hole_bytes(&self) -> Option<u64> {
        let beyond = self
            .ahead
            .first_key_value()
            .map(|(&start, _)| start)
            .or(self.end)?;
        beyond.checked_sub(self.next).filter(|&bytes| bytes > 0)
    }

    /// Whether the other side has the missing bytes: then they are not sent again.
    pub(super) fn is_hole_acknowledged(&self) -> bool {
        match (self.hole_bytes(), self.acknowledged) {
            (Some(bytes), Some(acknowledged)) => acknowledged >= self.next + bytes,
            _ => false,
        }
    }

    /// Gives the hole up: it was sent and not captured.
    pub(super) fn skip_hole(&mut self) {
        let Some(bytes) = self.hole_bytes() else {
            return;
        };
        let beyond = self.ahead.first_key_value();
        let time_us = beyond.map_or(self.latest_us, |(_, piece)| piece.time_us);
        self.latest_us = self.latest_us.max(time_us);
        self.ready.push_back(Piece {
            time_us: self.latest_us,
            acknowledgement: None,
            content: Content::Missing(bytes),
        });
        self.held_bytes += PIECE_BYTES;
        self.next += bytes;
        self.draw();
    }

    /// Forgets what is held beyond the hole; says how many bytes that were.
    pub(super) fn drop_ahead(&mut self) -> u64 {
        let dropped = self.ahead.values().map(Piece::len).sum();
        for piece in std::mem::take(&mut self.ahead).into_values() {
            self.held_bytes -= piece.cost();
        }
        self.end = self.end.filter(|&end| end <= self.next);
        dropped
    }

    /// What is next, its time, and what it acknowledged.
    pub(super) fn front(&self) -> Option<(Next<'_>, i64, Option<u32>)> {
        let piece = self.ready.front()?;
        let next = match &piece.content {
            Content::Captured { bytes, used } => Next::Bytes(&bytes[*used..]),
            Content::Missing(bytes) => Next::Missing(*bytes),
        };
        Some((next, piece.time_us, piece.acknowledgement))
    }

    /// So many bytes of what is next were used.
    pub(super) fn consume(&mut self, count: u64) {
        let Some(piece) = self.ready.front_mut() else {
            return;
        };
        self.used += count.min(piece.len());
        if count >= piece.len() {
            self.held_bytes -= piece.cost();
            self.ready.pop_front();
            return;
        }
        match &mut piece.content {
            Content::Captured { used, .. } => *used += index(count),
            Content::Missing(bytes) => *bytes -= count,
        }
    }

    /// From the end of what is in order to this sequence number; `None` if it is too far to be of
    /// this connection, or if nothing is known.
    fn distance(&self, sequence: u32) -> Option<i64> {
        self.base?;
        let distance = sequence
            .wrapping_sub(self.sequence_of(self.next))
            .cast_signed();
        if distance > AHEAD_BYTES_MAX.cast_signed() {
            return None;
        }
        // before the very first byte there is nothing: one sequence number for the SYN
        let first = i64::try_from(self.next).unwrap_or(i64::MAX);
        let distance = i64::from(distance);
        (distance >= -first - i64::from(AHEAD_BYTES_MAX)).then_some(distance)
    }

    fn sequence_of(&self, offset: u64) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
        let low = offset as u32;
        self.base.unwrap_or(0).wrapping_add(low)
    }

    /// Puts what is not there yet between two offsets; says whether that was anything.
    fn place(&mut self, start: u64, end: u64, make: impl Fn(u64, u64) -> Piece) -> bool {
        let mut is_new = false;
        let mut cursor = start;
        while cursor < end {
            let before = self.ahead.range(..=cursor).next_back();
            if let Some((&at, piece)) = before
                && at + piece.len() > cursor
            {
                cursor = at + piece.len();
                continue;
            }
            let after = self.ahead.range(cursor..).next().map_or(end, |(&at, _)| at);
            let to = after.min(end);
            let piece = make(cursor, to);
            self.held_bytes += piece.cost();
            self.ahead.insert(cursor, piece);
            cursor = to;
            is_new = true;
        }
        is_new
    }

    /// Moves what has become in order.
    fn draw(&mut self) {
        while let Some(entry) = self.ahead.first_entry() {
            if *entry.key() != self.next {
                break;
            }
            let mut piece = entry.remove();
            self.latest_us = self.latest_us.max(piece.time_us);
            piece.time_us = self.latest_us;
            self.next += piece.len();
            self.ready.push_back(piece);
        }
    }
}

impl Piece {
    fn len(&self) -> u64 {
        match &self.content {
            Content::Captured { bytes, used } => (bytes.len() - used) as u64,
            Content::Missing(bytes) => *bytes,
        }
    }

    /// What it costs to hold; the same before and after bytes of it were used.
    const fn cost(&self) -> usize {
        match &self.content {
            Content::Captured { bytes, .. } => bytes.len() + PIECE_BYTES,
            Content::Missing(_) => PIECE_BYTES,
        }
    }
}

impl Content {
    fn captured(bytes: &[u8]) -> Self {
        Self::Captured {
            bytes: bytes.to_vec(),
            used: 0,
        }
    }
}

/// An offset within a segment.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
