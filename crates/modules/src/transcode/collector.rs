//! The content of an image while it is collected, and what is sent in its place.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use weir_extend::{ContentMemory, Piece, Progress, Transform};

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

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

/// How far a content has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// More is to come.
    Arriving,
    /// All is there.
    Whole,
    /// It is longer than it may be, or there is no memory for it.
    TooLong,
}

/// Content that is held, and its charges: to the memory of its module, and to that of the proxy.
pub(super) struct Held {
    bytes: Vec<u8>,
    memory: Arc<Memory>,
    /// A process may hold it longest, on a thread of its own.
    charged: Mutex<Box<dyn ContentMemory>>,
}

impl Held {
    pub(super) fn new(memory: &Arc<Memory>, charged: Box<dyn ContentMemory>) -> Self {
        Self {
            bytes: Vec::new(),
            memory: Arc::clone(memory),
            charged: Mutex::new(charged),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Content that is not charged.
    #[cfg(test)]
    pub(super) fn uncharged(content: &[u8]) -> Arc<Self> {
        let memory = Arc::new(Memory::new(usize::MAX));
        let mut held = Self::new(&memory, Box::new(weir_extend::UnchargedMemory));
        assert!(held.add(content, content.len()));
        Arc::new(held)
    }

    /// Takes `input`; `false` if there is no memory for it. What it takes grows by halves at least,
    /// up to `bytes_max`, so that it is not copied for each piece.
    fn add(&mut self, input: &[u8], bytes_max: usize) -> bool {
        let (bytes, capacity) = (self.bytes.len() + input.len(), self.bytes.capacity());
        if bytes > capacity {
            let room = (capacity + capacity / 2).min(bytes_max).max(bytes);
            let charged = self.charged.get_mut();
            let charged = charged.unwrap_or_else(PoisonError::into_inner);
            if !self.memory.take(room - capacity) {
                return false;
            }
            if !charged.hold(room) {
                self.memory.give_back(room - capacity);
                return false;
            }
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(input);
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.give_back(self.bytes.capacity());
    }
}

/// Content that is collected; the exchange and the transform have it together.
pub(super) struct Collected {
    bytes_max: usize,
    held: Arc<Held>,
    pub(super) stage: Stage,
    pub(super) waker: Option<Waker>,
}

impl Collected {
    /// Content of at most so many bytes, which is collected in `held`.
    pub(super) fn new(held: Held, bytes_max: usize) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            bytes_max,
            held: Arc::new(held),
            stage: Stage::Arriving,
            waker: None,
        }))
    }

    /// What was collected.
    pub(super) fn held(&self) -> Arc<Held> {
        Arc::clone(&self.held)
    }

    /// Takes the input, if there is room for it.
    fn collect(&mut self, piece: &mut Piece<'_>) {
        let input = piece.input();
        let fits = self.held.bytes.len() + input.len() <= self.bytes_max;
        // nothing else has it before all is there
        let held = Arc::get_mut(&mut self.held);
        if !fits || !held.is_some_and(|held| held.add(input, self.bytes_max)) {
            self.decide(Stage::TooLong);
            return;
        }
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
        self.passed += piece.put(&collected.held.bytes[self.passed..]);
        if self.passed < collected.held.bytes.len() {
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
    /// The content is charged to it.
    _charged: Box<dyn ContentMemory>,
}

impl Replacement {
    /// `None` if there is no memory for it.
    pub(super) fn new(content: Vec<u8>, mut charged: Box<dyn ContentMemory>) -> Option<Self> {
        let is_charged = charged.hold(content.capacity());
        is_charged.then(|| Self {
            content,
            passed: 0,
            _charged: charged,
        })
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
