//! What an instance may allocate, as wasmtime calls it.

use crate::limits::{Limits, TABLES_MAX};
use wasmtime::ResourceLimiter;

#[derive(Debug)]
pub(crate) struct Limiter {
    memory_bytes_max: usize,
    table_elements_max: usize,
    /// The size of the memory that was refused last, bytes.
    refused_memory_bytes: Option<usize>,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory_bytes_max: limits.memory_bytes_max,
            table_elements_max: limits.table_elements_max,
            refused_memory_bytes: None,
        }
    }

    /// What an operator should read behind the reason of a failure.
    pub(crate) fn remark(&self) -> Option<String> {
        let refused = self.refused_memory_bytes?;
        let limit = self.memory_bytes_max;
        Some(format!(
            "{refused} bytes of memory were refused before, at most {limit}"
        ))
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let fits = desired <= self.memory_bytes_max;
        if !fits {
            self.refused_memory_bytes = Some(desired);
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= self.table_elements_max)
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        1
    }
}
