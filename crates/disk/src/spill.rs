//! A large response on its way to disk.

use crate::{Extent, Refused};
use std::sync::Arc;
use std::task::Waker;

/// Content that goes to disk while it arrives. Dropping it abandons what was written: it is found by nobody.
#[derive(Debug)]
pub struct Spill {
    never: std::convert::Infallible,
}

impl Spill {
    /// Takes a block at offset `from` of the content. Blocks that follow each other become runs of up to 1 MiB.
    ///
    /// # Errors
    /// The block was not taken; the spill is not usable any more.
    pub fn push(&mut self, from: u64, block: Arc<[u8]>) -> Result<(), Refused> {
        let _ = (from, block);
        match self.never {}
    }

    /// Closes the run under way, so that everything pushed will be written without waiting for more.
    ///
    /// # Errors
    /// The run was not taken; the spill is not usable any more.
    pub fn flush(&mut self) -> Result<(), Refused> {
        match self.never {}
    }

    /// What was written since this was last asked; readable from now on.
    #[must_use]
    pub fn written(&self) -> Vec<Extent> {
        match self.never {}
    }

    /// Wakes `waker` once when there is more in [`Self::written`] or the spill has failed.
    pub fn wake_on_written(&self, waker: &Waker) {
        let _ = waker;
        match self.never {}
    }

    /// Bytes pushed and not yet written: what this response holds of the queue.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        match self.never {}
    }

    /// Why nothing more is written, if so.
    #[must_use]
    pub fn failed(&self) -> Option<Refused> {
        match self.never {}
    }

    /// Writes the record that lists what was pushed and `inherited` (runs of an older record of the same key that are still
    /// wanted; where they overlap with what was pushed, they are cut). Found from the moment it is written.
    ///
    /// # Errors
    /// Why nothing is stored.
    pub fn commit(self, meta: Vec<u8>, inherited: &[Extent]) -> Result<(), Refused> {
        let _ = (meta, inherited);
        match self.never {}
    }
}
