//! A log: where its lines go, and the thread that writes them.

use crate::queue::Queue;
use crate::writer;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long dropping a [`LineLog`] waits for its last lines: a blocked pipe must not delay the end
/// of the process for longer.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere: logging costs one comparison.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to a file, made with mode 0640 if need be.
    Path(PathBuf),
}

/// An open log. Share it by `Arc`; dropping the last one waits up to two seconds for the last
/// lines.
#[derive(Debug)]
pub struct LineLog {
    path: Option<PathBuf>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl LineLog {
    /// One that logs nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            path: None,
            running: None,
        }
    }

    /// Opens `destination` and starts the writer, which calls `report` once if it cannot write, and
    /// again only for another file. At most `queue_lines` lines (at least 1) and
    /// [`QUEUE_BYTES_MAX`](crate::QUEUE_BYTES_MAX) wait for it.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or the thread cannot be started.
    pub fn open(
        destination: Destination,
        queue_lines: usize,
        report: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let (output, path) = match destination {
            Destination::Off => return Ok(Self::off()),
            Destination::Stdout => (File::from(io::stdout().as_fd().try_clone_to_owned()?), None),
            Destination::Path(path) => (open_append(&path)?, Some(path)),
        };
        let log = Self::to_file(output, queue_lines, report)?;
        Ok(Self { path, ..log })
    }

    /// The same of an open file, or of a pipe.
    ///
    /// # Errors
    ///
    /// When the thread cannot be started.
    pub fn to_file(
        output: File,
        queue_lines: usize,
        report: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Arc::new(Queue::new(queue_lines.max(1)));
        let run = {
            let queue = Arc::clone(&queue);
            move || writer::run(&queue, output, &report)
        };
        let thread = Some(
            thread::Builder::new()
                .name("weir-access-log".into())
                .spawn(run)?,
        );
        Ok(Self {
            path: None,
            running: Some(Running { queue, thread }),
        })
    }

    /// Whether anything is logged: making a line costs more than this question.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.running.is_some()
    }

    /// Logs `line`, its end included, or drops and counts it. Never waits for the destination.
    pub fn push(&self, line: &[u8]) {
        if let Some(running) = &self.running {
            running.queue.push(line);
        }
    }

    /// Opens the path again, after the file was moved away; lines written from now on go there.
    /// Nothing for other destinations.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened: the old one stays in use.
    pub fn reopen(&self) -> io::Result<()> {
        match &self.path {
            Some(path) => {
                self.replace_file(open_append(path)?);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Lines written from now on go to this file.
    pub fn replace_file(&self, output: File) {
        if let Some(running) = &self.running {
            running.queue.replace_output(output);
        }
    }

    /// Waits until every line logged so far is written or dropped, at most `limit`; returns whether
    /// they are.
    #[must_use]
    pub fn flush(&self, limit: Duration) -> bool {
        self.running
            .as_ref()
            .is_none_or(|running| running.queue.flush(limit))
    }

    /// Lines dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.running
            .as_ref()
            .map_or(0, |running| running.queue.dropped())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue.close();
        let done = self.queue.flush(CLOSE_LIMIT);
        // a blocked writer keeps running: it owns all that it uses
        if let Some(thread) = self.thread.take().filter(|_| done) {
            let _panicked = thread.join();
        }
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .open(path)
}
