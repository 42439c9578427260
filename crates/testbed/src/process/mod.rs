//! Child processes: where they run, what they use, and how they end.

pub(crate) mod affinity;
pub(crate) mod files;
pub(crate) mod guarded;
pub(crate) mod usage;
pub(crate) mod workplace;
