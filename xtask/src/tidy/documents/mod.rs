//! What documents and records keep to.

pub(super) mod changelog;
pub(super) mod index;
pub(super) mod links;
pub(super) mod records;
