//! The lock of a directory of the kernel's.

use super::{HeldLock, Lock};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock is waited for whose process has ended. The kernel gives it back once the
/// process's last files are closed, which is some time after a `kill -9`: what is under way to the
/// device is waited for.
const ENDED_PROCESS_WAIT: Duration = Duration::from_secs(5);

/// How often it is tried meanwhile.
const TRY_EVERY: Duration = Duration::from_millis(10);

/// A lock of a directory.
#[derive(Debug)]
struct SystemLock {
    file: File,
    _directory: Option<File>,
}

impl HeldLock for SystemLock {
    fn is_of(&self, path: &Path) -> bool {
        let id = |found: Metadata| (found.dev(), found.ino());
        let (ours, there) = (self.file.metadata(), std::fs::metadata(path));
        matches!((ours.map(id), there.map(id)), (Ok(ours), Ok(there)) if ours == there)
    }
}

/// Locks the file `path` and the directory that it is in, and writes the process id into the file.
/// One that another process has which has ended is waited for.
///
/// # Errors
///
/// What the system says.
pub(super) fn lock(path: &Path) -> io::Result<Lock> {
    let until = Instant::now() + ENDED_PROCESS_WAIT;
    loop {
        let tried = try_lock(path)?;
        match tried {
            Lock::Taken(Some(pid)) if has_ended(pid) && Instant::now() < until => {
                std::thread::sleep(TRY_EVERY);
            }
            Lock::Taken(_) | Lock::Held(_) => return Ok(tried),
        }
    }
}

fn try_lock(path: &Path) -> io::Result<Lock> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let mut file = options.open(path)?;
    let directory = path.parent().map(File::open).transpose()?;
    let taken = match directory.as_ref().map(File::try_lock) {
        Some(Err(TryLockError::WouldBlock)) => true,
        // some file systems lock no directories: then the file's lock is all there is
        None | Some(Ok(()) | Err(TryLockError::Error(_))) => match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(error),
        },
    };
    if taken {
        let mut text = String::new();
        let read = file.take(20).read_to_string(&mut text);
        let pid = read.ok().and_then(|_| text.trim().parse().ok());
        return Ok(Lock::Taken(pid));
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Lock::Held(Box::new(SystemLock {
        file,
        _directory: directory,
    })))
}

/// Whether a process is not there any more, or runs none of its code any more. One that is not seen
/// from here, as in another container, looks so, too.
fn has_ended(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    // behind the name, which may have any characters (proc_pid_stat(5)): a zombie, or dead
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use tempfile::tempdir;

    #[test]
    fn lock_of_a_process_that_runs_is_not_waited_for() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = lock(&path).unwrap();
        assert!(matches!(held, Lock::Held(_)));
        let begun = Instant::now();
        let second = lock(&path).unwrap();
        assert!(matches!(second, Lock::Taken(Some(pid)) if pid == std::process::id()));
        assert!(begun.elapsed() < ENDED_PROCESS_WAIT);
    }

    #[test]
    fn lock_of_a_process_that_has_ended_is_waited_for() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let holder = File::create(&path).unwrap();
        holder.lock().unwrap();
        writeln!(&holder, "{}", ended.id()).unwrap();
        let taken = std::thread::spawn(move || lock(&path));
        assert!(!taken.is_finished());
        drop(holder);
        assert!(matches!(taken.join().unwrap().unwrap(), Lock::Held(_)));
    }

    #[test]
    fn process_has_ended_once_it_runs_no_code_whether_it_was_waited_for_or_not() {
        assert!(!has_ended(std::process::id()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(!has_ended(child.id()));
        drop(child.stdin.take());
        while !has_ended(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(child.id()));
    }
}
