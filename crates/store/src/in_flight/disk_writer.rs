//! Writes content to disk while it arrives, and frees its memory.

use crate::charge::block_bytes;
use crate::in_flight::content::InFlightContent;
use std::sync::Arc;
use std::task::Waker;
use weir_disk::{Disk, Extent, PendingRecord, RecordWriter, Refused, Ticket};
use weir_policy::Digest;

/// Bytes of one response that may wait to be written. They are the disk's, which bounds them over
/// all; one response that comes faster than the device writes must not fill its queue alone.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// A response that goes to disk as it arrives.
#[derive(Debug)]
pub(crate) struct DiskWriter {
    writer: RecordWriter,
    /// What it has of an older record, once its content is known.
    inherited: Option<Vec<Extent>>,
    /// Bytes of memory of the blocks that were handed over and are not known to be written.
    /// Computed here: the writer continues between two calls, and written blocks count as memory
    /// until they are replaced.
    handed_bytes: usize,
    /// Blocks of the part that it began with which are not handed over: no extent has some of these
    /// and some of what came.
    base_blocks: usize,
}

impl DiskWriter {
    pub(crate) fn begin(
        disk: &Arc<Disk>,
        key: Digest,
        ticket: Ticket,
        expected: Option<u64>,
    ) -> Result<Self, Refused> {
        Ok(Self {
            writer: disk.begin(key, ticket, expected)?,
            inherited: None,
            handed_bytes: 0,
            base_blocks: 0,
        })
    }

    /// Takes back the memory of what was written, and hands over what was sealed.
    ///
    /// # Errors
    ///
    /// Why it cannot go on: nothing of it will be found on disk.
    pub(crate) fn go_on(&mut self, in_flight: &mut InFlightContent) -> Result<(), Refused> {
        self.hand_over(in_flight, WAITING_BYTES_MAX)
    }

    /// The same at the end, with all there is.
    ///
    /// # Errors
    ///
    /// As for [`Self::go_on`].
    pub(crate) fn end(&mut self, in_flight: &mut InFlightContent) -> Result<(), Refused> {
        self.hand_over(in_flight, usize::MAX)?;
        self.writer.flush()
    }

    fn hand_over(
        &mut self,
        in_flight: &mut InFlightContent,
        waiting_max: usize,
    ) -> Result<(), Refused> {
        if let Some(why) = self.writer.failed() {
            return Err(why);
        }
        if self.inherited.is_none() {
            // what it has in memory already is written first
            self.base_blocks = in_flight.start_write_behind();
            self.inherited = Some(in_flight.extents());
        }
        for extent in self.writer.written() {
            let given_back = in_flight.put_on_disk(extent);
            self.handed_bytes = self.handed_bytes.saturating_sub(given_back);
        }
        while let Some((from, block)) = in_flight.next_unwritten() {
            let bytes = block_bytes(block.len());
            let is_end = waiting_max == usize::MAX;
            if !is_end
                && (self.handed_bytes.saturating_add(bytes) > waiting_max
                    || !self.writer.has_room(bytes))
            {
                // it waits in memory, in its own account; what was handed over waits for no more
                self.writer.flush()?;
                break;
            }
            self.writer.push(from, Arc::clone(block))?;
            self.handed_bytes += bytes;
            in_flight.pop_unwritten();
            if self.base_blocks > 0 {
                self.base_blocks -= 1;
                if self.base_blocks == 0 {
                    self.writer.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Whether the disk takes all that is left of it at once, as [`Self::end`] hands it over. What
    /// it takes before is handed over now.
    ///
    /// # Errors
    ///
    /// As for [`Self::go_on`].
    pub(crate) fn can_end(&mut self, in_flight: &mut InFlightContent) -> Result<bool, Refused> {
        self.go_on(in_flight)?;
        let left = in_flight.unwritten_bytes();
        // each block takes a little more of the queue than its bytes
        Ok(self.writer.has_room(left.saturating_add(left / 16)))
    }

    /// Wakes `waker` once when more was written, if anything waits for that.
    pub(crate) fn wake_on_written(&self, waker: &Waker) {
        if self.handed_bytes > 0 {
            self.writer.wake_on_written(waker);
        }
    }

    /// Bytes of memory of what was handed over and is not known to be written: they are in the
    /// disk's account.
    pub(crate) fn handed_bytes(&self) -> usize {
        self.handed_bytes
    }

    /// What there is to know of the record that [`Self::commit`] makes it.
    pub(crate) fn record(&self) -> PendingRecord {
        self.writer.record()
    }

    /// Makes it a record with `meta`.
    ///
    /// # Errors
    ///
    /// Why nothing is stored.
    pub(crate) fn commit(self, meta: Vec<u8>) -> Result<PendingRecord, Refused> {
        let inherited = self.inherited.unwrap_or_default();
        self.writer.commit(meta, &inherited)
    }
}
