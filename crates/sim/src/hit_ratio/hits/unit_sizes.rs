//! A trace whose responses all count as one.

use super::source::{Accesses, Trace, TraceError};
use crate::hit_ratio::keys::Access;

/// The same requests, each for one byte: capacities are then numbers of responses.
pub struct UnitSizes<'t>(pub &'t dyn Trace);

impl Trace for UnitSizes<'_> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn open(&self) -> Result<Box<dyn Accesses + '_>, TraceError> {
        Ok(Box::new(Reading(self.0.open()?)))
    }
}

struct Reading<'t>(Box<dyn Accesses + 't>);

impl Accesses for Reading<'_> {
    fn read(&mut self, batch: &mut Vec<Access>) -> Result<(), TraceError> {
        let before = batch.len();
        self.0.read(batch)?;
        for access in &mut batch[before..] {
            access.size_bytes = 1;
        }
        Ok(())
    }
}
