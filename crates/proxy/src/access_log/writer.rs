//! The thread that writes, and may be stuck in doing so.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::queue::{Queue, Work};

/// Memory that a buffer keeps after a burst.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Writes batches to `output` until the queue is closed and empty.
pub(super) fn run(queue: &Queue, output: File) {
    let mut output = Output {
        file: output,
        torn: false,
        failing: false,
    };
    let mut batch = Vec::new();
    let mut lines = 0;
    loop {
        batch.shrink_to(BUFFER_KEPT_BYTES);
        match queue.next(&mut batch, lines) {
            Work::End => return,
            Work::Write(None) => {}
            Work::Write(Some(file)) => {
                output = Output {
                    file,
                    torn: false,
                    failing: output.failing,
                }
            }
        }
        queue.count_dropped(output.write(&batch));
        lines = count_lines(&batch);
    }
}

struct Output {
    file: File,
    /// The last write ended within a line.
    torn: bool,
    failing: bool,
}

impl Output {
    /// Writes `batch`; how many lines were lost.
    fn write(&mut self, batch: &[u8]) -> u64 {
        let mut rest = batch;
        let result = self
            .end_torn_line()
            .and_then(|()| self.write_all(&mut rest));
        self.torn |= rest.len() < batch.len()
            && !rest.is_empty()
            && !batch[..batch.len() - rest.len()].ends_with(b"\n");
        self.tell(result.as_ref().err());
        count_lines(rest)
    }

    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.torn {
            self.write_all(&mut &b"\n"[..])?;
            self.torn = false;
        }
        Ok(())
    }

    /// As the standard one, but `rest` tells how far it got, and a destination that would block is waited for.
    fn write_all(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => *rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // somebody else made our standard output non-blocking
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(
                        &mut [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)],
                        None,
                    )?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says so when writing begins to fail and when it works again: once, not for every batch.
    fn tell(&mut self, error: Option<&io::Error>) {
        if self.failing != error.is_some() {
            self.failing = error.is_some();
            match error {
                Some(error) => eprintln!(
                    "weir: cannot write the access log: {error}; lines are dropped and counted"
                ),
                None => eprintln!("weir: the access log is written again"),
            }
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
