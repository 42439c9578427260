//! The lock of a directory of the kernel's.

use super::{HeldLock, Lock};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How many fields are between the state of a process and its flags, in its `stat`.
const FLAGS_BEHIND_STATE: usize = 5;

/// The kernel is ending it (`PF_EXITING`).
const EXITING: u32 = 4;

/// How often a lock is tried that is waited for.
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

/// The same as [`try_lock`], but waits until then for the lock of a process that has ended.
///
/// # Errors
///
/// What the system says.
pub(super) fn lock_by(path: &Path, until: Instant) -> io::Result<Lock> {
    lock_of_ended(path, |pid| has_ended(pid) && Instant::now() < until)
}

/// Tries again for as long as `waits_for` says so of the process that has the lock.
fn lock_of_ended(path: &Path, mut waits_for: impl FnMut(u32) -> bool) -> io::Result<Lock> {
    loop {
        let tried = try_lock(path)?;
        match tried {
            Lock::Taken(Some(pid)) if waits_for(pid) => std::thread::sleep(TRY_EVERY),
            Lock::Taken(_) | Lock::Held(_) => return Ok(tried),
        }
    }
}

/// Locks the file `path` and the directory that it is in, and writes the process id into the file.
///
/// # Errors
///
/// What the system says.
pub(super) fn try_lock(path: &Path) -> io::Result<Lock> {
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

/// Whether a process is not there any more, or is ending. One that is not seen from here, as in
/// another container, looks so, too, and so does one whose number this process has now, as each
/// first process of a container has.
fn has_ended(pid: u32) -> bool {
    if pid == std::process::id() {
        return true;
    }
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    // behind the name, which may have any characters (proc_pid_stat(5))
    let mut fields = stat
        .rsplit_once(") ")
        .map_or("", |(_, rest)| rest)
        .split(' ');
    let state = fields.next();
    let flags = fields
        .nth(FLAGS_BEHIND_STATE)
        .and_then(|it| it.parse().ok());
    let is_exiting = flags.is_some_and(|flags: u32| flags & EXITING != 0);
    is_exiting || matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use tempfile::tempdir;

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn lock_of_a_process_that_runs_is_not_waited_for() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("lock");
        let holder = File::create(&path).unwrap();
        holder.lock().unwrap();
        let pid = std::os::unix::process::parent_id();
        writeln!(&holder, "{pid}").unwrap();
        let until = far();
        let taken = lock_by(&path, until).unwrap();
        assert!(matches!(taken, Lock::Taken(Some(said)) if said == pid));
        assert!(Instant::now() < until);
    }

    #[test]
    fn lock_of_a_process_that_has_ended_is_waited_for() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut holder = Some(File::create(&path).unwrap());
        holder.as_ref().unwrap().lock().unwrap();
        holder.as_ref().unwrap().write_all(b"4711\n").unwrap();
        let mut tries = 0;
        let taken = lock_of_ended(&path, |pid| {
            assert_eq!(pid, 4711);
            tries += 1;
            holder.take_if(|_| tries == 3);
            true
        });
        assert!(matches!(taken.unwrap(), Lock::Held(_)));
        assert_eq!(tries, 3);
    }

    #[test]
    fn lock_is_not_waited_for_longer_than_until_then() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("lock");
        let _held = try_lock(&path).unwrap();
        let taken = lock_by(&path, Instant::now()).unwrap();
        assert!(matches!(taken, Lock::Taken(Some(pid)) if pid == std::process::id()));
    }

    #[test]
    fn process_has_ended_once_it_runs_no_code_whether_it_was_waited_for_or_not() {
        assert!(!has_ended(std::os::unix::process::parent_id()));
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
