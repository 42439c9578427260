//! The state of a read of a record or a chunk: memory, the range read into it, and the range needed
//! next.
//!
//! A read is a function that is called again when the bytes it needed were read: how many bytes a
//! record has is known when its header was read. So the function itself never waits, and one thread
//! can wait for many reads.

use crate::files::{File, Memory, Progress, read_full, read_full_direct};
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use weir_policy::page_cache::ReadPath;

/// What is kept between two reads, in bytes: the longest first read of a record, with what a read
/// past the page cache takes around it. What was longer is given back.
const KEPT_BYTES_MAX: usize = 96 * 1024;

thread_local! {
    static BUFFER: RefCell<Buffer> = RefCell::default();
}

/// A range of a file.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) file: Arc<dyn File>,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// Where the file ends.
    pub(crate) end: u64,
    pub(crate) read_path: ReadPath,
}

impl Span {
    fn contains(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
            && self.offset == other.offset
            && self.len >= other.len
            && self.read_path == other.read_path
    }

    /// How far a read of it is that has not begun.
    pub(crate) fn progress(&self) -> Progress {
        match self.read_path {
            ReadPath::Through => Progress::through(self.len),
            ReadPath::Past => Progress::past(self.len, self.offset, self.end),
        }
    }
}

/// The result of reading a range.
#[derive(Debug)]
struct Brought {
    span: Span,
    /// Not looked at yet.
    news: Option<io::Result<usize>>,
    /// How many bytes are there; `None`: none could be had.
    count: Option<usize>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    memory: Memory,
    brought: Option<Brought>,
    wanted: Option<Span>,
}

/// What there is of a range.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BufferState {
    /// So many bytes, fewer than requested at the end of the file.
    Bytes(usize),
    /// It could not be read.
    Failed,
    /// It has yet to be brought.
    Pending,
}

impl Buffer {
    /// The first `len` bytes; what is in them is of no account.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        self.brought = None;
        self.memory.room(len)
    }

    /// What was read into the first bytes.
    pub(crate) fn bytes(&self, there: &Range<usize>) -> &[u8] {
        self.memory.bytes(there)
    }

    /// The present bytes of `span`; if there are none, `span` is the range needed next. `judge`
    /// gets the result of a read once, and returns the count of usable bytes.
    pub(crate) fn take(
        &mut self,
        span: Span,
        judge: impl FnOnce(io::Result<usize>) -> Option<usize>,
    ) -> BufferState {
        match &mut self.brought {
            Some(brought) if brought.span.contains(&span) => {
                if let Some(news) = brought.news.take() {
                    brought.count = judge(news);
                }
                match brought.count {
                    Some(count) => BufferState::Bytes(count.min(span.len)),
                    None => BufferState::Failed,
                }
            }
            _ => {
                self.wanted = Some(span);
                BufferState::Pending
            }
        }
    }

    /// The range to read, and its place in memory. Then [`Self::bring`] says what came of it.
    pub(crate) fn wanted(&mut self) -> Option<(Span, Memory)> {
        let wanted = self.wanted.take()?;
        self.brought = None;
        let mut memory = std::mem::take(&mut self.memory);
        memory.room(wanted.len);
        Some((wanted, memory))
    }

    /// `memory` holds what could be read of `span`.
    pub(crate) fn bring(&mut self, span: Span, memory: Memory, read: io::Result<usize>) {
        self.memory = memory;
        self.brought = Some(Brought {
            span,
            news: Some(read),
            count: None,
        });
    }

    /// Reads the range needed, and waits for it; `false` if there is none.
    fn fetch(&mut self) -> bool {
        let Some((span, mut memory)) = self.wanted() else {
            return false;
        };
        let (room, file) = (memory.room(span.len), &*span.file);
        let read = match span.read_path {
            ReadPath::Through => read_full(file, room, span.offset),
            ReadPath::Past => read_full_direct(file, room, span.offset, span.end),
        };
        self.bring(span, memory, read);
        true
    }

    /// Forgets what it is about, and gives back memory that is seldom needed.
    pub(crate) fn clear(&mut self) {
        self.brought = None;
        self.wanted = None;
        if self.memory.taken() > KEPT_BYTES_MAX {
            self.memory = Memory::default();
        }
    }

    /// Calls `read` with this thread's buffer.
    pub(crate) fn with<T>(read: impl FnOnce(&mut Self) -> T) -> T {
        BUFFER.with_borrow_mut(|buffer| {
            let done = read(buffer);
            if buffer.brought.is_none() && buffer.wanted.is_none() {
                buffer.clear();
            }
            done
        })
    }

    /// Has `read`, which calls [`Self::with`], work on `self` instead of this thread's.
    pub(crate) fn lend<T>(&mut self, read: impl FnOnce() -> T) -> T {
        Self::with(|own| std::mem::swap(own, self));
        let done = read();
        Self::with(|own| std::mem::swap(own, self));
        done
    }

    /// Calls `read`, which works on this thread's buffer, until it returns true or needs nothing,
    /// and waits for the ranges it needs.
    pub(crate) fn finish(mut read: impl FnMut() -> bool) {
        while !read() && Self::with(Self::fetch) {}
        Self::with(Self::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::simulated::{Fault, Plan, SimulatedFiles};
    use crate::files::{Access, Files};
    use std::path::Path;

    /// A file of ten thousand bytes.
    fn file(files: &SimulatedFiles) -> Arc<dyn File> {
        let file = files.open(Path::new("/file"), Access::Create).unwrap();
        let content: Vec<u8> = (0..10_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        assert_eq!(file.write_at(&[&content], 0).unwrap(), 10_000);
        file
    }

    fn span(file: &Arc<dyn File>, offset: u64, len: usize) -> Span {
        Span {
            file: Arc::clone(file),
            offset,
            len,
            end: 10_000,
            read_path: ReadPath::Through,
        }
    }

    #[test]
    fn buffered_longer_range_serves_a_shorter_read_at_the_same_offset() {
        let files = SimulatedFiles::new(1);
        let file = file(&files);
        let mut seen = Vec::new();
        Buffer::finish(|| {
            Buffer::with(|buffer| {
                let first = buffer.take(span(&file, 100, 50), Result::ok);
                seen.push(first);
                if seen.last() == Some(&BufferState::Pending) {
                    return false;
                }
                let second = buffer.take(span(&file, 100, 500), Result::ok);
                let is_there = second == BufferState::Bytes(500);
                if is_there {
                    assert_eq!(buffer.bytes(&(0..2)), [100, 101]);
                }
                seen.push(second);
                is_there
            })
        });
        let expected = [
            BufferState::Pending,
            BufferState::Bytes(50),
            BufferState::Pending,
            // what is longer holds what is shorter
            BufferState::Bytes(50),
            BufferState::Bytes(500),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn buffer_serves_only_reads_of_the_file_offset_and_mode_it_was_filled_from() {
        let files = SimulatedFiles::new(1);
        let (one, other) = (
            file(&files),
            files.open(Path::new("/other"), Access::Create),
        );
        let (other, mut buffer) = (other.unwrap(), Buffer::default());
        let mut bring = |span: Span| {
            buffer.wanted = Some(span);
            assert!(buffer.fetch());
        };
        bring(span(&one, 4096, 100));
        let past = Span {
            read_path: ReadPath::Past,
            ..span(&one, 4096, 100)
        };
        for wrong in [
            span(&one, 0, 100),
            span(&one, 4096, 101),
            span(&other, 4096, 100),
            past,
        ] {
            assert_eq!(buffer.take(wrong, Result::ok), BufferState::Pending);
        }
        let right = buffer.take(span(&one, 4096, 100), Result::ok);
        assert_eq!(right, BufferState::Bytes(100));
        // what the memory was used for since is something else
        buffer.room(10);
        let gone = buffer.take(span(&one, 4096, 100), Result::ok);
        assert_eq!(gone, BufferState::Pending);
    }

    #[test]
    fn read_error_is_counted_once_and_the_read_is_not_retried() {
        let files = SimulatedFiles::new(1);
        let file = file(&files);
        files.plan(Plan {
            nth: Some((0, Fault::Device)),
            ..Plan::default()
        });
        let (mut judged, mut calls) = (0, 0);
        Buffer::finish(|| {
            calls += 1;
            let look = |buffer: &mut Buffer, judged: &mut u32| {
                buffer.take(span(&file, 0, 10), |news| {
                    *judged += 1;
                    news.ok()
                })
            };
            Buffer::with(|buffer| {
                let first = look(buffer, &mut judged);
                first == BufferState::Failed && look(buffer, &mut judged) == BufferState::Failed
            })
        });
        assert_eq!((judged, calls, files.operations()), (1, 2, 1));
    }

    #[test]
    fn thread_keeps_no_more_buffer_memory_than_the_limit() {
        for len in [10, KEPT_BYTES_MAX - 8192, KEPT_BYTES_MAX, 1_000_000] {
            Buffer::with(|buffer| {
                buffer.room(len);
            });
            let kept = BUFFER.with_borrow(|buffer| buffer.memory.taken());
            assert!(kept <= KEPT_BYTES_MAX, "{len}: {kept}");
        }
    }

    #[test]
    fn lent_buffer_is_given_back_with_its_bytes() {
        let mut lent = Buffer::default();
        lent.lend(|| Buffer::with(|buffer| buffer.room(20_000).fill(1)));
        assert_eq!(lent.bytes(&(0..1)), [1]);
        Buffer::with(|own| assert_eq!(own.memory.taken(), 0));
    }
}
