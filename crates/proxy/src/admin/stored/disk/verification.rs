//! Every byte of the store, read again and verified, by one operator at a time and no faster than
//! leaves the device to requests.

use super::walk::Walk;
use super::{PAGE_LIMITS, Parameters, Refusal};
use crate::admin::aside;
use crate::admin::listening::places::Place;
use crate::server::on_disk::report::{DirectoryCheck, StorePage};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_disk::offline::VerifyReport;
use weir_disk::{Disk, Pace};

/// Bytes a second that are read: less than half of what a hard disk gives.
const BYTES_PER_S: u64 = 64 << 20;

/// Bytes of a page, after which it rests.
const PAGE_BYTES: u64 = BYTES_PER_S / 4;

/// Things that are wrong in a page; it ends behind the segment or record that brings more.
const PROBLEMS_MAX: usize = 1_000;

/// How long a verification keeps its place when it is not continued.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// The one verification that runs.
#[derive(Debug)]
struct Run {
    /// By what its calls are known.
    id: u64,
    pace: Pace,
    /// A page of it is being made.
    is_at_work: bool,
    /// Until then it keeps its place.
    until: Instant,
}

static RUN: Mutex<Option<Run>> = Mutex::new(None);

fn run() -> MutexGuard<'static, Option<Run>> {
    RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page of the verification `id` is being made as long as this lives.
struct Turn(u64);

impl Turn {
    /// `None`: another one has the place, or a page of this one is being made.
    fn take(id: u64) -> Option<Self> {
        let mut run = run();
        let now = Instant::now();
        match &mut *run {
            Some(other) if other.is_at_work => return None,
            Some(other) if other.id != id && now < other.until => return None,
            Some(same) if same.id == id => same.is_at_work = true,
            free => {
                *free = Some(Run {
                    id,
                    pace: Pace::new(BYTES_PER_S),
                    is_at_work: true,
                    until: now,
                });
            }
        }
        Some(Self(id))
    }

    /// How long to rest for `bytes` that were read.
    fn rest(&self, bytes: u64) -> Duration {
        let mut run = run();
        let mine = run.as_mut().filter(|run| run.id == self.0);
        Duration::from_millis(mine.map_or(0, |run| run.pace.rest_ms(bytes)))
    }

    /// The last page was made.
    fn end(&self) {
        run().take_if(|run| run.id == self.0);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(run) = run().as_mut().filter(|run| run.id == self.0) {
            run.is_at_work = false;
            run.until = Instant::now() + IDLE_TIME;
        }
    }
}

/// The next page.
pub(super) async fn next(
    place: &Place,
    disk: Arc<Disk>,
    parameters: &Parameters,
) -> Result<StorePage<DirectoryCheck>, Refusal> {
    let Some(id) = parameters.run else {
        let why = "which verification? use run= with a number of your own choice";
        return Err(Refusal::Parameters(why.into()));
    };
    let Some(turn) = Turn::take(id) else {
        let why = "another verification is under way, and there is one at a time; it ends when it is not continued for 10 s";
        return Err(Refusal::Busy(why.into()));
    };
    let from = parameters.from.unwrap_or_default();
    // the turn goes along: a page whose client has left still reads
    let work = move || {
        let began = Instant::now();
        let page = page(Walk::new(&disk, from, PAGE_LIMITS));
        (page, turn, began.elapsed())
    };
    let (page, turn, taken) = aside(place, work).await.map_err(Refusal::Device)?;
    let page = page?;
    let bytes = page.items.iter().map(|it| it.bytes).sum();
    let rest = turn.rest(bytes).saturating_sub(taken);
    if page.next.is_none() {
        turn.end();
    } else {
        tokio::time::sleep(rest).await;
    }
    Ok(page)
}

fn page(mut walk: Walk<'_>) -> Result<StorePage<DirectoryCheck>, Refusal> {
    let mut items: Vec<DirectoryCheck> = Vec::new();
    let (mut bytes, mut wrong) = (0, 0);
    while let Some(step) = walk.next()? {
        let is_full = bytes >= PAGE_BYTES || wrong >= PROBLEMS_MAX || walk.is_late();
        if is_full && !items.is_empty() {
            let next = Some(step.from.to_string());
            return Ok(StorePage { items, next });
        }
        let mut problems = Vec::new();
        let mut checked = VerifyReport::default();
        let mut next = None;
        match step.segment {
            Err(why) => problems.push(why),
            Ok((segment, contents)) => {
                if step.from.at == 0 {
                    checked.segments = 1;
                    problems.extend(contents.problems.iter().map(ToString::to_string));
                }
                let behind = contents.found.iter().filter(|it| it.at >= step.from.at);
                for (count, item) in behind.enumerate() {
                    let is_full = bytes + checked.bytes >= PAGE_BYTES
                        || wrong + problems.len() >= PROBLEMS_MAX
                        || walk.is_late();
                    if is_full && count > 0 {
                        let at = item.at;
                        next = Some(super::Position { at, ..step.from }.to_string());
                        break;
                    }
                    segment.check(item, &mut checked, &mut |problem| {
                        problems.push(problem.to_string());
                    })?;
                    if segment.is_evicted() {
                        break;
                    }
                }
            }
        }
        bytes += checked.bytes;
        wrong += problems.len();
        let part = DirectoryCheck::of(step.path, checked);
        match items.last_mut() {
            Some(last) if last.path == part.path => last.add(&part),
            _ => items.push(part),
        }
        if let Some(last) = items.last_mut() {
            last.problems.append(&mut problems);
        }
        if next.is_some() {
            return Ok(StorePage { items, next });
        }
    }
    Ok(StorePage { items, next: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_verification_at_a_time_has_the_turn_until_it_ends() {
        let first = Turn::take(1).expect("none runs");
        assert!(Turn::take(1).is_none(), "a page of it is being made");
        drop(first);
        assert!(Turn::take(2).is_none(), "the first may go on");
        let first = Turn::take(1).expect("it goes on");
        assert_eq!(first.rest(BYTES_PER_S).as_millis(), 1000);
        first.end();
        drop(first);
        let second = Turn::take(2).expect("the first has ended");
        second.end();
    }
}
