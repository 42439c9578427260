//! Lines on their way from the workers to the writer: one buffer under one lock, bounded in lines
//! and bytes.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait for the writer.
pub const QUEUE_BYTES_MAX: usize = 16 << 20;
/// Bytes that end the wait for more.
const BATCH_BYTES: usize = 256 << 10;
/// How long the first line of a batch waits for others: each wake-up of the writer is a system call
/// for a worker.
const COLLECT: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Queue {
    /// Held to copy one line, or to swap two buffers: never while writing.
    state: Mutex<State>,
    /// There is something for the writer to do.
    work: Condvar,
    /// The writer has done something.
    done: Condvar,
    lines_max: u64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    /// Lines ever accepted, and of those, lines written or dropped by the writer.
    accepted: u64,
    finished: u64,
    replacement: Option<File>,
    /// The writer waits without a limit: a push must wake it.
    asleep: bool,
    /// A thread waits in [`Queue::flush`], or the log is closing.
    hurry: bool,
    closing: bool,
}

/// The next step of the writer.
pub(crate) enum Work {
    /// Write the batch, to this file from now on if there is one.
    Write(Option<File>),
    /// Nothing, ever again.
    End,
}

impl Queue {
    pub(crate) fn new(lines_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            lines_max: lines_max as u64,
            dropped: AtomicU64::new(0),
        }
    }

    /// Takes a copy of `line`, or drops and counts it.
    pub(crate) fn push(&self, line: &[u8]) {
        let mut state = self.state();
        let full = state.accepted - state.finished >= self.lines_max;
        if full || state.pending.len() + line.len() > QUEUE_BYTES_MAX {
            drop(state);
            self.count_dropped(1);
            return;
        }
        let was_small = state.pending.len() < BATCH_BYTES;
        state.pending.extend_from_slice(line);
        state.accepted += 1;
        let is_large = was_small && state.pending.len() >= BATCH_BYTES;
        let wake = std::mem::take(&mut state.asleep) || is_large;
        drop(state);
        if wake {
            self.work.notify_one();
        }
    }

    pub(crate) fn replace_output(&self, output: File) {
        let mut state = self.state();
        state.replacement = Some(output);
        state.asleep = false;
        self.work.notify_one();
    }

    /// No line is accepted for longer than it takes to write those that are there.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        self.work.notify_one();
    }

    /// Waits until what was accepted before is finished, at most `limit`.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut state = self.state();
        let goal = state.accepted;
        state.hurry = true;
        self.work.notify_one();
        while state.finished < goal {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .done
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    /// For the writer: reports `lines` as finished, and waits for the next batch, which replaces
    /// `batch`.
    pub(crate) fn next(&self, batch: &mut Vec<u8>, lines: u64) -> Work {
        batch.clear();
        let mut state = self.state();
        state.finished += lines;
        self.done.notify_all();
        while state.is_quiet() {
            if state.closing {
                return Work::End;
            }
            state.asleep = true;
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.asleep = false;
        let collecting =
            |state: &mut State| !state.hurry && !state.closing && state.pending.len() < BATCH_BYTES;
        state = self
            .work
            .wait_timeout_while(state, COLLECT, collecting)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        state.hurry = false;
        std::mem::swap(&mut state.pending, batch);
        Work::Write(state.replacement.take())
    }

    pub(crate) fn count_dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Relaxed);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_quiet(&self) -> bool {
        self.pending.is_empty() && self.replacement.is_none()
    }
}
