//! A file that has its name only when it is whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A file that is being written as `PATH.part`. Dropped before [`Part::commit`], it is removed; after a crash it is left there, and the
/// next writer takes its place.
#[derive(Debug)]
pub(super) struct Part {
    /// The file, locked: two writers of one path would write into each other.
    file: File,
    from: PathBuf,
    to: PathBuf,
    is_whole: bool,
}

impl Part {
    /// Begins to write what will be `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a directory",
            ));
        }
        let mut from = OsString::from(path);
        from.push(".part");
        let from = PathBuf::from(from);
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .write(true)
            .truncate(false)
            .open(&from)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("another process writes `{}`", from.display()),
            ),
            TryLockError::Error(error) => error,
        })?;
        file.set_len(0)?;
        Ok(Self {
            file,
            from,
            to: path.to_owned(),
            is_whole: false,
        })
    }

    /// The file to write to.
    pub(super) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives it its name, once its bytes are on the device.
    pub(super) fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.from, &self.to)?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_whole {
            // nothing can be done about it, and the next writer takes its place
            let _ = fs::remove_file(&self.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn half_a_file_stands_under_the_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.parquet");
        let names = || -> Vec<OsString> {
            let entries = fs::read_dir(folder.path()).expect("a folder");
            entries
                .map(|entry| entry.expect("an entry").file_name())
                .collect()
        };
        fs::write(&path, "old").expect("written");
        let part = Part::create(&path).expect("created");
        part.file()
            .expect("a file")
            .write_all(b"new")
            .expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"old");
        let second = Part::create(&path).expect_err("somebody writes it");
        assert!(second.to_string().contains("another process"), "{second}");
        drop(part);
        assert_eq!(names(), ["x.parquet"]);

        fs::write(folder.path().join("x.parquet.part"), "left after a crash").expect("written");
        let part = Part::create(&path).expect("created");
        part.file()
            .expect("a file")
            .write_all(b"new")
            .expect("written");
        part.commit().expect("named");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        assert_eq!(names(), ["x.parquet"]);
        assert!(Part::create(folder.path()).is_err());
    }
}
