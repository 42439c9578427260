//! The access log: one line per request, written by a thread of its own.
//!
//! A worker formats the line into a buffer of its thread and appends it to a bounded queue: no
//! system call, no allocation, and no wait for the destination of the log. A full queue or a
//! failing destination drops lines and counts them. The writer wakes for the first line, waits a
//! moment for more, and writes them together.

mod calendar;
mod combined;
mod entry;
mod escape;
mod fields;
mod json;
mod queue;
mod squid;
#[cfg(test)]
mod tests;
mod writer;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) use entry::{Entry, RequestLine};

use calendar::Stamp;
use queue::Queue;

/// Called with messages for the operator, a line each.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// How long dropping an [`AccessLog`] waits for its last lines: a blocked pipe must not delay the
/// end of the process for longer.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// A JSON object per line, ASCII only, with the fields of [`fields::FIELDS`]. The default.
    #[default]
    Json,
    /// Squid's native `access.log`.
    Squid,
    /// Common log format with referer and user agent, as Apache and nginx write it.
    Combined,
}

impl Format {
    /// Appends `entry` as one line, its end included.
    fn write(self, entry: &Entry<'_>, stamp: &mut Stamp, line: &mut Vec<u8>) {
        stamp.advance_to(entry.time_unix_ms);
        match self {
            Self::Json => json::write(entry, stamp, line),
            Self::Squid => squid::write(entry, line),
            Self::Combined => combined::write(entry, stamp, line),
        }
        line.push(b'\n');
    }
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Nowhere: logging costs one comparison.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to a file, made with mode 0640 if need be.
    Path(PathBuf),
}

/// An open access log. Share it by `Arc`; dropping the last one waits up to two seconds for the
/// last lines.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: Format,
    path: Option<PathBuf>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch { line: Vec::new(), stamp: Stamp::new() }) };
}

/// What a thread keeps between lines.
struct Scratch {
    line: Vec<u8>,
    stamp: Stamp,
}

impl AccessLog {
    /// Opens `destination` and starts the writer, which calls `say` once if it cannot write, and
    /// again only for another file. At most `queue_lines` lines (at least 1) and 16 MiB wait for
    /// it.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or the thread cannot be started.
    pub(crate) fn open(
        destination: Destination,
        format: Format,
        queue_lines: usize,
        say: Say,
    ) -> io::Result<Self> {
        let (output, path) = match destination {
            Destination::Off => {
                return Ok(Self {
                    format,
                    path: None,
                    running: None,
                });
            }
            Destination::Stdout => (File::from(io::stdout().as_fd().try_clone_to_owned()?), None),
            Destination::Path(path) => (open_append(&path)?, Some(path)),
        };
        let queue = Arc::new(Queue::new(queue_lines.max(1)));
        let run = {
            let queue = Arc::clone(&queue);
            move || writer::run(&queue, output, &say)
        };
        let thread = Some(
            thread::Builder::new()
                .name("weir-access-log".into())
                .spawn(run)?,
        );
        Ok(Self {
            format,
            path,
            running: Some(Running { queue, thread }),
        })
    }

    /// Whether anything is logged: making an entry costs more than this question.
    #[must_use]
    pub(crate) fn is_on(&self) -> bool {
        self.running.is_some()
    }

    /// Logs `entry`, or drops and counts it. Never waits for the destination.
    pub(crate) fn log(&self, entry: &Entry<'_>) {
        let Some(running) = &self.running else { return };
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.line.clear();
            self.format
                .write(entry, &mut scratch.stamp, &mut scratch.line);
            running.queue.push(&scratch.line);
        });
    }

    /// Opens the path again, after the file was moved away; lines written from now on go there.
    /// Nothing for other destinations.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened: the old one stays in use.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        if let (Some(path), Some(running)) = (&self.path, &self.running) {
            running.queue.replace_output(open_append(path)?);
        }
        Ok(())
    }

    /// Waits until every line logged so far is written or dropped, at most `limit`; returns whether
    /// they are.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        self.running
            .as_ref()
            .is_none_or(|running| running.queue.flush(limit))
    }

    /// Lines dropped so far.
    #[must_use]
    pub(crate) fn dropped(&self) -> u64 {
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

/// Name and meaning of each field of a JSON line, in the order in which they are written.
pub fn log_fields() -> impl Iterator<Item = (&'static str, &'static str)> {
    let always = [
        ("time", "When the response ended, RFC 3339, UTC."),
        ("client", "Address and port of the client."),
    ];
    let fields = fields::FIELDS.iter().map(|field| (field.name, field.about));
    always.into_iter().chain(fields)
}
