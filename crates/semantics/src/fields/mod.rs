//! Field lines: lists, structured values, and the fields that have a meaning for a cache.

pub(crate) mod claim;
pub(crate) mod field;
pub(crate) mod hop_by_hop;
pub(crate) mod known;
pub(crate) mod names;
pub(crate) mod peer;
pub(crate) mod preference;
pub(crate) mod priority;
pub(crate) mod purge_message;
pub(crate) mod structured;
pub(crate) mod upgrade;
pub(crate) mod via;
