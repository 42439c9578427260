//! The room of an in-flight response.

use crate::content::StoredContent;
use crate::expected_response::ExpectedResponse;
use crate::in_flight::builder::ContentBuilder;
use crate::in_flight::content::{InFlightContent, WritePositionId};
use crate::in_flight::disk_writer::DiskWriter;
use crate::memory::ShardGuard;
use crate::resource::VaryRule;
use crate::shard::InFlightId;
use crate::stored::StoredResponse;
use std::sync::Arc;
use std::task::Waker;
use weir_disk::PendingRecord;
use weir_policy::catalog::Refusal;
use weir_policy::{Digest, Now};

/// Room for an in-flight response. It is returned when this is dropped before `commit`.
///
/// It is pinned: once granted it is not taken away for others. A refusal of more keeps what was
/// granted. A response that goes to disk as it arrives is charged what it holds in memory beside
/// that: what waits to be written is the disk's.
#[derive(Debug)]
pub struct Reservation {
    expected: ExpectedResponse,
    id: InFlightId,
    /// Bytes charged beside content.
    head_charge: usize,
    /// Bytes of memory granted for content.
    reserved: usize,
    disk: ToDisk,
}

/// Whether it goes to disk as it arrives.
#[derive(Debug)]
enum ToDisk {
    /// Not so far.
    Not,
    /// It does.
    Writing(DiskWriter),
    /// It cannot: there is no disk, or it has refused.
    Never,
}

impl Reservation {
    pub(crate) fn new(
        expected: ExpectedResponse,
        id: InFlightId,
        head_charge: usize,
        reserved: usize,
    ) -> Self {
        Self {
            expected,
            id,
            head_charge,
            reserved,
            disk: ToDisk::Not,
        }
    }

    pub(crate) fn disk_writer(self, disk_writer: Option<DiskWriter>) -> Self {
        let disk = disk_writer.map_or(ToDisk::Never, ToDisk::Writing);
        Self { disk, ..self }
    }

    /// Makes sure that there is room for `bytes` more at `position`, before they are pushed. What
    /// is too large for memory, or for one write, goes to disk from now on, if there is one that
    /// takes it.
    ///
    /// # Errors
    ///
    /// As for [`Self::reserve_held`], and [`Refusal::TooLargeForSmallQueue`].
    pub fn reserve_push(
        &mut self,
        in_flight: &mut InFlightContent,
        position: WritePositionId,
        bytes: usize,
    ) -> Result<(), Refusal> {
        self.go_on(in_flight);
        let content = in_flight.present_bytes().saturating_add(bytes as u64);
        let content = content.min(in_flight.complete_length().unwrap_or(u64::MAX));
        let held = in_flight.held_after(position, bytes);
        if let ToDisk::Writing(disk_writer) = &self.disk
            && self.expected.store.is_for_disk(content)
        {
            return self.reserve_held(held.saturating_sub(disk_writer.handed_bytes()));
        }
        let room = self.expected.store.check_size(content);
        let room = room.and_then(|()| self.reserve_in_memory(held));
        let is_for_disk = room.is_err() || self.expected.is_for_disk(content);
        if !is_for_disk || !matches!(self.disk, ToDisk::Not) {
            return room;
        }
        match self
            .expected
            .begin_disk_write(in_flight.complete_length(), content)
        {
            Some(disk_writer) => {
                self.disk = ToDisk::Writing(disk_writer);
                self.reserve_push(in_flight, position, bytes)
            }
            None => {
                self.disk = ToDisk::Never;
                room
            }
        }
    }

    /// The same for a builder.
    ///
    /// # Errors
    ///
    /// As for [`Self::reserve_push`].
    pub fn reserve_next(
        &mut self,
        builder: &mut ContentBuilder,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let (in_flight, position) = builder.parts();
        self.reserve_push(in_flight, position, bytes)
    }

    /// Hands to the disk what can be handed to it, and gives back the memory of what was written.
    fn go_on(&mut self, in_flight: &mut InFlightContent) {
        let ToDisk::Writing(disk_writer) = &mut self.disk else {
            return;
        };
        if disk_writer.go_on(in_flight).is_err() {
            // from now on it has to find room in memory
            self.disk = ToDisk::Never;
            in_flight.stop_write_behind();
            return;
        }
        let handed = disk_writer.handed_bytes();
        self.give_back(in_flight.held_bytes().saturating_sub(handed));
    }

    /// Nothing is pushed at the moment: takes back the memory of what was written meanwhile.
    /// `waker` is woken when there is more to take back, so that what was written does not stay in
    /// memory, outside of every account, while a fetch waits.
    ///
    /// # Errors
    ///
    /// As for [`Self::reserve_held`]: the disk takes no more, and memory has no room for what
    /// waited for it.
    pub fn take_back(
        &mut self,
        in_flight: &mut InFlightContent,
        waker: &Waker,
    ) -> Result<(), Refusal> {
        if !matches!(self.disk, ToDisk::Writing(_)) {
            return Ok(());
        }
        self.go_on(in_flight);
        match &self.disk {
            ToDisk::Writing(disk_writer) => {
                disk_writer.wake_on_written(waker);
                Ok(())
            }
            ToDisk::Not | ToDisk::Never => self.reserve_held(in_flight.held_bytes()),
        }
    }

    /// It will not be stored: nothing more of it goes to disk, no lookup finds what was written,
    /// and its room is returned as far as it holds no memory. Call it again when it holds less.
    pub fn pass(&mut self, in_flight: &mut InFlightContent) {
        self.disk = ToDisk::Never;
        in_flight.stop_write_behind();
        self.give_back(in_flight.held_bytes());
    }

    /// Only so many bytes are held for content any more.
    fn give_back(&mut self, held_bytes: usize) {
        if held_bytes < self.reserved {
            self.reserved = held_bytes;
            let charge = (self.head_charge + held_bytes) as u64;
            self.shard().give_back(self.id, charge);
        }
    }

    /// Whether [`Self::finish`] can hand over to the disk all that it has not yet, if it goes
    /// there. If not, that has to wait for the disk, or would be stored in memory alone.
    pub fn can_finish(&mut self, in_flight: &mut InFlightContent) -> bool {
        let ToDisk::Writing(disk_writer) = &mut self.disk else {
            return true;
        };
        let can_end = disk_writer.can_end(in_flight);
        let handed = disk_writer.handed_bytes();
        self.give_back(in_flight.held_bytes().saturating_sub(handed));
        // one that has failed is noticed by what finishes it
        can_end.unwrap_or(true)
    }

    /// Whether what arrives leaves so much room that this may wait for the disk.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.shard().may_wait()
    }

    /// Wakes `waker` once when more of it was written, if it waits for that.
    pub fn wake_on_written(&self, waker: &Waker) {
        if let ToDisk::Writing(disk_writer) = &self.disk {
            disk_writer.wake_on_written(waker);
        }
    }

    /// All that has come, as stored content; what of it is not on disk yet is handed over.
    pub fn finish(&mut self, in_flight: &mut InFlightContent) -> StoredContent {
        in_flight.seal_all();
        if let ToDisk::Writing(disk_writer) = &mut self.disk
            && disk_writer.end(in_flight).is_err()
        {
            self.disk = ToDisk::Never;
        }
        in_flight.stop_write_behind();
        in_flight.finish()
    }

    /// The same for a builder: whole, whatever was expected.
    pub fn finish_whole(&mut self, builder: ContentBuilder) -> StoredContent {
        let mut in_flight = builder.into_whole();
        self.finish(&mut in_flight)
    }

    /// Makes sure that there is room for content that holds `held_bytes` of memory
    /// ([`InFlightContent::held_bytes`]). Cheap while that is not more than was granted before.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`] and [`Refusal::NoRoomInFlight`]; what was granted before stays.
    pub fn reserve_held(&mut self, held_bytes: usize) -> Result<(), Refusal> {
        if held_bytes <= self.reserved {
            return Ok(());
        }
        let charge = (self.head_charge + held_bytes) as u64;
        self.shard().extend(self.id, charge)?;
        self.reserved = held_bytes;
        Ok(())
    }

    /// The same for content that is to stay in memory: where the eviction algorithm takes in a
    /// response of that size.
    fn reserve_in_memory(&mut self, held_bytes: usize) -> Result<(), Refusal> {
        if held_bytes <= self.reserved {
            return Ok(());
        }
        let charge = (self.head_charge + held_bytes) as u64;
        self.shard().extend_newcomer(self.id, charge)?;
        self.reserved = held_bytes;
        Ok(())
    }

    /// Whether the target was purged or invalidated since the request: it will not be stored, and
    /// new requests must not get it. Its present readers may go on.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.shard().is_outdated(self.id)
    }

    /// The record that [`Self::commit`] makes of what goes to disk as it arrives; `None` if it does
    /// not go there.
    #[must_use]
    pub fn record(&self) -> Option<PendingRecord> {
        match &self.disk {
            ToDisk::Writing(disk_writer) => Some(disk_writer.record()),
            ToDisk::Not | ToDisk::Never => None,
        }
    }

    /// The response is whole, or a part that is worth keeping: from now on it is found. It takes
    /// the place of what was stored for the same request.
    ///
    /// # Errors
    ///
    /// The catalog's reason for letting it go after all, [`Refusal::NotResident`] for
    /// [`Self::is_outdated`].
    pub fn commit(
        mut self,
        now: Now,
        vary: Option<(VaryRule, Digest)>,
        response: impl Into<Arc<StoredResponse>>,
    ) -> Result<(), Refusal> {
        let response = response.into();
        let disk_writer = match self.disk {
            ToDisk::Writing(disk_writer) => Some(disk_writer),
            ToDisk::Not | ToDisk::Never => None,
        };
        self.expected
            .commit(now, self.id, vary, &response, disk_writer)
    }

    fn shard(&self) -> ShardGuard<'_> {
        self.expected.store.shard(self.expected.primary)
    }
}
