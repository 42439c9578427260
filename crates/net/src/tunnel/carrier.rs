//! Bytes between two sockets, held in a pipe in the kernel or in a buffer.

use std::io;

use super::End;
#[cfg(target_os = "linux")]
use super::pipe::Pipe;

/// Bytes that one direction of one tunnel may hold in this process when it cannot splice.
const BUFFER_BYTES: usize = 16 << 10;

/// How bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// By `splice`, between two sockets in clear; by copying when no pipe is available.
    #[cfg(target_os = "linux")]
    Splice,
    /// Through a buffer.
    Copy,
}

impl Means {
    pub(super) const fn best() -> Self {
        #[cfg(target_os = "linux")]
        return Self::Splice;
        #[cfg(not(target_os = "linux"))]
        return Self::Copy;
    }
}

pub(super) enum Carrier {
    #[cfg(target_os = "linux")]
    Pipe(Pipe),
    Buffer(Buffer),
}

/// The result of filling an empty carrier.
pub(super) enum FillResult {
    Some,
    End,
    /// This system, or this kind of socket, does not splice.
    SpliceRefused,
}

impl Carrier {
    /// Falls back to copying when the pool of pipes is exhausted or the process is out of file
    /// descriptors.
    pub(super) fn borrow_by(means: Means) -> Self {
        match means {
            #[cfg(target_os = "linux")]
            Means::Splice => Pipe::borrow().map_or_else(|| Self::Buffer(Buffer::new()), Self::Pipe),
            Means::Copy => Self::Buffer(Buffer::new()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Pipe(pipe) => pipe.is_empty(),
            Self::Buffer(buffer) => buffer.sent == buffer.held,
        }
    }

    /// Bytes that it holds.
    pub(super) fn held(&self) -> usize {
        match self {
            #[cfg(target_os = "linux")]
            Self::Pipe(pipe) => pipe.held(),
            Self::Buffer(buffer) => buffer.held - buffer.sent,
        }
    }

    /// Takes bytes from `end`, at most `most`. Only for an empty carrier.
    pub(super) fn fill(&mut self, end: End<'_>, most: usize) -> io::Result<FillResult> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Pipe(pipe) => pipe.fill(end.tcp(), most),
            Self::Buffer(buffer) => buffer.fill(end, most),
        }
    }

    /// Gives bytes to `end`; how many.
    pub(super) fn drain(&mut self, end: End<'_>) -> io::Result<usize> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Pipe(pipe) => pipe.drain(end.tcp()),
            Self::Buffer(buffer) => buffer.drain(end),
        }
    }
}

pub(super) struct Buffer {
    bytes: Box<[u8]>,
    sent: usize,
    held: usize,
}

impl Buffer {
    fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER_BYTES].into_boxed_slice(),
            sent: 0,
            held: 0,
        }
    }

    fn fill(&mut self, end: End<'_>, most: usize) -> io::Result<FillResult> {
        let most = most.min(self.bytes.len());
        self.held = end.try_read(&mut self.bytes[..most])?;
        self.sent = 0;
        Ok(if self.held == 0 {
            FillResult::End
        } else {
            FillResult::Some
        })
    }

    fn drain(&mut self, end: End<'_>) -> io::Result<usize> {
        let bytes = end.try_write(&self.bytes[self.sent..self.held])?;
        self.sent += bytes;
        Ok(bytes)
    }
}
