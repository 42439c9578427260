//! Logs: files of lines.

pub(crate) mod clf;
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod number;
pub(crate) mod size;
pub(crate) mod squid;
pub(crate) mod webcachesim;
