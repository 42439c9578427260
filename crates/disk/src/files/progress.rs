//! How far a read of a whole range has come: a transfer may read fewer bytes than requested.

use super::DIRECT_BYTES;
use std::io;

/// Transfers for one whole read: a file system that gives less than a 16th each time is broken.
pub(super) const TRANSFERS_MAX: usize = 4096;

/// A read of a range, transfer by transfer.
#[derive(Debug)]
pub struct Progress {
    /// Where a transfer may begin: a multiple of so many bytes.
    unit: usize,
    /// Bytes that are enough.
    wanted: usize,
    done: usize,
    transfers: usize,
}

impl Progress {
    /// Of `len` bytes through the page cache.
    #[must_use]
    pub const fn through(len: usize) -> Self {
        Self {
            unit: 1,
            wanted: len,
            done: 0,
            transfers: 0,
        }
    }

    /// Of `len` bytes at `offset` past the page cache, in a file of `end` bytes.
    #[must_use]
    pub fn past(len: usize, offset: u64, end: u64) -> Self {
        let there = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        Self {
            unit: DIRECT_BYTES,
            wanted: len.min(there),
            done: 0,
            transfers: 0,
        }
    }

    /// There is nothing to be read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.wanted == 0
    }

    /// Where in the range the next transfer begins.
    #[must_use]
    pub const fn next(&self) -> usize {
        // what came short of a sector is read again
        self.done - self.done % self.unit
    }

    /// Takes the result of a transfer. After the last one, returns that of the read: how many bytes
    /// are there, fewer than requested at the end of the file.
    pub fn advance(&mut self, transfer: io::Result<usize>) -> Option<io::Result<usize>> {
        self.transfers += 1;
        match transfer {
            Ok(count) if self.next() + count <= self.done => return Some(Ok(self.done)),
            Ok(count) => self.done = self.next() + count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Some(Err(error)),
        }
        if self.done >= self.wanted {
            return Some(Ok(self.done));
        }
        (self.transfers >= TRANSFERS_MAX).then(|| Err(io::ErrorKind::TimedOut.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transfers that end the read, as (place, what comes of it), and what is there then.
    #[track_caller]
    fn check(mut progress: Progress, transfers: &[(usize, usize)], there: usize) {
        let (last, before) = transfers.split_last().unwrap();
        for (next, count) in before {
            assert_eq!(progress.next(), *next);
            assert!(progress.advance(Ok(*count)).is_none(), "{progress:?}");
        }
        assert_eq!(progress.next(), last.0);
        let done = progress.advance(Ok(last.1)).unwrap();
        assert_eq!(done.unwrap(), there);
    }

    #[test]
    fn short_read_resumes_at_the_last_aligned_offset_it_reached() {
        check(Progress::through(10), &[(0, 10)], 10);
        check(Progress::through(10), &[(0, 3), (3, 6), (9, 1)], 10);
        check(Progress::through(10), &[(0, 3), (3, 0)], 3);
        check(Progress::past(8192, 0, 1 << 20), &[(0, 8192)], 8192);
        let short = [(0, 5000), (4096, 4096)];
        check(Progress::past(8192, 0, 1 << 20), &short, 8192);
    }

    #[test]
    fn direct_read_ends_at_end_of_file_or_without_progress() {
        // the file ends in the last sector
        check(Progress::past(8192, 4096, 9000), &[(0, 4904)], 4904);
        check(Progress::past(8192, 4096, 9000), &[(0, 100), (0, 100)], 100);
    }

    #[test]
    fn interrupted_read_is_retried_up_to_the_transfer_limit() {
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        let mut progress = Progress::through(10);
        assert!(progress.advance(interrupted()).is_none());
        assert_eq!(progress.advance(Ok(10)).unwrap().unwrap(), 10);
        let mut progress = Progress::through(10);
        let ended = (0..=TRANSFERS_MAX).find_map(|_| progress.advance(interrupted()));
        let error = ended.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
