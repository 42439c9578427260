//! Whether the index and the files agree.

use crate::directory::Directory;
use crate::directory::reads::buffer::Buffer;
use crate::directory::reads::reader::{self, NoRecord, ReadMode};
use crate::directory::segment::Segment;
use crate::directory::starting::scan::contents;
use crate::directory::writer::plan::MARK;
use crate::files::read_bytes;
use crate::format::{ExtentRef, Kind, extent_bytes, verify_extent, verify_record};
use crate::index::Place;
use crate::{COMPLAINTS_MAX, CheckReport};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use weir_policy::Digest;

/// A record whose every byte is as it was written.
pub(in crate::directory) struct Verified {
    pub(in crate::directory) key: Digest,
    pub(in crate::directory) generation: u64,
    pub(in crate::directory) content_bytes: u64,
}

/// What is wrong with a record.
pub(in crate::directory) enum Flaw {
    /// It is not what was written.
    Damaged(String),
    /// The device said no.
    Unreadable,
}

impl From<io::Error> for Flaw {
    fn from(_: io::Error) -> Self {
        Self::Unreadable
    }
}

/// Reads a record to its last byte, extents elsewhere included; `read_bytes` grows by what it has
/// and was read, whatever comes of it.
pub(in crate::directory) fn verify(
    directory: &Directory,
    segment: &Segment,
    place: Place,
    read_bytes: &mut u64,
) -> Result<Verified, Flaw> {
    let (offset, guess) = (place.offset(), place.class.bytes());
    let mode = ReadMode::Blocking;
    let mut buffer = Buffer::default();
    let found = reader::record(directory, segment, offset, guess, mode, &mut buffer);
    let found = match found {
        Ok(found) => found,
        Err(NoRecord::Damaged(error)) => {
            *read_bytes += guess;
            return Err(Flaw::Damaged(error.to_string()));
        }
        Err(NoRecord::Fault(_)) => return Err(Flaw::Unreadable),
    };
    let header = found.header;
    *read_bytes += u64::from(header.bytes);
    match header.kind {
        Kind::Embedded => {
            let bytes = read(segment, offset, u64::from(header.bytes))?;
            verify_record(&bytes, segment.seal, u64::from(offset))
                .map_err(|error| Flaw::Damaged(error.to_string()))?;
        }
        Kind::Listed => {
            for reference in &found.extents {
                verify_outer(directory, header.key, reference, read_bytes)?;
            }
        }
    }
    Ok(Verified {
        key: header.key,
        generation: header.generation,
        content_bytes: header.content_bytes,
    })
}

/// An extent in a segment that left is no flaw: the record is a part since.
fn verify_outer(
    directory: &Directory,
    key: Digest,
    reference: &ExtentRef,
    read_bytes: &mut u64,
) -> Result<(), Flaw> {
    let Some(home) = directory.segments.numbered(reference.segment) else {
        return Ok(());
    };
    let bytes = read(&home, reference.at, extent_bytes(reference.len))?;
    *read_bytes += bytes.len() as u64;
    verify_extent(&bytes, home.seal, u64::from(reference.at))
        .and_then(|extent| extent.check_reference(key, reference))
        .map_err(|error| Flaw::Damaged(error.to_string()))
}

fn read(segment: &Segment, offset: u32, bytes: u64) -> io::Result<Vec<u8>> {
    let bytes = usize::try_from(bytes).unwrap_or_default();
    read_bytes(&*segment.file, u64::from(offset), bytes)
}

/// Everything in the index is on the device, and everything alive on the device is in the index.
pub(crate) fn check(directory: &Directory, report: &mut CheckReport, complaints: &mut Vec<String>) {
    let mut complain = |text: String| {
        if complaints.len() < COMPLAINTS_MAX {
            complaints.push(format!("{}: {text}", directory.path.display()));
        }
    };
    let residents = directory.index.all();
    report.entries += residents.len() as u64;
    if residents.len() as u64 != directory.index.len() {
        complain(format!(
            "{} entries are counted as {}",
            residents.len(),
            directory.index.len()
        ));
    }
    let mut indexed: HashMap<Digest, (u64, u32)> = HashMap::new();
    for resident in residents {
        let place = resident.place;
        let Some(segment) = directory.segments.in_slot(place.slot) else {
            complain(format!("an entry points to the empty slot {}", place.slot));
            continue;
        };
        let here = format!("{segment:?} at {}", place.offset());
        match verify(directory, &segment, place, &mut 0) {
            Ok(found) if !resident.may_be(found.key) => {
                complain(format!("{here} is another key's record"));
            }
            Ok(found) if directory.purges.cover(found.key, found.generation) => {
                complain(format!("{here} is purged"));
            }
            Ok(found) => {
                report.records += 1;
                report.bytes += found.content_bytes;
                indexed.insert(found.key, (segment.number, place.offset()));
            }
            Err(Flaw::Damaged(why)) => complain(format!("{here}: {why}")),
            Err(Flaw::Unreadable) => complain(format!("{here} cannot be read")),
        }
    }
    if !directory.is_loading.load(Ordering::Acquire)
        && !directory.is_incomplete.load(Ordering::Acquire)
    {
        for text in lacking(directory, &indexed) {
            complain(text);
        }
    }
}

/// Records that are alive and not in the index, or one that was written before in their stead.
fn lacking(directory: &Directory, indexed: &HashMap<Digest, (u64, u32)>) -> Vec<String> {
    let mut lacking = Vec::new();
    for segment in directory.segments.all() {
        let Ok(contents) = contents(&segment) else {
            lacking.push(format!("{segment:?} cannot be read"));
            continue;
        };
        for entry in contents.entries.iter().filter(|entry| entry.kind.is_some()) {
            let is_dead = entry.key == MARK
                || directory.purges.cover(entry.key, entry.generation)
                || directory.forgotten.may_hold(entry.key);
            if is_dead {
                continue;
            }
            match indexed.get(&entry.key) {
                Some(place) if *place >= (segment.number, entry.at) => {}
                Some(_) => lacking.push(format!(
                    "{segment:?} at {} was written after what is found",
                    entry.at
                )),
                None => lacking.push(format!("{segment:?} at {} is not found", entry.at)),
            }
        }
    }
    lacking
}
