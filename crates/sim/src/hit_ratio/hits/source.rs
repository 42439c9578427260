//! Where requests come from.

use crate::hit_ratio::keys::Access;
pub use weir_trace::TraceError;

/// A trace that can be read from its beginning any number of times.
pub trait Trace: Sync {
    /// Its name for tables and records: a path, or what it was made from.
    fn name(&self) -> String;

    /// From the beginning.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError>;
}

/// Requests in order, some at a time.
pub trait Accesses {
    /// Appends the next ones, about [`BATCH`]; none are appended when there are no more.
    ///
    /// # Errors
    /// The trace cannot be read on.
    fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError>;
}

/// Requests a batch.
pub const BATCH: usize = 8192;

/// Any iterator as [`Accesses`].
#[derive(Clone, Debug)]
pub struct AccessIterator<I>(pub I);

impl<I: Iterator<Item = Access>> Accesses for AccessIterator<I> {
    fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError> {
        batch.extend(self.0.by_ref().take(BATCH));
        Ok(())
    }
}

impl Trace for Vec<Access> {
    fn name(&self) -> String {
        format!("{} requests", self.len())
    }

    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
        Ok(Box::new(AccessIterator(self.iter().copied())))
    }
}
