//! Pipes for `splice`, lent by the thread.
//!
//! Making a pipe costs two system calls and two file descriptors, so a few stay open between uses.
//! How many may be lent at once is bounded: beyond that tunnels copy, which is slower, but takes no
//! file descriptor from a new connection.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::carrier::FillResult;

/// Unused pipes that a thread keeps open.
pub(super) const IDLE_MAX: usize = 16;
/// Pipes lent by a thread at once: as many directions may hold bytes that their receiver does not
/// take.
const LENT_MAX: usize = 256;
/// Bytes requested of one splice: the default capacity of a pipe on Linux.
const SPLICE_BYTES: usize = 64 << 10;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { idle: Vec::new(), lent: 0 }) };
}

struct Pool {
    idle: Vec<Ends>,
    lent: usize,
}

struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

/// A borrowed pipe; it returns to the pool when dropped empty, and is closed otherwise.
pub(super) struct Pipe {
    ends: Option<Ends>,
    held: usize,
}

impl Pipe {
    /// A pipe, if the bounds and the system allow one.
    pub(super) fn borrow() -> Option<Self> {
        POOL.with_borrow_mut(|pool| {
            if pool.lent >= LENT_MAX {
                return None;
            }
            let ends = pool.idle.pop().or_else(Ends::open)?;
            pool.lent += 1;
            Some(Self {
                ends: Some(ends),
                held: 0,
            })
        })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.held == 0
    }

    pub(super) const fn held(&self) -> usize {
        self.held
    }

    pub(super) fn fill(&mut self, socket: &TcpStream, most: usize) -> io::Result<FillResult> {
        let Some(ends) = &self.ends else {
            return Ok(FillResult::SpliceRefused);
        };
        let moved = socket.try_io(Interest::READABLE, || {
            Ok(splice(
                socket,
                None,
                &ends.write,
                None,
                SPLICE_BYTES.min(most),
                SpliceFlags::NONBLOCK | SpliceFlags::MOVE,
            )?)
        });
        match moved {
            Ok(0) => Ok(FillResult::End),
            Ok(bytes) => {
                self.held = bytes;
                Ok(FillResult::Some)
            }
            Err(error) if is_refusal(&error) => Ok(FillResult::SpliceRefused),
            Err(error) => Err(error),
        }
    }

    pub(super) fn drain(&mut self, socket: &TcpStream) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let held = self.held;
        let bytes = socket.try_io(Interest::WRITABLE, || {
            Ok(splice(
                &ends.read,
                None,
                socket,
                None,
                held,
                SpliceFlags::NONBLOCK | SpliceFlags::MOVE,
            )?)
        })?;
        self.held -= bytes;
        Ok(bytes)
    }

    /// Pipes of this thread that are lent, and that are unused.
    #[cfg(test)]
    pub(super) fn counts() -> (usize, usize) {
        POOL.with_borrow(|pool| (pool.lent, pool.idle.len()))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let ends = self.ends.take().filter(|_| self.held == 0);
        // a thread that is ending has no pool any more: the pipe is closed
        let _pool_gone = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            pool.lent = pool.lent.saturating_sub(1);
            if pool.idle.len() < IDLE_MAX {
                pool.idle.extend(ends);
            }
        });
    }
}

impl Ends {
    fn open() -> Option<Self> {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
        Some(Self { read, write })
    }
}

/// Errors by which a system says that it does not splice this: no such call, forbidden, or the
/// wrong kind of file.
fn is_refusal(error: &io::Error) -> bool {
    let refusals = [Errno::INVAL, Errno::NOSYS, Errno::PERM, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| refusals.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own: the pool of this one may have served another test.
    fn on_fresh_thread(test: fn()) {
        std::thread::spawn(test).join().expect("no panic");
    }

    #[test]
    fn lent_and_idle_pipes_are_bounded() {
        on_fresh_thread(|| {
            let mut lent: Vec<Pipe> = std::iter::from_fn(Pipe::borrow)
                .take(LENT_MAX + 1)
                .collect();
            assert_eq!((lent.len(), Pipe::counts()), (LENT_MAX, (LENT_MAX, 0)));
            assert!(Pipe::borrow().is_none());
            lent.pop();
            assert_eq!(Pipe::counts(), (LENT_MAX - 1, 1));
            drop(lent);
            assert_eq!(Pipe::counts(), (0, IDLE_MAX));
        });
    }

    #[test]
    fn pipe_with_unread_bytes_is_not_reused() {
        on_fresh_thread(|| {
            let mut pipe = Pipe::borrow().expect("a pipe");
            pipe.held = 1;
            drop(pipe);
            assert_eq!(Pipe::counts(), (0, 0));
        });
    }
}
