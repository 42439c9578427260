//! The access log: one line per request, written by a thread of its own.
//!
//! A worker formats the line into a buffer of its thread and appends it to the queue of a
//! [`LineLog`]: no system call, no allocation, and no wait for the destination of the log.

mod combined;
mod entry;
mod fields;
mod json;
mod privacy;
mod readable;
mod squid;
#[cfg(test)]
mod tests;

pub(crate) use entry::{Entry, RequestLine};
pub(crate) use privacy::{LoggedClient, Privacy};
pub(crate) use weir_log::Destination;

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use weir_log::{LineLog, Stamp};

/// Called with messages for the operator, a line each.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

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
    /// A short line for people, of at most so many columns.
    Readable {
        /// From [`COLUMNS_MIN`](readable::COLUMNS_MIN) to [`COLUMNS_MAX`](readable::COLUMNS_MAX).
        columns: u16,
    },
}

impl Format {
    /// The form of lines that people read at a terminal of so many columns; `None` if that is not
    /// known.
    pub(crate) fn readable(columns: Option<u16>) -> Self {
        let columns = columns.unwrap_or(readable::COLUMNS_MIN);
        Self::Readable {
            columns: columns.clamp(readable::COLUMNS_MIN, readable::COLUMNS_MAX),
        }
    }

    /// Appends `entry` as one line, its end included.
    fn write(self, entry: &Entry<'_>, stamp: &mut Stamp, line: &mut Vec<u8>) {
        stamp.advance_to(entry.time_unix_ms);
        match self {
            Self::Json => json::write(entry, stamp, line),
            Self::Squid => squid::write(entry, line),
            Self::Combined => combined::write(entry, stamp, line),
            Self::Readable { columns } => readable::write(entry, stamp, columns, line),
        }
        line.push(b'\n');
    }
}

/// An open access log. Share it by `Arc`; dropping the last one waits up to two seconds for the
/// last lines.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: Format,
    privacy: Privacy,
    lines: LineLog,
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
    /// As [`LineLog::open`]; `say` is called if it cannot be written.
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
        let report = move |error: &io::Error| {
            say(&format!(
                "the access log cannot be written ({error}): until it can, its lines are lost and counted in \
                 weir_access_log_dropped_total"
            ));
        };
        Ok(Self {
            format,
            privacy: Privacy::default(),
            lines: LineLog::open(destination, queue_lines, report)?,
        })
    }

    /// The same, which leaves this out of its lines.
    #[must_use]
    pub(crate) fn with_privacy(self, privacy: Privacy) -> Self {
        Self { privacy, ..self }
    }

    /// Whether anything is logged: making an entry costs more than this question.
    #[must_use]
    pub(crate) const fn is_on(&self) -> bool {
        self.lines.is_on()
    }

    /// Logs `entry`, or drops and counts it. Never waits for the destination.
    pub(crate) fn log(&self, entry: &Entry<'_>) {
        if !self.is_on() {
            return;
        }
        let entry = self.privacy.shown(entry);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.line.clear();
            self.format
                .write(&entry, &mut scratch.stamp, &mut scratch.line);
            self.lines.push(&scratch.line);
        });
    }

    /// As [`LineLog::reopen`].
    ///
    /// # Errors
    ///
    /// When the file cannot be opened: the old one stays in use.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        self.lines.reopen()
    }

    /// As [`LineLog::flush`].
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        self.lines.flush(limit)
    }

    /// Lines dropped so far.
    #[must_use]
    pub(crate) fn dropped(&self) -> u64 {
        self.lines.dropped()
    }
}

/// Name and meaning of each field of a JSON line, in the order in which they are written.
pub fn log_fields() -> impl Iterator<Item = (&'static str, &'static str)> {
    let always = [
        ("time", "When the response ended, RFC 3339, UTC."),
        (
            "client",
            "Address and port of the client, or with `log.clients = \"hash\"` its name in `/top`.",
        ),
    ];
    let fields = fields::FIELDS.iter().map(|field| (field.name, field.about));
    always.into_iter().chain(fields)
}
