//! What the files of a series are called.

use jiff::Timestamp;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names for one file after the other: `t.parquet` makes `t-20261121T234255Z-1.parquet`,
/// `t-20261122T004255Z-2.parquet` and so on.
#[derive(Debug)]
pub(super) struct FileNames {
    /// All before the time.
    stem: PathBuf,
    /// Behind the last full stop.
    extension: OsString,
    /// How many there were.
    count: u64,
}

impl FileNames {
    /// Names after `file`.
    ///
    /// # Errors
    ///
    /// It names no file: what it is instead.
    pub(super) fn of(file: &Path) -> Result<Self, String> {
        if file.is_dir() {
            return Err("it is a directory".to_owned());
        }
        let stem = file.file_stem().ok_or("it has no name")?;
        Ok(Self {
            stem: file.with_file_name(stem),
            extension: file.extension().unwrap_or("parquet".as_ref()).to_owned(),
            count: 0,
        })
    }

    /// The next one, for a file that is begun at `now`. None that is there already.
    pub(super) fn next(&mut self, now: Timestamp) -> PathBuf {
        loop {
            self.count += 1;
            let mut name = OsString::from(&self.stem);
            name.push(format!("-{}-{}.", stamp(now), self.count));
            name.push(&self.extension);
            let path = PathBuf::from(name);
            if !path.exists() {
                return path;
            }
        }
    }
}

/// `20261121T234255Z` (ISO 8601, basic format): no colon, which other systems do not allow in a
/// name, and in the order of time.
fn stamp(now: Timestamp) -> String {
    let text = format!("{:.0}", now);
    text.chars()
        .filter(|char| !matches!(char, '-' | ':'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[track_caller]
    fn check(file: &str, expected: &str) {
        let mut names = FileNames::of(Path::new(file)).expect("a name");
        let path = names.next(at("2026-11-21T23:42:55.999Z"));
        assert_eq!(path, Path::new(expected));
    }

    #[test]
    fn record_file_name_adds_time_and_number_before_the_extension() {
        check("t.parquet", "t-20261121T234255Z-1.parquet");
        check("not-there/t.trace", "not-there/t-20261121T234255Z-1.trace");
        check("/a.b/t", "/a.b/t-20261121T234255Z-1.parquet");
        check("t.1.parquet", "t.1-20261121T234255Z-1.parquet");
        assert!(FileNames::of(Path::new("/")).is_err());
    }

    #[test]
    fn record_file_name_that_exists_is_skipped() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let now = at("2026-11-21T23:42:55Z");
        let name = |number: u32| {
            folder
                .path()
                .join(format!("t-20261121T234255Z-{number}.parquet"))
        };
        std::fs::write(name(1), "another run's").expect("written");
        let mut names = FileNames::of(&folder.path().join("t.parquet")).expect("a name");
        assert_eq!(names.next(now), name(2));
        assert_eq!(names.next(now), name(3));
        assert!(FileNames::of(folder.path()).is_err());
    }
}
