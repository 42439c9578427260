//! A stored response: found by its key or URL, and read in pieces, every byte verified.

use super::{Parameters, Refusal};
use crate::config::Mode;
use crate::server::on_disk::report::{MessageReport, RecordReport, StorePage};
use crate::server::on_disk::{OnDisk, key_of_url};
use weir_disk::offline::{IntactRecord, RecordState, StoredItem};
use weir_disk::{Disk, SegmentInUse};
use weir_policy::Digest;

/// Bytes of a message that are given at once.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// The live records of a key, or of a URL for listeners of one mode or both.
pub(super) fn find(
    disk: &Disk,
    parameters: &Parameters,
) -> Result<StorePage<MessageReport>, Refusal> {
    let keys = match (parameters.key, &parameters.url) {
        (Some(key), _) => vec![key],
        (None, Some(url)) => keys(disk, parameters.mode, url)?,
        (None, None) => {
            let why = "which response? use key= or url=";
            return Err(Refusal::Parameters(why.into()));
        }
    };
    let mut items = Vec::new();
    for key in keys {
        if let Some((segment, found)) = disk.live_record(key)? {
            let stored = segment.read(&found)?;
            items.push(report(&segment, &found, stored)?);
        }
    }
    Ok(StorePage { items, next: None })
}

fn keys(disk: &Disk, mode: Option<Mode>, url: &str) -> Result<Vec<Digest>, Refusal> {
    let modes = [Mode::Forward, Mode::Gateway].into_iter();
    modes
        .filter(|it| mode.is_none_or(|only| only == *it))
        .map(|mode| key_of_url(mode, url, &disk.secret()).map_err(Refusal::Parameters))
        .collect()
}

fn report(
    segment: &SegmentInUse,
    found: &StoredItem,
    stored: IntactRecord,
) -> Result<MessageReport, Refusal> {
    let (head_bytes, complete_bytes) = match OnDisk::read(&stored.meta) {
        Ok(OnDisk::Response(response)) => {
            (response.head.len() as u64 + 2, response.complete_length)
        }
        Ok(OnDisk::Rules(_)) | Err(_) => (0, None),
    };
    let position = super::Position {
        directory: segment.directory(),
        segment: segment.number(),
        at: found.at,
    };
    Ok(MessageReport {
        at: position.to_string(),
        head_bytes,
        is_contiguous: stored.is_contiguous(),
        complete_bytes,
        record: RecordReport::of(found, RecordState::Live, Ok(stored))?,
    })
}

/// A piece of the message of a record, behind its first `skip` bytes; empty at its end.
pub(super) fn read(disk: &Disk, parameters: &Parameters) -> Result<Vec<u8>, Refusal> {
    let (Some(key), Some(at)) = (parameters.key, parameters.at) else {
        let why = "which response? use key= and at= as `find` names them";
        return Err(Refusal::Parameters(why.into()));
    };
    let directory = disk.directory_from(at.directory);
    let directory = directory.filter(|(position, _)| *position == at.directory);
    let (_, directory) = directory.ok_or(Refusal::NotStored)?;
    let segment = directory.segment_from(at.segment);
    let segment = segment.map_err(|(_, error)| Refusal::from(error))?;
    let segment = segment.filter(|segment| segment.number() == at.segment);
    let segment = segment.ok_or(Refusal::NotStored)?;
    let found = segment.item_at(key, at.at)?.ok_or(Refusal::NotStored)?;
    // one that was purged meanwhile is not given out further
    if segment.state_of(&found) == RecordState::Purged {
        return Err(Refusal::NotStored);
    }
    let stored = segment.read(&found)?;
    let head = match OnDisk::read(&stored.meta) {
        Ok(OnDisk::Response(response)) => [&response.head, &b"\r\n"[..]].concat(),
        Ok(OnDisk::Rules(_)) => return Err(Refusal::NotStored),
        Err(why) => return Err(Refusal::Damaged(why)),
    };
    let skip = usize::try_from(parameters.skip).unwrap_or(usize::MAX);
    let mut piece = head.get(skip..).unwrap_or_default().to_vec();
    let from = parameters.skip.saturating_sub(head.len() as u64);
    let room = PIECE_BYTES_MAX.saturating_sub(piece.len());
    piece.extend(segment.content(&stored, from, room)?);
    Ok(piece)
}
