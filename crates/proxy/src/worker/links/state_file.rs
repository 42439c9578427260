//! The file of what a link has spent: two sectors, which are written in turn.
//!
//! A write that a crash cuts damages one of them; the other has the state before, and nothing that
//! the damaged one would have permitted was moved yet. Each write is on the device before it
//! counts.

use rustix::fs::{FlockOperation, Mode, OFlags, fdatasync, flock, fsync, open};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use weir_policy::budget::{SAVED_BYTES, SavedLink, SectorKind};

/// An open file of a link, which no other process uses.
#[derive(Debug)]
pub(super) struct StateFile(File);

/// What was found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was created, and is empty until a state is written.
    Nothing,
    State(SavedLink),
    /// It was there, and has no state that can be read: also if it is empty, or cutting it would
    /// grant a quota anew.
    Unreadable,
}

impl StateFile {
    /// Opens the file of the link called `name`, or creates it; a symbolic link is not followed. In
    /// one that was created a state is to be written before the link is used.
    ///
    /// # Errors
    ///
    /// It cannot be opened, another process uses it, or it has something else than the state of a
    /// link.
    pub(super) fn open(path: &Path, name: &str) -> io::Result<(Self, Found)> {
        let (file, is_new) = open_or_create(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            Errno::WOULDBLOCK => io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another process uses it, or another link of this one",
            ),
            errno => errno.into(),
        })?;
        let file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut bytes = [0; 2 * SAVED_BYTES];
        let length = read_up_to(&file, &mut bytes)?;
        if is_new && length == 0 {
            sync_directory(path)?;
            return Ok((Self(file), Found::Nothing));
        }
        let sectors = bytes.as_chunks::<SAVED_BYTES>().0;
        let states = sectors.iter().filter_map(|it| SavedLink::decode(it, name));
        if let Some(last) = states.max_by_key(|state| state.sequence) {
            return Ok((Self(file), Found::State(last)));
        }
        let kinds = sectors.iter().map(|sector| SectorKind::of(sector, name));
        if kinds.clone().any(|kind| kind == SectorKind::OfOther) {
            return Err(io::Error::other(
                "it has what a link with another name has spent, and is left as it is: name another file, or remove it",
            ));
        }
        let is_begun = kinds.clone().any(|kind| kind == SectorKind::Own);
        if length > bytes.len() || !is_begun && bytes != [0; 2 * SAVED_BYTES] {
            return Err(io::Error::other(
                "it is no state of a link, and is left as it is: name another file, or remove it",
            ));
        }
        Ok((Self(file), Found::Unreadable))
    }

    /// Writes a state of the link called `name`; it is durable when this returns.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn write(&self, state: &SavedLink, name: &str) -> io::Result<()> {
        let offset = (state.sequence % 2) * SAVED_BYTES as u64;
        self.0.write_all_at(&state.encode(name), offset)?;
        Ok(fdatasync(&self.0)?)
    }
}

/// Opens a file, and says whether it was created for that.
fn open_or_create(path: &Path) -> Result<(OwnedFd, bool), Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match open(path, flags | OFlags::CREATE | OFlags::EXCL, mode) {
        Err(Errno::EXIST) => Ok((open(path, flags, mode)?, false)),
        created => Ok((created?, true)),
    }
}

/// Reads the begin of a file; how long it is, as far as that is of interest.
fn read_up_to(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let most = length.min(bytes.len());
    file.read_exact_at(&mut bytes[..most], 0)?;
    Ok(length)
}

/// A file that is new is there after a crash of the machine, too.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    Ok(fsync(directory)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::Now;
    use weir_policy::Tick;
    use weir_policy::budget::{
        CountedBytes, Every, Link, LinkRules, PeriodRules, Quota, WhenSpent, Zone,
    };
    use weir_semantics::{DeltaSeconds, Timestamp};

    /// Two states of a link, one after the other.
    fn states() -> [SavedLink; 2] {
        let quota = Quota {
            bytes: 1 << 30,
            period: PeriodRules {
                every: Every::Day,
                starts: 1,
            },
            then: WhenSpent::Refuse,
            slow_rate: 1,
            stale_for: DeltaSeconds(0),
        };
        let rules = LinkRules {
            rate: None,
            reserve_percent: 0,
            bulk_above: 0,
            quota: Some(quota),
            count: CountedBytes::Both,
            overhead_percent: 0,
            windows: Box::default(),
            zone: Zone::utc(),
        };
        let now = Now {
            wall: Timestamp(1_000_000),
            tick: Tick(0),
        };
        let mut link = Link::new(rules, None, now);
        let mut next = || {
            let state = link.to_save(now).expect("nothing is booked");
            link.saved(state.sequence);
            link.opened(1 << 20);
            state
        };
        [next(), next()]
    }

    #[test]
    fn last_whole_state_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        let [one, two] = states();
        {
            let (file, found) = StateFile::open(&path, "a").unwrap();
            assert_eq!(found, Found::Nothing);
            assert!(StateFile::open(&path, "a").is_err(), "it is in use");
            file.write(&one, "a").unwrap();
            file.write(&two, "a").unwrap();
        }
        let found = || StateFile::open(&path, "a").unwrap().1;
        assert_eq!(found(), Found::State(two.clone()));
        let mut bytes = std::fs::read(&path).unwrap();
        let offset = usize::try_from(two.sequence % 2).unwrap() * SAVED_BYTES;
        bytes[offset + 100] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(found(), Found::State(one));
        bytes[SAVED_BYTES - offset + 100] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(found(), Found::Unreadable);
    }

    #[test]
    fn file_that_was_cut_to_nothing_is_not_taken_for_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        let [one, _] = states();
        {
            let (file, _) = StateFile::open(&path, "a").unwrap();
            file.write(&one, "a").unwrap();
        }
        std::fs::write(&path, "").unwrap();
        let (file, found) = StateFile::open(&path, "a").unwrap();
        assert_eq!(found, Found::Unreadable);
        file.write(&one, "a").unwrap();
        drop(file);
        assert_eq!(StateFile::open(&path, "a").unwrap().1, Found::State(one));
    }

    #[test]
    fn file_of_something_else_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        for text in ["notes of mine", &"x".repeat(5000)] {
            std::fs::write(&path, text).unwrap();
            assert!(StateFile::open(&path, "a").is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
