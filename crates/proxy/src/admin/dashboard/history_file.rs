//! The file of the history, so that it outlives a restart.
//!
//! A head of 16 KiB with the names of the series, then the rows of the hour, then those of the
//! week, each at the place of its time: eight bytes for the time, four for each value,
//! little-endian. Each minute the row of the minute and those of its seconds are written over the
//! old ones. Nothing is synchronised: after a crash of the machine some rows are lost or, at worst,
//! a chart has a wrong point. What is read is checked: a row counts only at the place of its own
//! time, and not if that is in the future.

use crate::log::access_log::Say;
use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock, open};
use std::borrow::Borrow;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use weir_measure::history::series::Series;
use weir_measure::history::{History, Step};

/// What the file begins with.
const MAGIC: &str = "weir history 1\n";

const MAGIC_BYTES: u64 = MAGIC.len() as u64;

/// Bytes of the head. Names of 112 series of 40 bytes would take 5 KiB.
const HEAD_BYTES: usize = 16 << 10;

/// Rows that are read at once, some 60 KiB: a whole file would be most of the memory at the start.
const ROWS_READ: usize = 128;

/// Its name in the directory of a store, or in the directory for the state of a service.
pub(crate) const FILE_NAME: &str = "weir-history";

/// An open file of a history, which no other process uses.
pub(crate) struct HistoryFile {
    file: File,
    /// The series of this process: what is written.
    width: usize,
    /// What ended before this is written, seconds since 1970 UTC.
    saved_s: u64,
    /// It could not be written, and this was said.
    failed: bool,
    say: Say,
}

impl fmt::Debug for HistoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl HistoryFile {
    /// Opens the file, or creates it; it is for its owner alone, also if it was not before. A link
    /// is not followed.
    ///
    /// # Errors
    ///
    /// It cannot be opened, another process uses it, or it has something else than a history, which
    /// is not overwritten.
    pub(crate) fn open(path: &Path, say: Say) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::RUSR | Mode::WUSR)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut begin = [0; MAGIC.len()];
        // a file whose head was never written begins with zeros
        let is_history = match file.metadata()?.len() {
            0 => true,
            1..MAGIC_BYTES => false,
            _ => {
                file.read_exact_at(&mut begin, 0)?;
                begin == *MAGIC.as_bytes() || begin == [0; MAGIC.len()]
            }
        };
        if !is_history {
            let why =
                "it is no history of weir, and is left as it is: name another file, or remove it";
            return Err(io::Error::other(why));
        }
        // what it says of the users of the proxy is for those who operate it
        fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        Ok(Self {
            file,
            width: 0,
            saved_s: 0,
            failed: false,
            say,
        })
    }

    /// Puts what an earlier process wrote into `history`, whose series these are, and begins the
    /// file anew with that.
    pub(super) fn fill(&mut self, series: &[Series], history: &mut History, now_s: u64) {
        self.width = series.len();
        self.saved_s = now_s;
        match self.read(series, history, now_s) {
            Ok(true) => {}
            Ok(false) => (self.say)("the file of the history is damaged, and is begun anew"),
            Err(error) => self.report(&error),
        }
        if let Err(error) = self.write_all(series, history, now_s) {
            self.report(&error);
        }
    }

    /// Takes the rows of the file; `false` if it is none, or not whole. An empty one is whole.
    /// Series that the file has not stay unknown.
    fn read(&self, series: &[Series], history: &mut History, now_s: u64) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        if length == 0 {
            return Ok(true);
        }
        let mut head = vec![0; HEAD_BYTES.min(usize::try_from(length).unwrap_or(HEAD_BYTES))];
        self.file.read_exact_at(&mut head, 0)?;
        let Some(names) = names(&head) else {
            return Ok(false);
        };
        let width = names.len();
        if length != (HEAD_BYTES + History::bytes(width)) as u64 {
            return Ok(false);
        }
        let place = |one: &Series| names.iter().position(|name| *name == one.name);
        let places: Vec<Option<usize>> = series.iter().map(place).collect();
        let mut rows = vec![0; ROWS_READ * row_bytes(width)];
        for step in Step::ALL {
            for first in (0..step.rows()).step_by(ROWS_READ) {
                let count = ROWS_READ.min(step.rows() - first);
                let rows = &mut rows[..count * row_bytes(width)];
                let begin = offset(width, step, first) as u64;
                self.file.read_exact_at(rows, begin)?;
                for (index, row) in (first..).zip(rows.chunks_exact(row_bytes(width))) {
                    take((step, index), row, &places, history, now_s);
                }
            }
        }
        Ok(true)
    }

    /// Writes the head and all known rows; what is not written is zero, which is no row.
    fn write_all(&self, series: &[Series], history: &History, now_s: u64) -> io::Result<()> {
        self.file.set_len(0)?;
        let length = HEAD_BYTES + History::bytes(self.width);
        self.file.set_len(length as u64)?;
        self.write_rows(self.rows(history, 0, now_s))?;
        // last: a file without its head counts as damaged
        self.file.write_all_at(&head(series), 0)
    }

    /// The known rows from `from_s` to the one before `to_s`, as they are written.
    fn rows(&self, history: &History, from_s: u64, to_s: u64) -> impl Iterator<Item = WrittenRow> {
        let steps = Step::ALL.into_iter();
        let times = steps.flat_map(move |step| {
            let times = History::times(step, from_s, to_s);
            times.map(move |at_s| (step, at_s))
        });
        times.filter_map(move |(step, at_s)| {
            let mut bytes = Vec::with_capacity(row_bytes(self.width));
            bytes.extend_from_slice(&at_s.to_le_bytes());
            for value in history.row(step, at_s)? {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            let offset = offset(self.width, step, history.place(step, at_s)) as u64;
            Some(WrittenRow { offset, bytes })
        })
    }

    /// The rows that have ended since the last ones were written.
    pub(super) fn rows_since(&self, history: &History, now_s: u64) -> Vec<WrittenRow> {
        self.rows(history, self.saved_s, now_s).collect()
    }

    fn write_rows<R: Borrow<WrittenRow>>(
        &self,
        rows: impl IntoIterator<Item = R>,
    ) -> io::Result<()> {
        rows.into_iter().try_for_each(|row| {
            let row = row.borrow();
            self.file.write_all_at(&row.bytes, row.offset)
        })
    }

    /// Writes rows that ended before `to_s`. If they cannot be written, this is said once, and what
    /// is in memory stays.
    pub(super) fn write(&mut self, rows: &[WrittenRow], to_s: u64) {
        match self.write_rows(rows) {
            // the row of this minute is to come
            Ok(()) => self.saved_s = Step::Minute.begin_of(to_s),
            Err(error) => self.report(&error),
        }
    }

    fn report(&mut self, error: &io::Error) {
        if !self.failed {
            self.failed = true;
            (self.say)(&format!(
                "the history is kept in memory alone, as its file cannot be used: {error}"
            ));
        }
    }
}

/// A row as it is in the file.
#[derive(Debug)]
pub(super) struct WrittenRow {
    offset: u64,
    bytes: Vec<u8>,
}

/// Bytes of a row.
const fn row_bytes(width: usize) -> usize {
    size_of::<u64>() + width * size_of::<f32>()
}

/// Where a row is.
fn offset(width: usize, step: Step, place: usize) -> usize {
    let before = match step {
        Step::Second => 0,
        Step::Minute => Step::Second.rows(),
    };
    HEAD_BYTES + (before + place) * row_bytes(width)
}

/// The head of a file with these series.
fn head(series: &[Series]) -> Vec<u8> {
    let names = series.iter().map(|series| series.name.as_str());
    let names: Vec<&str> = names.collect();
    let mut head = format!("{MAGIC}{}\n\n", names.join("\n")).into_bytes();
    head.resize(HEAD_BYTES, 0);
    head
}

/// The names in the head of a file.
fn names(bytes: &[u8]) -> Option<Vec<&str>> {
    let head = bytes.get(..HEAD_BYTES)?;
    let text = head.strip_prefix(MAGIC.as_bytes())?;
    let end = text.windows(2).position(|pair| pair == b"\n\n")?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    Some(text.split('\n').collect())
}

/// Takes the row at this place of a file, if it is of a time that belongs there. `places`: where
/// the file has each series of the history.
fn take(
    (step, index): (Step, usize),
    row: &[u8],
    places: &[Option<usize>],
    history: &mut History,
    now_s: u64,
) {
    let Some((time, values)) = row.split_first_chunk::<8>() else {
        return;
    };
    let at_s = u64::from_le_bytes(*time);
    let kept_s = step.rows() as u64 * step.seconds();
    let is_known = at_s < now_s && at_s >= now_s.saturating_sub(kept_s) && at_s > 0;
    if !is_known || step.begin_of(at_s) != at_s || history.place(step, at_s) != index {
        return;
    }
    let value = |place: &Option<usize>| {
        let values = values.get(place.as_ref()? * size_of::<f32>()..)?;
        let value = f32::from_le_bytes(*values.first_chunk()?);
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    let values = places.iter().map(|place| value(place).unwrap_or(f32::NAN));
    history.push(step, at_s, &values.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};
    use weir_measure::history::series;

    /// A full minute.
    const MINUTE: u64 = 1_764_230_400;

    struct Place {
        folder: tempfile::TempDir,
        said: Arc<Mutex<Vec<String>>>,
    }

    impl Place {
        fn new() -> Self {
            Self {
                folder: tempfile::tempdir().expect("a folder"),
                said: Arc::default(),
            }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join(FILE_NAME)
        }

        fn open(&self) -> io::Result<HistoryFile> {
            let said = Arc::clone(&self.said);
            let say = move |line: &str| said.lock().expect("no panic").push(line.to_owned());
            HistoryFile::open(&self.path(), Arc::new(say))
        }

        /// What a process finds that starts at `now_s`.
        fn start(&self, series: &[Series], now_s: u64) -> (HistoryFile, History) {
            let mut file = self.open().expect("opened");
            let mut history = History::new(series.len());
            file.fill(series, &mut history, now_s);
            (file, history)
        }

        /// Saves what has ended by `now_s`.
        fn save(file: &mut HistoryFile, history: &History, now_s: u64) {
            let rows = file.rows_since(history, now_s);
            file.write(&rows, now_s);
        }

        fn said(&self) -> Vec<String> {
            self.said.lock().expect("no panic").clone()
        }
    }

    fn row(series: &[Series], value: f32) -> Vec<f32> {
        (0..series.len()).map(|_| value).collect()
    }

    #[test]
    fn history_outlives_a_restart_and_gets_older_meanwhile() {
        let place = Place::new();
        let series = series::all(&[]);
        let (mut file, mut history) = place.start(&series, MINUTE);
        for second in 0..60 {
            history.push(Step::Second, MINUTE + second, &row(&series, 1.0));
        }
        history.push(Step::Minute, MINUTE, &row(&series, 60.0));
        Place::save(&mut file, &history, MINUTE + 60);
        drop(file);
        let (file, found) = place.start(&series, MINUTE + 100);
        let expected = row(&series, 1.0);
        assert_eq!(found.row(Step::Second, MINUTE + 59), Some(&expected[..]));
        assert_eq!(found.row(Step::Second, MINUTE + 60), None);
        let expected = row(&series, 60.0);
        assert_eq!(found.row(Step::Minute, MINUTE), Some(&expected[..]));
        drop(file);
        // two hours later the seconds are gone, and the minute is there
        let (_file, found) = place.start(&series, MINUTE + 7_200);
        assert_eq!(found.row(Step::Second, MINUTE + 59), None);
        assert_eq!(found.row(Step::Minute, MINUTE), Some(&expected[..]));
        assert_eq!(place.said(), [""; 0]);
    }

    #[test]
    fn series_keep_their_rows_by_name_when_there_are_more_of_them() {
        let place = Place::new();
        let all = series::all(&[]);
        let few: Vec<Series> = all.iter().skip(2).step_by(3).cloned().collect();
        let (mut file, mut history) = place.start(&few, MINUTE);
        let values: Vec<f32> = (1..=u8::try_from(few.len()).expect("few"))
            .map(f32::from)
            .collect();
        history.push(Step::Minute, MINUTE, &values);
        Place::save(&mut file, &history, MINUTE + 60);
        drop(file);
        let (_file, found) = place.start(&all, MINUTE + 60);
        let row = found.row(Step::Minute, MINUTE).expect("there");
        for (series, value) in all.iter().zip(row) {
            let place = few.iter().position(|one| one.name == series.name);
            let expected = place.map(|place| values[place]);
            assert_eq!(
                (!value.is_nan()).then_some(*value),
                expected,
                "{}",
                series.name
            );
        }
    }

    #[test]
    fn damaged_file_is_begun_anew_and_no_row_of_another_time_is_taken() {
        let series = series::all(&[]);
        let length = HEAD_BYTES + History::bytes(series.len());
        let filled = |byte: u8, length: usize| {
            let mut bytes = head(&series);
            bytes.resize(length, byte);
            bytes
        };
        let files: [(&str, Vec<u8>, bool); 6] = [
            ("no head", vec![0; length], true),
            ("short", filled(0, length - 1), true),
            ("long", filled(0, length + 1), true),
            ("head alone", head(&series), true),
            (
                "many names",
                format!("{MAGIC}{}", "a\n".repeat(1 << 20)).into_bytes(),
                true,
            ),
            // times in the future, values that are none
            ("all bits set", filled(0xff, length), false),
        ];
        for (what, bytes, is_said) in files {
            let place = Place::new();
            std::fs::write(place.path(), bytes).expect("written");
            let (mut file, mut history) = place.start(&series, MINUTE);
            let rows = Step::ALL.iter().flat_map(|step| {
                let times = History::times(*step, 0, MINUTE);
                times.filter_map(|at_s| history.row(*step, at_s))
            });
            assert_eq!(rows.count(), 0, "{what}");
            assert_eq!(
                !place.said().is_empty(),
                is_said,
                "{what}: {:?}",
                place.said()
            );
            history.push(Step::Minute, MINUTE, &row(&series, 1.0));
            Place::save(&mut file, &history, MINUTE + 60);
            drop(file);
            let (_file, found) = place.start(&series, MINUTE + 60);
            assert!(found.row(Step::Minute, MINUTE).is_some(), "{what}");
        }
    }

    #[test]
    fn file_that_is_no_history_is_refused_and_left_as_it_is() {
        for text in ["a diary", "weir history of another kind, and a long one"] {
            let place = Place::new();
            std::fs::write(place.path(), text).expect("written");
            let error = place.open().expect_err(text);
            assert!(error.to_string().contains("no history of weir"), "{error}");
            assert_eq!(std::fs::read_to_string(place.path()).expect("there"), text);
        }
    }

    #[test]
    fn values_that_are_no_numbers_become_unknown() {
        let place = Place::new();
        let series = series::all(&[]);
        let (mut file, mut history) = place.start(&series, MINUTE);
        let mut values = row(&series, 5.0);
        (values[0], values[1], values[2]) = (f32::INFINITY, -1.0, f32::NAN);
        history.push(Step::Minute, MINUTE, &values);
        Place::save(&mut file, &history, MINUTE + 60);
        drop(file);
        let (_file, found) = place.start(&series, MINUTE + 60);
        let found = found.row(Step::Minute, MINUTE).expect("there");
        assert!(found[..3].iter().all(|value| value.is_nan()));
        assert!(found[3..].iter().all(|value| *value == 5.0));
    }

    #[test]
    fn file_is_for_its_owner_and_one_process_alone_and_no_link_is_followed() {
        let place = Place::new();
        let first = place.open().expect("created");
        let mode = std::fs::metadata(place.path())
            .expect("there")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        assert!(place.open().is_err(), "it is in use");
        drop(first);
        // also one that was for others before
        let for_all = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(place.path(), for_all).expect("permitted");
        drop(place.open().expect("opened"));
        let mode = std::fs::metadata(place.path()).expect("there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        let elsewhere = place.folder.path().join("elsewhere");
        std::fs::rename(place.path(), &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, place.path()).expect("linked");
        assert!(place.open().is_err(), "a link");
    }

    #[test]
    fn file_that_cannot_be_written_is_said_once_and_the_history_goes_on() {
        let place = Place::new();
        let series = series::all(&[]);
        let (_file, mut history) = place.start(&series, MINUTE);
        let said = Arc::clone(&place.said);
        let say = move |line: &str| said.lock().expect("no panic").push(line.to_owned());
        // open for reading alone
        let mut file = HistoryFile {
            file: File::open(place.path()).expect("there"),
            width: series.len(),
            saved_s: MINUTE,
            failed: false,
            say: Arc::new(say),
        };
        history.push(Step::Minute, MINUTE, &row(&series, 1.0));
        Place::save(&mut file, &history, MINUTE + 60);
        Place::save(&mut file, &history, MINUTE + 60);
        assert_eq!(place.said().len(), 1, "{:?}", place.said());
        assert!(history.row(Step::Minute, MINUTE).is_some());
    }
}
