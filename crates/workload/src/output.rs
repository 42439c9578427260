//! Files that a command writes: one place for what happens to the name that an operator gives.
//!
//! A regular file, or a name that is free, is written as `PATH.part` and renamed once it is whole.
//! A symbolic link is followed, and the file it names is the one that is replaced. A device or a
//! fifo is opened and written to: it is never replaced. A directory or a socket is refused. Files
//! that a command continues (a sweep, a recording in pieces) have their own rules and use
//! [`replaceable`].

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Symbolic links followed one after the other: the number of Linux.
const LINKS_MAX: usize = 40;

/// A file that is being written. Dropped before [`OutputFile::commit`], nothing is left of it;
/// after a crash `PATH.part` is left, and the next writer takes its place.
#[derive(Debug)]
pub struct OutputFile {
    /// Locked if it is a part: two writers of one path would write into each other.
    file: File,
    /// The part and the name it gets; `None` where bytes go into what has the name.
    names: Option<(PathBuf, PathBuf)>,
}

impl OutputFile {
    /// Begins to write what will be `path`.
    ///
    /// # Errors
    /// `path` is a directory or a socket, its directory is missing or read-only, or another process
    /// writes it.
    pub fn create(path: &Path) -> io::Result<Self> {
        match Destination::of(path)? {
            Destination::Opened { is_own_output } => {
                let mut options = OpenOptions::new();
                let file = options.write(true).append(is_own_output).open(path)?;
                Ok(Self { file, names: None })
            }
            Destination::Replaced(to, about) => Self::part_of(to, about.as_ref()),
        }
    }

    fn part_of(to: PathBuf, replaced: Option<&Metadata>) -> io::Result<Self> {
        let part = with_ending(&to, ".part");
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .write(true)
            .truncate(false)
            .open(&part)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("another process writes `{}`", part.display()),
            ),
            TryLockError::Error(error) => error,
        })?;
        let output = Self {
            file,
            names: Some((part, to)),
        };
        output.file.set_len(0)?;
        if let Some(about) = replaced {
            // the new file has the permissions of the old one
            output.file.set_permissions(about.permissions())?;
        }
        Ok(output)
    }

    /// The file to write to.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives it its name, once its bytes are on the device.
    ///
    /// # Errors
    /// The bytes or the name cannot be written.
    pub fn commit(mut self) -> io::Result<()> {
        if let Some((part, to)) = &self.names {
            self.file.sync_all()?;
            fs::rename(part, to)?;
            self.names = None;
        }
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.names {
            // nothing can be done about it, and the next writer takes its place
            let _ = fs::remove_file(part);
        }
    }
}

/// Writes all of a file. Directories on the way are made.
///
/// # Errors
/// As for [`OutputFile::create`], or the bytes cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_parent(path)?;
    let output = OutputFile::create(path)?;
    output.file()?.write_all(bytes)?;
    output.commit()
}

/// Makes the directories on the way to a file.
///
/// # Errors
/// One cannot be made.
pub fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// Tries whether `path` could be written, its directories made on the way, and leaves nothing
/// behind: before hours of work whose result would have no place.
///
/// # Errors
/// As for [`write()`].
pub fn try_path(path: &Path) -> io::Result<()> {
    let mut ancestors = path.ancestors().skip(1).map(|ancestor| match ancestor {
        _ if ancestor.as_os_str().is_empty() => Path::new("."),
        _ => ancestor,
    });
    let parent = ancestors.clone().next();
    let nearest = ancestors.find(|ancestor| !is_missing(&fs::metadata(ancestor)));
    if let Some(nearest) = nearest {
        if !fs::metadata(nearest)?.is_dir() {
            let cause = format!("`{}` is not a directory", nearest.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, cause));
        }
        if parent != Some(nearest) {
            // the directories between are made when there is something to write
            let name = format!(".weir-{}", std::process::id());
            return OutputFile::create(&nearest.join(name)).map(drop);
        }
    }
    let is_fifo = fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo());
    // to open a fifo is to wait for its reader
    if is_fifo {
        return Ok(());
    }
    OutputFile::create(path).map(drop)
}

/// The regular file, or the free name, that `path` stands for, symbolic links followed; `None` for
/// a device or a fifo, which cannot be replaced and has nothing beside it.
///
/// # Errors
/// It is a directory or a socket, or it cannot be looked at.
pub fn replaceable(path: &Path) -> io::Result<Option<PathBuf>> {
    Ok(match Destination::of(path)? {
        Destination::Opened { .. } => None,
        Destination::Replaced(path, _) => Some(path),
    })
}

/// A name for a file that is needed until `path` is whole: beside it, or among temporary files
/// where there is no beside.
#[must_use]
pub fn scratch_name(path: &Path, ending: &str) -> PathBuf {
    match replaceable(path) {
        Ok(None) => {
            let name = format!("weir-{}{ending}", std::process::id());
            std::env::temp_dir().join(name)
        }
        Ok(Some(path)) => with_ending(&path, ending),
        Err(_) => with_ending(path, ending),
    }
}

/// What the operator can do about it.
#[must_use]
pub fn hint(path: &Path, error: &io::Error) -> Option<String> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    Some(match error.kind() {
        io::ErrorKind::IsADirectory => format!("name a file in `{}`", path.display()),
        io::ErrorKind::NotFound => format!("make the directory `{}` first", parent.display()),
        io::ErrorKind::NotADirectory => {
            "name another path: a file is where a directory is needed".to_owned()
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => format!(
            "name a file in a directory that this user may write to; `{}` is none",
            parent.display()
        ),
        io::ErrorKind::StorageFull => {
            format!("make room on the file system of `{}`", parent.display())
        }
        io::ErrorKind::Unsupported => "name a file, a fifo or a device".to_owned(),
        io::ErrorKind::ResourceBusy => "wait for that process, or name another file".to_owned(),
        _ => return None,
    })
}

/// Where bytes go.
enum Destination {
    /// Into what has the name. What this process itself writes to stdout or stderr is not
    /// overwritten.
    Opened { is_own_output: bool },
    /// Into a new file of this name, instead of this one if there is one.
    Replaced(PathBuf, Option<Metadata>),
}

impl Destination {
    fn of(path: &Path) -> io::Result<Self> {
        let about = match fs::metadata(path) {
            about if is_missing(&about) => {
                return Ok(Self::Replaced(followed(path.to_owned())?, None));
            }
            about => about?,
        };
        let kind = about.file_type();
        if kind.is_dir() {
            let cause = "it is a directory";
            return Err(io::Error::new(io::ErrorKind::IsADirectory, cause));
        }
        if kind.is_socket() {
            let cause = "it is a socket, which cannot be opened";
            return Err(io::Error::new(io::ErrorKind::Unsupported, cause));
        }
        let is_own_output = kind.is_file() && is_own_output(&about);
        if !kind.is_file() || is_own_output {
            return Ok(Self::Opened { is_own_output });
        }
        Ok(Self::Replaced(followed(path.to_owned())?, Some(about)))
    }
}

/// Is this stdout or stderr of this process, as `/dev/stdout > FILE` is?
fn is_own_output(about: &Metadata) -> bool {
    let own = ["/proc/self/fd/1", "/proc/self/fd/2"];
    own.iter().any(|own| {
        fs::metadata(own).is_ok_and(|own| (own.dev(), own.ino()) == (about.dev(), about.ino()))
    })
}

fn is_missing(about: &io::Result<Metadata>) -> bool {
    about
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// What symbolic links at the end of `path` lead to, which need not exist.
fn followed(mut path: PathBuf) -> io::Result<PathBuf> {
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let cause = format!("more than {LINKS_MAX} symbolic links one after the other");
    Err(io::Error::new(io::ErrorKind::InvalidInput, cause))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(ending);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests;
