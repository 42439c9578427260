//! Content that passes by: there is no room to keep it, so it stays as long as a reader is about to
//! read it.
//!
//! `weir_policy::fetch` says how much that is for each reader. A few responses at a time may hold
//! more behind their fastest reader: that is taken from room for all of them together, so that
//! memory has a bound whatever passes.

use super::{InFlightResponse, Inner};
use crate::worker::core::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_measure::Metric;
use weir_policy::catalog::Refusal;
use weir_policy::fetch::PASSING_BEHIND_BYTES;

/// Bytes that may be held for readers far behind, over all responses that pass by.
const PASSING_ROOM_BYTES: u64 = 16 * PASSING_BEHIND_BYTES;

/// Room for readers far behind, shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct PassingRoom {
    /// Responses that have taken theirs.
    taken: AtomicUsize,
}

/// Room for readers of one response that are [`PASSING_BEHIND_BYTES`] behind; given back when it is
/// dropped.
#[derive(Debug)]
pub(super) struct Room(Arc<PassingRoom>);

impl PassingRoom {
    fn take(self: &Arc<Self>) -> Option<Room> {
        let most = usize::try_from(PASSING_ROOM_BYTES / PASSING_BEHIND_BYTES).unwrap_or(0);
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Room(Arc::clone(self)))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response that is not kept.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) why: Refusal,
    /// Content before this is not there any more.
    pub(super) floor: u64,
    room: Option<Room>,
}

impl Passing {
    /// One that is read by several, or will be.
    pub(super) fn begin(worker: &Worker, why: Refusal) -> Self {
        worker.counters().inc(Metric::PassedThrough);
        Self {
            why,
            floor: 0,
            room: worker.shared.passing.take(),
        }
    }

    /// One with a single reader, which is never behind.
    pub(super) fn for_one() -> Self {
        Self {
            why: Refusal::NotResident,
            floor: 0,
            room: None,
        }
    }
}

/// What became of content that its reader lets go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetGo {
    /// It is not stored, and stays until it is read.
    Passing,
    /// It is for others, too, or will be once the disk has it.
    Shared,
    /// No more of it is received: the reader is to read it elsewhere, and what is in memory here is
    /// dropped as it goes.
    Settled,
}

impl InFlightResponse {
    /// Bytes of content that are in memory, and stay there as long as it has readers.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let inner = self.lock();
        match inner.passing {
            Some(_) => 0,
            None => inner.fill.present().total(),
        }
    }

    /// A reader that reads slowly lets go of the content: if no other reads it, it passes by.
    pub(crate) fn let_go(&self, worker: &Worker) -> LetGo {
        let mut inner = self.lock();
        if inner.passing.is_some() {
            return LetGo::Passing;
        }
        let waits_for_disk = inner.disk_wait.is_some();
        if inner.fill.readers() > 1 || inner.is_awaited() || waits_for_disk {
            return LetGo::Shared;
        }
        if inner.outcome.is_some() {
            inner.passing = Some(Passing::for_one());
            return LetGo::Settled;
        }
        let size_bytes = inner.fill.present().total();
        inner.pass(worker, Refusal::AllInUse { size_bytes });
        inner.wake_fetches();
        LetGo::Passing
    }
}

impl Inner {
    /// There is no room to store it: from now on it passes by, its extents on disk are dropped, and
    /// no new reader may join.
    pub(super) fn pass(&mut self, worker: &Worker, why: Refusal) {
        self.passing = Some(Passing::begin(worker, why));
        self.fill.pass();
        if let Some(group) = &self.group {
            group.withdraw();
        }
        self.let_pass();
    }

    /// Drops content that no reader is about to read, and returns its room in the store.
    pub(super) fn let_pass(&mut self) {
        let Some(passing) = &mut self.passing else {
            return;
        };
        let floor = self.fill.passed(passing.room.is_some());
        passing.floor = passing.floor.max(floor);
        self.content.release_before(passing.floor);
        if let Some(reservation) = &mut self.reservation {
            reservation.pass(&mut self.content);
        }
    }

    /// Whether the byte `at` was dropped.
    pub(super) fn has_passed(&self, at: u64) -> bool {
        let passing = self.passing.as_ref();
        passing.is_some_and(|passing| passing.floor > at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_limited_to_sixteen_responses_and_returned_on_drop() {
        let room = Arc::new(PassingRoom::default());
        let taken: Vec<Room> = std::iter::from_fn(|| room.take()).collect();
        assert_eq!(taken.len(), 16);
        drop(taken);
        assert!(room.take().is_some());
    }
}
