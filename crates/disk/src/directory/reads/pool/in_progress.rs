//! Reads under way side by side.

use super::Job;
use crate::directory::reads::buffer::{Buffer, Span};
use crate::files::{Batch, Memory, Progress, Transfer, TransferResult};
use std::io;
use std::time::Duration;
use weir_policy::page_cache::ReadPath;

/// A read that waits for the device.
struct ReadInProgress {
    job: Job,
    buffer: Buffer,
    span: Span,
    progress: Progress,
}

/// All of them.
pub(crate) struct ReadsInProgress {
    batch: Box<dyn Batch>,
    /// By token.
    reads: Vec<Option<ReadInProgress>>,
    free: Vec<usize>,
    /// Buffers of reads that have ended.
    spare: Vec<Buffer>,
    /// Keeps its room.
    came: Vec<TransferResult>,
}

impl ReadsInProgress {
    /// For `max` reads.
    pub(crate) fn new(batch: Box<dyn Batch>, max: usize) -> Self {
        Self {
            batch,
            reads: (0..max).map(|_| None).collect(),
            free: (0..max).rev().collect(),
            spare: Vec::new(),
            came: Vec::new(),
        }
    }

    /// Reads that may begin.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Reads that wait for the device.
    pub(crate) fn under_way(&self) -> usize {
        self.reads.len() - self.free.len()
    }

    /// Begins a read, if one [may](Self::free) begin.
    pub(crate) fn begin(&mut self, job: Job) {
        let buffer = self.spare.pop().unwrap_or_default();
        self.go_on(job, buffer);
    }

    /// Waits until a read has completed, it was interrupted, or `longest` has passed, and continues
    /// the completed reads.
    ///
    /// # Errors
    /// The batch gave up, and with it what was under way.
    pub(crate) fn wait(&mut self, longest: Duration) -> io::Result<()> {
        let mut came = std::mem::take(&mut self.came);
        let waited = self.batch.wait(longest, &mut came);
        for one in came.drain(..) {
            self.came(one);
        }
        self.came = came;
        waited
    }

    fn came(&mut self, came: TransferResult) {
        let Some(mut read) = self.reads[came.token].take() else {
            return;
        };
        if let Some(result) = read.progress.advance(came.result) {
            self.free.push(came.token);
            read.buffer.bring(read.span, came.memory, result);
            self.go_on(read.job, read.buffer);
        } else {
            self.transfer(came.token, read, came.memory);
        }
    }

    /// Has a read do what it can with what was brought.
    fn go_on(&mut self, mut job: Job, mut buffer: Buffer) {
        loop {
            let has_ended = buffer.lend(&mut job);
            let wanted = buffer.wanted().filter(|_| !has_ended);
            let Some((span, memory)) = wanted else {
                break;
            };
            let progress = span.progress();
            if progress.is_empty() {
                buffer.bring(span, memory, Ok(0));
                continue;
            }
            let Some(token) = self.free.pop() else {
                debug_assert!(false, "more reads than may begin");
                break;
            };
            let read = ReadInProgress {
                job,
                buffer,
                span,
                progress,
            };
            return self.transfer(token, read, memory);
        }
        buffer.clear();
        self.spare.push(buffer);
    }

    /// Submits the ranges that are still needed.
    fn transfer(&mut self, token: usize, read: ReadInProgress, memory: Memory) {
        let (span, next) = (&read.span, read.progress.next());
        self.batch.begin(Transfer {
            token,
            file: std::sync::Arc::clone(&span.file),
            is_direct: span.read_path == ReadPath::Past,
            memory,
            into: next..span.len,
            offset: span.offset + next as u64,
        });
        self.reads[token] = Some(read);
    }
}
