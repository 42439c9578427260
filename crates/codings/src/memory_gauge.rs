//! How much memory a decoder has.

use std::cell::Cell;
use std::rc::Rc;

/// Shows how much memory a decoder has. The decoder writes it, and what charges the memory reads
/// it after each call.
#[derive(Clone, Debug, Default)]
pub struct MemoryGauge(Rc<Cell<usize>>);

impl MemoryGauge {
    /// The memory, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.get()
    }

    pub(crate) fn set(&self, bytes: usize) {
        self.0.set(bytes);
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_add(bytes));
    }

    pub(crate) fn subtract(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes));
    }
}
