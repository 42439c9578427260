//! Purges: what is in force, and the journal that makes it last.

pub(crate) mod forgotten;
pub(crate) mod journal;
pub(crate) mod purges;
