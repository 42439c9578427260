//! One trace after the other.

use super::file_names::FileNames;
use super::rotation::Rotation;
use super::row;
use super::window::{Window, text_bytes};
use jiff::Timestamp;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use weir_measure::{Label as _, Unrecorded};
use weir_proxy::record::{Finished, Recorder, Tally};
use weir_trace::{Anonymiser, Row, TraceError, WriteSummary, Writer};

/// Rows of a row group: what is held in memory until it is full, some 5 MB.
const GROUP_ROWS: usize = 8 * 1024;

/// Bytes of readable targets in it.
const GROUP_TEXT_BYTES_MAX: usize = 1 << 20;

/// How long nothing is tried after the disk refused something; a shorter time of rotation counts
/// instead.
const REST: Duration = Duration::from_secs(60);

/// Prints a message for the operator.
pub(super) type Say = Box<dyn Fn(&str) + Send>;

/// Traces of what happens, one after the other.
///
/// A file is finished on a thread of its own: what waits for the device meanwhile is not what
/// happens.
pub(super) struct Series {
    file_names: FileNames,
    rotation: Rotation,
    anonymiser: Anonymiser,
    say: Say,
    numbers_from: u64,
    open: Option<Open>,
    closing: Option<Closing>,
    /// Nothing is written before then.
    rests_until: Option<Instant>,
    /// It was said that nothing can be written, and not yet that it can again.
    is_failing: bool,
    /// Requests that the files so far report as not recorded, by reason.
    told: [u64; Unrecorded::COUNT],
}

/// A file that is being written.
struct Open {
    writer: Writer,
    window: Window,
    path: PathBuf,
    /// When the first row came.
    began: Option<Instant>,
    /// Bytes of targets since rows were written last.
    text_bytes: usize,
}

/// A file that is being finished.
struct Closing {
    path: PathBuf,
    rows: u64,
    thread: JoinHandle<Result<WriteSummary, TraceError>>,
}

impl Open {
    /// Adds a row.
    fn push(&mut self, row: Row) -> Result<(), TraceError> {
        self.began.get_or_insert_with(Instant::now);
        self.window.push(row);
        while let Some(row) = self.window.overflow() {
            self.text_bytes += text_bytes(&row);
            self.writer.push(*row)?;
            if self.text_bytes > GROUP_TEXT_BYTES_MAX {
                self.text_bytes = 0;
                self.writer.flush()?;
            }
        }
        Ok(())
    }

    /// How many rows it has.
    fn rows(&self) -> u64 {
        self.writer.rows() + self.window.len()
    }

    /// Writes the rest, and gives the file its name.
    fn finish(mut self) -> Result<WriteSummary, TraceError> {
        while let Some(row) = self.window.pop() {
            self.writer.push(*row)?;
        }
        self.writer.finish()
    }
}

impl Series {
    /// Begins the first file: what cannot be written at all shows now.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(super) fn open(
        file_names: FileNames,
        rotation: Rotation,
        anonymiser: Anonymiser,
        say: Say,
    ) -> Result<Self, TraceError> {
        let mut series = Self {
            file_names,
            rotation,
            anonymiser,
            say,
            // anywhere: two runs may begin in the same second
            numbers_from: RandomState::new().build_hasher().finish(),
            open: None,
            closing: None,
            rests_until: None,
            is_failing: false,
            told: [0; Unrecorded::COUNT],
        };
        series.begin()?;
        Ok(series)
    }

    /// The file that is being written.
    pub(super) fn path(&self) -> &Path {
        self.open.as_ref().map_or(Path::new(""), |open| &open.path)
    }

    /// Begins a file, if none is open.
    fn begin(&mut self) -> Result<&mut Open, TraceError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let path = self.file_names.next(Timestamp::now());
                let meta = self.anonymiser.meta("weir serve --record");
                let writer = Writer::create(&path, meta)?.with_group_rows(GROUP_ROWS);
                Open {
                    writer,
                    window: Window::default(),
                    path,
                    began: None,
                    text_bytes: 0,
                }
            }
        };
        Ok(self.open.insert(open))
    }

    /// Writes a row.
    fn write(&mut self, finished: &Finished, tally: &Tally) {
        let Ok(row) = row::of(finished, self.numbers_from, &self.anonymiser) else {
            tally.unrecorded(Unrecorded::NotHttp, 1);
            return;
        };
        let open = match self.begin() {
            Ok(open) => open,
            Err(error) => {
                tally.unrecorded(Unrecorded::WriteFailed, 1);
                self.fail(&error);
                return;
            }
        };
        let rows_before = open.rows();
        match open.push(row) {
            Ok(()) => {
                tally.recorded();
                if open.writer.written_bytes() >= self.rotation.bytes() {
                    self.rotate(tally);
                }
            }
            Err(error) => {
                // what cannot be continued cannot be finished either
                self.open = None;
                tally.unrecorded(Unrecorded::Lost, rows_before);
                tally.unrecorded(Unrecorded::WriteFailed, 1);
                self.fail(&error);
            }
        }
    }

    /// Lets go of the file that is open: it is finished while the next one is written.
    fn rotate(&mut self, tally: &Tally) {
        // one at a time: a device that is slower than what comes has to be waited for
        self.reap(tally, true);
        let Some(mut open) = self.open.take() else {
            return;
        };
        let rows = open.rows();
        let has_news = self.enter_unrecorded(&mut open.writer, tally);
        if rows == 0 && !has_news {
            return;
        }
        let path = open.path.clone();
        let spawned = thread::Builder::new()
            .name("weir-record-end".into())
            .spawn(move || open.finish());
        match spawned {
            Ok(thread) => {
                self.closing = Some(Closing { path, rows, thread });
            }
            Err(error) => {
                tally.unrecorded(Unrecorded::Lost, rows);
                self.fail(&error);
            }
        }
    }

    /// Says in a file what is missing since the last one; whether something is.
    fn enter_unrecorded(&mut self, writer: &mut Writer, tally: &Tally) -> bool {
        let mut has_news = false;
        for why in Unrecorded::ALL {
            let count = tally.count(*why);
            let before = std::mem::replace(&mut self.told[why.index()], count);
            if count > before {
                let dropped = &mut writer.meta_mut().dropped;
                dropped.insert(why.word().to_owned(), count - before);
                has_news = true;
            }
        }
        has_news
    }

    /// Looks what became of the file that is being finished, if it is; waits for it if `wait`.
    fn reap(&mut self, tally: &Tally, wait: bool) {
        let is_due = |closing: &mut Closing| wait || closing.thread.is_finished();
        let Some(closing) = self.closing.take_if(is_due) else {
            return;
        };
        match closing.thread.join() {
            Ok(Ok(written)) => {
                tally.finished(written.bytes);
                if std::mem::take(&mut self.is_failing) {
                    let path = closing.path.display();
                    (self.say)(&format!("recording works again: `{path}` is written"));
                }
            }
            Ok(Err(error)) => {
                tally.unrecorded(Unrecorded::Lost, closing.rows);
                self.fail(&error);
            }
            Err(_) => {
                tally.unrecorded(Unrecorded::Lost, closing.rows);
                self.fail(&format!(
                    "`{}` could not be written",
                    closing.path.display()
                ));
            }
        }
    }

    /// Something could not be written: says so, once, and leaves the disk alone for a while.
    fn fail(&mut self, error: &dyn std::fmt::Display) {
        let rest = self.rotation.time().min(REST);
        self.rests_until = Some(Instant::now() + rest);
        if !std::mem::replace(&mut self.is_failing, true) {
            (self.say)(&format!(
                "recording stops: {error}; requests go on, and it is tried again every {} s",
                rest.as_secs()
            ));
        }
    }

    fn is_resting(&mut self) -> bool {
        self.rests_until = self.rests_until.filter(|until| Instant::now() < *until);
        self.rests_until.is_some()
    }
}

impl Recorder for Series {
    fn take(&mut self, finished: &Finished, tally: &Tally) {
        if self.is_resting() {
            tally.unrecorded(Unrecorded::WriteFailed, 1);
        } else {
            self.write(finished, tally);
        }
    }

    fn tick(&mut self, tally: &Tally) {
        self.reap(tally, false);
        let began = self.open.as_ref().and_then(|open| open.began);
        if began.is_some_and(|began| began.elapsed() >= self.rotation.time()) {
            self.rotate(tally);
        }
    }

    fn end(&mut self, tally: &Tally) {
        self.rotate(tally);
        self.reap(tally, true);
    }
}
