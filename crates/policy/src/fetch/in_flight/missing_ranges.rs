//! Which missing ranges are fetched, when, and for which reader.

use super::InFlightState;
use super::fetch::Fetch;
use super::types::{AttachError, NEAR_BYTES, ReadPermit, SPANS_MAX};
use crate::fetch::byte_span::ByteSpan;

impl InFlightState {
    /// Whether a reader of `wants`, of which `missing` is the first byte that is not here, will get
    /// all of it.
    pub(super) fn reachable(&self, missing: u64, wants: ByteSpan) -> Result<(), AttachError> {
        if self.closed.is_some() {
            return Err(AttachError::Closed);
        }
        let near = self.near(missing);
        if self.rules.can_range {
            let begins_run = self.present.run_start(missing) == missing && near.is_none();
            let is_full = self.present.len() >= SPANS_MAX;
            return if begins_run && is_full {
                Err(AttachError::TooManySpans)
            } else {
                Ok(())
            };
        }
        if self.is_coming(wants) {
            Ok(())
        } else {
            Err(AttachError::CannotRange)
        }
    }

    /// Whether a reader of `wants` would get all of it from present content and the running
    /// fetches, if these complete.
    #[must_use]
    pub fn is_coming(&self, wants: ByteSpan) -> bool {
        let to = wants.to.min(self.length());
        let missing = self.present.run_end(wants.from);
        let limit = self
            .near(missing)
            .map_or(missing, |fetch| self.limit(fetch));
        let beyond = ByteSpan::new(limit, to);
        beyond.is_none_or(|beyond| self.present.first_missing(beyond).is_none())
    }

    /// The fetch that will soon bring the byte `missing`.
    pub(super) fn near(&self, missing: u64) -> Option<&Fetch> {
        self.bringing(missing)
            .filter(|fetch| missing - fetch.front <= NEAR_BYTES)
    }

    /// Whether the byte `missing` should be fetched now for a reader at `at`.
    pub(super) fn is_to_fetch(&self, at: u64, missing: u64) -> bool {
        // a reader that still has something to read does not take the last places
        let max = self.fetches_max();
        let max = if missing > at { max.div_ceil(2) } else { max };
        self.can_begin()
            && self.fetches.len() < max
            && missing - at <= self.rules.read_ahead.bytes()
            && self.near(missing).is_none()
    }

    /// Whether a fetch could be begun, were there room for it.
    pub(super) fn can_begin(&self) -> bool {
        self.closed.is_none() && self.rules.can_range
    }

    /// How far beyond a fetch's front a reader may stand for the fetch to run up to it: no further
    /// than it would wait for, unless it has no choice.
    pub(super) fn reach(&self) -> u64 {
        if self.can_begin() && self.fetches.len() < self.fetches_max() {
            NEAR_BYTES
        } else {
            ByteSpan::OPEN
        }
    }

    pub(super) fn fetches_max(&self) -> usize {
        usize::try_from(self.rules.fetches_max.max(1)).unwrap_or(usize::MAX)
    }

    /// What is missing from `from` up to `to`, to what is present, and to what another fetch
    /// brings.
    pub(super) fn gap(&self, from: u64, to: u64) -> ByteSpan {
        let present = self.present.next_present(from);
        let fronts = self.fetches.fronts();
        let to = fronts
            .chain(present)
            .filter(|&at| at > from)
            .fold(to, u64::min);
        ByteSpan { from, to }
    }

    /// A reader can only go on if a fetch makes room: the one that has brought nothing for the
    /// longest time of those without readers, or else of those that wait. One at a time.
    pub(super) fn ask_for_room(&mut self) {
        let mut idlest = None;
        for fetch in self.fetches.iter() {
            match self.permit(fetch.id) {
                ReadPermit::Yield => return,
                ReadPermit::Wait | ReadPermit::Background => {
                    let rank = (!fetch.goes_on, fetch.active, fetch.id);
                    idlest = Some(idlest.map_or(rank, |least| rank.min(least)));
                }
                ReadPermit::UpTo(_) | ReadPermit::Unread | ReadPermit::Complete => {}
            }
        }
        let Some(fetch) = idlest.and_then(|(_, _, id)| self.fetches.get_mut(id)) else {
            return;
        };
        fetch.yields = true;
        self.take_changed = true;
    }
}
