//! Entity tags and preconditions (RFC 9110 §8.8, §13).

pub(crate) mod conditional;
pub(crate) mod entity_tag;
