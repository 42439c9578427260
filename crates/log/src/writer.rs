//! The thread that writes, and may be stuck in doing so.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use crate::queue::{Queue, Work};

/// Memory that a buffer keeps after a burst.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Writes batches to `output` until the queue is closed and empty.
pub(crate) fn run(queue: &Queue, output: File, report: &dyn Fn(&io::Error)) {
    let mut output = Output::new(output);
    let mut batch = Vec::new();
    let mut lines = 0;
    loop {
        batch.shrink_to(BUFFER_KEPT_BYTES);
        match queue.next(&mut batch, lines) {
            Work::End => return,
            Work::Write(None) => {}
            Work::Write(Some(file)) => output = Output::new(file),
        }
        queue.count_dropped(output.write(&batch, report));
        lines = count_lines(&batch);
    }
}

struct Output {
    file: File,
    /// The last write ended within a line.
    torn: bool,
    /// The operator knows that it cannot be written.
    told: bool,
}

impl Output {
    fn new(file: File) -> Self {
        Self {
            file,
            torn: false,
            told: false,
        }
    }

    /// Writes `batch`; how many lines were lost. The first failure is reported, the others are
    /// counted.
    fn write(&mut self, batch: &[u8], report: &dyn Fn(&io::Error)) -> u64 {
        let mut rest = batch;
        let ended = self
            .end_torn_line()
            .and_then(|()| self.write_all(&mut rest));
        let failed = ended.is_err();
        if let Err(error) = ended
            && !std::mem::replace(&mut self.told, true)
        {
            report(&error);
        }
        let written = &batch[..batch.len() - rest.len()];
        self.torn |= failed && !written.is_empty() && !written.ends_with(b"\n");
        count_lines(rest)
    }

    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.torn {
            self.write_all(&mut &b"\n"[..])?;
            self.torn = false;
        }
        Ok(())
    }

    /// As the method of the standard library, but `rest` shows how much was written, and it waits
    /// for a destination that would block.
    fn write_all(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => *rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // another process made our standard output non-blocking
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
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
