//! The end of an in-flight response: stored, whole or in part, or not.

use super::{DiskWait, InFlightResponse, Inner, Outcome};
use crate::log::report;
use crate::worker::core::Worker;
use std::sync::Weak;
use weir_disk::PendingRecord;
use weir_measure::Metric;
use weir_policy::NotStored;
use weir_policy::fetch::CutReason;
use weir_store::Reservation;

/// A response that is over waits no longer for a disk that takes nothing of it. Then the disk
/// refuses it, and memory has it if the eviction algorithm takes it in.
const DISK_WAIT_MAX_MS: u64 = 10_000;

impl InFlightResponse {
    /// Stores what was received, once nothing more will be and no waiting request may need more.
    pub(super) fn settle(&self, inner: &mut Inner, worker: &Worker) {
        if !inner.fill.is_over() {
            inner.disk_wait = None;
        }
        if inner.outcome.is_some() || !inner.fill.is_over() || inner.is_awaited() {
            return;
        }
        if inner.passing.is_none() && self.waits_for_disk(inner, worker) {
            return;
        }
        if inner.disk_wait.take().is_some() {
            worker.deferred_stores.remove(&self.me);
        }
        let reservation = inner.reservation.take();
        let outcome = match (&inner.passing, reservation) {
            (Some(passing), _) => Outcome::Refused(passing.why),
            (None, Some(reservation)) => match self.store(inner, reservation, worker) {
                Ok(outcome) => outcome,
                Err(mut unstored) => {
                    unstored.pass(&mut inner.content);
                    inner.unstored = Some(*unstored);
                    Outcome::Dropped
                }
            },
            (None, None) => return,
        };
        if inner.fill.closed().is_some_and(CutReason::outdates_stored)
            && let Some(part) = &self.part
        {
            let selecting = self.vary.as_ref().map(|(_, selecting)| *selecting);
            // in force at once; no response depends on it, so nothing has to wait until it is
            // durable
            drop(worker.shared.store.purge_one(self.key, part, selecting));
        }
        inner.outcome = Some(outcome);
        if inner.record.is_some() {
            worker.write_behind.push(Weak::clone(&self.me));
        }
        if let Some(group) = inner.group.take() {
            group.close();
        }
        if outcome == Outcome::Whole && self.answers_others(worker) {
            worker.shared.collapsed.shared(self.key);
        }
        let counters = worker.counters();
        match outcome {
            Outcome::Whole => counters.inc(Metric::Stored),
            Outcome::Part => counters.inc(Metric::PartsStored),
            Outcome::Refused(why) => report::count_not_stored(counters, NotStored::Catalog(why)),
            Outcome::Dropped => report::count_not_stored(counters, NotStored::Incomplete),
        }
        worker.shared.note_read_ahead(inner.read_ahead_max());
    }

    /// Whether the disk has not taken so much of it that the rest is more than its queue has room
    /// for: a fetch may be faster. Then it is stored later, but not for a disk that hangs, or where
    /// memory is short: others need the room.
    fn waits_for_disk(&self, inner: &mut Inner, worker: &Worker) -> bool {
        let Some(reservation) = &mut inner.reservation else {
            return false;
        };
        if reservation.can_finish(&mut inner.content) || !reservation.may_wait() {
            return false;
        }
        reservation.wake_on_written(&worker.deferred_stores.waker());
        let (now, left) = (worker.now().tick, inner.content.unwritten_bytes());
        let since = match inner.disk_wait {
            Some(wait) if wait.left <= left => wait.since,
            _ => now,
        };
        inner.disk_wait = Some(DiskWait { since, left });
        if now.ms_since(since) >= DISK_WAIT_MAX_MS {
            return false;
        }
        let Some(me) = self.me.upgrade() else {
            return false;
        };
        worker.deferred_stores.push(me);
        true
    }

    /// The same as [`Self::settle`], for one that has waited for the disk.
    pub(crate) fn store_deferred(&self, worker: &Worker) {
        self.settle(&mut self.lock(), worker);
    }

    /// Stores it; its room is freed if the part received is of no use.
    fn store(
        &self,
        inner: &mut Inner,
        mut reservation: Reservation,
        worker: &Worker,
    ) -> Result<Outcome, Box<Reservation>> {
        let is_whole = inner.fill.is_whole();
        // if the next hop has another representation now, the content here is outdated and cannot
        // be completed; nor can it if this one may not be stored any more
        let is_outdated = inner.fill.closed().is_some_and(CutReason::outdates_stored);
        if !is_whole && (is_outdated || !self.keeps_part) {
            return Err(Box::new(reservation));
        }
        let body = reservation.finish(&mut inner.content);
        if !is_whole && body.present_bytes() == 0 {
            return Err(Box::new(reservation));
        }
        let mut response = self.response.with_body(body);
        if is_whole && !self.has_length && response.facts.status != 204 {
            response.add_content_length();
        }
        let record = reservation.record();
        let committed = reservation.commit(worker.now(), self.vary.clone(), response);
        if committed.is_ok() && inner.fill.readers() > 0 {
            inner.record = record;
        }
        Ok(match committed {
            Ok(()) if is_whole => Outcome::Whole,
            Ok(()) => Outcome::Part,
            Err(refusal) => Outcome::Refused(refusal),
        })
    }

    /// Gives back the memory of what is on disk by now, for readers that are behind; `false` once
    /// there is nothing more to wait for.
    pub(crate) fn give_back_written(&self) -> bool {
        let inner = &mut *self.lock();
        let extents = match inner.record.as_ref().map(PendingRecord::extents) {
            Some(None) => return true,
            Some(Some(Ok(extents))) => extents,
            // what cannot be written stays in memory
            None | Some(Some(Err(_))) => Vec::new(),
        };
        inner.record = None;
        if !extents.is_empty() {
            inner.content.put_all_on_disk(extents);
        }
        false
    }
}
