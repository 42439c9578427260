//! What crates and modules keep to: which uses which, folders, features, licences.

pub(super) mod arrows;
pub(super) mod circles;
pub(super) mod features;
pub(super) mod folders;
pub(super) mod licences;
pub(super) mod metadata;
