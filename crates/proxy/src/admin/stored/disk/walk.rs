//! What lies in the segments, one after the other: a line for each record, or their numbers.

use super::{PageLimits, Parameters, Position, Refusal, directory};
use crate::server::on_disk::OnDisk;
use crate::server::on_disk::report::{DirectoryStats, RecordReport, StorePage};
use std::time::Instant;
use weir_disk::offline::{RecordState, State};
use weir_disk::{Disk, SegmentContents, SegmentInUse};
use weir_policy::Digest;

/// Where a walk is, and when its page ends.
pub(super) struct Walk<'a> {
    disk: &'a Disk,
    at: Position,
    until: Instant,
}

/// A segment on the way.
pub(super) struct Step {
    /// The directory's path.
    pub(super) path: String,
    /// The segment, opened, with what lies in it; or why it cannot be read.
    pub(super) segment: Result<(SegmentInUse, SegmentContents), String>,
    /// Where the walk came to it: what lies before was seen.
    pub(super) from: Position,
}

impl<'a> Walk<'a> {
    /// From `at` on.
    pub(super) fn new(disk: &'a Disk, at: Position, limits: PageLimits) -> Self {
        Self {
            disk,
            at,
            until: Instant::now() + limits.time,
        }
    }

    /// Whether the page has taken its time.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// The next segment of the store; `None` behind the last one.
    pub(super) fn next(&mut self) -> Result<Option<Step>, Refusal> {
        while let Some((found, from)) = directory(self.disk, self.at)? {
            let path = found.path().display().to_string();
            let opened = match found.segment_from(from.segment) {
                Ok(Some(segment)) => segment,
                Ok(None) => {
                    let Some(next) = from.directory.checked_add(1) else {
                        return Ok(None);
                    };
                    self.at = Position {
                        directory: next,
                        ..Position::default()
                    };
                    continue;
                }
                Err((number, error)) => {
                    let from = at_segment(from, number);
                    self.pass(from);
                    let segment = Err(error.to_string());
                    return Ok(Some(Step {
                        path,
                        segment,
                        from,
                    }));
                }
            };
            let from = at_segment(from, opened.number());
            self.pass(from);
            let contents = opened.contents()?;
            return Ok(Some(Step {
                path,
                segment: Ok((opened, contents)),
                from,
            }));
        }
        Ok(None)
    }

    /// The next segment is the one behind that of `from`.
    fn pass(&mut self, from: Position) {
        self.at = Position {
            segment: from.segment.saturating_add(1),
            at: 0,
            ..from
        };
    }
}

/// `from`, if it is in the segment `number`, and else the beginning of that.
fn at_segment(from: Position, number: u64) -> Position {
    let is_it = from.segment == number;
    Position {
        segment: number,
        at: if is_it { from.at } else { 0 },
        ..from
    }
}

/// A page of records: live ones, or all; of the variants of a target if that is named.
pub(super) fn records(
    disk: &Disk,
    parameters: &Parameters,
    limits: PageLimits,
) -> Result<StorePage<RecordReport>, Refusal> {
    let wanted = match parameters.variants_of {
        Some(target) => Some(Variants::of(disk, target)?),
        None => None,
    };
    let mut walk = Walk::new(disk, parameters.from.unwrap_or_default(), limits);
    let mut items = Vec::new();
    let mut read = 0;
    // a page may end without a record, and goes past something each time
    let mut has_moved = false;
    while let Some(step) = walk.next()? {
        if has_moved && walk.is_late() {
            let next = Some(step.from.to_string());
            return Ok(StorePage { items, next });
        }
        let Ok((segment, contents)) = step.segment else {
            has_moved = true;
            continue;
        };
        let behind = contents.found.iter().filter(|it| it.at >= step.from.at);
        for found in behind.filter(|it| it.is_response()) {
            if read >= limits.records || (has_moved && walk.is_late()) {
                let next = Position {
                    at: found.at,
                    ..step.from
                };
                let next = Some(next.to_string());
                return Ok(StorePage { items, next });
            }
            has_moved = true;
            let state = segment.state_of(found);
            if state != RecordState::Live && !parameters.all {
                continue;
            }
            read += 1;
            let stored = segment.read(found);
            if segment.is_evicted() {
                break;
            }
            let is_wanted = match (&wanted, &stored) {
                (Some(variants), Ok(stored)) => variants.have(found.key, &stored.meta),
                (Some(_), Err(_)) => false,
                (None, _) => true,
            };
            if is_wanted {
                items.push(RecordReport::of(found, state, stored)?);
            }
        }
        has_moved = true;
    }
    Ok(StorePage { items, next: None })
}

/// The variants of a target.
struct Variants<'a> {
    disk: &'a Disk,
    target: Digest,
    rules: crate::server::on_disk::RulesOnDisk,
}

impl<'a> Variants<'a> {
    fn of(disk: &'a Disk, target: Digest) -> Result<Self, Refusal> {
        let Some((segment, found)) = disk.live_record(target)? else {
            return Err(Refusal::NotStored);
        };
        match OnDisk::read(&segment.read(&found)?.meta) {
            Ok(OnDisk::Rules(rules)) => Ok(Self {
                disk,
                target,
                rules,
            }),
            Ok(OnDisk::Response(_)) => {
                let why = "the responses of that target do not vary";
                Err(Refusal::Parameters(why.into()))
            }
            Err(why) => Err(Refusal::Damaged(why)),
        }
    }

    fn have(&self, key: Digest, meta: &[u8]) -> bool {
        let secret = self.disk.secret();
        matches!(OnDisk::read(meta), Ok(OnDisk::Response(response))
            if key != self.target && self.rules.lead_to(&secret, self.target, key, &response))
    }
}

/// The numbers of some segments, of one directory each time.
pub(super) fn stats(
    disk: &Disk,
    parameters: &Parameters,
    limits: PageLimits,
) -> Result<StorePage<DirectoryStats>, Refusal> {
    let begin = parameters.from.unwrap_or_default();
    let Some((found, begin)) = directory(disk, begin)? else {
        return Ok(StorePage {
            items: Vec::new(),
            next: None,
        });
    };
    let (purges, newest_purge) = found.purges();
    let mut stats = DirectoryStats {
        path: found.path().display().to_string(),
        directory: found.number(),
        purges,
        newest_purge,
        set_aside: found.set_aside()?,
        ..DirectoryStats::default()
    };
    let mut walk = Walk::new(disk, begin, limits);
    let mut next = None;
    let mut has_moved = false;
    while let Some(step) = walk.next()? {
        if step.from.directory != begin.directory || (has_moved && walk.is_late()) {
            next = Some(step.from.to_string());
            break;
        }
        has_moved = true;
        let Ok((segment, contents)) = step.segment else {
            stats.problems += 1;
            continue;
        };
        stats.segments += 1;
        stats.segment_bytes += contents.bytes;
        stats.open_segments += u64::from(contents.state == State::Open);
        stats.problems += contents.problems.len() as u64;
        for found in &contents.found {
            if found.is_response() {
                stats.of_state(segment.state_of(found)).add(found);
            } else if found.kind.is_none() {
                stats.extents.add(found);
            }
        }
    }
    Ok(StorePage {
        items: vec![stats],
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;
    use weir_disk::files::SystemFiles;
    use weir_disk::{BodyBlock, DirectoryConfig, DiskConfig, NewRecord};

    const RECORDS: u64 = 20;

    /// A page ends as soon as it has gone past something.
    const AT_ONCE: PageLimits = PageLimits {
        time: Duration::ZERO,
        records: 1,
    };

    fn disk(path: &std::path::Path) -> Arc<Disk> {
        let directory = DirectoryConfig {
            path: path.to_path_buf(),
            bytes: 64 << 20,
        };
        let config = DiskConfig {
            segment_bytes: 4 << 20,
            segments_min: 16,
            ..DiskConfig::new(vec![directory])
        };
        let disk = Disk::open(config, Arc::new(SystemFiles), Arc::new(|_| {})).expect("a store");
        for key in 0..RECORDS {
            let new = NewRecord {
                key: Digest(key, key),
                ticket: disk.ticket(),
                meta: Vec::new(),
                body: vec![BodyBlock {
                    from: 0,
                    bytes: vec![0; 1000].into(),
                }],
            };
            disk.append(new).expect("room");
        }
        while disk.usage().stored < RECORDS || disk.usage().loading > 0 {
            std::thread::yield_now();
        }
        disk
    }

    fn purge(disk: &Disk, keys: std::ops::Range<u64>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.build().expect("a runtime");
        for key in keys {
            runtime
                .block_on(disk.purge(Digest(key, key)))
                .expect("purged");
        }
    }

    /// Pages up to the last one, with `between` called after the first.
    fn pages(disk: &Disk, between: impl FnOnce()) -> usize {
        let mut parameters = Parameters::default();
        let mut between = Some(between);
        for count in 1.. {
            let page = records(disk, &parameters, AT_ONCE).expect("a page");
            assert!(page.items.is_empty());
            let Some(next) = page.next else {
                return count;
            };
            let next: Position = next.parse().expect("a place");
            assert!(Some(next) > parameters.from, "a page goes on");
            parameters.from = Some(next);
            between.take().into_iter().for_each(|call| call());
        }
        unreachable!("pages end")
    }

    #[test]
    fn page_of_dead_records_ends_in_time() {
        let directory = tempfile::tempdir().expect("a temporary folder");
        let disk = disk(directory.path());
        purge(&disk, 0..RECORDS - 1);
        // the last one is gone between two pages
        let count = pages(&disk, || purge(&disk, RECORDS - 1..RECORDS));
        // nearly each of them ends a page; the clock may not move between two
        assert!(count as u64 > RECORDS / 2, "{count} pages");
        disk.close();
    }
}
