//! Verifies every byte of a directory.

use super::content::read_record;
use super::directory::Directory;
use super::error::{OfflineError, Problem};
use super::segment::{Segment, SegmentSource, StoredItem};
use super::survey::{RecordState, Survey};
use crate::format::{
    EXTENT_HEADER_BYTES_MAX, ExtentHeader, ExtentRef, FormatError, Kind, segment_file_name,
    verify_extent, verify_record,
};
use weir_policy::Digest;

/// What was verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Segments.
    pub segments: u64,
    /// Records, live or not.
    pub records: u64,
    /// Of these, the live ones.
    pub live: u64,
    /// Live records with some of their content evicted with its segment: no damage.
    pub partly_evicted: u64,
    /// Extents outside of records.
    pub extents: u64,
    /// Bytes of records and extents.
    pub bytes: u64,
}

impl Directory {
    /// Reads everything `survey` found and checks every byte; problems are reported as they are
    /// found, those of the survey first.
    ///
    /// # Errors
    ///
    /// The file system says no.
    pub fn check(
        &self,
        survey: &Survey,
        tell: &mut dyn FnMut(&Problem),
    ) -> Result<VerifyReport, OfflineError> {
        survey.problems.iter().for_each(&mut *tell);
        let mut checked = VerifyReport {
            segments: survey.segments.len() as u64,
            ..VerifyReport::default()
        };
        let mut open: Option<Segment> = None;
        for found in &survey.found {
            let segment = match open.take() {
                Some(segment) if segment.seal.number() == found.segment => segment,
                _ => Segment::open(self.segment_source(), found.segment)?,
            };
            let is_live = found.is_response() && survey.state_of(self, found) == RecordState::Live;
            check_item(
                (self.segment_source(), &segment),
                found,
                is_live,
                &mut checked,
                tell,
            )?;
            open = Some(segment);
        }
        Ok(checked)
    }
}

/// Checks a record or extent, and counts it.
///
/// # Errors
///
/// The file system says no.
pub(crate) fn check_item(
    (source, segment): (SegmentSource<'_>, &Segment),
    found: &StoredItem,
    is_live: bool,
    checked: &mut VerifyReport,
    tell: &mut dyn FnMut(&Problem),
) -> Result<(), OfflineError> {
    checked.bytes += u64::from(found.bytes);
    checked.live += u64::from(is_live);
    match found.kind {
        Some(_) => checked.records += 1,
        None => checked.extents += 1,
    }
    if let Err(error) = check_one(segment, found)? {
        tell(&Problem::of(&segment.name(), &error));
    } else if is_live && found.kind == Some(Kind::Listed) {
        let is_whole = check_listed(source, segment, found, tell)?;
        checked.partly_evicted += u64::from(!is_whole);
    }
    Ok(())
}

/// Whether the extents a record names are what it says, and whether all are there; their content is
/// checked where they lie. The oldest segments leave to make room, whatever newer records say of
/// them.
fn check_listed(
    source: SegmentSource<'_>,
    segment: &Segment,
    found: &StoredItem,
    tell: &mut dyn FnMut(&Problem),
) -> Result<bool, OfflineError> {
    let mut is_whole = true;
    let stored = read_record(segment, found)?;
    for extent in &stored.extents {
        match check_reference(source, stored.header.key, extent) {
            Ok(()) => {}
            Err(OfflineError::Format { error, .. }) => {
                let what = format!(
                    "content from {} on is named to be in {}: {error}",
                    extent.from,
                    segment_file_name(extent.segment)
                );
                tell(&Problem::new(&segment.name(), u64::from(found.at), what));
            }
            Err(error) if error.is_absence() => is_whole = false,
            Err(error) => return Err(error),
        }
    }
    Ok(is_whole)
}

fn check_reference(
    source: SegmentSource<'_>,
    key: Digest,
    extent: &ExtentRef,
) -> Result<(), OfflineError> {
    let segment = Segment::open(source, extent.segment)?;
    let bytes = segment.read(u64::from(extent.at), EXTENT_HEADER_BYTES_MAX)?;
    ExtentHeader::decode(&bytes, segment.seal, u64::from(extent.at))
        .and_then(|header| header.check_reference(key, extent))
        .map_err(|error| OfflineError::format(&segment.path, error))
}

/// Every byte of a record or extent, and whether it is the one the table means.
fn check_one(
    segment: &Segment,
    found: &StoredItem,
) -> Result<Result<(), FormatError>, OfflineError> {
    let at = u64::from(found.at);
    let bytes = segment.read(at, found.bytes as usize)?;
    let same = |key: Digest, generation: u64| {
        if (key, generation) == (found.key, found.generation) {
            return Ok(());
        }
        Err(FormatError {
            item: crate::format::Item::Table,
            at,
            kind: crate::format::FormatErrorKind::Contradicts {
                field: "key or generation",
                value: generation,
            },
        })
    };
    Ok(match found.kind {
        Some(_) => verify_record(&bytes, segment.seal, at)
            .and_then(|(header, _)| same(header.key, header.generation)),
        None => verify_extent(&bytes, segment.seal, at)
            .and_then(|header| same(header.key, header.body.0)),
    })
}
