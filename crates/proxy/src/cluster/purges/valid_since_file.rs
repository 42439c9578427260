//! What is to be validated, beyond the end of the process: a node that is restarted before it has
//! validated all that it was told to does so with what it reads from disk.
//!
//! The file (docs/store-format.md) has one page, twice, and is made when the store is opened: from
//! then on it is written in place, so that a full file system does not prevent it. The copies are
//! written and synced one after the other: one that is torn leaves the other, and the higher number
//! of both counts. What is to be validated is said by the number of a ticket, which rises with each
//! request whatever the wall clock does.
//!
//! It is written by a thread of its own, so that no worker waits for the disk; what demands it is
//! answered when it is written. Demands that come meanwhile share one write.

use crate::log::access_log::Say;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use weir_disk::files::{Access, File, Files, read_bytes, write_full};
use weir_disk::format::{PAGE_BYTES, Seal};
use weir_disk::{NOTICE_INTERVAL_MS, PurgeError};
use weir_semantics::Timestamp;

/// How often a write that fails is tried before what demands it is answered.
const WRITE_TRIES_MAX: u32 = 3;

/// The pause between two of them: three take less than a member waits for an answer.
const WRITE_PAUSE: Duration = Duration::from_millis(100);

/// Copies of the page.
const COPIES: usize = 2;

const MAGIC: [u8; 8] = *b"WEIR-VAL";

const FORMAT_VERSION: u32 = 1;

/// Where the checksum stands in the page.
const SUM_AT: usize = PAGE_BYTES - size_of::<u64>();

/// What is to be validated once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Records with a ticket of at most this number; 0: none.
    pub(crate) ticket: u64,
    /// Records of responses that were received by then, by the wall clock.
    pub(crate) then: Timestamp,
}

impl Demand {
    const NONE: Self = Self {
        ticket: 0,
        then: Timestamp(i64::MIN),
    };

    /// What either demands.
    fn and(self, other: Self) -> Self {
        Self {
            ticket: self.ticket.max(other.ticket),
            then: self.then.max(other.then),
        }
    }
}

/// The file, and what is to be in it.
pub(crate) struct ValidSinceFile {
    path: PathBuf,
    files: Arc<dyn Files>,
    say: Say,
    state: Mutex<State>,
    /// Held while the file is written.
    writing: Mutex<()>,
    /// The ticket that was tried last, and whether it was written.
    tried: watch::Sender<(u64, bool)>,
}

#[derive(Debug)]
struct State {
    wanted: Demand,
    /// Whether the thread that writes runs.
    is_writing: bool,
    /// When it was said last that it cannot be written.
    said: Option<Instant>,
}

impl std::fmt::Debug for ValidSinceFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValidSinceFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl ValidSinceFile {
    /// Opens the file at `path`, or makes it; and what it demands. If it cannot be read, that is
    /// all there is: `last_ticket` is the last that was given out.
    pub(crate) fn open(
        path: PathBuf,
        files: Arc<dyn Files>,
        say: Say,
        (last_ticket, now): (u64, Timestamp),
    ) -> (Arc<Self>, Demand) {
        let read = read(&*files, &path);
        let (found, is_whole) = match read {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Demand::NONE, false),
            Err(why) => {
                say(&format!(
                    "cluster: cannot read `{}`: {why}: each stored response is validated once",
                    path.display()
                ));
                let ticket = last_ticket;
                (
                    Demand {
                        ticket,
                        ..Demand::NONE
                    },
                    false,
                )
            }
        };
        // nothing was received later, unless the clock was wrong: then the ticket says it
        let then = found.then.min(now);
        let is_whole = is_whole && then == found.then;
        let wanted = Demand { then, ..found };
        let file = Self {
            path,
            files,
            say,
            state: Mutex::new(State {
                wanted,
                is_writing: false,
                said: None,
            }),
            writing: Mutex::default(),
            tried: watch::Sender::new((wanted.ticket, is_whole)),
        };
        if !is_whole {
            file.write();
        }
        (Arc::new(file), wanted)
    }

    /// Has what `demand` says validated; ready when that survives a crash.
    pub(crate) fn demand(
        self: &Arc<Self>,
        demand: Demand,
    ) -> impl Future<Output = Result<(), PurgeError>> + Send + use<> {
        let file = Arc::clone(self);
        // another write follows one that has begun
        file.want(demand);
        file.write_if_due();
        async move {
            let mut tried = file.tried.subscribe();
            let tried = tried.wait_for(|(tried, _)| *tried >= demand.ticket).await;
            file.outcome(tried.is_ok_and(|tried| tried.1))
        }
    }

    /// The same for a thread that may wait for the disk.
    pub(crate) fn write_now(&self, demand: Demand) -> Result<(), PurgeError> {
        self.want(demand);
        self.write();
        let is_written = self.tried.borrow().1;
        self.outcome(is_written)
    }

    /// Whether all that was demanded survives a crash. If not, a thread tries to write it.
    pub(crate) fn write_if_due(self: &Arc<Self>) -> bool {
        let mut state = self.state();
        let wanted = state.wanted.ticket;
        let (tried, is_written) = *self.tried.borrow();
        if is_written && tried >= wanted {
            return true;
        }
        if state.is_writing {
            return false;
        }
        let file = Arc::clone(self);
        let run = move || {
            loop {
                let written = file.write();
                let mut state = file.state();
                state.is_writing = state.wanted.ticket > written;
                if !state.is_writing {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("weir-valid-since".into());
        state.is_writing = thread.spawn(run).is_ok();
        if !state.is_writing {
            self.tried.send_replace((wanted, false));
        }
        false
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn want(&self, demand: Demand) {
        let mut state = self.state();
        state.wanted = state.wanted.and(demand);
    }

    fn outcome(&self, is_written: bool) -> Result<(), PurgeError> {
        let path = self.path.clone();
        is_written.then_some(()).ok_or(PurgeError { path })
    }

    /// Writes what is wanted; the ticket of that.
    fn write(&self) -> u64 {
        let _writing = lock(&self.writing);
        let wanted = self.state().wanted;
        let mut tries = 1;
        let written = loop {
            let written = self.write_once(wanted);
            if written.is_ok() || tries == WRITE_TRIES_MAX {
                break written;
            }
            tries += 1;
            thread::sleep(WRITE_PAUSE);
        };
        if let Err(why) = &written {
            self.report(why);
        }
        self.tried.send_replace((wanted.ticket, written.is_ok()));
        wanted.ticket
    }

    /// Writes in place; if that fails, or there is no such file, puts a new one there.
    fn write_once(&self, wanted: Demand) -> io::Result<()> {
        let in_place = self.write_in_place(wanted);
        let Err(why) = in_place else {
            return Ok(());
        };
        let replaced = self.replace(wanted);
        replaced.map_err(|error| match why.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidData => error,
            _ => why,
        })
    }

    /// Opened by its name each time: one that was removed would be written to no avail.
    fn write_in_place(&self, wanted: Demand) -> io::Result<()> {
        let file = self.files.open(&self.path, Access::Write)?;
        if file.len()? != (COPIES * PAGE_BYTES) as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        write_copies(&*file, wanted)
    }

    /// Puts a new file in the place of the one before: after a crash there is one of the two.
    fn replace(&self, wanted: Demand) -> io::Result<()> {
        let new = self.path.with_extension("new");
        match self.files.unlink(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.files.open(&new, Access::Create)?;
        write_copies(&*file, wanted)?;
        self.files.rename(&new, &self.path)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        self.files.sync_directory(folder)
    }

    fn report(&self, why: &io::Error) {
        let mut state = self.state();
        let interval = Duration::from_millis(NOTICE_INTERVAL_MS);
        if state.said.is_some_and(|said| said.elapsed() < interval) {
            return;
        }
        state.said = Some(Instant::now());
        drop(state);
        (self.say)(&format!(
            "cluster: cannot write `{}`: {why}; members that tell this node to validate what it has ask it for nothing until it can: make room on that file system, or repair it",
            self.path.display()
        ));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the file says, and whether both copies say it.
fn read(files: &dyn Files, path: &Path) -> io::Result<(Demand, bool)> {
    let file = files.open(path, Access::Read)?;
    let bytes = read_bytes(&*file, 0, COPIES * PAGE_BYTES)?;
    let is_whole = file.len()? == (COPIES * PAGE_BYTES) as u64;
    let pages = bytes.chunks_exact(PAGE_BYTES);
    let copies: Vec<Option<Demand>> = (0..)
        .step_by(PAGE_BYTES)
        .zip(pages)
        .map(|(at, page)| decode(page, at))
        .collect();
    let newest = copies.iter().flatten().max_by_key(|copy| copy.ticket);
    let newest = newest.copied().ok_or(io::Error::new(
        io::ErrorKind::InvalidData,
        "both copies are damaged",
    ))?;
    let are_equal = copies.iter().all(|copy| *copy == Some(newest));
    Ok((newest, is_whole && are_equal))
}

/// One after the other: at each moment one of them is whole on the device.
fn write_copies(file: &dyn File, demand: Demand) -> io::Result<()> {
    for at in (0..).step_by(PAGE_BYTES).take(COPIES) {
        write_full(file, &[&encode(demand, at)], at)?;
        file.sync()?;
    }
    Ok(())
}

/// The copy that begins at `at`.
fn encode(demand: Demand, at: u64) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[..8].copy_from_slice(&MAGIC);
    page[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    page[16..24].copy_from_slice(&demand.ticket.to_le_bytes());
    page[24..32].copy_from_slice(&demand.then.0.to_le_bytes());
    let sum = Seal::UNKEYED.sum(at, &page[..SUM_AT]);
    page[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    page
}

/// `None`: it is damaged, or of a version that is not known.
fn decode(page: &[u8], at: u64) -> Option<Demand> {
    let (covered, sum) = page.split_at_checked(SUM_AT)?;
    let is_intact = Seal::UNKEYED.sum(at, covered) == u64::from_le_bytes(sum.try_into().ok()?);
    let is_known = covered[..8] == MAGIC && covered[8..12] == FORMAT_VERSION.to_le_bytes();
    (is_intact && is_known).then_some(Demand {
        ticket: u64::from_le_bytes(covered[16..24].try_into().ok()?),
        then: Timestamp(i64::from_le_bytes(covered[24..32].try_into().ok()?)),
    })
}

#[cfg(test)]
#[path = "valid_since_file_tests.rs"]
mod tests;
