//! A transform, and the content that it did not take yet.

use super::decoder_memory::DecoderMemory;
use std::task::Context;
use weir_codings::{Decoder, is_excessive};
use weir_extend::{Coding, LocalResponse, PIECE_BYTES_MAX, Piece, Progress, Transform};

/// Calls that a transform may defer without taking or putting out content.
const DEFERRALS_MAX: usize = 64;

/// A transform, and the content that it did not take yet.
pub(crate) struct Stage {
    transform: Box<dyn Transform>,
    /// Bytes of content that it may leave for a later call.
    hold_bytes: usize,
    held: Vec<u8>,
    given_bytes: u64,
    put_bytes: u64,
    is_last: bool,
    /// There is content that it was not called with, or it may have more to put out.
    is_due: bool,
    is_done: bool,
    /// It has taken content, or put some out.
    has_moved: bool,
    waits: bool,
    deferrals: usize,
    /// Of a decoder.
    memory: Option<DecoderMemory>,
}

/// What a turn of a stage came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It took content, put out some, or ended.
    Moved,
    /// It needs content, room behind it, or what it waits for.
    Idle,
}

/// Why a stage cannot go on.
#[derive(Debug)]
pub(crate) enum StageError {
    /// The module failed.
    Failed,
    /// The module answers by itself.
    Respond(Box<LocalResponse>),
}

impl Stage {
    /// One that may leave so many bytes of content for a later call.
    pub(crate) const fn new(transform: Box<dyn Transform>, hold_bytes: usize) -> Self {
        Self {
            transform,
            hold_bytes,
            held: Vec::new(),
            given_bytes: 0,
            put_bytes: 0,
            is_last: false,
            is_due: false,
            is_done: false,
            has_moved: false,
            waits: false,
            deferrals: 0,
            memory: None,
        }
    }

    /// One that undoes `coding`.
    pub(crate) fn decoder(coding: Coding, hold_bytes: usize) -> Self {
        let (decoder, gauge) = Decoder::gauged_stage(coding);
        Self {
            memory: Some(DecoderMemory::new(gauge)),
            ..Self::new(decoder, hold_bytes)
        }
    }

    /// Has `transform` get what the one before did not take.
    pub(crate) fn replace(&mut self, transform: Box<dyn Transform>) {
        self.transform = transform;
        self.is_done = false;
        self.waits = false;
        self.is_due = true;
    }

    /// What it was given, and whether that is all; `None` if it has taken some of it.
    pub(crate) fn into_untouched(self) -> Option<(Vec<u8>, bool)> {
        (!self.has_moved).then_some((self.held, self.is_last))
    }

    /// Whether it has put out all.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Bytes of content that it can be given now.
    pub(crate) fn room(&self) -> usize {
        let hold = if self.is_due { 0 } else { self.hold_bytes };
        (hold + PIECE_BYTES_MAX).saturating_sub(self.held.len())
    }

    /// Content comes, and nothing behind it if it `is_last`.
    pub(crate) fn give(&mut self, content: &[u8], is_last: bool) {
        let ends = is_last && !self.is_last;
        self.is_last |= is_last;
        if !self.is_done {
            self.held.extend_from_slice(content);
            self.given_bytes += content.len() as u64;
            self.is_due |= ends || !content.is_empty();
        }
    }

    /// It may put out content from now on.
    pub(crate) const fn open(&mut self) {
        self.is_due = true;
    }

    /// Calls the transform once, if it can do something. Without `may_put` it can only take.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        room: usize,
        may_put: bool,
    ) -> Result<Turn, StageError> {
        if self.waits {
            if self.transform.poll_deferred(cx).is_pending() {
                return Ok(Turn::Idle);
            }
            self.waits = false;
        }
        if self.is_done || !self.is_due || (room == 0 && may_put) {
            return Ok(Turn::Idle);
        }
        let before = out.len();
        let mut piece = Piece::new(&self.held, self.is_last, out, room);
        let progress = self.transform.transform(&mut piece);
        let taken = piece.taken();
        self.held.drain(..taken);
        let put = out.len() - before;
        self.put_bytes += put as u64;
        let has_memory = self.memory.as_mut().is_none_or(DecoderMemory::charge);
        if !has_memory || is_excessive(self.given_bytes, self.put_bytes) {
            return Err(StageError::Failed);
        }
        let has_moved = taken > 0 || put > 0;
        if has_moved {
            self.deferrals = 0;
            self.has_moved = true;
        }
        match progress {
            Progress::Fail | Progress::Unavailable => Err(StageError::Failed),
            Progress::Respond(response) => Err(StageError::Respond(response)),
            Progress::Done => {
                self.is_done = true;
                self.held = Vec::new();
                Ok(Turn::Moved)
            }
            Progress::Defer if self.deferrals >= DEFERRALS_MAX => Err(StageError::Failed),
            Progress::Defer => {
                self.deferrals += 1;
                self.waits = true;
                Ok(Turn::Moved)
            }
            Progress::Continue if has_moved => Ok(Turn::Moved),
            Progress::Continue if self.held.len() > self.hold_bytes => Err(StageError::Failed),
            // it would never end
            Progress::Continue if self.is_last && may_put => Err(StageError::Failed),
            Progress::Continue => {
                self.is_due = false;
                Ok(Turn::Idle)
            }
        }
    }
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("held", &self.held.len())
            .field("is_last", &self.is_last)
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// Takes nothing before the end.
    struct Holding;

    impl Transform for Holding {
        fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
            if piece.is_last() {
                piece.pass(usize::MAX);
            }
            match piece.is_last() && piece.input().is_empty() {
                true => Progress::Done,
                false => Progress::Continue,
            }
        }
    }

    /// Gives so many bytes in pieces to a module that may hold 100,000; whether they passed.
    fn passes(bytes: usize) -> bool {
        let mut stage = Stage::new(Box::new(Holding), 100_000);
        let mut cx = Context::from_waker(Waker::noop());
        let (mut given, mut out) = (0, Vec::new());
        while given < bytes {
            let count = stage.room().min(10_000).min(bytes - given);
            given += count;
            stage.give(&vec![b'x'; count], false);
            if stage.poll(&mut cx, &mut out, 1 << 20, true).is_err() {
                return false;
            }
        }
        stage.give(&[], true);
        while !stage.is_done() {
            match stage.poll(&mut cx, &mut out, 10_000, true) {
                Ok(Turn::Moved) => {}
                Ok(Turn::Idle) | Err(_) => return false,
            }
        }
        out.len() == bytes
    }

    #[test]
    fn module_holds_as_much_as_its_table_says() {
        assert!(passes(100_000));
        assert!(!passes(100_001));
    }
}
