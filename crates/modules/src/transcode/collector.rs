//! The content of an image while it is collected, and what is sent in its place.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;
use weir_extend::{Piece, Progress, Transform};

/// Bytes of images that a module holds, of at most so many.
pub(super) struct Memory {
    pub(super) bytes_max: usize,
    used: AtomicUsize,
}

impl Memory {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            used: AtomicUsize::new(0),
        }
    }

    fn take(&self, bytes: usize) -> bool {
        let more = |used: usize| Some(used + bytes).filter(|it| *it <= self.bytes_max);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
}

/// How far a content has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// More is to come.
    Arriving,
    /// All is there.
    Whole,
    /// It is longer than it may be: it passes as it is.
    TooLong,
}

/// Content that is collected; the exchange and the transform have it together.
pub(super) struct Collected {
    memory: Arc<Memory>,
    bytes_max: usize,
    bytes: Arc<Vec<u8>>,
    pub(super) stage: Stage,
    pub(super) waker: Option<Waker>,
}

impl Collected {
    /// Content of at most so many bytes.
    pub(super) fn new(memory: &Arc<Memory>, bytes_max: usize) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            memory: Arc::clone(memory),
            bytes_max,
            bytes: Arc::default(),
            stage: Stage::Arriving,
            waker: None,
        }))
    }

    /// What was collected.
    pub(super) fn bytes(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.bytes)
    }

    /// Takes the input, if there is room for it.
    fn collect(&mut self, piece: &mut Piece<'_>) {
        let input = piece.input();
        let fits = self.bytes.len() + input.len() <= self.bytes_max;
        if !fits || !self.memory.take(input.len()) {
            self.decide(Stage::TooLong);
            return;
        }
        Arc::make_mut(&mut self.bytes).extend_from_slice(input);
        piece.take(input.len());
        if piece.is_last() {
            self.decide(Stage::Whole);
        }
    }

    fn decide(&mut self, stage: Stage) {
        self.stage = stage;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes.len(), Relaxed);
    }
}

/// Takes content, and puts it out as it came once that is asked for.
pub(super) struct Collector {
    collected: Rc<RefCell<Collected>>,
    passed: usize,
}

impl Collector {
    pub(super) fn new(collected: &Rc<RefCell<Collected>>) -> Self {
        Self {
            collected: Rc::clone(collected),
            passed: 0,
        }
    }
}

impl Transform for Collector {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        let mut collected = self.collected.borrow_mut();
        if collected.stage == Stage::Arriving {
            collected.collect(piece);
        }
        // without room it is not decided yet what becomes of the content, be it empty
        if collected.stage == Stage::Arriving || piece.room() == 0 {
            return Progress::Continue;
        }
        self.passed += piece.put(&collected.bytes[self.passed..]);
        if self.passed < collected.bytes.len() {
            return Progress::Continue;
        }
        piece.pass(usize::MAX);
        match piece.is_last() && piece.input().is_empty() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}

/// Puts out other content.
pub(super) struct Replacement {
    content: Vec<u8>,
    passed: usize,
}

impl Replacement {
    pub(super) const fn new(content: Vec<u8>) -> Self {
        Self { content, passed: 0 }
    }
}

impl Transform for Replacement {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        piece.take(usize::MAX);
        self.passed += piece.put(&self.content[self.passed..]);
        match self.passed == self.content.len() {
            true => Progress::Done,
            false => Progress::Continue,
        }
    }
}
